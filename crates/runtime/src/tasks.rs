//! Pieces of started work: each ends in exactly one event, also when it
//! panics; each can be cancelled.

use crew_base::id::{RunId, SessionId};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent};
use crew_base::tool::ToolOutcome;
use crew_engine::Event;
use tokio::sync::mpsc::UnboundedSender;

use crate::run::Input;

/// Sends the events of one stream; sends the missing ending when dropped.
pub(crate) struct StreamEnd {
    session: SessionId,
    run: RunId,
    inputs: UnboundedSender<Input>,
    ended: bool,
}

impl StreamEnd {
    pub(crate) fn new(session: SessionId, run: RunId, inputs: UnboundedSender<Input>) -> StreamEnd {
        StreamEnd { session, run, inputs, ended: false }
    }

    pub(crate) fn send(&mut self, events: Vec<ModelEvent>) {
        self.ended |= events
            .iter()
            .any(|event| matches!(event, ModelEvent::Finished { .. } | ModelEvent::Failed(_)));
        let event = Event::Model { session: self.session.clone(), run: self.run, events };
        // A closed channel means that the loop is gone, and with it the need.
        let _ = self.inputs.send(Input::Event(event));
    }
}

impl Drop for StreamEnd {
    fn drop(&mut self) {
        if !self.ended {
            let error = ModelError::new(
                ModelErrorKind::Truncated,
                "the request ended without an answer: the provider task stopped",
            );
            self.send(vec![ModelEvent::Failed(error)]);
        }
    }
}

/// Sends the one ending of a tool; an error when dropped without.
pub(crate) struct ToolEnd {
    session: SessionId,
    run: RunId,
    inputs: UnboundedSender<Input>,
    ended: bool,
}

impl ToolEnd {
    pub(crate) fn new(session: SessionId, run: RunId, inputs: UnboundedSender<Input>) -> ToolEnd {
        ToolEnd { session, run, inputs, ended: false }
    }

    pub(crate) fn send(&mut self, outcome: ToolOutcome) {
        self.ended = true;
        let event = Event::ToolEnded { session: self.session.clone(), run: self.run, outcome };
        let _ = self.inputs.send(Input::Event(event));
    }
}

impl Drop for ToolEnd {
    fn drop(&mut self) {
        if !self.ended {
            self.send(ToolOutcome::error("the tool stopped without a result"));
        }
    }
}
