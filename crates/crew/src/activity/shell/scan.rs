//! Cuts shell text into steps and words, in one pass.
//!
//! Owns quoting, grouping and the operators of `crew.md` ACT-17. Substitutions,
//! here documents and comments are passed over: they are no steps, and they may
//! hold what must not be shown.

use std::str::Chars;

/// What a command consists of.
pub(super) struct Script {
    /// Words of the first step that names an executable, from it on, quotes
    /// removed; substitutions stand as `$(…)`.
    pub(super) first: Option<Vec<String>>,
    /// Steps that hold at least one word.
    pub(super) steps: usize,
}

/// Reads all of `text`; what is not closed ends with it.
pub(super) fn scan(text: &str) -> Script {
    let mut scanner = Scanner {
        chars: text.chars(),
        groups: Vec::new(),
        hidden: 0,
        word: None,
        words: Vec::new(),
        is_redirection: false,
        after_angle: false,
        here_documents: Vec::new(),
        script: Script { first: None, steps: 0 },
    };
    while let Some(c) = scanner.chars.next() {
        match scanner.groups.last().copied() {
            None => scanner.plain(c),
            Some(group) => scanner.grouped(group, c),
        }
    }
    scanner.end_step();
    scanner.script
}

/// What an open character waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// A double quote.
    Double,
    /// A backtick.
    Tick,
    /// `)`.
    Paren,
    /// `}`.
    Brace,
}

struct Scanner<'a> {
    chars: Chars<'a>,
    groups: Vec<Group>,
    /// Open groups whose content is not shown.
    hidden: usize,
    word: Option<String>,
    words: Vec<String>,
    /// The next word names a file of a redirection.
    is_redirection: bool,
    /// The last character was an unquoted `<` or `>`.
    after_angle: bool,
    /// Delimiters of here documents that begin with the next line.
    here_documents: Vec<String>,
    script: Script,
}

