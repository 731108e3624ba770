//! A session that is opened but not shown yet: its entries are read beside the
//! loop, and what happens in it meanwhile is kept.
//!
//! Owns which of that the entries hold already. Must never lose an update: a
//! result that its owner takes in as it is opened comes in just this moment.

use crew_base::id::SessionId;
use crew_engine::api::SessionUpdate;
use crew_runtime::Place;

/// What is kept until the session is shown.
pub(super) struct Coming {
    /// Which one.
    pub(super) session: SessionId,
    updates: Vec<(Place, SessionUpdate)>,
}

impl Coming {
    pub(super) fn new(session: SessionId) -> Coming {
        Coming { session, updates: Vec::new() }
    }

    /// Keeps one; `place` is the one behind it.
    pub(super) fn keep(&mut self, place: Place, update: SessionUpdate) {
        self.updates.push((place, update));
    }

    /// What the entries, read at `at`, do not show: all that came later, the
    /// course of the run, and what was still under way.
    pub(super) fn beyond(self, at: Place) -> Vec<SessionUpdate> {
        let is_end = |update: &SessionUpdate| matches!(update, SessionUpdate::MessageEnd(_));
        let stored =
            self.updates.iter().rposition(|(place, update)| *place <= at && is_end(update));
        let stored = stored.map_or(0, |last| last + 1);
        let all = self.updates.into_iter().enumerate();
        let kept = all.filter(|(nth, (_, update))| *nth >= stored || !is_content(update));
        kept.map(|(_, (_, update))| update).collect()
    }
}

/// Whether an update is about something that stands in entries.
fn is_content(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::MessageEnd(_)
            | SessionUpdate::ToolStart { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. }
            | SessionUpdate::EntryAppended(_)
    )
}
