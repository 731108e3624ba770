//! One chunk as lines.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::table::Table;
use super::{Chunk, Line};
use crate::cells::{Row, clean_lines};
use crate::highlight::Span;
use crate::theme::{ACCENT, CODE, MUTED, Style, TEXT};

/// Columns in front of code, so that a fence cannot be taken for prose.
const CODE_INDENT: usize = 2;

/// Draws a chunk; prose fits into `columns`.
pub fn draw(chunk: &Chunk, columns: usize) -> Vec<Line> {
    draw_coloured(chunk, columns, &[])
}

/// The same with the colours of each line of each of its code blocks; lines
/// without any are plain.
pub(crate) fn draw_coloured(chunk: &Chunk, columns: usize, colours: &[Vec<&[Span]>]) -> Vec<Line> {
    match chunk {
        Chunk::Blank => vec![Line::prose(Row::new())],
        Chunk::FenceOpen(language) => fence(language),
        Chunk::Code(line) => vec![code_line(line, colours_of(colours, 0, 0))],
        Chunk::FenceClose => vec![Line::whole(Row::of("```", MUTED))],
        Chunk::Block(text) => block(text, columns, colours),
    }
}

fn fence(language: &str) -> Vec<Line> {
    vec![Line::whole(Row::of(&format!("```{language}"), MUTED))]
}

fn colours_of<'a>(colours: &[Vec<&'a [Span]>], block: usize, line: usize) -> &'a [Span] {
    colours.get(block).and_then(|lines| lines.get(line)).copied().unwrap_or_default()
}

/// A line of code with its colours: the cells of the plain line, whatever the
/// spans say.
fn code_line(line: &str, spans: &[Span]) -> Line {
    let style = |byte: usize| {
        let next = spans.partition_point(|span| span.end <= byte);
        spans.get(next).map_or(CODE, |span| Style::role(span.role))
    };
    let code = code_text(line);
    let mut row = Row::new();
    row.space(CODE_INDENT);
    row.append(&if spans.is_empty() { code } else { code.styled_by(style) });
    Line::whole(row)
}

/// A line of code as plain cells. Its text is what spans count bytes of:
/// clean, so that no escape sequence can hide between two colours.
pub(crate) fn code_text(line: &str) -> Row {
    Row::of(line, CODE)
}

/// The code blocks of a block: the language and the lines of each.
pub(crate) fn code_blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for event in parser(text) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all that is not code")]
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                open = Some((language(&info).to_owned(), String::new()));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => {
                open = Some((String::new(), String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                blocks.extend(open.take().map(|(language, code)| (language, code_lines(&code))));
            }
            Event::Text(text) => {
                if let Some((_, code)) = &mut open {
                    code.push_str(&text);
                }
            }
            _ => {}
        }
    }
    blocks
}

fn language(info: &str) -> &str {
    info.split_whitespace().next().unwrap_or_default()
}

fn code_lines(code: &str) -> Vec<String> {
    clean_lines(code.strip_suffix('\n').unwrap_or(code))
}

fn parser(text: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options)
}

fn block(text: &str, columns: usize, colours: &[Vec<&[Span]>]) -> Vec<Line> {
    let mut drawing = Drawing::new(columns, colours);
    for event in parser(text) {
        drawing.event(event);
    }
    drawing.flush();
    drawing.lines
}

/// What is being drawn.
struct Drawing<'a> {
    columns: usize,
    /// Colours of its code blocks.
    colours: &'a [Vec<&'a [Span]>],
    /// Code blocks that were drawn.
    codes: usize,
    lines: Vec<Line>,
    /// The paragraph that is gathered.
    row: Row,
    style: Style,
    styles: Vec<Style>,
    /// Numbers of the open lists; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Marker of an item that has no text yet.
    marker: Option<String>,
    quotes: usize,
    /// Address of the open link and where its text began.
    link: Option<(String, usize)>,
    code: Option<String>,
    table: Option<Table>,
}

