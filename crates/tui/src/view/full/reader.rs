//! The transcript view (TERM-49): a whole session, everything expanded, with
//! search; the place is kept while rows come.

#![expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here")]

use crew_base::time::Time;
use crew_engine::api::Status;

use super::{Full, View};
use crate::cells::Row;
use crate::keys::action::{Action, Context};
use crate::keys::{Code, Key};
use crate::request::Request;
use crate::transcript::Look;
use crate::transcript::item::Item;
use crate::transcript::live::fitted;
use crate::view::Receiver;

/// How often the transcript of an open subagent is read again.
const READ_MS: u64 = 1_000;

/// Whose transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The shown session.
    Owner,
    /// A subagent, by id.
    Subagent(String),
    /// A stored session, by what it is called.
    Stored(String),
}

/// What is read and where.
#[derive(Debug)]
pub struct Reader {
    /// Whose.
    pub source: Source,
    items: Vec<Item>,
    /// Rows at the width they were made for.
    pub rows: Vec<Row>,
    /// First row of each item.
    starts: Vec<usize>,
    made: Option<(usize, usize, bool)>,
    /// The first and the last item that has rows.
    ends: Option<(Item, Item)>,
    /// First row on the screen.
    pub top: usize,
    /// Whether the end is followed.
    pub follows: bool,
    /// Whether blocks are expanded.
    pub expanded: bool,
    /// What is searched.
    pub find: Option<String>,
    /// Rows that hold it.
    pub hits: Vec<usize>,
    typing: bool,
    /// Whether nothing has arrived yet.
    pub waits: bool,
    asked: Time,
    /// How its subagent stood when it was read last, and whether it was gone.
    stood: Option<(Status, bool)>,
}

/// What follows a key.
pub(in crate::view) enum After {
    Stay,
    /// Back to where it was opened.
    Close,
    /// To the main screen.
    Leave,
}

impl Reader {
    /// An empty view that follows the end.
    pub fn new(source: Source, now: Time) -> Reader {
        let waits = source != Source::Owner;
        Reader {
            source,
            items: Vec::new(),
            rows: Vec::new(),
            starts: Vec::new(),
            made: None,
            ends: None,
            top: 0,
            follows: true,
            expanded: true,
            find: None,
            hits: Vec::new(),
            typing: false,
            waits,
            asked: now,
            stood: None,
        }
    }

    /// When an open subagent is read again: told by [`View::refresh_reader`].
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// Time has passed.
    pub fn tick(&mut self, _now: Time) {}

    /// Whether the search is being typed.
    pub fn is_typing(&self) -> bool {
        self.typing
    }

    /// Takes what was read; the place stays.
    pub fn set(&mut self, items: Vec<Item>) {
        self.items = items;
        self.waits = false;
        self.made = None;
    }

    /// Makes the rows for a width; nothing when they are made.
    fn make(&mut self, look: &Look, items: Option<&[Item]>) {
        let items = items.unwrap_or(&self.items);
        let made = Some((look.columns, items.len(), self.expanded));
        if self.made == made {
            return;
        }
        // What only grew keeps its rows: sessions are long.
        let kept = match self.made {
            Some((columns, count, expanded))
                if (columns, expanded) == (look.columns, self.expanded)
                    && count < items.len()
                    && self.ends == ends(&items[..count]) =>
            {
                count
            }
            Some(_) | None => 0,
        };
        if kept == 0 {
            self.rows.clear();
            self.starts.clear();
        }
        self.ends = ends(items);
        let look = Look { expanded: self.expanded, ..*look };
        for item in &items[kept..] {
            self.starts.push(self.rows.len());
            self.rows.extend(fitted(item.lines(&look), look.columns));
            self.rows.push(Row::new());
        }
        self.made = made;
        self.search();
    }

    fn search(&mut self) {
        self.hits.clear();
        let Some(find) = self.find.as_ref().filter(|find| !find.is_empty()) else { return };
        let find = find.to_lowercase();
        let holds = |row: &Row| row.text().to_lowercase().contains(&find);
        self.hits = (0..self.rows.len()).filter(|at| holds(&self.rows[*at])).collect();
    }

    fn scroll_to(&mut self, top: usize, height: usize) {
        let last = self.rows.len().saturating_sub(height);
        self.top = top.min(last);
        self.follows = self.top == last;
    }

    /// The item whose rows are at the top.
    fn item_at(&self, row: usize) -> usize {
        self.starts.partition_point(|start| *start <= row).saturating_sub(1)
    }
}

impl View {
    /// Rows that the transcript view has for its text: head, place and hints
    /// go, for a subagent also its facts and the rule that says how to talk to
    /// it (sketch S-6).
    pub(crate) fn reader_height(&self, source: &Source) -> usize {
        let around = match source {
            Source::Owner | Source::Stored(_) => 3,
            Source::Subagent(_) => 4 + self.reader_facts_height(),
        };
        self.size.rows.saturating_sub(around).max(1)
    }

