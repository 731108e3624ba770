//! What is not final yet, and the way of everything into print
//! (`terminal.md` TERM-21, TERM-22, TERM-24).
//!
//! Invariant: a row is handed out for print once, and only when no later event
//! can change it.

use crew_base::message::{AssistantMessage, Block, Message, StopReason};
use crew_base::model::ModelEvent;
use crew_base::time::Time;
use crew_engine::api::SessionUpdate;

use super::item::{Item, line};
use super::pending::{Final, Pending, spaced};
use super::tool::{End, Tool};
use super::{Look, entries};
use crate::cells::Row;
use crate::highlight::{Ask, Coloured};
use crate::markdown::{Chunk, Chunker, Line, draw, plain};
use crate::theme::MUTED;

/// Rows of a thought that are shown while it grows.
const THOUGHT_ROWS_MAX: usize = 4;

/// A session as it is shown: items that are done, and what grows.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// All that was said and done, for the transcript view.
    pub items: Vec<Item>,
    /// Final, not printed yet.
    pending: Pending,
    /// Blocks of the answer that streams.
    blocks: Vec<Streaming>,
    /// Where the items of the running answer begin.
    answer_from: usize,
    /// What was printed of the tries of this answer, in order (TERM-24).
    tried: Vec<Final>,
    tried_at: usize,
    /// Tools that run.
    pub tools: Vec<Tool>,
}

#[derive(Clone, Debug)]
enum Streaming {
    Text { text: String, chunker: Chunker, done: bool },
    Thought { text: String, done: bool },
    Call { name: String },
    Other,
}

/// What an answer does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing came yet.
    Waiting,
    /// Thoughts come.
    Thinking,
    /// Text comes.
    Answering,
    /// A tool call comes.
    Calling,
}

impl Live {
    /// Takes an update of the shown session. Endings of failed answers are
    /// told by the caller, who knows whether they are tried again.
    pub fn update(&mut self, now: Time, update: &SessionUpdate) {
        self.pending.tick(now);
        match update {
            SessionUpdate::MessageStart(message) if message.as_assistant().is_some() => {
                self.pending.start_answer();
                self.blocks.clear();
                self.answer_from = self.items.len();
                self.tried_at = 0;
            }
            SessionUpdate::MessageUpdate { event, .. } => self.event(event),
            SessionUpdate::MessageEnd(message) => self.message_end(message),
            SessionUpdate::ToolStart { call, name, arguments } => {
                self.tools.push(Tool {
                    call: call.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    started: now,
                    progress: String::new(),
                    details: None,
                    end: None,
                });
            }
            SessionUpdate::ToolProgress { call, progress, .. } => {
                if let Some(tool) = self.tools.iter_mut().find(|tool| tool.call == *call) {
                    let texts = progress.content.iter().filter_map(Block::as_text);
                    tool.progress = texts.collect::<Vec<_>>().join("\n");
                    tool.details.clone_from(&progress.details);
                }
            }
            SessionUpdate::ToolEnd { call, outcome, duration_ms, .. } => {
                if let Some(at) = self.tools.iter().position(|tool| tool.call == *call) {
                    let mut tool = self.tools.remove(at);
                    let details = outcome.details.clone();
                    tool.end =
                        Some(End::of(&outcome.content, details, outcome.is_error, *duration_ms));
                    self.add(Item::Tool(Box::new(tool)));
                }
            }
            SessionUpdate::EntryAppended(entry) => {
                for item in entries::items(std::slice::from_ref(entry)) {
                    self.add(item);
                }
            }
            SessionUpdate::AgentStart
            | SessionUpdate::TurnStart
            | SessionUpdate::MessageStart(_)
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::AgentEnd { .. }
            | SessionUpdate::AgentSettled { .. }
            | SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::RetryStart { .. }
            | SessionUpdate::RetryEnd { .. }
            | SessionUpdate::CompactionStart { .. }
            | SessionUpdate::CompactionEnd { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::BranchSummaryStart
            | SessionUpdate::MoveEnd(_)
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_) => {}
        }
    }

