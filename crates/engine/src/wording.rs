//! Requests that belong to no conversation: the message of a commit that is
//! made for a child of `task` (`task.md` ISO-9).
//!
//! One attempt each, in the lane of its provider like every other request. Must
//! never reach an agent or a record; what it costs goes back with the answer.

use crew_base::id::{RunId, SessionId};
use crew_base::message::{Block, SharedMessage, Usage};
use crew_base::model::{
    CacheRetention, ModelEvent, ModelRequest, ModelSpec, ThinkingLevel, ToolChoice,
};
use std::sync::Arc;

use crate::effect::Effect;
use crate::pacing::Held;
use crate::step::Engine;

/// A request under way.
#[derive(Debug)]
pub(crate) struct Wording {
    /// For whom.
    child: SessionId,
    /// Whose model answers; the stream is one of this session.
    parent: SessionId,
    model: Arc<ModelSpec>,
    text: String,
    usage: Option<Usage>,
}

impl Engine {
    /// Asks the model of the calling session; without one there is no answer.
    pub(crate) fn start_wording(
        &mut self,
        child: SessionId,
        parent: SessionId,
        messages: Vec<SharedMessage>,
    ) {
        let session = self.sessions.get(&parent).filter(|session| session.is_open());
        let Some(model) = session.and_then(|session| session.agent.model().cloned()) else {
            self.tasks.worded(&child, None, None);
            return;
        };
        let run = self.ids.run();
        let request = ModelRequest {
            session: child.clone(),
            messages,
            thinking: model.clamp(ThinkingLevel::Off),
            cache: CacheRetention::None,
            tool_choice: ToolChoice::Auto,
            model: Arc::clone(&model),
        };
        let held = Held { session: parent.clone(), run, request };
        let wording = Wording { child, parent, model, text: String::new(), usage: None };
        self.wordings.insert(run, wording);
        let admitted = self.pacing.admit(self.now, held);
        self.out.extend(admitted.map(Effect::from));
    }

    /// The answer is no longer wanted.
    pub(crate) fn stop_wording(&mut self, child: &SessionId) {
        let found = self.wordings.iter().find(|(_, wording)| wording.child == *child);
        let Some(run) = found.map(|(run, _)| *run) else { return };
        let Some(wording) = self.wordings.remove(&run) else { return };
        if !self.pacing.cancel(run) {
            self.out.push(Effect::Cancel { session: wording.parent, run });
        }
    }

    /// Takes what a stream said, if it is one of these.
    pub(crate) fn wording_events(&mut self, run: RunId, events: &[ModelEvent]) -> bool {
        let Some(wording) = self.wordings.get_mut(&run) else { return false };
        let is_over = events.iter().any(|event| wording.take(event));
        let is_good = !events.iter().any(|event| matches!(event, ModelEvent::Failed(_)));
        if is_over && let Some(wording) = self.wordings.remove(&run) {
            let answer = is_good.then_some(wording.text.as_str());
            self.tasks.worded(&wording.child, answer, wording.usage);
        }
        true
    }
}

impl Wording {
    /// Takes one event; tells whether it is the last.
    fn take(&mut self, event: &ModelEvent) -> bool {
        match event {
            ModelEvent::BlockEnd { block: Block::Text(text), .. } => {
                self.text.push_str(&text.text);
                false
            }
            ModelEvent::Usage(usage) => {
                let mut usage = usage.clone();
                self.model.price(&mut usage);
                self.usage = Some(usage);
                false
            }
            ModelEvent::Started
            | ModelEvent::BlockStart { .. }
            | ModelEvent::BlockDelta { .. }
            | ModelEvent::BlockEnd { .. }
            | ModelEvent::Identity { .. } => false,
            ModelEvent::Finished { .. } | ModelEvent::Failed(_) => true,
        }
    }
}