    /// Rows of a subagent's facts: two in a narrow view, a blank one in a high
    /// one.
    pub(crate) fn reader_facts_height(&self) -> usize {
        1 + usize::from(self.size.columns < 60 || self.size.rows >= 20)
    }

    /// Opens the transcript of the shown session at its end (Ctrl+O).
    pub(in crate::view) fn open_transcript(&mut self) {
        let reader = Reader::new(Source::Owner, self.now);
        self.show(Full::Reader(Box::new(reader), None));
        self.refresh_reader();
    }

    /// Opens something to read; a question that is open waits behind it.
    pub(in crate::view) fn show_page(&mut self, title: String, items: Vec<Item>) {
        let mut reader = Reader::new(Source::Stored(title), self.now);
        reader.follows = false;
        reader.set(items);
        self.show(Full::Reader(Box::new(reader), None));
    }

    /// Makes the rows of an open transcript view and asks for news of an open
    /// subagent; called before each drawing.
    pub fn refresh_reader(&mut self) {
        let look = self.look();
        let Some(mut full) = self.full.take() else { return };
        if let Full::Reader(reader, _) = full.as_mut() {
            let own = (reader.source == Source::Owner).then_some(&self.live.items[..]);
            reader.make(&look, own);
            let height = self.reader_height(&reader.source);
            let last = reader.rows.len().saturating_sub(height);
            if reader.follows {
                reader.top = last;
            }
            reader.top = reader.top.min(last);
            self.read_again(reader);
        }
        self.full = Some(full);
    }

    /// Asks for the transcript of a subagent again: now and then while it runs,
    /// and once when it stands otherwise, for its last words.
    fn read_again(&mut self, reader: &mut Reader) {
        let Source::Subagent(id) = &reader.source else { return };
        let Some(one) = self.crew.get(id) else { return };
        let stands = Some((one.status, one.ended.is_some()));
        let is_new = reader.stood.is_some() && reader.stood != stands;
        let is_due = one.status == Status::Running && self.now.since(reader.asked) >= READ_MS;
        reader.stood = stands;
        if is_new || is_due {
            reader.asked = self.now;
            let (id, session) = (id.clone(), one.session.clone());
            self.ask(Request::Read { id, session, path: None });
        }
    }

    pub(in crate::view) fn reader_key(&mut self, reader: &mut Reader, key: Key) -> After {
        let height = self.reader_height(&reader.source);
        if reader.typing {
            return find_key(reader, key, height);
        }
        match self.setup.keys.find(Context::Reader, key) {
            Some(Action::SelectUp) => reader.scroll_to(reader.top.saturating_sub(1), height),
            Some(Action::SelectDown) => reader.scroll_to(reader.top + 1, height),
            Some(Action::SelectPageUp) => {
                reader.scroll_to(reader.top.saturating_sub(height), height);
            }
            Some(Action::SelectPageDown | Action::ReadOn) => {
                reader.scroll_to(reader.top + height, height);
            }
            Some(Action::SelectFirst | Action::ReadFirst) => reader.scroll_to(0, height),
            Some(Action::SelectLast | Action::ReadLast) => {
                reader.scroll_to(usize::MAX / 2, height);
            }
            Some(Action::Cancel | Action::ReadLeave) => return After::Close,
            Some(action) => return self.reader_action(reader, action, height),
            // The key that opens the transcript leaves it too.
            None if self.setup.keys.find(Context::Editor, key) == Some(Action::Transcript) => {
                return After::Close;
            }
            None => {}
        }
        After::Stay
    }

    fn reader_action(&mut self, reader: &mut Reader, action: Action, height: usize) -> After {
        match action {
            Action::ReadFind => {
                reader.typing = true;
                reader.find = Some(String::new());
                reader.hits.clear();
            }
            Action::ReadNextHit => hit(reader, height, true),
            Action::ReadHitBefore => hit(reader, height, false),
            Action::ReadExpand => {
                let item = reader.item_at(reader.top);
                reader.expanded = !reader.expanded;
                reader.made = None;
                let look = self.look();
                let own = (reader.source == Source::Owner).then_some(&self.live.items[..]);
                reader.make(&look, own);
                let top = reader.starts.get(item).copied().unwrap_or(0);
                reader.scroll_to(top, height);
            }
            Action::ReadOtherBefore => self.other(reader, false),
            Action::ReadOtherNext => self.other(reader, true),
            Action::ReadCopy => self.copy_item(reader),
            Action::ReadAnswer | Action::ReadSteer | Action::ReadStop => {
                return self.reader_deed(reader, action);
            }
            _ => {}
        }
        After::Stay
    }