impl<'a> Drawing<'a> {
    fn new(columns: usize, colours: &'a [Vec<&'a [Span]>]) -> Drawing<'a> {
        Drawing {
            columns,
            colours,
            codes: 0,
            lines: Vec::new(),
            row: Row::new(),
            style: TEXT,
            styles: Vec::new(),
            lists: Vec::new(),
            marker: None,
            quotes: 0,
            link: None,
            code: None,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push(&text, self.style),
            },
            Event::Code(text) => self.push(&text, Style { role: CODE.role, ..self.style }),
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, self.style),
            Event::SoftBreak => self.push(" ", self.style),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.flush();
                self.lines.push(Line::whole(Row::of("───", MUTED)));
            }
            Event::TaskListMarker(done) => {
                self.push(if done { "[x] " } else { "[ ] " }, MUTED);
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text, self.style),
            Event::FootnoteReference(text) => self.push(&format!("[{text}]"), MUTED),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        match &mut self.table {
            Some(table) => table.push(text, style),
            None => {
                self.row.push(text, style);
            }
        }
    }

    fn with(&mut self, change: impl Fn(Style) -> Style) {
        self.styles.push(self.style);
        self.style = change(self.style);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "tags of options that are off")]
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.with(Style::bold),
            Tag::Emphasis => self.with(Style::italic),
            Tag::Strong => self.with(Style::bold),
            Tag::Strikethrough => self.with(|style| Style { strike: true, ..style }),
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let text = format!("{number}. ");
                        *number += 1;
                        text
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                self.marker = Some(marker);
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), self.row.text().len()));
                self.with(|style| Style { underline: true, ..style });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(language) = &kind {
                    self.lines_of(fence(self::language(language)));
                }
                self.code = Some(String::new());
            }
            Tag::Table(alignments) => {
                self.flush();
                let right = alignments.iter().map(|side| *side == Alignment::Right).collect();
                self.table = Some(Table::new(right));
            }
            Tag::TableHead | Tag::TableRow => {
                self.with(|style| style);
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.start_cell();
                }
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "tags of options that are off")]
    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.flush();
                self.restore();
            }
            TagEnd::Paragraph | TagEnd::Item | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.restore(),
            TagEnd::TableHead | TagEnd::TableRow => self.restore(),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                let lines = code_lines(&code);
                let line = |(number, line): (usize, &String)| {
                    code_line(line, colours_of(self.colours, self.codes, number))
                };
                let lines = lines.iter().enumerate().map(line).collect();
                self.codes += 1;
                self.lines_of(lines);
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let room = self.columns.saturating_sub(self.indent());
                    self.lines_of(table.draw(room));
                }
            }
            _ => {}
        }
    }

    fn restore(&mut self) {
        self.style = self.styles.pop().unwrap_or(TEXT);
    }

    /// A link shows its text and, if different, its address once (TERM-62).
    fn end_link(&mut self) {
        self.restore();
        let Some((address, from)) = self.link.take() else { return };
        let shown = self.row.text().get(from..).unwrap_or_default();
        let bare = address.strip_prefix("mailto:").unwrap_or(&address);
        if self.table.is_none() && !bare.is_empty() && shown != bare && shown != address {
            self.push(&format!(" ({address})"), MUTED);
        }
    }

    fn indent(&self) -> usize {
        2 * self.lists.len().saturating_sub(1) + 2 * self.quotes
    }

    /// Columns of everything in front of text: quotes, nesting and marker.
    fn prefix(&mut self) -> (Row, usize) {
        let mut row = Row::new();
        for _ in 0..self.quotes {
            row.push("│ ", MUTED);
        }
        row.space(2 * self.lists.len().saturating_sub(1));
        let marker = self.marker.take();
        let is_item = !self.lists.is_empty();
        let hang = match (&marker, is_item) {
            (Some(marker), _) => crate::cells::text_width(marker),
            (None, true) => 2,
            (None, false) => 0,
        };
        match marker {
            Some(marker) => row.push(&marker, ACCENT),
            None => row.space(hang),
        };
        let hang = row.width();
        (row, hang)
    }

    /// Ends the paragraph that is gathered.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.row);
        if text.is_empty() && (self.marker.is_none() || self.table.is_some()) {
            return;
        }
        let (mut row, hang) = self.prefix();
        if self.quotes > 0 {
            // Every row of a quote carries its sign.
            let room = self.columns.saturating_sub(hang).max(1);
            for part in text.wrap(room, 0) {
                let mut quoted = row.clone();
                quoted.append(&part);
                self.lines.push(Line::prose(quoted));
            }
            return;
        }
        row.append(&text);
        self.lines.extend(row.wrap(self.columns, hang).into_iter().map(Line::prose));
    }

    /// Lines that are broken already, indented to where they stand.
    fn lines_of(&mut self, lines: Vec<Line>) {
        let indent = if self.lists.is_empty() { self.indent() } else { self.indent() + 2 };
        self.lines.extend(lines.into_iter().map(|line| line.indented(indent)));
    }
}

