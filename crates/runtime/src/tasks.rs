//! Pieces of started work: each ends in exactly one event, also when it
//! panics, is cancelled or is dropped; what it says behind its end is ignored.

use std::sync::{Arc, Mutex, PoisonError};

use crew_base::definition::Discovery;
use crew_base::id::{RunId, SessionId};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent};
use crew_base::tool::ToolOutcome;
use crew_engine::Event;
use crew_engine::api::Branch;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::gate::Lane;
use crate::run::{Input, Opening};
use crate::workspace::Prepared;

/// Sends the events of one stream. Shared by the sink, which may outlive the
/// stream, and by the task.
pub(crate) struct Stream {
    session: SessionId,
    run: RunId,
    inputs: UnboundedSender<Input>,
    ended: Mutex<bool>,
    /// Cancelled behind the last event.
    pub(crate) over: CancellationToken,
    /// What the loop has not taken yet.
    pub(crate) lane: Arc<Lane>,
}

impl Stream {
    pub(crate) fn new(session: SessionId, run: RunId, inputs: UnboundedSender<Input>) -> Stream {
        Stream {
            session,
            run,
            inputs,
            ended: Mutex::new(false),
            over: CancellationToken::new(),
            lane: Arc::default(),
        }
    }

    /// Passes events on up to the ending.
    pub(crate) fn send(&self, mut events: Vec<ModelEvent>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if *ended || events.is_empty() {
            return;
        }
        let is_ending = |event: &ModelEvent| {
            matches!(event, ModelEvent::Finished { .. } | ModelEvent::Failed(_))
        };
        if let Some(at) = events.iter().position(is_ending) {
            events.truncate(at + 1);
            *ended = true;
            self.over.cancel();
        }
        self.lane.sent();
        let event = Event::Model { session: self.session.clone(), run: self.run, events };
        // A closed channel means that the loop is gone, and with it the need.
        let _ = self.inputs.send(Input::Streamed { event, lane: Arc::clone(&self.lane) });
    }
}

/// Held by the task of a stream: sends the missing ending, then that the run
/// is over.
pub(crate) struct StreamEnd(pub(crate) Arc<Stream>);

impl Drop for StreamEnd {
    fn drop(&mut self) {
        let Stream { session, run, inputs, .. } = &*self.0;
        self.0.send(vec![ModelEvent::Failed(ModelError::new(
            ModelErrorKind::Truncated,
            "the request ended without an answer: the provider task stopped",
        ))]);
        let _ = inputs.send(Input::Over { session: session.clone(), run: *run });
    }
}

/// Sends the one ending of a tool; an error when dropped without.
pub(crate) struct ToolEnd {
    session: SessionId,
    run: RunId,
    inputs: UnboundedSender<Input>,
    outcome: Option<ToolOutcome>,
}

impl ToolEnd {
    pub(crate) fn new(session: SessionId, run: RunId, inputs: UnboundedSender<Input>) -> ToolEnd {
        ToolEnd { session, run, inputs, outcome: None }
    }

