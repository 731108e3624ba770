//! Between the end of a child and the return of its changes: the message of the
//! commits that are made for it (ISO-9).

use crew_base::id::SessionId;
use crew_base::message::Usage;
use crew_base::time::Time;

use super::{Stage, Tasks};
use crate::effect::Effect;
use crate::isolation::Capture;
use crate::record::Record;
use crate::settings::Merge;
use crate::wording;

impl Tasks {
    /// Brings the changes back, after a message was asked for where the
    /// settings want one.
    pub(super) fn word(&mut self, session: &SessionId, record: Box<Record>, capture: Capture) {
        let is_wanted = match capture.merge {
            Merge::Branch => capture.generated_message,
            Merge::Patch => false,
        };
        let Some(child) = self.children.get_mut(session) else { return };
        let is_cancelled = self.calls.get(&child.place.0).is_none_or(|call| call.is_cancelled);
        if !is_wanted || is_cancelled {
            self.bring_back(session, record, capture);
            return;
        }
        let handle = capture.handle;
        child.stage = Stage::Wording { record, capture, is_asked: false };
        self.out.push(Effect::Describe { session: session.clone(), handle });
    }

    /// What a child changed that is to be committed for it; `None` if that is
    /// nothing. A failure costs only the message.
    pub fn described(
        &mut self,
        now: Time,
        session: &SessionId,
        diff: Result<Option<String>, String>,
    ) {
        let Some(child) = self.children.get_mut(session) else { return };
        let Stage::Wording { is_asked: is_asked @ false, .. } = &mut child.stage else { return };
        let parent = self.calls.get(&child.place.0).map(|call| call.caller.session.clone());
        match (diff, parent) {
            (Ok(Some(diff)), Some(parent)) => {
                *is_asked = true;
                let messages = wording::request(now, &diff);
                self.out.push(Effect::Word { session: session.clone(), parent, messages });
            }
            (Ok(_) | Err(_), _) => self.worded(session, None, None),
        }
    }

    /// The model answered, or did not.
    pub fn worded(&mut self, session: &SessionId, answer: Option<&str>, usage: Option<Usage>) {
        let Some(child) = self.children.get_mut(session) else { return };
        let Stage::Wording { record, capture, .. } = &child.stage else { return };
        let (mut record, mut capture) = (record.clone(), capture.clone());
        if let Some(usage) = usage {
            record.usage.get_or_insert_default().add(&usage);
        }
        if let Some(message) = answer.and_then(wording::usable) {
            capture.message = message;
        }
        self.bring_back(session, record, capture);
    }

    /// Nobody waits for a message any more.
    pub(super) fn stop_wording(&mut self, session: &SessionId) {
        let Some(child) = self.children.get(session) else { return };
        let Stage::Wording { is_asked, .. } = child.stage else { return };
        if is_asked {
            self.out.push(Effect::StopWording { session: session.clone() });
        }
        self.worded(session, None, None);
    }

    fn bring_back(&mut self, session: &SessionId, record: Box<Record>, capture: Capture) {
        let Some(child) = self.children.get_mut(session) else { return };
        child.stage = Stage::Integrating { record };
        self.out.push(Effect::Integrate { session: session.clone(), capture });
    }
}