    fn event(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::BlockStart { index, block } => {
                self.blocks.truncate(*index);
                self.blocks.push(match block {
                    Block::Text(_) => Streaming::Text {
                        text: String::new(),
                        chunker: Chunker::default(),
                        done: false,
                    },
                    Block::Thinking(_) => Streaming::Thought { text: String::new(), done: false },
                    Block::ToolCall(call) => Streaming::Call { name: call.name.clone() },
                    Block::Image(_) | Block::Other(_) => Streaming::Other,
                });
            }
            ModelEvent::BlockDelta { index, delta } => self.delta(*index, delta),
            ModelEvent::BlockEnd { index, block } => self.block_end(*index, block),
            ModelEvent::Started
            | ModelEvent::Usage(_)
            | ModelEvent::Identity { .. }
            | ModelEvent::Finished { .. }
            | ModelEvent::Failed(_) => {}
        }
    }

    fn delta(&mut self, index: usize, delta: &str) {
        let chunks = match self.blocks.get_mut(index) {
            Some(Streaming::Text { text, chunker, .. }) => {
                text.push_str(delta);
                chunker.push(delta)
            }
            Some(Streaming::Thought { text, .. }) => {
                text.push_str(delta);
                return;
            }
            Some(Streaming::Call { .. } | Streaming::Other) | None => return,
        };
        chunks.into_iter().for_each(|chunk| self.emit(Final::Chunk(chunk)));
    }

    fn block_end(&mut self, index: usize, block: &Block) {
        let streamed = match self.blocks.get(index) {
            Some(Streaming::Text { text, .. } | Streaming::Thought { text, .. }) => text.len(),
            Some(Streaming::Call { .. } | Streaming::Other) | None => 0,
        };
        // The whole block is authoritative; what did not stream comes now.
        let whole = match block {
            Block::Text(text) => text.text.as_str(),
            Block::Thinking(thought) => thought.thinking.as_str(),
            Block::ToolCall(_) | Block::Image(_) | Block::Other(_) => "",
        };
        if let Some(rest) = whole.get(streamed..).filter(|rest| !rest.is_empty()) {
            let rest = rest.to_owned();
            self.delta(index, &rest);
        }
        self.close(index);
    }

    /// Ends a block: its open chunk is final.
    fn close(&mut self, index: usize) {
        match self.blocks.get_mut(index) {
            Some(Streaming::Text { text, chunker, done: done @ false }) => {
                *done = true;
                let (text, chunks) = (std::mem::take(text), chunker.finish());
                chunks.into_iter().for_each(|chunk| self.emit(Final::Chunk(chunk)));
                if !crew_base::text::is_blank(&text) {
                    self.items.push(Item::Answer(text));
                }
            }
            Some(Streaming::Thought { text, done: done @ false }) => {
                *done = true;
                let text = std::mem::take(text);
                if !crew_base::text::is_blank(&text) {
                    self.items.push(Item::Thought(text.clone()));
                    self.emit(Final::Item(Item::Thought(text)));
                }
            }
            Some(_) | None => {}
        }
    }

    fn message_end(&mut self, message: &Message) {
        match message {
            Message::Assistant(answer) => self.answer_end(answer),
            Message::User(user) => self.add(Item::User(user.content.text())),
            Message::Custom(custom) => {
                if let Some(item) = Item::custom(custom) {
                    self.add(item);
                }
            }
            Message::BashExecution(shell) => self.add(Item::Shell(Box::new(shell.clone()))),
            Message::CompactionSummary(_) | Message::BranchSummary(_) => {
                for item in entries::items_of_messages(std::iter::once(message)) {
                    self.add(item);
                }
            }
            Message::System(_) | Message::ToolResult(_) => {}
        }
    }

    fn answer_end(&mut self, answer: &AssistantMessage) {
        if self.blocks.is_empty() {
            // Nothing streamed: the answer is drawn from its end.
            for (index, block) in answer.content.iter().enumerate() {
                self.event(&ModelEvent::BlockStart { index, block: block.clone() });
                self.block_end(index, block);
            }
        }
        (0..self.blocks.len()).for_each(|index| self.close(index));
        self.blocks.clear();
        if answer.stop_reason != StopReason::Error {
            self.settled();
        }
    }

    /// The answer that just ended is tried again: it leaves the transcript,
    /// and what it printed is not printed twice (TERM-24).
    pub fn try_again(&mut self) {
        self.items.truncate(self.answer_from);
    }

    /// The chain of tries is over.
    pub fn settled(&mut self) {
        self.tried.clear();
        self.tried_at = 0;
    }

    fn emit(&mut self, done: Final) {
        let colour = match &done {
            Final::Chunk(chunk) => self.pending.follow(chunk),
            Final::Item(_) | Final::Line(_) => None,
        };
        if self.tried.get(self.tried_at) == Some(&done) {
            self.tried_at += 1;
            return;
        }
        self.tried.truncate(self.tried_at);
        self.tried.push(done.clone());
        self.tried_at += 1;
        self.pending.push(done, colour);
    }

    /// Adds an item that is final.
    pub fn add(&mut self, item: Item) {
        self.items.push(item.clone());
        self.pending.push(Final::Item(item), None);
    }

    /// Prints a line that is no part of the session.
    pub fn print(&mut self, text: &str, style: crate::theme::Style) {
        self.print_line(line(text, style));
    }

    /// Prints a line that is no part of the session, as it is.
    pub fn print_line(&mut self, line: Line) {
        self.pending.push(Final::Line(line), None);
    }

    /// Prints the last rows of items again and says how many came before
    /// (TERM-25a, TERM-26).
    pub fn print_again(&mut self, look: &Look, rows_max: usize) {
        self.print_end(look, rows_max, 0);
    }

    /// The same when the items are only the end of what there is.
    pub fn print_end(&mut self, look: &Look, rows_max: usize, before: usize) {
        let mut lines: Vec<Line> = Vec::new();
        let mut shown = 0;
        for item in self.items.iter().rev() {
            let mut own = spaced(item, item.lines(look));
            if !lines.is_empty() && lines.len() + own.len() > rows_max {
                break;
            }
            own.append(&mut lines);
            lines = own;
            shown += 1;
        }
        let over = lines.len().saturating_sub(rows_max);
        lines.drain(..over);
        let earlier = self.items.len() - shown + before;
        if earlier > 0 || over > 0 {
            let count = crate::format::count(earlier.max(1), "earlier message");
            self.print(&format!("{count} · {}", look.way_to_read()), MUTED);
        }
        lines.into_iter().for_each(|line| self.print_line(line));
    }

    /// Another branch takes the place of what was said; its end is printed.
    /// What came since [`Live::forget`] stands behind it.
    pub fn stand_on(&mut self, items: Vec<Item>, look: &Look, rows_max: usize) {
        let since = std::mem::replace(&mut self.items, items);
        if !self.items.is_empty() {
            self.print_again(look, rows_max);
        }
        self.answer_from += self.items.len();
        self.items.extend(since);
    }

    /// What was said is no part of the conversation any more; what waits for
    /// print is still printed.
    pub fn forget(&mut self) {
        self.items.clear();
        self.answer_from = 0;
    }

    /// From now on colours of code are asked for (TERM-53).
    pub fn colour_code(&mut self) {
        self.pending.colour_code();
    }

    /// Lines of code whose colours are wanted since the last call.
    pub fn take_asks(&mut self) -> Vec<Ask> {
        self.pending.take_asks()
    }

    /// Colours came.
    pub fn coloured(&mut self, answers: Vec<Coloured>) {
        answers.into_iter().for_each(|answer| self.pending.answered(answer));
    }

    /// Time has passed: code that waited long enough for its colours is plain.
    pub fn tick(&mut self, now: Time) {
        self.pending.tick(now);
    }

    /// Nothing waits for colours any longer, as at the end of the program.
    pub fn release(&mut self) {
        self.pending.release();
    }

    /// When a line of code stops waiting for its colours.
    pub fn deadline(&self) -> Option<Time> {
        self.pending.deadline()
    }

    /// Whether anything can be printed.
    pub fn has_final(&self) -> bool {
        self.pending.has_final()
    }

    /// The rows that are final since the last call.
    pub fn take_final(&mut self, look: &Look) -> Vec<Line> {
        self.pending.take(look)
    }

    /// The items that are final since the last call, whole: for line mode.
    pub fn take_items(&mut self) -> Vec<Item> {
        self.pending.take_items()
    }

    /// Rows of what is open: the growing block, then the running tools.
    pub fn rows(&self, look: &Look, now: Time) -> Vec<Row> {
        let mut rows = self.pending.rows(look);
        for block in &self.blocks {
            match block {
                Streaming::Text { chunker, done: false, .. } => {
                    for chunk in self.unprinted(chunker.open()) {
                        rows.extend(fitted(draw(&chunk, look.columns), look.columns));
                    }
                }
                Streaming::Thought { text, done: false } if look.thinking => {
                    let lines = plain(text.trim(), look.columns, MUTED.italic());
                    let from = lines.len().saturating_sub(THOUGHT_ROWS_MAX);
                    rows.extend(lines.into_iter().skip(from).map(|line| line.row));
                }
                Streaming::Call { name } => {
                    let mut row = Row::new();
                    row.space(super::INDENT);
                    row.push(name, MUTED);
                    row.push(" …", MUTED);
                    rows.push(row.cut(look.columns));
                }
                Streaming::Text { .. } | Streaming::Thought { .. } | Streaming::Other => {}
            }
        }
        for tool in &self.tools {
            rows.extend(tool.live(look, now));
        }
        rows
    }

    /// Open chunks without those that an earlier try has printed already.
    fn unprinted(&self, open: Vec<Chunk>) -> Vec<Chunk> {
        let mut at = self.tried_at;
        let printed = |chunk: &Chunk| {
            let is_printed =
                matches!(self.tried.get(at), Some(Final::Chunk(tried)) if tried == chunk);
            at += usize::from(is_printed);
            is_printed
        };
        open.into_iter().skip_while(printed).collect()
    }

    /// What the answer does at the moment.
    pub fn doing(&self) -> Doing {
        match self.blocks.last() {
            Some(Streaming::Text { .. }) => Doing::Answering,
            Some(Streaming::Thought { .. }) => Doing::Thinking,
            Some(Streaming::Call { .. }) => Doing::Calling,
            Some(Streaming::Other) | None => Doing::Waiting,
        }
    }

    /// The newest answer of the model, as Markdown.
    pub fn last_answer(&self) -> Option<&str> {
        self.items
            .iter()
            .rev()
            .find_map(|item| if let Item::Answer(text) = item { Some(text.as_str()) } else { None })
    }
}