    /// What is done to the subagent that is read: answer, steer, stop.
    fn reader_deed(&mut self, reader: &Reader, action: Action) -> After {
        let Source::Subagent(id) = &reader.source else { return After::Stay };
        let Some(one) = self.crew.open.iter().find(|one| one.id == *id) else {
            return After::Stay;
        };
        match action {
            Action::ReadAnswer if one.awaits() => self.receive_as(Receiver::Answer(id.clone())),
            Action::ReadSteer => self.receive_as(Receiver::Steer(id.clone())),
            Action::ReadStop => {
                let ids = vec![id.clone()];
                self.ask_person(super::super::questions::Kind::Stop { ids, at: 0, armed: false });
            }
            _ => return After::Stay,
        }
        After::Leave
    }

    /// The subagent before or behind, in the order of the board.
    fn other(&mut self, reader: &mut Reader, forwards: bool) {
        let Source::Subagent(id) = &reader.source else { return };
        let all: Vec<_> = self.crew.open.iter().chain(self.crew.ended.iter().rev()).collect();
        let Some(at) = all.iter().position(|one| one.id == *id) else { return };
        let next = if forwards { at.checked_add(1) } else { at.checked_sub(1) };
        let Some(one) = next.and_then(|at| all.get(at)) else { return };
        let (id, session) = (one.id.clone(), one.session.clone());
        *reader = Reader::new(Source::Subagent(id.clone()), self.now);
        self.ask(Request::Read { id, session, path: None });
    }

    fn copy_item(&mut self, reader: &Reader) {
        let at = reader.item_at(reader.top);
        let items = if reader.source == Source::Owner { &self.live.items } else { &reader.items };
        let Some(item) = items.get(at) else { return };
        let text = match item {
            Item::User(text) | Item::Asked(text) | Item::Answer(text) | Item::Thought(text) => {
                text.clone()
            }
            other => {
                let look = Look { expanded: true, ..self.look() };
                let lines = other.lines(&look);
                lines.iter().map(|line| line.row.text()).collect::<Vec<_>>().join("\n")
            }
        };
        self.ask(Request::Copy { what: "the block at the top".to_owned(), text });
    }
}

/// What tells whether a list only grew: another branch differs at either end.
fn ends(items: &[Item]) -> Option<(Item, Item)> {
    Some((items.first()?.clone(), items.last()?.clone()))
}

fn find_key(reader: &mut Reader, key: Key, height: usize) -> After {
    match key.code {
        Code::Enter => {
            reader.typing = false;
            hit(reader, height, false);
        }
        Code::Esc => {
            reader.typing = false;
            reader.find = None;
            reader.hits.clear();
        }
        Code::Backspace => {
            reader.find.get_or_insert_default().pop();
            reader.search();
        }
        _ => {
            if let Some(c) = key.typed() {
                reader.find.get_or_insert_default().push(c);
                reader.search();
            }
        }
    }
    After::Stay
}

/// Scrolls to the next row that holds the searched text, or the one before;
/// at an end it goes on at the other.
fn hit(reader: &mut Reader, height: usize, forwards: bool) {
    let top = reader.top;
    let found = if forwards {
        reader.hits.iter().find(|at| **at > top).or(reader.hits.first())
    } else {
        reader.hits.iter().rev().find(|at| **at < top).or(reader.hits.last())
    };
    if let Some(at) = found.copied() {
        reader.scroll_to(at, height);
        // Near the end the row cannot be at the top; the search goes on from
        // where the screen stands.
        reader.follows = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    // TERM-49: a transcript that grew, shrank or changed is that of its items.
    #[test]
    fn rows_are_those_of_the_items_however_they_came() {
        let look = Look {
            theme: Theme::default(),
            columns: 40,
            expanded: true,
            thinking: true,
            reader: Some(Key::ctrl('o')),
        };
        let item = |number: usize| Item::Answer(format!("answer {number}\n\nmore of it"));
        let mut reader = Reader::new(Source::Owner, Time(0));
        let lists: [Vec<usize>; 6] =
            [vec![], vec![1], vec![1, 2, 3], vec![1, 2], vec![4, 2, 5, 6], vec![4, 2, 5, 6, 7]];
        for list in lists {
            let items: Vec<Item> = list.iter().map(|number| item(*number)).collect();
            reader.make(&look, Some(&items));
            let mut fresh = Reader::new(Source::Owner, Time(0));
            fresh.make(&look, Some(&items));
            let texts = |reader: &Reader| -> Vec<String> {
                reader.rows.iter().map(|row| row.text().to_owned()).collect()
            };
            assert_eq!(
                (texts(&reader), &reader.starts),
                (texts(&fresh), &fresh.starts),
                "{list:?}"
            );
        }
    }
}
