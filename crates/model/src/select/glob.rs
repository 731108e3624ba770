//! Globs of model patterns (`host.md` 1.7.6): `*` and `?` stay within one
//! part between slashes, `**` does not, `[…]` is one of a set.

/// Whether a pattern is to be read as a glob.
pub(super) fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

/// Whether a glob covers the whole text, without regard to case.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let tokens = tokens(&pattern);
    // Positions of the text reached after each token; no backtracking.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for token in &tokens {
        reached = step(token, &reached, &text);
    }
    reached[text.len()]
}

enum Token {
    Literal(char),
    AnyOne,
    AnyRun { crosses_slash: bool },
    Set { negated: bool, ranges: Vec<(char, char)> },
}

fn step(token: &Token, reached: &[bool], text: &[char]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (at, is_reached) in reached.iter().enumerate() {
        let here = text.get(at).copied();
        match token {
            Token::AnyRun { crosses_slash } => {
                let before = at > 0 && next[at - 1] && (*crosses_slash || text[at - 1] != '/');
                next[at] = *is_reached || before;
            }
            Token::Literal(c) if *is_reached && here == Some(*c) => next[at + 1] = true,
            Token::AnyOne if *is_reached && here.is_some_and(|c| c != '/') => next[at + 1] = true,
            Token::Set { negated, ranges } if *is_reached => {
                let inside = |c| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
                if here.is_some_and(|c| c != '/' && inside(c) != *negated) {
                    next[at + 1] = true;
                }
            }
            Token::Literal(_) | Token::AnyOne | Token::Set { .. } => {}
        }
    }
    next
}

fn tokens(pattern: &[char]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = pattern.get(at) {
        at += 1;
        match c {
            '*' => {
                let stars = pattern[at..].iter().take_while(|c| **c == '*').count();
                at += stars;
                let crosses_slash = stars > 0;
                tokens.push(Token::AnyRun { crosses_slash });
            }
            '?' => tokens.push(Token::AnyOne),
            '[' => match set(&pattern[at..]) {
                Some((token, length)) => {
                    tokens.push(token);
                    at += length;
                }
                None => tokens.push(Token::Literal('[')),
            },
            c => tokens.push(Token::Literal(*c)),
        }
    }
    tokens
}

/// A set behind its `[`, and its length with the `]`; `None` when it is open.
fn set(rest: &[char]) -> Option<(Token, usize)> {
    let negated = matches!(rest.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A `]` in the first place belongs to the set.
    let inner = rest.get(start + 1..)?.iter().position(|c| *c == ']')?;
    let end = start + 1 + inner;
    let items = &rest[start..end];
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(from) = items.get(at) {
        match (items.get(at + 1), items.get(at + 2)) {
            (Some('-'), Some(to)) => {
                ranges.push((*from, *to));
                at += 3;
            }
            _ => {
                ranges.push((*from, *from));
                at += 1;
            }
        }
    }
    Some((Token::Set { negated, ranges }, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_cover_the_whole_text_without_regard_to_case() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        };
        check("fake/*", "fake/m1", true);
        check("FAKE/*", "fake/M1", true);
        check("fake/*", "fake/a/m1", false);
        check("fake/**", "fake/a/m1", true);
        check("*", "a/b", false);
        check("*b*", "abc", true);
        check("*sonnet*5", "claude-sonnet-4-5", true);
        check("m?", "m1", true);
        check("m?", "m", false);
        check("m?", "m/", false);
        check("m[12]", "m2", true);
        check("m[1-3]", "m2", true);
        check("m[!1-3]", "m2", false);
        check("m[^1-3]", "m9", true);
        check("m[]x]", "m]", true);
        check("m[1", "m[1", true);
        check("m1", "m12", false);
        check("", "", true);
    }
}
