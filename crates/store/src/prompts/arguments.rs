//! Arguments of a template command and the placeholders they fill (`host.md`
//! 5.4.3, 5.4.4).
//!
//! Pure; a text that was filled in is never looked at again.

/// Splits what follows the command name into arguments (`host.md` 5.4.3).
pub fn parse(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (quoted, after) = match first {
            '\'' | '"' => quoted(rest, first).unwrap_or((String::new(), rest)),
            _ => (String::new(), rest),
        };
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        arguments.push(quoted + &after[..end]);
        rest = after[end..].trim_start();
    }
    arguments
}

/// What a quoted text holds, and what follows it; `None` when it is not closed.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((content, &text[at + c.len_utf8()..]));
        }
        let escapes = c == '\\' && chars.peek().is_some_and(|(_, next)| *next == quote);
        if escapes {
            chars.next();
            content.push(quote);
        } else {
            content.push(c);
        }
    }
    None
}

/// Fills the placeholders of a template in one pass (`host.md` 5.4.4).
pub fn substitute(template: &str, arguments: &[String]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let found = &rest[at + 1..];
        match placeholder(found, arguments) {
            Some((text, length)) => {
                filled.push_str(&text);
                rest = &found[length..];
            }
            None => {
                filled.push('$');
                rest = found;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The text for a placeholder behind its `$`, and the length of its form.
fn placeholder(text: &str, arguments: &[String]) -> Option<(String, usize)> {
    if let Some(inner) = text.strip_prefix('{') {
        let end = inner.find('}')?;
        return Some((braced(&inner[..end], arguments)?, end + 2));
    }
    for word in ["@", "ARGUMENTS"] {
        if text.starts_with(word) {
            return Some((arguments.join(" "), word.len()));
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((positional(&text[..digits], arguments)?, digits))
}

/// The text for what stands between braces; `None` for a form we do not know.
fn braced(inner: &str, arguments: &[String]) -> Option<String> {
    if let Some((subject, default)) = inner.split_once(":-") {
        let value = match subject {
            "@" | "ARGUMENTS" => arguments.join(" "),
            position => positional(position, arguments)?,
        };
        let missing = value.is_empty();
        return Some(if missing { default.to_owned() } else { value });
    }
    let slice = inner.strip_prefix("@:")?;
    let (from, length) = match slice.split_once(':') {
        Some((from, length)) => (number(from)?, Some(number(length)?)),
        None => (number(slice)?, None),
    };
    let from = from.saturating_sub(1).min(arguments.len());
    let taken = arguments[from..].iter().take(length.unwrap_or(usize::MAX));
    Some(taken.map(String::as_str).collect::<Vec<_>>().join(" "))
}

/// The argument of a position counted from 1, empty when it is missing; `None`
/// when that is no position.
fn positional(digits: &str, arguments: &[String]) -> Option<String> {
    let index = number(digits)?.checked_sub(1)?;
    Some(arguments.get(index).cloned().unwrap_or_default())
}

/// A number of digits only; one too large for any list counts as the largest.
fn number(digits: &str) -> Option<usize> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_words_unless_a_quote_opens_one() {
        // 5.4.3, host.md 11.101.
        let check = |text: &str, expected: &[&str]| assert_eq!(parse(text), expected, "{text}");
        check(r#"doesn't "a \"b\" c" 'unclosed"#, &["doesn't", r#"a "b" c"#, "'unclosed"]);
        check("", &[]);
        check("  \n\t ", &[]);
        check(" a\n b\tc ", &["a", "b", "c"]);
        check(r#""" '' x"#, &["", "", "x"]);
        check(r#"'it\'s' "c:\dir\n""#, &["it's", r"c:\dir\n"]);
        check(r#"'say "hi"' "it's""#, &[r#"say "hi""#, "it's"]);
        check(r#""a \'b""#, &[r"a \'b"]);
        check(r#""open with words"#, &["\"open", "with", "words"]);
        check(r#""a b"c d"#, &["a bc", "d"]);
        check(r#"x="a b""#, &["x=\"a", "b\""]);
        check(r"a\ b", &[r"a\", "b"]);
        check(r#""ends with \""#, &["\"ends", "with", "\\\""]);
        check("'ö ü'\u{2003}ä", &["ö ü", "ä"]);
    }

    #[test]
    fn placeholders_are_filled_in_one_pass() {
        // 5.4.4.
        let check = |template: &str, arguments: &[&str], expected: &str| {
            let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
            assert_eq!(substitute(template, &arguments), expected, "{template}");
        };
        let abc = ["a", "b", "c"];
        check("$1-$2-$4-", &abc, "a-b--");
        check("$10|$1x", &abc, "|ax");
        check("$@ $ARGUMENTS!", &abc, "a b c a b c!");
        check("${2:-x} ${4:-none} ${9:-}", &abc, "b none ");
        check("${1:-x}", &[""], "x");
        check("${@:-all} ${ARGUMENTS:-of it}", &[], "all of it");
        check("${@:-all}", &abc, "a b c");
        check("${1:-a $2 b}", &["", "y"], "a $2 b");
        check("${@:2} ${@:0} ${@:1} ${@:9}.", &abc, "b c a b c a b c .");
        check("${@:2:1} ${@:0:2} ${@:3:9} ${@:1:0}.", &abc, "b a b c .");
        check("${@:99999999999999999999999}.", &abc, ".");
        check("a $1 b", &["$2", "no"], "a $2 b");
        check("$1", &["${@}"], "${@}");
        check("$$1 $", &["x"], "$x $");
        check(
            "$0 ${0:-x} ${1} ${x} ${@:} ${@:a} ${ $name",
            &abc,
            "$0 ${0:-x} ${1} ${x} ${@:} ${@:a} ${ $name",
        );
        check("cost $5", &[], "cost ");
        check("ü$1ö", &["é"], "üéö");
    }
}
