//! The session files of the simulated shell.

use std::collections::BTreeMap;
use std::sync::Arc;

use crew_agent::{Branch, Left, Loaded};
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, SessionId, TakenEntryIds};
use crew_base::message::{
    BranchSummaryMessage, CompactionSummaryMessage, CustomMessage, Message, SharedMessage,
};
use crew_base::model::ThinkingLevel;
use crew_base::time::Time;

/// What was written of each owner that has a file.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: BTreeMap<SessionId, Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    lines: Vec<Line>,
    taken: TakenEntryIds,
    /// Where each entry stands in the file.
    places: BTreeMap<EntryId, usize>,
}

/// One entry, as far as a context needs it.
#[derive(Debug)]
struct Line {
    id: EntryId,
    parent: Option<EntryId>,
    gives: Gives,
}

/// What an entry gives to the context (`host.md` 2.6.4).
#[derive(Debug)]
enum Gives {
    Message(SharedMessage),
    /// Prompt and summary, and the first entry that is kept.
    Compaction(Vec<SharedMessage>, EntryId),
    /// Takes a message out.
    Edit(EntryId),
    Level(ThinkingLevel),
    Nothing,
}

impl Gives {
    fn of(now: Time, body: &EntryBody) -> Gives {
        Gives::Message(Arc::new(match body {
            EntryBody::Message { message } => message.clone(),
            EntryBody::CustomMessage { custom_type, content, display, details } => {
                Message::Custom(CustomMessage {
                    custom_type: custom_type.clone(),
                    content: content.clone(),
                    display: *display,
                    details: details.clone(),
                    timestamp: now,
                })
            }
            EntryBody::BranchSummary { from_id, summary, .. } => {
                let (from_id, summary) = (from_id.clone(), summary.clone());
                Message::BranchSummary(BranchSummaryMessage { summary, from_id, timestamp: now })
            }
            EntryBody::Compaction {
                summary,
                first_kept_entry_id,
                tokens_before,
                system_message,
                ..
            } => {
                let summary = Message::CompactionSummary(CompactionSummaryMessage {
                    summary: summary.clone(),
                    tokens_before: *tokens_before,
                    timestamp: now,
                });
                let head = system_message.iter().cloned().chain([summary]).map(Arc::new);
                return Gives::Compaction(head.collect(), first_kept_entry_id.clone());
            }
            EntryBody::ContextEdit { target_id, replacement: None } => {
                return Gives::Edit(target_id.clone());
            }
            EntryBody::ThinkingLevelChange { thinking_level } => {
                let level = ThinkingLevel::parse(thinking_level);
                return Gives::Level(level.unwrap_or(ThinkingLevel::Off));
            }
            _ => return Gives::Nothing,
        }))
    }
}

impl Stored {
    /// The entries from the root to a leaf (`host.md` 2.6.1).
    fn path(&self, leaf: Option<&EntryId>) -> Vec<&Line> {
        let mut path = Vec::new();
        let mut at = leaf.and_then(|leaf| self.places.get(leaf));
        while let Some(place) = at {
            let line = &self.lines[*place];
            path.push(line);
            at = line.parent.as_ref().and_then(|parent| self.places.get(parent));
        }
        path.reverse();
        path
    }

    /// The context at a leaf (`host.md` 2.6.2 to 2.6.4).
    fn context(&self, leaf: Option<&EntryId>) -> Vec<(EntryId, SharedMessage)> {
        let path = self.path(leaf);
        let is_compaction = |line: &&Line| matches!(line.gives, Gives::Compaction(..));
        let compaction = path.iter().rposition(is_compaction);
        let mut context = Vec::new();
        let mut kept = 0..0;
        if let Some(at) = compaction
            && let Gives::Compaction(head, first) = &path[at].gives
        {
            context.extend(head.iter().map(|message| (path[at].id.clone(), Arc::clone(message))));
            let from = path[..at].iter().position(|line| line.id == *first);
            kept = from.unwrap_or(at)..at;
        }
        let later = compaction.map_or(0, |at| at + 1);
        let is_prompt = |line: &&&Line| matches!(&line.gives, Gives::Message(m) if matches!(m.as_ref(), Message::System(_)));
        let kept = path[kept].iter().filter(|line| !is_prompt(line));
        let selected: Vec<&&Line> = kept.chain(&path[later..]).collect();
        for line in selected {
            match &line.gives {
                Gives::Message(message) => context.push((line.id.clone(), Arc::clone(message))),
                Gives::Edit(target) => context.retain(|(id, _)| id != target),
                Gives::Compaction(..) | Gives::Level(_) | Gives::Nothing => {}
            }
        }
        context
    }
}

