//! Grammars, and what their scopes mean in our roles.
//!
//! Owns the syntax library: no type of it is seen outside. Grammars are read
//! from the program itself with the first line of a fence that names a
//! language, so that a face without code never pays for them.

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::{Ask, Coloured, Span};
use crate::theme::{Role, Token};

/// Bytes of a language name that are looked at.
const LANGUAGE_BYTES_MAX: usize = 40;

/// Gives lines their colours, one fence after the other. Holds some megabytes
/// once it was used.
#[derive(Default)]
pub struct Highlighter {
    loaded: Option<Loaded>,
    fence: Option<Fence>,
}

struct Loaded {
    syntaxes: SyntaxSet,
    meanings: Vec<(Scope, Role)>,
}

/// The fence whose lines come.
struct Fence {
    number: u64,
    /// The line that comes next.
    line: usize,
    parser: ParseState,
    scopes: ScopeStack,
}

impl Highlighter {
    /// Colours a line. Takes some 2.5 ms for each KiB, and tens of
    /// milliseconds more for the first line of all and of each language.
    pub fn colour(&mut self, ask: &Ask) -> Coloured {
        let spans = self.spans(ask);
        if spans.is_none() {
            self.fence = None;
        }
        Coloured { fence: ask.fence, line: ask.line, bytes: ask.text.len(), spans }
    }

    fn spans(&mut self, ask: &Ask) -> Option<Vec<Span>> {
        let loaded = self.loaded.get_or_insert_with(Loaded::read);
        if ask.line == 0 {
            let syntax = loaded.syntax(&ask.language)?;
            let (parser, scopes) = (ParseState::new(syntax), ScopeStack::new());
            self.fence = Some(Fence { number: ask.fence, line: 0, parser, scopes });
        }
        let fence = self.fence.as_mut()?;
        if (fence.number, fence.line) != (ask.fence, ask.line) {
            return None;
        }
        fence.line += 1;
        // The grammars end comments and the like at a line feed.
        let text = format!("{}\n", ask.text);
        let changes = fence.parser.parse_line(&text, &loaded.syntaxes).ok()?;
        let mut spans = Vec::new();
        for (at, change) in changes {
            span(&mut spans, at.min(ask.text.len()), loaded.role(&fence.scopes));
            fence.scopes.apply(&change).ok()?;
        }
        span(&mut spans, ask.text.len(), loaded.role(&fence.scopes));
        Some(spans)
    }
}

/// Adds the part that ends at a byte; parts of one role become one.
fn span(spans: &mut Vec<Span>, end: usize, role: Role) {
    if end <= spans.last().map_or(0, |last| last.end) {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.role == role => last.end = end,
        Some(_) | None => spans.push(Span { end, role }),
    }
}

impl Loaded {
    fn read() -> Loaded {
        let meaning = |(scope, role): &(&str, Role)| Some((Scope::new(scope).ok()?, *role));
        Loaded {
            syntaxes: SyntaxSet::load_defaults_newlines(),
            meanings: MEANINGS.iter().filter_map(meaning).collect(),
        }
    }

    fn syntax(&self, language: &str) -> Option<&SyntaxReference> {
        if language.is_empty() || language.len() > LANGUAGE_BYTES_MAX {
            return None;
        }
        // `rust,ignore` and `{.rust}` name Rust.
        let word = language.trim_start_matches(['{', '.']);
        let word = word.split([',', '{', '}', ':']).next()?.to_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
        let word = alias.map_or(word.as_str(), |(_, name)| name);
        let syntax = self.syntaxes.find_syntax_by_token(word)?;
        (syntax.name != "Plain Text").then_some(syntax)
    }

    /// The innermost scope that means something decides.
    fn role(&self, scopes: &ScopeStack) -> Role {
        let meaning = |scope: &Scope| {
            let found = self.meanings.iter().find(|(known, _)| known.is_prefix_of(*scope));
            found.map(|(_, role)| *role)
        };
        scopes.as_slice().iter().rev().find_map(meaning).unwrap_or(Role::Code)
    }
}

/// Names that models write and the grammars do not know.
const ALIASES: &[(&str, &str)] = &[
    ("c++", "cpp"),
    ("console", "bash"),
    ("golang", "go"),
    ("json5", "json"),
    ("jsonc", "json"),
    ("patch", "diff"),
    ("shell", "bash"),
    ("ts", "js"),
    ("typescript", "js"),
];

