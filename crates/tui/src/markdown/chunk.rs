//! Cuts a growing text into chunks that are final (`terminal.md` TERM-21).

/// A piece of a text that is drawn by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// An empty line between pieces.
    Blank,
    /// A paragraph, heading, table, quote, or one item of a list.
    Block(String),
    /// The line that opens a code fence: its language.
    FenceOpen(String),
    /// One line of code.
    Code(String),
    /// The line that closes a code fence.
    FenceClose,
}

/// Takes a text piece by piece and gives what no later piece can change.
#[derive(Clone, Debug, Default)]
pub struct Chunker {
    /// The line that is not complete yet.
    line: String,
    state: State,
    /// Whether an empty line came after the last chunk.
    gap: bool,
    has_any: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Between,
    Paragraph(String),
    Item {
        text: String,
        /// Columns of its marker: what is indented so far belongs to it.
        indent: usize,
        /// Empty lines at its end.
        blanks: usize,
        fence: Option<(char, usize)>,
    },
    Fence(char, usize),
}

impl Chunker {
    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Vec<Chunk> {
        let mut out = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.take_line(line.trim_end_matches(['\n', '\r']), &mut out);
            }
        }
        out
    }

    /// The text is complete.
    pub fn finish(&mut self) -> Vec<Chunk> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut out);
        }
        self.close(&mut out);
        *self = Chunker::default();
        out
    }

    /// What the rest would give if nothing more came: the open end.
    pub fn open(&self) -> Vec<Chunk> {
        self.clone().finish()
    }

    fn take_line(&mut self, line: &str, out: &mut Vec<Chunk>) {
        match std::mem::take(&mut self.state) {
            State::Fence(sign, length) => {
                if closes_fence(line, sign, length) {
                    self.emit(Chunk::FenceClose, out);
                } else {
                    self.emit(Chunk::Code(line.to_owned()), out);
                    self.state = State::Fence(sign, length);
                }
            }
            State::Item { text, indent, blanks, fence } => {
                self.item_line(line, text, indent, blanks, fence, out);
            }
            State::Paragraph(text) => self.paragraph_line(line, text, out),
            State::Between => self.first_line(line, out),
        }
    }

    fn paragraph_line(&mut self, line: &str, mut text: String, out: &mut Vec<Chunk>) {
        let trimmed = line.trim_start();
        let interrupts = trimmed.is_empty()
            || fence(line).is_some()
            || is_heading(line)
            || is_rule(line)
            || is_underline(line)
            || trimmed.starts_with('>') && !text.trim_start().starts_with('>')
            || bullet(line).is_some_and(|marker| marker.interrupts);
        if interrupts {
            self.emit(Chunk::Block(text), out);
            self.first_line(line, out);
            return;
        }
        text.push('\n');
        text.push_str(line);
        self.state = State::Paragraph(text);
    }

    fn item_line(
        &mut self,
        line: &str,
        mut text: String,
        indent: usize,
        blanks: usize,
        open: Option<(char, usize)>,
        out: &mut Vec<Chunk>,
    ) {
        let own = line.len() - line.trim_start_matches(' ').len();
        if open.is_none() && line.trim().is_empty() {
            self.state = State::Item { text, indent, blanks: blanks + 1, fence: None };
            return;
        }
        let belongs =
            own >= 2.min(indent) && own > 0 || open.is_some() || blanks == 0 && is_lazy(line);
        if !belongs {
            self.emit(Chunk::Block(text), out);
            self.gap |= blanks > 0;
            self.first_line(line, out);
            return;
        }
        let open = match open {
            Some((sign, length)) if closes_fence(line, sign, length) => None,
            Some(open) => Some(open),
            None => fence(line.trim_start()).map(|(sign, length, _)| (sign, length)),
        };
        for _ in 0..=blanks {
            text.push('\n');
        }
        text.push_str(line);
        self.state = State::Item { text, indent, blanks: 0, fence: open };
    }

    fn first_line(&mut self, line: &str, out: &mut Vec<Chunk>) {
        if line.trim().is_empty() {
            self.gap = true;
        } else if let Some((sign, length, language)) = fence(line) {
            self.emit(Chunk::FenceOpen(language), out);
            self.state = State::Fence(sign, length);
        } else if is_heading(line) || is_rule(line) {
            self.emit(Chunk::Block(line.to_owned()), out);
        } else if let Some(marker) = bullet(line) {
            let (text, indent) = (line.to_owned(), marker.indent);
            self.state = State::Item { text, indent, blanks: 0, fence: None };
        } else {
            self.state = State::Paragraph(line.to_owned());
        }
    }

    fn close(&mut self, out: &mut Vec<Chunk>) {
        match std::mem::take(&mut self.state) {
            State::Between => {}
            State::Paragraph(text) | State::Item { text, .. } => self.emit(Chunk::Block(text), out),
            State::Fence(..) => self.emit(Chunk::FenceClose, out),
        }
    }

    fn emit(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) {
        if std::mem::take(&mut self.gap) && self.has_any {
            out.push(Chunk::Blank);
        }
        self.has_any = true;
        out.push(chunk);
    }
}

struct Marker {
    indent: usize,
    /// Whether it ends a paragraph without an empty line.
    interrupts: bool,
}