/// Lines as rows of the region, none wider than it.
pub fn fitted(lines: Vec<Line>, columns: usize) -> Vec<Row> {
    let rows = |line: Line| {
        if line.row.width() <= columns { vec![line.row] } else { line.row.wrap_hard(columns) }
    };
    lines.into_iter().flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::theme::Theme;

    fn look() -> Look {
        Look {
            theme: Theme::default(),
            columns: 40,
            expanded: false,
            thinking: false,
            reader: Some(crate::keys::Key::ctrl('o')),
        }
    }

    fn stream(live: &mut Live, event: ModelEvent) {
        let update = SessionUpdate::MessageUpdate { event, usage: Default::default() };
        live.update(Time(0), &update);
    }

    fn answer(content: Vec<Block>) -> SessionUpdate {
        ended(content, StopReason::Stop)
    }

    fn ended(content: Vec<Block>, stop_reason: StopReason) -> SessionUpdate {
        let text = r#"{"role":"assistant","content":[],"stopReason":"stop"}"#;
        let Ok(Message::Assistant(mut message)) = crew_base::json::from_text(text) else {
            panic!()
        };
        message.content = content;
        message.stop_reason = stop_reason;
        SessionUpdate::MessageEnd(Arc::new(Message::Assistant(message)))
    }

    fn start(live: &mut Live) {
        let text = r#"{"role":"assistant","content":[],"stopReason":"pending"}"#;
        let message: Message = crew_base::json::from_text(text).unwrap();
        live.update(Time(0), &SessionUpdate::MessageStart(Arc::new(message)));
        stream(live, ModelEvent::BlockStart { index: 0, block: Block::text("") });
    }

    fn printed(live: &mut Live) -> Vec<String> {
        live.take_final(&look()).iter().map(|line| line.row.text().to_owned()).collect()
    }

    fn open(live: &Live) -> Vec<String> {
        live.rows(&look(), Time(0)).iter().map(|row| row.text().to_owned()).collect()
    }

    const TEXT: &str = "First paragraph.\n\n```sh\nls -l\n```\nEnd";

    // Case 8, TERM-21: each row is printed once, wherever the stream is cut.
    #[test]
    fn rows_are_printed_once_and_in_order() {
        let expected = ["First paragraph.", "", "```sh", "  ls -l", "```", "End"];
        for cut in 0..TEXT.len() {
            let mut live = Live::default();
            start(&mut live);
            let mut rows = Vec::new();
            for delta in [&TEXT[..cut], &TEXT[cut..]] {
                stream(&mut live, ModelEvent::BlockDelta { index: 0, delta: delta.to_owned() });
                rows.extend(printed(&mut live));
                let mut all = rows.clone();
                all.extend(open(&live));
                assert!(all.len() <= expected.len() + 1, "{all:?}");
            }
            stream(&mut live, ModelEvent::BlockEnd { index: 0, block: Block::text(TEXT) });
            live.update(Time(0), &answer(vec![Block::text(TEXT)]));
            rows.extend(printed(&mut live));
            assert_eq!(rows, expected, "cut at {cut}");
            assert_eq!(live.items, [Item::Answer(TEXT.into())]);
            assert!(open(&live).is_empty());
        }
    }

    // TERM-24: the text of a try that was given up is not printed twice.
    #[test]
    fn a_second_try_prints_only_what_is_new() {
        let mut live = Live::default();
        start(&mut live);
        stream(&mut live, ModelEvent::BlockDelta { index: 0, delta: "One.\n\nTwo.\n\nThr".into() });
        let text = Block::text("One.\n\nTwo.\n\nThr");
        live.update(Time(0), &ended(vec![text], StopReason::Error));
        live.try_again();
        assert_eq!(printed(&mut live), ["One.", "", "Two.", "", "Thr"]);
        assert!(live.items.is_empty());
        start(&mut live);
        stream(
            &mut live,
            ModelEvent::BlockDelta { index: 0, delta: "One.\n\nTwo.\n\nThree.\n\n".into() },
        );
        assert_eq!(printed(&mut live), ["Three."]);
        live.update(Time(0), &answer(vec![Block::text("One.\n\nTwo.\n\nThree.\n\n")]));
        live.settled();
        assert_eq!(live.items.len(), 1);
    }

    // Two answers may say the same.
    #[test]
    fn the_same_words_of_another_answer_are_printed_again() {
        let mut live = Live::default();
        for _ in 0..2 {
            start(&mut live);
            stream(&mut live, ModelEvent::BlockDelta { index: 0, delta: "Noted.".into() });
            live.update(Time(0), &answer(vec![Block::text("Noted.")]));
            assert_eq!(printed(&mut live), ["Noted."]);
        }
    }

    #[test]
    fn an_answer_that_did_not_stream_is_drawn_at_its_end() {
        let mut live = Live::default();
        live.update(Time(0), &answer(vec![Block::text("whole")]));
        assert_eq!(printed(&mut live), ["whole"]);
    }

    // TERM-26.
    #[test]
    fn a_resumed_session_shows_its_end() {
        let items = (0..300).map(|n| Item::Answer(format!("row {n}"))).collect();
        let mut live = Live { items, ..Live::default() };
        live.print_again(&look(), 200);
        let rows = printed(&mut live);
        assert_eq!(rows.len(), 201);
        assert_eq!(rows[0], "100 earlier messages · Ctrl+O");
        assert_eq!(rows[200], "row 299");
    }
}
