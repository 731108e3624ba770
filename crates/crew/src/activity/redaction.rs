//! Makes texts of tools safe to show: one line, known secrets replaced.
//!
//! Owns the rules `crew.md` ACT-8 to ACT-15. It is a best-effort filter, not a
//! detector of all secrets; in doubt it hides more. Every scan is one pass, as
//! the texts are the model's and may be megabytes. Read `targets` for its use.

use crew_base::limits::ACTIVITY_CHARS_MAX;
use crew_base::text::{excerpt, sanitise_inline};

/// One clean line with values of authentication forms and secret flags as
/// `***` and URLs without user information, query and fragment (`crew.md`
/// ACT-10 to ACT-13). Not cut to a length.
pub fn redact(text: &str) -> String {
    let text = sanitise_inline(text);
    let text = hide_credentials(&text);
    let text = hide_flag_values(&text);
    bare_urls(&text)
}

/// Whether values under this key are never shown (`crew.md` ACT-9).
pub(super) fn is_sensitive_key(key: &str) -> bool {
    let key = key.to_lowercase();
    SENSITIVE_KEY_PARTS.iter().any(|part| key.contains(part))
        || key.match_indices("api").any(|(at, part)| {
            let rest = &key[at + part.len()..];
            let mut later = rest.chars();
            later.next();
            rest.starts_with("key") || later.as_str().starts_with("key")
        })
}

/// At most `chars_max` characters, the last one `…` when something is missing.
pub(super) fn cap_at(text: &str, chars_max: usize) -> String {
    if text.chars().nth(chars_max).is_none() {
        return text.to_owned();
    }
    excerpt(text, chars_max.saturating_sub(1))
}

/// At most the stored length of `crew.md` ACT-15.
pub(super) fn cap(text: &str) -> String {
    cap_at(text, ACTIVITY_CHARS_MAX)
}

/// The path with `~` in place of the home directory (`crew.md` ACT-14).
pub(super) fn with_tilde(path: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches(['/', '\\']));
    let Some(home) = home.filter(|home| !home.is_empty()) else {
        return path.to_owned();
    };
    match path.strip_prefix(home) {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    }
}

/// The word in URL form when it is a URL (`crew.md` ACT-12).
pub(super) fn url_form(word: &str) -> Option<String> {
    scheme_bytes(word).map(|scheme| bare_url(word, scheme).0)
}

/// Joins shell words, the value of a secret flag hidden also when it is a word
/// of its own with spaces in it.
pub(super) fn redact_words(words: &[String]) -> String {
    let mut shown = Vec::with_capacity(words.len());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        match flag_bytes(word) {
            Some(flag) if word[flag..].starts_with('=') => {
                shown.push(format!("{}={HIDDEN}", &word[..flag]));
            }
            Some(flag) if flag == word.len() && words.peek().is_some() => {
                words.next();
                shown.push(format!("{word}={HIDDEN}"));
            }
            Some(_) | None => shown.push(word.clone()),
        }
    }
    redact(&shown.join(" "))
}

fn hide_credentials(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    let mut word_starts = true;
    while let Some(c) = text[at..].chars().next() {
        let value = credential_value(&text[at..]).filter(|_| word_starts);
        let Some(value) = value else {
            kept.push(c);
            at += c.len_utf8();
            word_starts = !c.is_alphanumeric();
            continue;
        };
        kept.push_str(&text[at..at + value]);
        at += value;
        // `Bearer Bearer x`: what follows is the next form, not the value.
        if credential_value(&text[at..]).is_none() {
            kept.push_str(HIDDEN);
            at += value_bytes(&text[at..]);
        }
    }
    kept
}

/// Where the value of an authentication form at the start of `rest` begins.
fn credential_value(rest: &str) -> Option<usize> {
    CREDENTIAL_SCHEMES.iter().find_map(|scheme| {
        let head = rest.get(..scheme.len())?;
        let tail = rest[scheme.len()..].strip_prefix(' ')?;
        (head.eq_ignore_ascii_case(scheme) && !tail.is_empty()).then_some(scheme.len() + 1)
    })
}