impl Disk {
    pub(super) fn create(&mut self, session: &SessionId) {
        self.files.entry(session.clone()).or_default();
    }

    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.files.contains_key(session)
    }

    /// Takes one written entry, if its session has a file.
    pub(super) fn write(&mut self, now: Time, session: &SessionId, entry: &Entry) {
        let Some(stored) = self.files.get_mut(session) else { return };
        stored.taken.take(&entry.id);
        stored.places.insert(entry.id.clone(), stored.lines.len());
        let gives = Gives::of(now, &entry.body);
        stored.lines.push(Line { id: entry.id.clone(), parent: entry.parent_id.clone(), gives });
    }

    /// What a session finds when it is opened again: it stands at the last
    /// entry (`host.md` 2.2.7).
    pub(super) fn load(&self, session: &SessionId) -> Option<Loaded> {
        let stored = self.files.get(session)?;
        let leaf = stored.lines.last()?.id.clone();
        Some(Loaded {
            context: stored.context(Some(&leaf)),
            leaf: Some(leaf),
            taken: stored.taken.clone(),
            has_level_entry: true,
        })
    }

    /// The context at a leaf, if the session has a file.
    pub(super) fn context(
        &self,
        session: &SessionId,
        leaf: Option<&EntryId>,
    ) -> Option<Vec<(EntryId, SharedMessage)>> {
        Some(self.files.get(session)?.context(leaf))
    }

    /// The entry at a place of the file, counted round.
    pub(super) fn entry(&self, session: &SessionId, number: u64) -> Option<EntryId> {
        let lines = &self.files.get(session)?.lines;
        let count = u64::try_from(lines.len()).ok().filter(|count| *count > 0)?;
        let at = usize::try_from(number % count).ok()?;
        Some(lines[at].id.clone())
    }

    /// What a move needs (`host.md` 2.8.2, 2.8.3).
    pub(super) fn branch(
        &self,
        session: &SessionId,
        from: Option<&EntryId>,
        to: &EntryId,
    ) -> Result<Branch, String> {
        let stored = self.files.get(session).ok_or("the session has no file")?;
        let place = stored.places.get(to).ok_or("there is no such entry")?;
        let target = &stored.lines[*place];
        let typed = match &target.gives {
            Gives::Message(message) => match message.as_ref() {
                Message::User(user) => Some(user.content.text()),
                Message::Custom(custom) => Some(custom.content.text()),
                _ => None,
            },
            _ => None,
        };
        let leaf = if typed.is_some() { target.parent.clone() } else { Some(to.clone()) };
        let kept: Vec<&EntryId> = stored.path(Some(to)).iter().map(|line| &line.id).collect();
        let left = stored.path(from).into_iter().filter(|line| !kept.contains(&&line.id));
        let left = left.filter_map(|line| match &line.gives {
            Gives::Message(message) => Some(Left { message: Arc::clone(message), details: None }),
            _ => None,
        });
        let levels = stored.path(leaf.as_ref()).into_iter().rev();
        let level = levels.filter_map(|line| match &line.gives {
            Gives::Level(level) => Some(*level),
            _ => None,
        });
        Ok(Branch {
            context: stored.context(leaf.as_ref()),
            draft: typed,
            thinking: level.into_iter().next().unwrap_or(ThinkingLevel::Off),
            left: left.collect(),
            leaf,
        })
    }
}
