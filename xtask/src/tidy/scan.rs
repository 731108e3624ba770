//! What a check sees of a Rust file: its lines with comments and the insides
//! of literals blanked out, and which lines are tests.
//!
//! Must never try to understand more of the language than blocks and words;
//! the sources are formatted by rustfmt and compile. Read `size` for a user.

/// A Rust file, ready to be searched.
pub(crate) struct Source {
    lines: Vec<Line>,
}

/// One line of a source file.
pub(crate) struct Line {
    /// As written.
    pub(crate) text: String,
    /// Without comments; the insides of literals are spaces.
    pub(crate) code: String,
    /// Part of a test or of a test-only item.
    pub(crate) test: bool,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let blanked = blank(text);
        let mut lines: Vec<Line> = text
            .lines()
            .zip(blanked.lines())
            .map(|(text, code)| Line {
                text: text.to_owned(),
                code: code.trim_end().to_owned(),
                test: is_test_file(path),
            })
            .collect();
        for index in 0..lines.len() {
            if is_test_attribute(lines[index].code.trim()) {
                let end = item_end(&lines, index);
                for line in &mut lines[index..=end] {
                    line.test = true;
                }
            }
        }
        Self { lines }
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the lines of the product with their numbers, tests left out.
    pub(crate) fn product(&self) -> impl Iterator<Item = (usize, &Line)> {
        let numbered = self.lines.iter().enumerate();
        numbered.filter(|(_, line)| !line.test).map(|(index, line)| (index + 1, line))
    }

    /// Returns name, line (from 1) and length in lines of every function,
    /// tests left out. Tables of constants inside do not count.
    pub(crate) fn functions(&self) -> Vec<(String, usize, usize)> {
        let mut functions = Vec::new();
        for (number, line) in self.product() {
            if let Some(name) = function_name(&line.code) {
                functions.push((name, number, self.function_lines(number - 1)));
            }
        }
        functions
    }

    fn function_lines(&self, start: usize) -> usize {
        let end = item_end(&self.lines, start);
        let (mut at, mut lines) = (start, 0);
        while at <= end {
            let code = self.lines[at].code.trim_start();
            if at > start && (code.starts_with("const ") || code.starts_with("static ")) {
                at = item_end(&self.lines, at);
            } else {
                lines += 1;
            }
            at += 1;
        }
        lines
    }
}

/// Says whether `word`, which may be a path like `std::fs`, stands in the code
/// as a word of its own.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    let mut from = 0;
    while let Some(at) = code[from..].find(word) {
        let start = from + at;
        let end = start + word.len();
        let before = code[..start].chars().next_back();
        let after = code[end..].chars().next();
        let open_start = !word.starts_with(is_word) || !before.is_some_and(is_word);
        let open_end = !word.ends_with(is_word) || !after.is_some_and(is_word);
        if open_start && open_end {
            return true;
        }
        from = end;
    }
    false
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Says whether a whole file is test code by where it lies.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
}

fn is_test_attribute(code: &str) -> bool {
    code.starts_with("#[cfg(test)]")
        || code.starts_with("#[cfg(all(test")
        || code.starts_with("#[test]")
        || code.starts_with("#[tokio::test")
}

/// Returns the name after `fn` when the line declares a function.
fn function_name(code: &str) -> Option<String> {
    let at = if code.trim_start().starts_with("fn ") {
        code.find("fn ")?
    } else {
        code.find(" fn ")? + 1
    };
    let name: String = code[at + 3..].chars().take_while(|&c| is_word(c)).collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the index of the line on which the item that starts at `start`
/// ends: at its `;`, or at the bracket that closes its body.
fn item_end(lines: &[Line], start: usize) -> usize {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (index, line) in lines.iter().enumerate().skip(start) {
        for c in line.code.chars() {
            match c {
                '(' | '[' => round += 1,
                ')' | ']' => round -= 1,
                '{' => curly += 1,
                '}' => {
                    curly -= 1;
                    if curly == 0 && round == 0 {
                        return index;
                    }
                }
                ';' if round == 0 && curly == 0 => return index,
                _ => {}
            }
        }
    }
    lines.len().saturating_sub(1)
}

/// Replaces comments and the insides of string and character literals by
/// spaces; line breaks stay, so line numbers do too.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(chars[at..end].iter().map(|&c| match c {
            '\n' => '\n',
            _ => ' ',
        }));
        at = end;
    }
    out
}

