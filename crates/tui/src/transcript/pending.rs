//! What is final and waits for print, and code that waits for its colours
//! (`terminal.md` TERM-21, TERM-53).
//!
//! A line of code whose colours were asked for is drawn plain in the region
//! until they come, for [`WAIT_MS`] at most; then it is printed, and what was
//! printed is never drawn again. Must never wait itself, and never hold back a
//! line for longer. Read `highlight` for the colours, `transcript::live` for
//! what is not final.

use std::collections::VecDeque;

use crew_base::time::Time;

use super::Look;
use super::item::Item;
use super::live::fitted;
use crate::cells::Row;
use crate::highlight::{Ask, Coloured, Span};
use crate::markdown::{Chunk, Line, code_blocks, code_text, draw, draw_coloured};

/// How long a line of code waits for its colours. Covers the first use, which
/// reads the grammars.
const WAIT_MS: u64 = 100;
/// Bytes of code that are asked for and not answered; what comes beyond stays
/// plain, so that no work piles up that nobody waits for.
const ASKED_BYTES_MAX: usize = 32 * 1024;
/// What a line counts beside its bytes: an empty one is work too.
const LINE_BYTES: usize = 32;
/// Bytes of a block that is coloured; the rest of a longer one stays plain.
const BLOCK_BYTES_MAX: usize = 512 * 1024;
/// Columns of a line that is coloured; a longer one and what follows it in its
/// block stay plain.
const LINE_COLUMNS_MAX: usize = 2_000;
/// Rows of waiting lines that are drawn.
const HELD_ROWS_MAX: usize = 200;

/// A final thing on its way to print.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Final {
    Item(Item),
    Chunk(Chunk),
    Line(Line),
}

/// How the code in a final thing stands with its colours: nothing if there is
/// none that could have any.
pub(super) type Colour = Option<Code>;

/// A line of code, or all the code within an item of a list.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// The lines of each of its code blocks.
    blocks: Vec<Vec<Shade>>,
    /// How many of the lines wait; none for what can be printed.
    waits: usize,
    /// When they stop waiting.
    until: Time,
}

/// How one line stands with its colours.
#[derive(Clone, Debug)]
enum Shade {
    /// They were asked for.
    Asked { fence: u64, line: usize },
    /// They are there, or will not come: then there are no spans.
    Known(Vec<Span>),
}

impl Code {
    /// Settles the lines that are meant; true if it waited and does no more.
    fn settle(&mut self, is_meant: impl Fn(u64, usize) -> bool, spans: &[Span]) -> bool {
        if self.waits == 0 {
            return false;
        }
        for shade in self.blocks.iter_mut().flatten() {
            match shade {
                Shade::Asked { fence, line } if is_meant(*fence, *line) => {
                    *shade = Shade::Known(spans.to_vec());
                    self.waits -= 1;
                }
                Shade::Asked { .. } | Shade::Known(_) => {}
            }
        }
        self.waits == 0
    }

    fn spans(&self) -> Vec<Vec<&[Span]>> {
        self.blocks.iter().map(|block| block.iter().map(Shade::spans).collect()).collect()
    }
}

impl Shade {
    fn spans(&self) -> &[Span] {
        match self {
            Shade::Known(spans) => spans,
            Shade::Asked { .. } => &[],
        }
    }
}

/// The code fence whose lines come.
#[derive(Clone, Debug)]
struct Fence {
    number: u64,
    language: String,
    lines: usize,
    bytes: usize,
}

/// The way of final things into print.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<(Final, Colour)>,
    /// How many of the queue wait for colours: mostly none, and the queue may
    /// be long while a full view is open.
    held: usize,
    now: Time,
    /// Whether colours are asked for at all.
    is_coloured: bool,
    /// The open fence, unless it stays plain.
    fence: Option<Fence>,
    fences: u64,
    asks: Vec<Ask>,
    /// Bytes that were asked for and not answered.
    asked_bytes: usize,
    printed_any: bool,
}

impl Pending {
    /// From now on colours of code are asked for.
    pub(super) fn colour_code(&mut self) {
        self.is_coloured = true;
    }

