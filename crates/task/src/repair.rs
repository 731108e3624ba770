//! Prose that a model encoded twice (DISP-9).

use std::borrow::Cow;

use crew_base::json::from_text;

/// The decoded text when the whole is the inside of a JSON string and shows
/// clearly that it was encoded twice, else the text itself.
pub(crate) fn prose(text: &str) -> Cow<'_, str> {
    if !is_suspect(text) {
        return Cow::Borrowed(text);
    }
    match from_text::<String>(&format!("\"{text}\"")) {
        Ok(decoded) if decoded != text => Cow::Owned(decoded),
        Ok(_) | Err(_) => Cow::Borrowed(text),
    }
}

/// Whether it has an escape that nobody writes in prose, or two of any kind.
fn is_suspect(text: &str) -> bool {
    let mut sequences = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            continue;
        }
        match chars.next() {
            Some('"' | '\\' | '/' | 'u') => return true,
            Some(_) => sequences += 1,
            None => {}
        }
    }
    sequences >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    // DISP-9; task.md 12 rows 10, 11.
    #[test]
    fn double_encoding_is_undone_and_mentions_survive() {
        let check = |text: &str, expected: &str| assert_eq!(prose(text), expected);
        check(r#"one\ntwo says \"hi\"\nend"#, "one\ntwo says \"hi\"\nend");
        check(r"a\nb\nc", "a\nb\nc");
        check(r"caf\u00e9", "café");
        check(r"a\/b", "a/b");
        for kept in [
            r"split on \n only",
            r"see C:\Users\me",
            r"match \d+\s*$",
            "plain \"quoted\"\nlines",
            r"a \n and a \t between real
lines",
            "end\\",
            "nothing",
        ] {
            check(kept, kept);
        }
    }
}