/// Returns where the comment or literal that starts at `at` ends, or `at`.
fn skipped_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    let in_word = at > 0 && is_word(chars[at - 1]);
    match chars[at] {
        '/' if next == Some('/') => line_end(chars, at),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        'r' if !in_word || chars[at - 1] == 'b' => raw_string_end(chars, at),
        '\'' => char_end(chars, at),
        _ => at,
    }
}

fn line_end(chars: &[char], at: usize) -> usize {
    let rest = chars[at..].iter().position(|&c| c == '\n');
    rest.map_or(chars.len(), |length| at + length)
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Returns where `r"…"` or `r#"…"#` ends, or `at` when it is another word.
fn raw_string_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let mut end = open + 1;
    while end < chars.len() {
        let closing = &chars[end + 1..];
        if chars[end] == '"' && closing.iter().take(hashes).filter(|&&c| c == '#').count() == hashes
        {
            return end + 1 + hashes;
        }
        end += 1;
    }
    chars.len()
}

/// Returns where a character literal ends, or `at` when the quote starts a
/// lifetime.
fn char_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), Some(_)) => {
            let rest = chars[at + 3..].iter().position(|&c| c == '\'');
            rest.map_or(at, |length| at + 3 + length + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let code: Vec<String> =
            blank(text).lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(code.join("\n"), expected, "{text}");
    }

    #[test]
    fn comments_and_literals_are_blanked_and_lines_are_kept() {
        check("a // b\nc", "a\nc");
        check("a /* b /* c */\n d */ e", "a\n      e");
        check("f(\"std::fs // \\\" x\");", &format!("f({});", " ".repeat(17)));
        check("let r = r#\"a \"quoted\" b\"#;", &format!("let r = {};", " ".repeat(17)));
        check("let q = '\"'; let s: &'a str;", "let q =    ; let s: &'a str;");
        check("let q = '\\''; x", "let q =     ; x");
        check("for r in rows {}", "for r in rows {}");
    }

    #[test]
    fn words_and_paths_are_found_whole_only() {
        assert!(has_word("use std::fs;", "std::fs"));
        assert!(!has_word("use std::fsx;", "std::fs"));
        assert!(!has_word("let my_async = 1;", "async"));
        assert!(has_word("tokio::spawn(x)", "tokio::spawn("));
        assert!(!has_word("MyInstant::now()", "Instant"));
    }

    #[test]
    fn test_items_are_told_from_the_product() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::parse("crates/base/src/lib.rs", text);
        let product: Vec<usize> = source.product().map(|(number, _)| number).collect();
        assert_eq!(product, [1, 6]);
        assert!(Source::parse("crates/x/tests/y.rs", "fn a() {}\n").lines()[0].test);
    }

    #[test]
    fn a_test_module_in_its_own_file_ends_at_its_semicolon() {
        let text = "#[cfg(test)]\nmod tests;\nfn c() {}\n";
        let source = Source::parse("crates/base/src/lib.rs", text);
        assert_eq!(source.product().count(), 1);
    }

    #[test]
    fn functions_are_measured_from_name_to_closing_bracket() {
        let text = "pub fn a(\n    x: [u8; 4],\n) {\n    b();\n}\ntrait T {\n    fn d(&self);\n}\ntype F = fn(u8);\n";
        let functions = Source::parse("crates/base/src/lib.rs", text).functions();
        assert_eq!(functions, [("a".to_owned(), 1, 5), ("d".to_owned(), 7, 1)]);
    }

    #[test]
    fn tables_inside_a_function_do_not_make_it_long() {
        let text = "fn a() {\n    const T: [&str; 2] = [\n        \"x\",\n        \"y\",\n    ];\n    b(T);\n}\n";
        let functions = Source::parse("crates/base/src/lib.rs", text).functions();
        assert_eq!(functions, [("a".to_owned(), 1, 3)]);
    }
}