    pub(crate) fn send(mut self, outcome: ToolOutcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for ToolEnd {
    fn drop(&mut self) {
        let outcome = self.outcome.take();
        let outcome =
            outcome.unwrap_or_else(|| ToolOutcome::error("the tool stopped without a result"));
        let (session, run) = (self.session.clone(), self.run);
        let _ = self.inputs.send(Input::Event(Event::ToolEnded {
            session: session.clone(),
            run,
            outcome,
        }));
        let _ = self.inputs.send(Input::Over { session, run });
    }
}

/// Sends the one ending of a preparation; an error when dropped without.
pub(crate) struct PrepareEnd {
    session: SessionId,
    opening: Opening,
    inputs: UnboundedSender<Input>,
    result: Option<Result<Prepared, String>>,
}

impl PrepareEnd {
    pub(crate) fn new(
        session: SessionId,
        opening: Opening,
        inputs: UnboundedSender<Input>,
    ) -> PrepareEnd {
        PrepareEnd { session, opening, inputs, result: None }
    }

    pub(crate) fn send(mut self, result: Result<Prepared, String>) {
        self.result = Some(result);
    }
}

impl Drop for PrepareEnd {
    fn drop(&mut self) {
        let result = self.result.take();
        let result = result.unwrap_or_else(|| {
            Err("the session could not be prepared because of an internal failure".to_owned())
        });
        let (session, opening) = (self.session.clone(), self.opening);
        let result = Box::new(result);
        let _ = self.inputs.send(Input::Prepared { session, opening, result });
    }
}

/// Sends the one ending of a reading of branches; an error when dropped without.
pub(crate) struct BranchEnd {
    session: SessionId,
    run: RunId,
    inputs: UnboundedSender<Input>,
    result: Option<Result<Branch, String>>,
}

impl BranchEnd {
    pub(crate) fn new(session: SessionId, run: RunId, inputs: UnboundedSender<Input>) -> BranchEnd {
        BranchEnd { session, run, inputs, result: None }
    }

    pub(crate) fn send(mut self, result: Result<Branch, String>) {
        self.result = Some(result);
    }
}

impl Drop for BranchEnd {
    fn drop(&mut self) {
        let result = self.result.take().unwrap_or_else(|| {
            Err("the session could not be read because of an internal failure".to_owned())
        });
        let (session, run) = (self.session.clone(), self.run);
        let event = Event::BranchRead { session, run, result: result.map(Box::new) };
        let _ = self.inputs.send(Input::Event(event));
    }
}

/// Sends the one ending of a discovery; an empty one when dropped without.
pub(crate) struct DiscoverEnd {
    run: RunId,
    inputs: UnboundedSender<Input>,
    discovery: Discovery,
}

impl DiscoverEnd {
    pub(crate) fn new(run: RunId, inputs: UnboundedSender<Input>) -> DiscoverEnd {
        DiscoverEnd { run, inputs, discovery: Discovery::default() }
    }

    pub(crate) fn send(mut self, discovery: Discovery) {
        self.discovery = discovery;
    }
}

impl Drop for DiscoverEnd {
    fn drop(&mut self) {
        let discovery = Arc::new(std::mem::take(&mut self.discovery));
        let event = Event::Discovered { run: self.run, discovery };
        let _ = self.inputs.send(Input::Event(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::message::StopReason;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    fn stream() -> (Arc<Stream>, UnboundedReceiver<Input>) {
        let (inputs, receiver) = unbounded_channel();
        (Arc::new(Stream::new("s".into(), RunId(1), inputs)), receiver)
    }

    fn finished() -> ModelEvent {
        ModelEvent::Finished { stop_reason: StopReason::Stop, raw_stop_reason: None }
    }

    fn word(event: &ModelEvent) -> &'static str {
        if let ModelEvent::Finished { .. } = event {
            "finished"
        } else if let ModelEvent::Failed(_) = event {
            "failed"
        } else {
            "more"
        }
    }

    /// Everything that was sent, in words.
    fn sent(receiver: &mut UnboundedReceiver<Input>) -> String {
        let mut words = Vec::new();
        while let Ok(input) = receiver.try_recv() {
            words.push(if let Input::Streamed { event: Event::Model { events, .. }, .. } = input {
                events.iter().map(word).collect::<Vec<_>>().join("+")
            } else if let Input::Event(Event::ToolEnded { outcome, .. }) = input {
                outcome.joined_text()
            } else if let Input::Over { .. } = input {
                "over".to_owned()
            } else {
                "other".to_owned()
            });
        }
        words.join(" ")
    }

    #[test]
    fn a_stream_has_one_ending_and_says_nothing_behind_it() {
        // style.md 3
        let check = |batches: Vec<Vec<ModelEvent>>, expected: &str| {
            let (stream, mut receiver) = stream();
            let end = StreamEnd(Arc::clone(&stream));
            batches.into_iter().for_each(|events| stream.send(events));
            drop(end);
            // The sink outlived the task.
            stream.send(vec![ModelEvent::Started, finished()]);
            assert_eq!(sent(&mut receiver), expected);
        };
        check(vec![], "failed over");
        check(vec![vec![]], "failed over");
        check(vec![vec![ModelEvent::Started]], "more failed over");
        check(vec![vec![ModelEvent::Started, finished(), finished()]], "more+finished over");
        check(vec![vec![finished()], vec![ModelEvent::Started]], "finished over");
    }

    #[test]
    fn a_tool_that_is_dropped_ends_as_an_error_before_it_is_over() {
        let (inputs, mut receiver) = unbounded_channel();
        ToolEnd::new("s".into(), RunId(1), inputs.clone()).send(ToolOutcome::text("good"));
        assert_eq!(sent(&mut receiver), "good over");
        drop(ToolEnd::new("s".into(), RunId(1), inputs));
        assert_eq!(sent(&mut receiver), "the tool stopped without a result over");
    }
}
