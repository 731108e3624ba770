//! What stands in session files, read beside the loop: answers to questions, and
//! the branches of a move in the tree.
//!
//! Reads a snapshot of the moment it was asked for, so the order of answers and
//! commands stays while the loop goes on. Must never append.

use crew_base::id::{EntryId, RunId, SessionId};
use crew_base::json::Raw;
use crew_base::message::Usage;
use crew_base::model::ThinkingLevel;
use crew_engine::Event;
use crew_engine::api::{Branch, Left};
use crew_store::session::branch;
use crew_store::session::copy::{fork_point, user_messages};
use crew_store::session::index::Kind;
use crew_store::session::snapshot::Snapshot;
use crew_store::session::totals::{custom_data, totals};
use crew_store::session::tree::tree_json;

use crate::causes::with_causes;
use crate::query::{Answer, QueryError, SessionTotals};
use crate::run::Loop;
use crate::tasks::BranchEnd;

/// What has to be read for an answer.
pub(crate) enum Reading {
    Entries {
        since: Option<EntryId>,
        leaf: Option<EntryId>,
    },
    Tree {
        leaf: Option<EntryId>,
    },
    /// With the live figures of open children.
    Totals {
        open: Vec<(String, Usage)>,
    },
    ForkMessages,
    ForkPoint(EntryId),
}

impl Reading {
    pub(crate) fn read(self, log: &Snapshot) -> Result<Answer, QueryError> {
        Ok(match self {
            Reading::Entries { since, leaf } => {
                Answer::Entries { entries: entries(log, since)?, leaf }
            }
            Reading::Tree { leaf } => {
                let tree = Raw::parse(&tree_json(log)?).unwrap_or_else(Raw::empty_object);
                Answer::Tree { tree, leaf }
            }
            Reading::Totals { open } => {
                let crew = crew_usage(log, &open)?;
                Answer::Totals(Box::new(SessionTotals { own: totals(log)?, crew }))
            }
            Reading::ForkMessages => Answer::ForkMessages(user_messages(log)?),
            Reading::ForkPoint(entry) => {
                let (leaf, text) = fork_point(log, &entry)?;
                Answer::ForkPoint { leaf, text }
            }
        })
    }
}

impl Loop {
    pub(crate) fn read_branch(
        &mut self,
        session: SessionId,
        run: RunId,
        from: Option<EntryId>,
        to: EntryId,
    ) {
        let live = self.sessions.get(&session).filter(|live| live.failed.is_none());
        let log = live.and_then(|live| live.log.as_ref());
        let Some(log) = log.map(|log| log.snapshot()) else {
            let result = Err("the session could not be written".to_owned());
            self.urgent.push_back(Event::BranchRead { session, run, result });
            return;
        };
        let end = BranchEnd::new(session, run, self.inputs.clone());
        self.tracker.spawn_blocking(move || {
            let read = branch::branch(&log, from.as_ref(), &to);
            end.send(read.map(of_store).map_err(|error| with_causes(&error)));
        });
    }
}

fn of_store(read: branch::Branch) -> Branch {
    let level = read.context.thinking_level.as_deref().and_then(ThinkingLevel::parse);
    let left = |left: branch::Left| Left { message: left.message, details: left.details };
    Branch {
        leaf: read.leaf,
        draft: read.draft,
        context: read.context.messages,
        thinking: level.unwrap_or(ThinkingLevel::Off),
        left: read.left.into_iter().map(left).collect(),
    }
}

fn entries(log: &Snapshot, since: Option<EntryId>) -> Result<Vec<Raw>, QueryError> {
    let from = match since {
        None => 0,
        Some(id) => match log.index().position(&id) {
            Some(at) => at + 1,
            None => return Err(QueryError::UnknownEntry(id)),
        },
    };
    let mut entries = Vec::new();
    log.each_line(from, |_, line| entries.extend(Raw::parse(line)))?;
    Ok(entries)
}

/// Usage of all children of a session: the newest record of each in its file,
/// and the live figures of those still open.
fn crew_usage(log: &Snapshot, open: &[(String, Usage)]) -> Result<Usage, QueryError> {
    let mut newest: Vec<(String, Usage)> = Vec::new();
    let mut set = |id: String, usage: Usage| match newest.iter_mut().find(|(known, _)| *known == id)
    {
        Some((_, known)) => *known = usage,
        None => newest.push((id, usage)),
    };
    let has_any = log.index().entries().iter().any(|entry| entry.kind == Kind::Custom);
    if has_any {
        for (_, data) in custom_data(log, "crew.usage")? {
            let value = data.value();
            let id = value["subagentId"].as_str().unwrap_or_default().to_owned();
            let usage = serde_json::from_value(value["usage"].clone()).unwrap_or_default();
            set(id, usage);
        }
    }
    for (id, usage) in open {
        set(id.clone(), usage.clone());
    }
    let mut sum = Usage::default();
    newest.iter().for_each(|(_, usage)| sum.add(usage));
    Ok(sum)
}