#[cfg(test)]
mod tests {
    use crate::markdown::render;

    fn check(text: &str, columns: usize, expected: &[&str]) {
        let lines = render(text, columns);
        let lines: Vec<_> = lines.iter().map(|line| line.row.text()).collect();
        assert_eq!(lines, expected, "{text:?}");
    }

    #[test]
    fn prose_is_drawn_as_people_read_it() {
        check("# Head\nsome *text* and `code`", 40, &["Head", "some text and code"]);
        check("one two three four", 9, &["one two", "three", "four"]);
        check("- one two three\n- b\n  - c", 10, &["• one two", "  three", "• b", "  • c"]);
        check("1. a\n2. b", 20, &["1. a", "2. b"]);
        check("3. c", 20, &["3. c"]);
        check("> quoted text here", 14, &["│ quoted text", "│ here"]);
        check("- [x] done", 20, &["• [x] done"]);
        check("a\n\n---\n\nb", 20, &["a", "", "───", "", "b"]);
    }

    #[test]
    fn a_link_shows_its_address_once() {
        check("[text](http://x.y)", 40, &["text (http://x.y)"]);
        check("[http://x.y](http://x.y)", 40, &["http://x.y"]);
        check("<http://x.y>", 40, &["http://x.y"]);
    }

    // TERM-23: code is one logical line each.
    #[test]
    fn code_is_never_broken_by_us() {
        let text = "```rust\nlet a_long_name = another_long_name;\n```";
        let lines = render(text, 10);
        assert_eq!(lines[0].row.text(), "```rust");
        assert_eq!(lines[1].row.text(), "  let a_long_name = another_long_name;");
        assert!(!lines[1].is_prose);
    }

    #[test]
    fn code_inside_an_item_stays_with_it() {
        check("- a\n  ```sh\n  ls\n  ```", 20, &["• a", "  ```sh", "    ls"]);
    }

    // C137: no prose row is wider than the terminal.
    #[test]
    fn no_prose_row_is_wider_than_asked() {
        let text = "# 日本 👨‍👩‍👧 heading\n\n- item `code` with [link](http://example.org/a/long/path)\n  - nested\n\n> quote of words\n\n| a | b |\n|---|--:|\n| one two three | 日本語 |\n";
        for columns in 4..50 {
            for line in render(text, columns) {
                assert!(
                    !line.is_prose || line.row.width() <= columns,
                    "{columns}: {:?}",
                    line.row.text()
                );
            }
        }
    }

    // C109: nothing of a text can become a control.
    #[test]
    fn controls_in_any_place_are_gone() {
        let text = "# a\u{1b}[2J\n\n- b\u{7}\n\n[t\u{9b}1m](http://x/\u{1b}]52;c;QQ\u{7})\n\n```\nc\u{1b}[Hd\u{9d}8;;x\n```\n\n| \u{1b}[7mh |\n|---|\n| \u{8}x |";
        for line in render(text, 30) {
            assert!(!line.row.text().chars().any(char::is_control));
        }
    }
}