fn hide_flag_values(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    let mut word_starts = true;
    while let Some(c) = text[at..].chars().next() {
        if c != '-' || !word_starts {
            kept.push(c);
            at += c.len_utf8();
            word_starts = !(c.is_alphanumeric() || c == '-' || c == '_');
            continue;
        }
        let rest = &text[at..];
        let flag = name_bytes(rest);
        let value = flag_value(rest);
        kept.push_str(&rest[..flag]);
        at += flag;
        let Some(value) = value else {
            word_starts = false;
            continue;
        };
        // `--password --token x`: what follows is the next flag, not the value.
        if flag_value(&rest[value..]).is_some() {
            kept.push_str(&rest[flag..value]);
            at += value - flag;
        } else {
            kept.push('=');
            kept.push_str(HIDDEN);
            at += value - flag + value_bytes(&rest[value..]);
            word_starts = false;
        }
    }
    kept
}

/// Length of the run of flag characters at the start, dashes included.
fn name_bytes(rest: &str) -> usize {
    rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')).count()
}

/// Length of the secret flag at the start, if there is one.
fn flag_bytes(rest: &str) -> Option<usize> {
    if !rest.starts_with('-') {
        return None;
    }
    let flag = &rest[..name_bytes(rest)];
    let is_secret = SECRET_FLAGS.iter().any(|name| {
        let Some(start) = flag.len().checked_sub(name.len()) else {
            return false;
        };
        // `--access-token` as well: it is `-token` with more before it.
        flag[start..].eq_ignore_ascii_case(name) && flag[..start].ends_with(['-', '_'])
    });
    is_secret.then_some(flag.len())
}

/// Where the value of a secret flag at the start of `rest` begins.
fn flag_value(rest: &str) -> Option<usize> {
    let tail = &rest[flag_bytes(rest)?..];
    let value = tail.trim_start();
    let value = value.strip_prefix('=').map_or(value, str::trim_start);
    let is_parted = value.len() < tail.len();
    (is_parted && !value.is_empty()).then(|| rest.len() - value.len())
}

/// Length of a value: a word, or what quotes hold when it starts with one. A
/// quote that closes something before the value is not part of it.
fn value_bytes(rest: &str) -> usize {
    const QUOTES: [char; 3] = ['"', '\'', '`'];
    let is_quoted = rest.starts_with(QUOTES);
    let mut open = None;
    let mut chars = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if open == Some(c) {
            open = None;
        } else if open.is_none() && c == ' ' {
            end = at;
            break;
        } else if open.is_none() && is_quoted && QUOTES.contains(&c) {
            open = Some(c);
        }
    }
    if is_quoted { end } else { rest[..end].trim_end_matches(QUOTES).len() }
}

fn bare_urls(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(scheme) = scheme_bytes(rest) {
            let (shown, used) = bare_url(rest, scheme);
            kept.push_str(&shown);
            at += used;
        } else {
            kept.push(c);
            at += c.len_utf8();
        }
    }
    kept
}

fn scheme_bytes(rest: &str) -> Option<usize> {
    ["https://", "http://"].iter().find_map(|scheme| {
        let head = rest.get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(scheme.len())
    })
}

