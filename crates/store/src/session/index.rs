//! What stands where in a session file: ids, parents, kinds and byte ranges,
//! plus the few facts that count in file order (name and labels).
//!
//! Holds no message text. See `scan` for how it is filled.

use std::collections::{BTreeMap, HashMap};

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, TakenEntryIds};
use crew_base::message::Message;
use crew_base::time::Time;

/// Who speaks in a `message` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `system`.
    System,
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `toolResult`.
    ToolResult,
    /// `bashExecution`.
    BashExecution,
    /// `custom`, in old files.
    Custom,
    /// Any other; no context comes from it.
    Other,
}

/// What an entry is, by its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `message`.
    Message(Role),
    /// `model_change`.
    ModelChange,
    /// `thinking_level_change`.
    ThinkingLevelChange,
    /// `compaction`.
    Compaction,
    /// `branch_summary`.
    BranchSummary,
    /// `context_edit`.
    ContextEdit,
    /// `custom`.
    Custom,
    /// `custom_message`.
    CustomMessage,
    /// `label`.
    Label,
    /// `session_info`.
    SessionInfo,
    /// `usage`.
    Usage,
    /// A type we do not know (`host.md` 2.2.10).
    Unknown,
}

/// One entry as the index knows it.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// Its id.
    pub id: EntryId,
    /// The entry it follows, as written; maybe one that is not in the file.
    pub parent_id: Option<EntryId>,
    /// Its type.
    pub kind: Kind,
    /// Its time; zero when the file gives none that can be read.
    pub time: Time,
    /// First byte of its line.
    pub(crate) start: u64,
    /// Bytes of its line without the line feed.
    pub(crate) len: usize,
}

/// A label in force (`host.md` 2.4.5).
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The text.
    pub text: String,
    /// ISO time of the entry that set it.
    pub timestamp: String,
    /// Id of that entry.
    pub entry: EntryId,
    /// Its place in file order.
    pub at: usize,
}

/// The entries of one session in file order.
#[derive(Clone, Debug, Default)]
pub struct Index {
    entries: Vec<Indexed>,
    by_id: HashMap<EntryId, usize>,
    name: Option<String>,
    labels: BTreeMap<EntryId, Label>,
}

impl Role {
    /// The role of a word in a file; old hook messages count as custom ones.
    pub fn parse(word: &str) -> Role {
        match word {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "toolResult" => Role::ToolResult,
            "bashExecution" => Role::BashExecution,
            "custom" | "hookMessage" => Role::Custom,
            _ => Role::Other,
        }
    }

    fn of(message: &Message) -> Role {
        match message {
            Message::System(_) => Role::System,
            Message::User(_) => Role::User,
            Message::Assistant(_) => Role::Assistant,
            Message::ToolResult(_) => Role::ToolResult,
            Message::BashExecution(_) => Role::BashExecution,
            Message::Custom(_) => Role::Custom,
            Message::BranchSummary(_) | Message::CompactionSummary(_) => Role::Other,
        }
    }
}

impl Kind {
    /// The kind of a `type` word; the role matters for messages only.
    pub fn parse(word: &str, role: Option<&str>) -> Kind {
        match word {
            "message" => Kind::Message(role.map_or(Role::Other, Role::parse)),
            "model_change" => Kind::ModelChange,
            "thinking_level_change" => Kind::ThinkingLevelChange,
            "compaction" => Kind::Compaction,
            "branch_summary" => Kind::BranchSummary,
            "context_edit" => Kind::ContextEdit,
            "custom" => Kind::Custom,
            "custom_message" => Kind::CustomMessage,
            "label" => Kind::Label,
            "session_info" => Kind::SessionInfo,
            "usage" => Kind::Usage,
            _ => Kind::Unknown,
        }
    }

    /// The kind of an entry in memory.
    pub fn of(body: &EntryBody) -> Kind {
        match body {
            EntryBody::Message { message } => Kind::Message(Role::of(message)),
            EntryBody::ModelChange { .. } => Kind::ModelChange,
            EntryBody::ThinkingLevelChange { .. } => Kind::ThinkingLevelChange,
            EntryBody::Compaction { .. } => Kind::Compaction,
            EntryBody::BranchSummary { .. } => Kind::BranchSummary,
            EntryBody::ContextEdit { .. } => Kind::ContextEdit,
            EntryBody::Custom { .. } => Kind::Custom,
            EntryBody::CustomMessage { .. } => Kind::CustomMessage,
            EntryBody::Label { .. } => Kind::Label,
            EntryBody::SessionInfo { .. } => Kind::SessionInfo,
            EntryBody::Usage { .. } => Kind::Usage,
            EntryBody::Unknown(_) => Kind::Unknown,
        }
    }

