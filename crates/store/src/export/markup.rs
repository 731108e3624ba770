//! Writes a page: markup of our own as it is, everything else escaped.
//!
//! Invariant: markup is `&'static str`, so no text of a session can become
//! markup. Escaping serves text and quoted attributes alike; it also makes
//! control characters and marks that turn the direction of text visible, so that
//! nothing on the page can hide or pose as something else.

use std::borrow::Cow;
use std::io::{self, Write};

use crew_base::message::ImageBlock;
use crew_base::text::{excerpt, sanitise_inline};
use crew_base::time::Time;

use super::Done;

/// A page being written.
pub(super) struct Html<'a> {
    out: &'a mut dyn Write,
}

/// How a text is shown.
#[derive(Clone, Copy)]
pub(super) enum Style {
    /// What people and models say.
    Prose,
    /// Code, output and data.
    Code,
}

impl<'a> Html<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Html<'a> {
        Html { out }
    }

    /// Writes markup.
    pub(super) fn put(&mut self, markup: &'static str) -> Done {
        Ok(self.out.write_all(markup.as_bytes())?)
    }

    /// Writes text, escaped.
    pub(super) fn text(&mut self, text: &str) -> Done {
        Ok(escape(self.out, text)?)
    }

    /// Writes text as one line, kept apart from the direction of what surrounds
    /// it (`crew.md` CARD-7).
    pub(super) fn inline(&mut self, text: &str) -> Done {
        self.between("<bdi>", &sanitise_inline(text), "</bdi>")
    }

    /// Writes text between two pieces of markup.
    pub(super) fn between(
        &mut self,
        before: &'static str,
        text: &str,
        after: &'static str,
    ) -> Done {
        self.put(before)?;
        self.text(text)?;
        self.put(after)
    }

    /// Writes a moment to the second; nothing for an unknown one.
    pub(super) fn time(&mut self, time: Time) -> Done {
        if time == Time(0) {
            return Ok(());
        }
        let iso = time.iso();
        self.between("<time datetime=\"", &iso, "\">")?;
        let shown = iso.get(..19).unwrap_or(&iso).replace('T', " ");
        self.between("", &shown, "</time>")
    }

    /// Writes a text with its lines.
    pub(super) fn block(&mut self, style: Style, text: &str) -> Done {
        // A line feed directly behind the tag is no part of the text.
        self.put(match style {
            Style::Prose => "<pre class=\"prose\">\n",
            Style::Code => "<pre>\n",
        })?;
        self.between("", text, "</pre>\n")
    }

    /// Writes a text with its lines, folded under its first line when long.
    pub(super) fn foldable(&mut self, label: &str, style: Style, text: &str) -> Done {
        if !is_long(text) {
            return self.block(style, text);
        }
        self.put("<details><summary>")?;
        self.size(label, text)?;
        self.put("</summary>\n")?;
        self.block(style, text)?;
        self.put("</details>\n")
    }

    /// Writes a text with its lines, always folded.
    pub(super) fn folded(&mut self, label: &str, style: Style, text: &str) -> Done {
        self.between("<details><summary>", label, "</summary>\n")?;
        self.block(style, text)?;
        self.put("</details>\n")
    }

    fn size(&mut self, label: &str, text: &str) -> Done {
        let lines = text.lines().count();
        self.text(&format!("{label} · {} · {}", count(lines, "line"), bytes(text.len())))?;
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let first = sanitise_inline(&excerpt(first, PREVIEW_CHARS_MAX));
        self.between(" <code>", &first, "</code>")
    }

    /// Writes an image of a kind that every browser shows and that cannot act;
    /// any other is only mentioned.
    pub(super) fn image(&mut self, image: &ImageBlock) -> Done {
        let kind = MIME_TYPES.iter().find(|kind| **kind == image.mime_type);
        match kind.filter(|_| is_base64(&image.data)) {
            Some(kind) => {
                self.between("<img alt=\"image\" src=\"data:", kind, ";base64,")?;
                self.between("", &image.data, "\">\n")
            }
            None => {
                let kind = excerpt(&image.mime_type, PREVIEW_CHARS_MAX);
                self.put("<p class=\"note\">An image that cannot be shown here: ")?;
                self.inline(&kind)?;
                self.put(".</p>\n")
            }
        }
    }
}

/// Whether a text is folded.
pub(super) fn is_long(text: &str) -> bool {
    text.len() > FOLD_BYTES || text.lines().nth(FOLD_LINES).is_some()
}

/// A number and its noun, `1 line` or `2 lines`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u64))
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Dollars (`crew.md` WID-10).
pub(super) fn dollars(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.01 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}

/// A working time (`crew.md` WID-11).
pub(super) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m {seconds}s"),
    }
}

fn bytes(number: usize) -> String {
    match number {
        0..1024 => format!("{number} B"),
        1024..1_048_576 => format!("{:.1} KB", number as f64 / 1024.0),
        _ => format!("{:.1} MB", number as f64 / 1_048_576.0),
    }
}

fn is_base64(data: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    !data.is_empty() && data.bytes().all(is_digit)
}