/// What a scope means; the first one that fits counts.
const MEANINGS: &[(&str, Role)] = &[
    ("comment", Role::Token(Token::Comment)),
    ("constant", Role::Token(Token::Number)),
    ("string", Role::Token(Token::Text)),
    ("keyword.operator.word", Role::Token(Token::Keyword)),
    ("keyword.operator.logical.python", Role::Token(Token::Keyword)),
    ("keyword.operator", Role::Code),
    ("keyword", Role::Token(Token::Keyword)),
    ("storage", Role::Token(Token::Keyword)),
    ("variable.language", Role::Token(Token::Keyword)),
    ("entity.name.function", Role::Token(Token::Function)),
    ("entity.name.tag", Role::Token(Token::Keyword)),
    ("entity.name", Role::Token(Token::Type)),
    ("entity.other.attribute-name", Role::Token(Token::Function)),
    ("entity.other.inherited-class", Role::Token(Token::Type)),
    ("support.function", Role::Token(Token::Function)),
    ("support.macro", Role::Token(Token::Function)),
    ("support.type", Role::Token(Token::Type)),
    ("support.class", Role::Token(Token::Type)),
    ("variable.function", Role::Token(Token::Function)),
    ("markup.inserted", Role::Added),
    ("markup.deleted", Role::Removed),
    ("meta.diff.header", Role::Token(Token::Comment)),
    ("meta.diff.range", Role::Token(Token::Keyword)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(language: &str, line: usize, text: &str) -> Ask {
        Ask { fence: 1, language: language.to_owned(), line, text: text.to_owned() }
    }

    /// Each part of the last line that is not plain code, with its role.
    fn check(language: &str, text: &str, expected: &[(&str, Role)]) {
        let mut highlighter = Highlighter::default();
        let mut parts = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let spans = highlighter.colour(&ask(language, number, line)).spans.unwrap();
            let mut from = 0;
            parts.clear();
            for span in spans {
                parts.push((line[from..span.end].to_owned(), span.role));
                from = span.end;
            }
            assert_eq!(from, line.len(), "{line:?} is covered");
        }
        parts.retain(|(text, role)| *role != Role::Code && !text.trim().is_empty());
        let parts: Vec<_> = parts.iter().map(|(text, role)| (text.trim(), *role)).collect();
        assert_eq!(parts, expected, "{language} {text:?}");
    }

    const KEYWORD: Role = Role::Token(Token::Keyword);
    const TEXT: Role = Role::Token(Token::Text);
    const NUMBER: Role = Role::Token(Token::Number);
    const FUNCTION: Role = Role::Token(Token::Function);
    const COMMENT: Role = Role::Token(Token::Comment);

    #[test]
    fn scopes_become_few_roles() {
        check(
            "rust",
            "let a = 17; // why",
            &[("let", KEYWORD), ("17", NUMBER), ("// why", COMMENT)],
        );
        check("rs", "fn run() {}", &[("fn", KEYWORD), ("run", FUNCTION)]);
        check("json", r#"{"a": [1, true]}"#, &[("\"a\"", TEXT), ("1", NUMBER), ("true", NUMBER)]);
        check("diff", "+new", &[("+new", Role::Added)]);
        check("diff", "-old", &[("-old", Role::Removed)]);
        check("Python", "return 'x'", &[("return", KEYWORD), ("'x'", TEXT)]);
    }

    // A comment over several lines: the state goes from line to line.
    #[test]
    fn a_line_knows_those_before_it() {
        check("rust", "/* one\ntwo", &[("two", COMMENT)]);
        check("rust,ignore", "\"open\nstill", &[("still", TEXT)]);
    }

    #[test]
    fn names_that_models_write_are_known() {
        let loaded = Loaded::read();
        let check = |language, expected| {
            let found = loaded.syntax(language).map(|syntax| syntax.name.as_str());
            assert_eq!(found, expected, "{language:?}");
        };
        check("Rust", Some("Rust"));
        check("rust,no_run", Some("Rust"));
        check("{.python}", Some("Python"));
        check("ts", Some("JavaScript"));
        check("yml", Some("YAML"));
        for unknown in ["", "text", "txt", "klingon", "\u{1b}[2J", &"a".repeat(5_000)] {
            check(unknown, None);
        }
        for (alias, name) in ALIASES {
            assert!(loaded.syntaxes.find_syntax_by_token(name).is_some(), "{alias}");
        }
    }

    // A table with a scope that the library does not take would lose colours.
    #[test]
    fn every_meaning_is_a_scope() {
        assert_eq!(Loaded::read().meanings.len(), MEANINGS.len());
    }

    #[test]
    fn a_gap_between_lines_makes_the_rest_plain() {
        let mut highlighter = Highlighter::default();
        assert!(highlighter.colour(&ask("rust", 0, "let")).spans.is_some());
        assert_eq!(highlighter.colour(&ask("rust", 2, "let")).spans, None);
        assert_eq!(highlighter.colour(&ask("rust", 1, "let")).spans, None);
        let other = Ask { fence: 2, ..ask("rust", 0, "let") };
        assert!(highlighter.colour(&other).spans.is_some());
    }

    // C109: no text makes it panic, and every part ends where a letter does.
    #[test]
    fn hostile_lines_are_parts_of_whole_letters() {
        let deep = "([{".repeat(300);
        let lines = ["日本 = \"👨‍👩‍👧", "\u{1b}[2J r#\"", "}}}}))))", "'''\"\"\"", "\u{fffd}\\", &deep];
        for language in ["rust", "json", "diff", "bash", "html", "py", "js", "yaml", "c"] {
            let mut highlighter = Highlighter::default();
            for (number, line) in lines.iter().enumerate() {
                let coloured = highlighter.colour(&ask(language, number, line));
                for span in coloured.spans.unwrap_or_default() {
                    assert!(line.is_char_boundary(span.end), "{language} {line:?}");
                }
            }
        }
    }
}