/// The bare form of the URL at the start and the bytes the whole URL takes. A
/// second URL before any query ends the first, so that its user information is
/// found too.
fn bare_url(rest: &str, scheme: usize) -> (String, usize) {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '<' | '>');
    let stop = rest[scheme..].char_indices().find(|(at, c)| {
        ends(*c) || matches!(c, '?' | '#') || scheme_bytes(&rest[scheme + at..]).is_some()
    });
    let stop_at = stop.map_or(rest.len(), |(at, _)| scheme + at);
    let used = match stop {
        Some((_, '?' | '#')) => rest[stop_at..].find(ends).map_or(rest.len(), |n| stop_at + n),
        Some(_) | None => stop_at,
    };
    let body = &rest[scheme..stop_at];
    let (authority, path) = body.split_at(body.find('/').unwrap_or(body.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    (format!("{}{}{path}", &rest[..scheme], host_and_port(host)), used)
}

/// Drops what stands in the place of a port and is no number: it is the start
/// of a password that holds `?`, `#` or `/`.
fn host_and_port(host: &str) -> &str {
    let name = host.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = host[name..].find(':').map(|at| name + at) else {
        return host;
    };
    if host[colon + 1..].bytes().all(|b| b.is_ascii_digit()) { host } else { &host[..colon] }
}

const HIDDEN: &str = "***";

const CREDENTIAL_SCHEMES: [&str; 2] = ["bearer", "basic"];

const SENSITIVE_KEY_PARTS: [&str; 7] =
    ["secret", "token", "password", "passphrase", "authorization", "cookie", "credential"];

/// `secret` is there by the decision OP-27.
const SECRET_FLAGS: [&str; 10] = [
    "api-key",
    "api_key",
    "apikey",
    "token",
    "password",
    "passphrase",
    "authorization",
    "cookie",
    "credential",
    "secret",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        assert_eq!(redact(input), expected, "{input:?}");
    }

    // ACT-9.
    #[test]
    fn sensitive_keys_are_found_in_any_case_and_place() {
        for key in [
            "secret",
            "clientSecret",
            "TOKEN",
            "access_token",
            "Password",
            "passphrase2",
            "Authorization",
            "set-cookie",
            "credentials",
            "apiKey",
            "api_key",
            "API-KEY",
            "apikey",
            "api key",
            "apixkey",
            "xapiapikeyx",
        ] {
            assert!(is_sensitive_key(key), "{key}");
        }
        for key in ["", "path", "api", "key", "apixxkey", "keyapi", "pass", "auth", "apié__key"] {
            assert!(!is_sensitive_key(key), "{key}");
        }
    }

    // Row 87: ACT-8, ACT-13.
    #[test]
    fn one_clean_line_remains() {
        check(" a\n\u{1b}[31mb\u{1b}[0m\r\n\tc\u{7f}\u{85}d ", "a b c d");
        check("Bea\u{1b}[1mrer\nabc", "Bearer ***");
        check("--tok\u{1b}]0;x\u{7}en\tabc", "--token=***");
    }

    // ACT-10.
    #[test]
    fn authentication_forms_lose_their_value() {
        check("Bearer abc", "Bearer ***");
        check("x: bAsIc dXNlcjpwYXNz rest", "x: bAsIc *** rest");
        check("-H \"Authorization: Bearer abc.def\" next", "-H \"Authorization: Bearer ***\" next");
        check("Bearer 'a b' c", "Bearer *** c");
        check("Bearer 'a'\"b c\" d", "Bearer *** d");
        check("Bearer \"never closed and so on", "Bearer ***");
        check("Bearer Basic abc", "Bearer Basic ***");
        check("Basic basic", "Basic ***");
        check("forbearer abc basics abc Bearer", "forbearer abc basics abc Bearer");
        check("Bearer", "Bearer");
        check("bearer äöü x", "bearer *** x");
    }

    // ACT-11, OP-27.
    #[test]
    fn secret_flags_lose_their_value() {
        for flag in [
            "api-key",
            "api_key",
            "apikey",
            "token",
            "password",
            "passphrase",
            "authorization",
            "cookie",
            "credential",
            "secret",
            "TOKEN",
            "access-token",
        ] {
            check(&format!("x --{flag} v y"), &format!("x --{flag}=*** y"));
            check(&format!("x -{flag}=v y"), &format!("x -{flag}=*** y"));
        }
        check("--token=\"a b\" c", "--token=*** c");
        check("--token 'a\\' b' c", "--token=*** c");
        check("\"--token=abc\" c", "\"--token=***\" c");
        check("--token = abc", "--token=***");
        check("--token a\\ b c", "--token=*** c");
        check("--password --token abc", "--password --token=***");
        check("--authorization \"Bearer abc\" x", "--authorization=*** x");
        check("--token", "--token");
        check("--token=", "--token=");
        check("--tokens 3 --tokenize x my-token y", "--tokens 3 --tokenize x my-token y");
    }

    // ACT-12.
    #[test]
    fn urls_keep_scheme_host_port_and_path() {
        check("https://u:p@h.example:8080/a/b?q=1#f x", "https://h.example:8080/a/b x");
        check("HTTP://h?x", "HTTP://h");
        check("http://h#x", "http://h");
        check("https://h/", "https://h/");
        check("git+https://tok@h/r.git", "git+https://h/r.git");
        check("<https://u@h/p?q> \"https://h/?q\"", "<https://h/p> \"https://h/\"");
        check("https://a@b@h/p", "https://h/p");
        check("https://h/https://u:p@i/x", "https://h/https://i/x");
        check("https://h/?next=https://u:p@i/x y", "https://h/ y");
        check("['https://h','https://u:p@i']", "['https://h','https://i']");
        check("https://u:p#w@h/x", "https://u");
        check("http://u@[::1]:80/x", "http://[::1]:80/x");
        check("https://registry/@scope/p", "https://registry/@scope/p");
        check("ftp://u:p@h", "ftp://u:p@h");
        check("https://", "https://");
    }

    // ACT-14.
    #[test]
    fn the_home_directory_becomes_a_tilde() {
        let check = |path: &str, home: &str, expected: &str| {
            assert_eq!(with_tilde(path, Some(home)), expected);
        };
        check("/home/u/a", "/home/u", "~/a");
        check("/home/u", "/home/u/", "~");
        check("/home/user2", "/home/u", "/home/user2");
        check("x/home/u/a", "/home/u", "x/home/u/a");
        check("/a", "/", "/a");
        check("/a", "", "/a");
        check("C:\\U\\u\\a", "C:\\U\\u", "~\\a");
        assert_eq!(with_tilde("/home/u/a", None), "/home/u/a");
    }

    // ACT-15.
    #[test]
    fn the_cap_counts_characters_and_marks_the_cut() {
        let exact = "ä".repeat(ACTIVITY_CHARS_MAX);
        assert_eq!(cap(&exact), exact);
        let cut = cap(&format!("{exact}b"));
        assert_eq!(cut.chars().count(), ACTIVITY_CHARS_MAX);
        assert!(cut.ends_with("ä…"));
    }

    #[test]
    fn word_lists_hide_values_with_spaces() {
        let check = |words: &[&str], expected: &str| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(redact_words(&words), expected);
        };
        check(&["gh", "--token", "a b c"], "gh --token=***");
        check(&["gh", "--token=a b c", "x"], "gh --token=*** x");
        check(&["gh", "--token"], "gh --token");
    }

    // Linear time: quadratic scans of these would take minutes.
    #[test]
    fn megabytes_of_hostile_text_are_one_pass() {
        let parts = [
            "https://",
            "Bearer ",
            "bearer\t'",
            "--token ",
            "-",
            "--token=--",
            "--token='",
            "?#@:",
            "\u{1b}[",
            "\u{1b}]",
            "https://@",
            "\\",
            "\u{0}",
            "äbasic \"",
            "-token-token",
        ];
        for part in parts {
            let text = part.repeat(1_000_000 / part.len());
            assert!(redact(&text).len() <= 2 * text.len(), "{part:?}");
            assert!(cap(&redact(&text)).chars().count() <= ACTIVITY_CHARS_MAX);
        }
        assert!(!is_sensitive_key(&"api__".repeat(200_000)));
    }
}