/// The marker of a list item that is not nested in another.
fn bullet(line: &str) -> Option<Marker> {
    let trimmed = line.trim_start_matches(' ');
    let lead = line.len() - trimmed.len();
    if lead > 3 {
        return None;
    }
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &trimmed[digits..];
    let sign = rest.chars().next()?;
    let is_marker = match digits {
        0 => matches!(sign, '-' | '*' | '+'),
        1..=9 => matches!(sign, '.' | ')'),
        _ => false,
    };
    let after = &rest[sign.len_utf8()..];
    if !is_marker || !(after.is_empty() || after.starts_with([' ', '\t'])) {
        return None;
    }
    let interrupts = !after.trim().is_empty() && (digits == 0 || &trimmed[..digits] == "1");
    Some(Marker { indent: lead + digits + 2, interrupts })
}

/// Whether a line at column 0 goes on with the paragraph of an item.
fn is_lazy(line: &str) -> bool {
    bullet(line).is_none()
        && fence(line).is_none()
        && !is_heading(line)
        && !is_rule(line)
        && !line.starts_with('>')
}

fn is_heading(line: &str) -> bool {
    let trimmed = line.trim_start();
    let level = trimmed.len() - trimmed.trim_start_matches('#').len();
    let rest = &trimmed[level..];
    line.len() - trimmed.len() <= 3
        && (1..=6).contains(&level)
        && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_rule(line: &str) -> bool {
    let signs: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let all = |sign: char| signs.chars().all(|c| c == sign);
    signs.len() >= 3 && (all('-') || all('*') || all('_')) && !line.starts_with("    ")
}

/// The line under an underlined heading; not recognised as one (TERM-62), but
/// it must not make the paragraph above one.
fn is_underline(line: &str) -> bool {
    let trimmed = line.trim();
    !trimmed.is_empty() && (trimmed.chars().all(|c| c == '=') || trimmed.chars().all(|c| c == '-'))
}

/// Sign, length and language of a line that opens a fence.
fn fence(line: &str) -> Option<(char, usize, String)> {
    let trimmed = line.trim_start_matches(' ');
    if line.len() - trimmed.len() > 3 {
        return None;
    }
    let sign = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = trimmed.chars().take_while(|c| *c == sign).count();
    let info = trimmed[length..].trim();
    if length < 3 || sign == '`' && info.contains('`') {
        return None;
    }
    Some((sign, length, info.split_whitespace().next().unwrap_or_default().to_owned()))
}

fn closes_fence(line: &str, sign: char, length: usize) -> bool {
    let trimmed = line.trim();
    trimmed.len() >= length && trimmed.chars().all(|c| c == sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(chunks: &[Chunk]) -> Vec<String> {
        let word = |chunk: &Chunk| match chunk {
            Chunk::Blank => "-".to_owned(),
            Chunk::Block(text) => text.clone(),
            Chunk::FenceOpen(language) => format!("<{language}>"),
            Chunk::Code(line) => format!("={line}"),
            Chunk::FenceClose => "</>".to_owned(),
        };
        chunks.iter().map(word).collect()
    }

    fn check(text: &str, expected: &[&str]) {
        let mut chunker = Chunker::default();
        let mut chunks = chunker.push(text);
        chunks.extend(chunker.finish());
        assert_eq!(words(&chunks), expected, "{text:?}");
        // Case 8: byte for byte the same chunks, wherever the text is cut.
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut chunks = chunker.push(&text[..cut]);
            chunks.extend(chunker.push(&text[cut..]));
            chunks.extend(chunker.finish());
            assert_eq!(words(&chunks), expected, "{text:?} cut at {cut}");
        }
    }

    #[test]
    fn texts_are_cut_where_nothing_can_change_them() {
        check("one\ntwo\n\nthree", &["one\ntwo", "-", "three"]);
        check("# Head\ntext", &["# Head", "text"]);
        check(
            "text\n```rust\nlet a;\n\nb\n```\nend",
            &["text", "<rust>", "=let a;", "=", "=b", "</>", "end"],
        );
        check("- a\n  more\n- b\n\n- c\n\nend", &["- a\n  more", "- b", "-", "- c", "-", "end"]);
        check("1. a\n\n   second\n2. b", &["1. a\n\n   second", "2. b"]);
        check("- a\n  ```\n  x\n\n  y\n  ```\n- b", &["- a\n  ```\n  x\n\n  y\n  ```", "- b"]);
        check(
            "| a | b |\n|---|---|\n| 1 | 2 |\n\nx",
            &["| a | b |\n|---|---|\n| 1 | 2 |", "-", "x"],
        );
        check("\n\n\na\n\n\n\nb\n", &["a", "-", "b"]);
        check("open\n```\ncode", &["open", "<>", "=code", "</>"]);
        check("year\n2024. was", &["year\n2024. was"]);
    }

    // TERM-62: an underlined heading is no heading.
    #[test]
    fn a_paragraph_is_final_at_its_end() {
        check("text\n---\nmore", &["text", "---", "more"]);
        check("text\n===\nmore", &["text", "===\nmore"]);
    }

    #[test]
    fn the_open_end_is_known_without_ending() {
        let mut chunker = Chunker::default();
        assert_eq!(words(&chunker.push("done\n\nop")), ["done"]);
        assert_eq!(words(&chunker.open()), ["-", "op"]);
        assert_eq!(words(&chunker.push("en\n\n")), ["-", "open"]);
    }
}