impl Scanner<'_> {
    fn plain(&mut self, c: char) {
        let after_angle = std::mem::take(&mut self.after_angle);
        match c {
            '\\' => self.escape(),
            '\'' => self.single_quoted(),
            '"' => {
                self.word.get_or_insert_default();
                self.open(Group::Double);
            }
            '`' => self.open(Group::Tick),
            '$' => self.dollar(),
            '(' if self.word.as_ref().is_some_and(|word| word.ends_with('=')) => {
                self.open(Group::Paren);
            }
            '#' if self.word.is_none() => self.skip_comment(),
            '\n' => {
                self.end_step();
                self.skip_here_documents();
            }
            ';' => self.end_step(),
            '&' | '|' if after_angle => {}
            '&' if self.peek() == Some('>') => self.end_word(),
            '&' => {
                self.skip_if('&');
                self.end_step();
            }
            '|' => {
                let _ = self.skip_if('|') || self.skip_if('&');
                self.end_step();
            }
            '<' | '>' => self.angle(c),
            '(' | ')' => self.end_word(),
            c if c.is_whitespace() => self.end_word(),
            c => self.push(c),
        }
    }

    fn grouped(&mut self, group: Group, c: char) {
        if c == '\\' {
            return self.escape();
        }
        match (group, c) {
            (Group::Double, '"') | (Group::Tick, '`') | (Group::Paren, ')') => self.close(),
            (Group::Brace, '}') => {
                self.push(c);
                self.close();
            }
            (Group::Tick, _) => {}
            (Group::Double | Group::Brace | Group::Paren, '`') => self.open(Group::Tick),
            (Group::Double | Group::Brace | Group::Paren, '$') => self.dollar(),
            (Group::Brace | Group::Paren, '"') => self.open(Group::Double),
            (Group::Brace | Group::Paren, '\'') => self.single_quoted(),
            (Group::Paren, '(') => self.open(Group::Paren),
            (Group::Paren, '<') => self.here_operator(),
            (Group::Paren, '\n') => self.skip_here_documents(),
            (Group::Double | Group::Brace | Group::Paren, c) => self.push(c),
        }
    }

    fn open(&mut self, group: Group) {
        let is_hidden = matches!(group, Group::Tick | Group::Paren);
        if is_hidden && self.hidden == 0 {
            let word = self.word.get_or_insert_default();
            word.push_str(if group == Group::Tick { "`…`" } else { "(…)" });
        }
        self.hidden += usize::from(is_hidden);
        self.groups.push(group);
    }

    fn close(&mut self) {
        if let Some(Group::Tick | Group::Paren) = self.groups.pop() {
            self.hidden -= 1;
        }
    }

    fn dollar(&mut self) {
        self.push('$');
        if self.skip_if('(') {
            self.open(Group::Paren);
        } else if self.skip_if('{') {
            self.push('{');
            self.open(Group::Brace);
        } else if self.groups.last() != Some(&Group::Double) && self.skip_if('\'') {
            self.escaped_quoted();
        }
    }

    fn escape(&mut self) {
        match self.chars.next() {
            Some('\n') => {}
            Some(c) => self.push(c),
            None => self.push('\\'),
        }
    }

    fn single_quoted(&mut self) {
        if self.hidden == 0 {
            self.word.get_or_insert_default();
        }
        while let Some(c) = self.chars.next() {
            if c == '\'' {
                return;
            }
            self.push(c);
        }
    }

    /// The rest of `$'…'`, where a backslash escapes.
    fn escaped_quoted(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\'' => return,
                '\\' => self.escape(),
                c => self.push(c),
            }
        }
    }

    fn angle(&mut self, c: char) {
        if self.peek() == Some('(') {
            self.chars.next();
            self.push(c);
            return self.open(Group::Paren);
        }
        let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        if c == '<' && self.here_operator_follows() {
            return self.here_operator();
        }
        self.chars = match c {
            '<' => self.chars.as_str().trim_start_matches('<').chars(),
            _ => self.chars.as_str().trim_start_matches('>').chars(),
        };
        self.is_redirection = true;
        self.after_angle = true;
    }

    fn here_operator_follows(&self) -> bool {
        let rest = self.chars.as_str();
        rest.starts_with('<') && !rest.starts_with("<<")
    }

    /// After one `<`: remembers the delimiter when a here document begins.
    fn here_operator(&mut self) {
        if !self.here_operator_follows() {
            // All of `<<<`, or its tail would look like a here document.
            self.chars = self.chars.as_str().trim_start_matches('<').chars();
            return;
        }
        let rest = self.chars.as_str().trim_start_matches(['<', '-']);
        let rest = rest.trim_start_matches([' ', '\t']);
        let ends = |c: char| c.is_whitespace() || ";&|()<>".contains(c);
        let raw = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.chars = rest[raw.len()..].chars();
        let delimiter = raw.replace(['\'', '"', '\\'], "");
        // `1<<2` is a shift.
        if delimiter.starts_with(|c: char| !c.is_ascii_digit()) {
            self.here_documents.push(delimiter);
        }
    }

    fn skip_here_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.here_documents) {
            while !self.chars.as_str().is_empty() {
                let rest = self.chars.as_str();
                let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
                self.chars = after.chars();
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = self.chars.as_str();
        self.chars = rest[rest.find('\n').unwrap_or(rest.len())..].chars();
    }

    fn push(&mut self, c: char) {
        if self.hidden == 0 {
            self.word.get_or_insert_default().push(c);
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_shown = !std::mem::take(&mut self.is_redirection) && !word.is_empty();
        // One word tells that a later step counts.
        if is_shown && (self.script.first.is_none() || self.words.is_empty()) {
            self.words.push(word);
        }
    }

    fn end_step(&mut self) {
        self.end_word();
        self.is_redirection = false;
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        self.script.steps += 1;
        if self.script.first.is_none() {
            let rest: Vec<String> = words.into_iter().skip_while(|w| is_assignment(w)).collect();
            self.script.first = Some(rest).filter(|rest| !rest.is_empty());
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.clone().next()
    }

    fn skip_if(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.chars.next();
        }
        is_next
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
