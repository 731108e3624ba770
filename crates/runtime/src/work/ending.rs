//! The one event in which a piece of work ends.

use crew_engine::Event;
use tokio::sync::mpsc::UnboundedSender;

use crate::run::Input;

/// Sends an event once: the one that the work gave, else the one for work that
/// broke off.
pub(super) struct Ending {
    inputs: UnboundedSender<Input>,
    event: Option<Event>,
}

impl Ending {
    /// `broken` is sent when nothing else was before the value goes away.
    pub(super) fn new(inputs: &UnboundedSender<Input>, broken: Event) -> Ending {
        Ending { inputs: inputs.clone(), event: Some(broken) }
    }

    pub(super) fn send(mut self, event: Event) {
        self.event = Some(event);
    }

    /// Another ending for the case that nothing is sent.
    pub(super) fn otherwise(&mut self, event: Event) {
        self.event = Some(event);
    }

    /// Tells people of a problem that stopped nothing.
    pub(super) fn warn(&mut self, text: String) {
        let _ = self.inputs.send(Input::Warning(text));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            // A closed channel means that the loop is gone, and with it the need.
            let _ = self.inputs.send(Input::Event(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn work_ends_once_also_when_it_breaks_off() {
        // style.md 3
        let (inputs, mut receiver) = unbounded_channel();
        let event = |text: &str| Event::SessionClosed { session: text.into() };
        Ending::new(&inputs, event("broken")).send(event("done"));
        drop(Ending::new(&inputs, event("broken")));
        let mut ends = Vec::new();
        while let Ok(Input::Event(Event::SessionClosed { session })) = receiver.try_recv() {
            ends.push(session.to_string());
        }
        assert_eq!(ends, ["done", "broken"]);
    }
}