    /// Time has passed: what waited long enough is plain.
    pub(super) fn tick(&mut self, now: Time) {
        self.now = now.max(self.now);
        if self.held == 0 {
            return;
        }
        let late = |code: &&Code| code.waits > 0 && code.until <= self.now;
        let late = self.queue.iter().filter_map(|(_, colour)| colour.as_ref()).filter(late);
        let fence = |shade: &Shade| match shade {
            Shade::Asked { fence, .. } => Some(*fence),
            Shade::Known(_) => None,
        };
        let mut fences: Vec<u64> =
            late.flat_map(|code| code.blocks.iter().flatten()).filter_map(fence).collect();
        fences.dedup();
        fences.into_iter().for_each(|fence| self.give_up(fence));
    }

    /// When [`Pending::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Time> {
        if self.held == 0 {
            return None;
        }
        let first = self.queue.iter().filter_map(|(_, colour)| colour.as_ref());
        first.filter(|code| code.waits > 0).map(|code| code.until).min()
    }

    /// No line waits any longer.
    pub(super) fn release(&mut self) {
        self.fence = None;
        self.settle(|_, _| true, &[]);
    }

    /// An answer begins: no fence is open.
    pub(super) fn start_answer(&mut self) {
        self.fence = None;
    }

    /// Follows an answer through its fences, whether or not the part is
    /// printed, because a line is coloured by those before it.
    pub(super) fn follow(&mut self, chunk: &Chunk) -> Colour {
        match chunk {
            Chunk::FenceOpen(language) => {
                self.open(language);
                None
            }
            Chunk::FenceClose => {
                self.fence = None;
                None
            }
            Chunk::Code(line) => self.ask(line).and_then(|shade| self.code(vec![vec![shade]])),
            Chunk::Block(text) if self.is_coloured && has_fence(text) => {
                let blocks = code_blocks(text);
                let blocks = blocks.iter().map(|(language, lines)| {
                    self.open(language);
                    let plain = Shade::Known(Vec::new());
                    lines.iter().map(|line| self.ask(line).unwrap_or(plain.clone())).collect()
                });
                let blocks = blocks.collect();
                self.fence = None;
                self.code(blocks)
            }
            Chunk::Blank | Chunk::Block(_) => None,
        }
    }

    fn open(&mut self, language: &str) {
        self.fence = None;
        if self.is_coloured && !language.is_empty() {
            self.fences += 1;
            let (number, language) = (self.fences, language.to_owned());
            self.fence = Some(Fence { number, language, lines: 0, bytes: 0 });
        }
    }

    fn code(&self, blocks: Vec<Vec<Shade>>) -> Colour {
        let waits = |shade: &&Shade| matches!(shade, Shade::Asked { .. });
        let waits = blocks.iter().flatten().filter(waits).count();
        (waits > 0).then_some(Code { blocks, waits, until: self.now + WAIT_MS })
    }

    fn ask(&mut self, line: &str) -> Option<Shade> {
        let mut fence = self.fence.take()?;
        // Cells are not made of what is too long in any case.
        let text = (line.len() <= BLOCK_BYTES_MAX).then(|| code_text(line))?;
        fence.bytes += text.text().len();
        let asked_bytes = self.asked_bytes + text.text().len() + LINE_BYTES;
        if text.width() > LINE_COLUMNS_MAX
            || fence.bytes > BLOCK_BYTES_MAX
            || asked_bytes > ASKED_BYTES_MAX
        {
            return None;
        }
        self.asked_bytes = asked_bytes;
        let (number, line) = (fence.number, fence.lines);
        let (language, text) = (fence.language.clone(), text.text().to_owned());
        self.asks.push(Ask { fence: number, language, line, text });
        fence.lines += 1;
        self.fence = Some(fence);
        Some(Shade::Asked { fence: number, line })
    }

    /// What was asked for since the last call.
    pub(super) fn take_asks(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.asks)
    }

    /// Takes an answer; one that comes too late changes nothing.
    pub(super) fn answered(&mut self, answer: Coloured) {
        self.asked_bytes = self.asked_bytes.saturating_sub(answer.bytes + LINE_BYTES);
        let Some(spans) = answer.spans else { return self.give_up(answer.fence) };
        self.settle(|fence, line| (fence, line) == (answer.fence, answer.line), &spans);
    }

    /// The rest of a fence stays plain.
    fn give_up(&mut self, number: u64) {
        self.fence.take_if(|fence| fence.number == number);
        self.settle(|fence, _| fence == number, &[]);
    }

    fn settle(&mut self, is_meant: impl Fn(u64, usize) -> bool, spans: &[Span]) {
        if self.held == 0 {
            return;
        }
        for (_, colour) in &mut self.queue {
            if colour.as_mut().is_some_and(|code| code.settle(&is_meant, spans)) {
                self.held -= 1;
            }
        }
    }

    pub(super) fn push(&mut self, done: Final, colour: Colour) {
        self.held += usize::from(colour.is_some());
        self.queue.push_back((done, colour));
    }

    fn first_held(&self) -> Option<usize> {
        if self.held == 0 {
            return None;
        }
        let waits = |colour: &Colour| colour.as_ref().is_some_and(|code| code.waits > 0);
        self.queue.iter().position(|(_, colour)| waits(colour))
    }

    /// Whether anything can be printed.
    pub(super) fn has_final(&self) -> bool {
        !self.queue.is_empty() && self.first_held() != Some(0)
    }

    /// The rows that are final since the last call, up to the first line that
    /// waits.
    pub(super) fn take(&mut self, look: &Look) -> Vec<Line> {
        let count = self.first_held().unwrap_or(self.queue.len());
        let mut lines = Vec::new();
        for (done, colour) in self.queue.drain(..count) {
            let mut own = drawn(&done, &colour, look);
            let is_message = matches!(done, Final::Item(_));
            let starts_blank = own.first().is_some_and(|line| line.row.is_empty());
            if is_message && !self.printed_any && starts_blank {
                own.remove(0);
            }
            lines.append(&mut own);
            self.printed_any = true;
        }
        lines
    }

    /// Rows of what waits, for the region.
    pub(super) fn rows(&self, look: &Look) -> Vec<Row> {
        let Some(first) = self.first_held() else { return Vec::new() };
        let from = first.max(self.queue.len().saturating_sub(HELD_ROWS_MAX));
        let held = self.queue.range(from..);
        let rows =
            |(done, colour): &(Final, Colour)| fitted(drawn(done, colour, look), look.columns);
        held.flat_map(rows).collect()
    }

    /// What is final since the last call, whole: for line mode, which has no
    /// colours and waits for none.
    pub(super) fn take_items(&mut self) -> Vec<Item> {
        self.held = 0;
        let items = self.queue.drain(..).filter_map(|(done, _)| match done {
            Final::Item(item) => Some(item),
            Final::Line(line) => Some(Item::Notice(line.row.text().to_owned())),
            Final::Chunk(Chunk::Block(text) | Chunk::Code(text)) => Some(Item::Answer(text)),
            Final::Chunk(Chunk::FenceOpen(language)) => {
                Some(Item::Answer(format!("code {language}")))
            }
            Final::Chunk(Chunk::FenceClose) => Some(Item::Answer("end of code".to_owned())),
            Final::Chunk(Chunk::Blank) => None,
        });
        items.collect()
    }
}

fn drawn(done: &Final, colour: &Colour, look: &Look) -> Vec<Line> {
    match (done, colour) {
        (Final::Item(item), _) => spaced(item, item.lines(look)),
        (Final::Chunk(chunk), Some(code)) => draw_coloured(chunk, look.columns, &code.spans()),
        (Final::Chunk(chunk), None) => draw(chunk, look.columns),
        (Final::Line(line), _) => refit(line.clone(), look.columns),
    }
}

/// Whether a text may hold a code block with a language.
fn has_fence(text: &str) -> bool {
    text.contains("```") || text.contains("~~~")
}

/// A message of the person stands apart.
pub(super) fn spaced(item: &Item, lines: Vec<Line>) -> Vec<Line> {
    if !matches!(item, Item::User(_)) {
        return lines;
    }
    let blank = || Line::prose(Row::new());
    let mut spaced = vec![blank()];
    spaced.extend(lines);
    spaced.push(blank());
    spaced
}

/// A line made for another width.
fn refit(line: Line, columns: usize) -> Vec<Line> {
    if line.is_prose && line.row.width() > columns {
        return line.row.wrap(columns, 0).into_iter().map(Line::prose).collect();
    }
    vec![line]
}
