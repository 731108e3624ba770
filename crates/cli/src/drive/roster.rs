//! What is known of the crew from its updates: who has open work.

use crew_base::id::SubagentId;
use crew_engine::api::{CrewUpdate, Status, UpdateKind};

/// A subagent as last heard of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    /// Its id.
    pub(crate) id: SubagentId,
    /// Its brief.
    pub(crate) brief: String,
    /// Its last status.
    pub(crate) status: Status,
    /// Whether it is at work or its result is on its way.
    is_open: bool,
}

/// All subagents that were heard of and are not gone, in order of creation.
#[derive(Debug, Default)]
pub(super) struct Roster {
    children: Vec<Child>,
}

impl Roster {
    /// Takes one update.
    pub(super) fn take(&mut self, update: &CrewUpdate) {
        let is_open = match &update.kind {
            UpdateKind::Spawned | UpdateKind::Responded | UpdateKind::Activity { .. } => true,
            // An abort delivers nothing; all else is on its way to the owner.
            UpdateKind::Settled { .. } => update.status != Status::Aborted,
            UpdateKind::Delivered => false,
            UpdateKind::Closed => {
                // The delivery of an error outlives its subagent.
                let on_its_way = update.status == Status::Error && self.is_open(&update.subagent);
                if !on_its_way {
                    self.children.retain(|child| child.id != update.subagent);
                    return;
                }
                true
            }
        };
        match self.children.iter_mut().find(|child| child.id == update.subagent) {
            Some(child) => {
                child.status = update.status;
                child.is_open = is_open;
            }
            None => self.children.push(Child {
                id: update.subagent.clone(),
                brief: update.brief.clone(),
                status: update.status,
                is_open,
            }),
        }
    }

    /// Those whose work is not over or whose result has not entered.
    pub(super) fn open(&self) -> Vec<Child> {
        self.children.iter().filter(|child| child.is_open).cloned().collect()
    }

    fn is_open(&self, id: &SubagentId) -> bool {
        self.children.iter().any(|child| child.id == *id && child.is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::message::Usage;

    fn update(status: Status, kind: UpdateKind) -> CrewUpdate {
        CrewUpdate {
            owner: "o".into(),
            session: "s".into(),
            subagent: "scout-1".into(),
            definition: "scout".into(),
            brief: "look".into(),
            model: None,
            status,
            kind,
        }
    }

    fn settled() -> UpdateKind {
        UpdateKind::Settled { text: String::new(), usage: Usage::default() }
    }

    #[test]
    fn work_is_open_until_its_result_has_entered() {
        let mut roster = Roster::default();
        let mut check = |status, kind, open: usize| {
            roster.take(&update(status, kind));
            assert_eq!(roster.open().len(), open);
        };
        check(Status::Running, UpdateKind::Spawned, 1);
        check(Status::NeedsInput, settled(), 1);
        check(Status::NeedsInput, UpdateKind::Delivered, 0);
        check(Status::Running, UpdateKind::Responded, 1);
        check(Status::Error, settled(), 1);
        check(Status::Error, UpdateKind::Closed, 1);
        check(Status::Error, UpdateKind::Delivered, 0);
        check(Status::Running, UpdateKind::Spawned, 1);
        check(Status::Aborted, settled(), 0);
        check(Status::Aborted, UpdateKind::Closed, 0);
    }
}