    /// Whether a session that holds such an entry gets a file
    /// (`host.md` 2.2.2).
    pub fn makes_file(self) -> bool {
        matches!(self, Kind::Message(Role::User | Role::Assistant))
    }
}

impl Index {
    /// All entries in file order.
    pub fn entries(&self) -> &[Indexed] {
        &self.entries
    }

    /// The place of an entry; of entries with the same id, the last.
    pub fn position(&self, id: &EntryId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Whether a user or assistant message is among the entries.
    pub fn makes_file(&self) -> bool {
        self.entries.iter().any(|entry| entry.kind.makes_file())
    }

    /// The session name in force (`host.md` 2.4.4).
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The labels in force, by their target (`host.md` 2.4.5).
    pub fn labels(&self) -> &BTreeMap<EntryId, Label> {
        &self.labels
    }

    /// The eight-digit ids in use, for the generator of new ones.
    pub fn taken(&self) -> TakenEntryIds {
        let mut taken = TakenEntryIds::default();
        for entry in &self.entries {
            taken.take(&entry.id);
        }
        taken
    }

    /// The entries from the root to a leaf, as places in file order
    /// (`host.md` 2.6.1). An unknown leaf means the last entry, a missing
    /// parent ends the walk, a cycle is left at its second visit.
    pub fn path(&self, leaf: &EntryId) -> Vec<usize> {
        let mut at = self.position(leaf).or_else(|| self.entries.len().checked_sub(1));
        let mut seen = vec![false; self.entries.len()];
        let mut path = Vec::new();
        while let Some(place) = at {
            if std::mem::replace(&mut seen[place], true) {
                break;
            }
            path.push(place);
            let parent = self.entries[place].parent_id.as_ref();
            at = parent.and_then(|id| self.position(id));
        }
        path.reverse();
        path
    }

    /// Adds an entry; `entry` is read only for kinds that count in file order.
    pub(crate) fn push(&mut self, mut indexed: Indexed, entry: impl FnOnce() -> Option<Entry>) {
        let at = self.entries.len();
        // Most parents are entries before: sharing their text halves the index.
        if let Some(parent) = &indexed.parent_id
            && let Some((known, _)) = self.by_id.get_key_value(parent)
        {
            indexed.parent_id = Some(known.clone());
        }
        if matches!(indexed.kind, Kind::Label | Kind::SessionInfo)
            && let Some(entry) = entry()
        {
            self.note(at, entry);
        }
        self.by_id.insert(indexed.id.clone(), at);
        self.entries.push(indexed);
    }

    fn note(&mut self, at: usize, entry: Entry) {
        if let EntryBody::SessionInfo { name } = entry.body {
            self.name = name.filter(|name| !name.is_empty());
        } else if let EntryBody::Label { target_id, label } = entry.body {
            match label.filter(|text| !text.is_empty()) {
                None => self.labels.remove(&target_id),
                Some(text) => self.labels.insert(
                    target_id,
                    Label { text, timestamp: entry.timestamp, entry: entry.id, at },
                ),
            };
        }
    }
}

/// Cleans a session name: trimmed, runs of line breaks become one space
/// (`host.md` 2.4.4).
pub fn clean_name(name: &str) -> String {
    let mut clean = String::with_capacity(name.len());
    let mut in_break = false;
    for c in name.trim().chars() {
        let is_break = matches!(c, '\r' | '\n');
        if !is_break {
            clean.push(c);
        } else if !in_break {
            clean.push(' ');
        }
        in_break = is_break;
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_trimmed_line() {
        // host.md 2.4.4
        let check = |name: &str, expected: &str| assert_eq!(clean_name(name), expected);
        check("  two\r\n\nlines ", "two lines");
        check(" \n ", "");
        check("a\tb", "a\tb");
    }

    #[test]
    fn a_cycle_of_parents_ends_the_walk() {
        // host.md 2.6.1
        let mut index = Index::default();
        for (id, parent) in [("a", "c"), ("b", "a"), ("c", "b")] {
            let indexed = Indexed {
                id: id.into(),
                parent_id: Some(parent.into()),
                kind: Kind::Custom,
                time: Time(0),
                start: 0,
                len: 0,
            };
            index.push(indexed, || None);
        }
        assert_eq!(index.path(&"c".into()), [0, 1, 2]);
        assert_eq!(index.path(&"unknown".into()), [0, 1, 2]);
    }
}