/// Escapes text for an element or a quoted attribute.
fn escape(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let bytes = text.as_bytes();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        match special(&bytes[at..]) {
            None => at += 1,
            Some((len, shown)) => {
                out.write_all(&bytes[from..at])?;
                out.write_all(shown.as_bytes())?;
                at += len;
                from = at;
            }
        }
    }
    out.write_all(&bytes[from..])
}

/// What stands for the beginning of some bytes of text, and for how many of
/// them; nothing when they stand for themselves. Looks at first bytes of
/// characters only, so it never splits one.
fn special(bytes: &[u8]) -> Option<(usize, Cow<'static, str>)> {
    let fixed = |text: &'static str| Some((1, Cow::Borrowed(text)));
    match *bytes.first()? {
        b'&' => fixed("&amp;"),
        b'<' => fixed("&lt;"),
        b'>' => fixed("&gt;"),
        b'"' => fixed("&quot;"),
        b'\'' => fixed("&#39;"),
        b'\n' | b'\t' => None,
        b'\r' if bytes.get(1) == Some(&b'\n') => fixed(""),
        0x1b => match colour_sequence(bytes) {
            Some(len) => Some((len, Cow::Borrowed(""))),
            None => fixed("\u{241b}"),
        },
        byte @ 0..0x20 => {
            let picture = char::from_u32(0x2400 + u32::from(byte))?;
            Some((1, picture.to_string().into()))
        }
        0x7f => fixed("\u{2421}"),
        // U+0080 to U+009F.
        0xc2 if matches!(bytes.get(1), Some(0x80..=0x9f)) => Some((2, "\u{fffd}".into())),
        // U+202A to U+202E, U+2066 to U+2069.
        0xe2 => match bytes.get(1..3)? {
            [0x80, last @ 0xaa..=0xae] => {
                Some((3, format!("[U+{:X}]", 0x1f80 + u32::from(*last)).into()))
            }
            [0x81, last @ 0xa6..=0xa9] => {
                Some((3, format!("[U+{:X}]", 0x1fc0 + u32::from(*last)).into()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Length of a sequence that only sets colours: a terminal would show nothing
/// of it, and a page without it loses nothing.
fn colour_sequence(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))?;
    (rest[end] == b'm').then_some(end + 3)
}

/// The kinds of images that models take (`host.md` 4.2).
const MIME_TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];
const FOLD_LINES: usize = 24;
const FOLD_BYTES: usize = 4096;
const PREVIEW_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        escape(&mut out, text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_character_of_a_text_is_markup_or_invisible() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected);
        check("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;");
        check("é 日本 😀 …", "é 日本 😀 …");
        check("a\r\nb\rc\td", "a\nb\u{240d}c\td");
        check("\u{0}\u{7}\u{7f}\u{9b}\u{85}", "\u{2400}\u{2407}\u{2421}\u{fffd}\u{fffd}");
        check("x\u{202e}y\u{2066}z\u{202a}\u{2069}", "x[U+202E]y[U+2066]z[U+202A][U+2069]");
        check("a\u{2029}b\u{2065}", "a\u{2029}b\u{2065}");
    }

    #[test]
    fn colours_go_and_other_sequences_become_visible() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected);
        check("\u{1b}[1;31mred\u{1b}[0m\u{1b}[m", "red");
        check("\u{1b}[2J\u{1b}]0;t\u{7}", "\u{241b}[2J\u{241b}]0;t\u{2407}");
        check("\u{1b}[31", "\u{241b}[31");
        check("\u{1b}", "\u{241b}");
    }

    #[test]
    fn only_known_images_of_clean_base64_are_embedded() {
        let check = |mime: &str, data: &str, embedded: bool| {
            let mut out = Vec::new();
            let image = ImageBlock { data: data.into(), mime_type: mime.into() };
            let shown = Html::new(&mut out).image(&image);
            assert!(shown.is_ok());
            let page = String::from_utf8(out).unwrap();
            assert_eq!(page.contains("<img"), embedded, "{page}");
            assert!(!page.contains("svg\"") && !page.contains("onload"), "{page}");
        };
        for mime in MIME_TYPES {
            check(mime, "aGk=", true);
        }
        check("image/svg+xml", "aGk=", false);
        check("text/html", "aGk=", false);
        check("IMAGE/PNG", "aGk=", false);
        check("image/png", "\" onload=\"x", false);
        check("image/png", "", false);
    }

    #[test]
    fn numbers_read_well() {
        let check = |number, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(12_345_678, "12,345,678");
        // crew.md WID-10, WID-11
        assert_eq!(
            (dollars(0.0), dollars(0.0012), dollars(1.5)),
            ("$0.00".into(), "$0.0012".into(), "$1.50".into())
        );
        assert_eq!(
            (duration(900), duration(60_000), duration(3_725_000)),
            ("0s".into(), "1m".into(), "62m 5s".into())
        );
        assert_eq!(
            (bytes(10), bytes(2048), bytes(3 << 20)),
            ("10 B".into(), "2.0 KB".into(), "3.0 MB".into())
        );
    }
}
