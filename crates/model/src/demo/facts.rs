//! Facts out of the output of the commands in `demo::command`. Output is
//! foreign text: what does not fit is passed over, and only plain paths are
//! taken, so that none can reach a shell or a terminal in another meaning.

use crew_base::text::sanitise_inline;

/// How many files there are, and of which kinds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Census {
    pub(super) total: u64,
    /// Name of a language or an extension, and files; most files first.
    pub(super) kinds: Vec<(String, u64)>,
}

impl Census {
    /// The most frequent languages; extensions only where none is known.
    pub(super) fn main(&self, kinds_max: usize) -> impl Iterator<Item = &(String, u64)> {
        let is_known = |kind: &(String, u64)| !kind.0.starts_with('.');
        let any_known = self.kinds.iter().any(is_known);
        let kinds = self.kinds.iter().filter(move |kind| is_known(kind) == any_known);
        kinds.take(kinds_max)
    }
}

/// Reads `COUNT EXTENSION` lines.
pub(super) fn census(text: &str) -> Census {
    let mut census = Census::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(count), Some(extension), None) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else { continue };
        if extension == "*" {
            census.total = count;
            continue;
        }
        if !extension.chars().all(|c| c.is_ascii_alphanumeric() || "_+-".contains(c)) {
            continue;
        }
        let name = language(extension).map_or_else(|| format!(".{extension}"), str::to_owned);
        match census.kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, files)) => *files = files.saturating_add(count),
            None => census.kinds.push((name, count)),
        }
    }
    census.kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    census
}

fn language(extension: &str) -> Option<&'static str> {
    let name = match extension {
        "rs" => "Rust",
        "py" | "pyi" => "Python",
        "ts" | "tsx" | "mts" | "cts" => "TypeScript",
        "js" | "jsx" | "mjs" | "cjs" => "JavaScript",
        "go" => "Go",
        "java" => "Java",
        "kt" | "kts" => "Kotlin",
        "swift" => "Swift",
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hpp" | "hh" => "C++",
        "cs" => "C#",
        "rb" => "Ruby",
        "php" => "PHP",
        "lua" => "Lua",
        "zig" => "Zig",
        "dart" => "Dart",
        "sh" | "bash" | "zsh" => "shell",
        "sql" => "SQL",
        "html" | "htm" => "HTML",
        "css" | "scss" => "CSS",
        "md" | "markdown" => "Markdown",
        "toml" => "TOML",
        "yaml" | "yml" => "YAML",
        "json" | "jsonl" | "jsonc" => "JSON",
        "txt" => "text",
        _ => return None,
    };
    Some(name)
}

/// Whether a path is relative, stays below its folder, and means the same in a
/// shell word in quotes, in Markdown and on a terminal.
pub(super) fn is_plain(path: &str) -> bool {
    let fits = |c: char| {
        c == ' ' || c.is_alphanumeric() || c.is_ascii_graphic() && !"`\"\\*<>|?".contains(c)
    };
    path.trim() == path
        && path.chars().count() <= PATH_CHARS_MAX
        && path.chars().all(fits)
        && path.starts_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_')
        && !path.starts_with("file:")
        && path.split('/').all(|part| !part.is_empty() && part != "..")
}

/// The plain paths among the lines.
pub(super) fn paths(text: &str) -> Vec<String> {
    text.lines().filter(|line| is_plain(line)).map(str::to_owned).collect()
}

/// Reads `BYTES<tab>PATH` lines.
pub(super) fn sizes(text: &str) -> Vec<(u64, String)> {
    let size = |line: &str| {
        let (bytes, path) = line.split_once('\t')?;
        Some((bytes.parse().ok()?, path.to_owned())).filter(|_| is_plain(path))
    };
    text.lines().filter_map(size).collect()
}

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    let unit = |bytes_each: f64, name| format!("{:.1} {name}", bytes as f64 / bytes_each);
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => unit(1024.0, "KB"),
        _ => unit(1_048_576.0, "MB"),
    }
}

/// A commit of the history.
#[derive(Debug, PartialEq)]
pub(super) struct Commit {
    pub(super) hash: String,
    pub(super) date: String,
    pub(super) subject: String,
}

/// Reads `HASH<tab>DATE<tab>SUBJECT` lines; the subject is one clean line.
pub(super) fn commits(text: &str) -> Vec<Commit> {
    let commit = |line: &str| {
        let (hash, rest) = line.split_once('\t')?;
        let (date, subject) = rest.split_once('\t')?;
        let is_hash = !hash.is_empty() && hash.len() <= 40;
        let is_commit = is_hash
            && hash.chars().all(|c| c.is_ascii_hexdigit())
            && date.len() == 10
            && date.chars().all(|c| c.is_ascii_digit() || c == '-');
        let subject = sanitise_inline(subject);
        is_commit.then(|| Commit { hash: hash.to_owned(), date: date.to_owned(), subject })
    };
    text.lines().filter_map(commit).collect()
}

/// The number that the first word of the output is.
pub(super) fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

const PATH_CHARS_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_of_one_language_are_counted_together() {
        let read = census("9 *\n 3 ts\n2 rs\n2 tsx\n1 weird\nx y\n5 a b\n7 \u{1b}[31m\n");
        let kinds = [("TypeScript", 5), ("Rust", 2), (".weird", 1)];
        let expected: Vec<_> = kinds.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!((read.total, &read.kinds), (9, &expected));
        assert_eq!(read.main(9).collect::<Vec<_>>(), [&expected[0], &expected[1]]);
        assert_eq!(census("1 zz").main(9).count(), 1);
        assert_eq!(census("(no output)"), Census::default());
        assert_eq!(census("99999999999999999999999 rs"), Census::default());
    }

    #[test]
    fn only_plain_paths_are_taken() {
        let check = |path: &str, expected: bool| assert_eq!(is_plain(path), expected, "{path:?}");
        check("src/main.rs", true);
        check(".github/it's (one).yml", true);
        check("übung/日本.txt", true);
        check("", false);
        check("/etc/passwd", false);
        check("~/x", false);
        check("../x", false);
        check("a/../../x", false);
        check("a//b", false);
        check("-rf", false);
        check("@x", false);
        check("file:///etc/passwd", false);
        check("a`b", false);
        check("a\u{1b}[31mb", false);
        check("a\nb", false);
        check("a\u{202e}b", false);
        check(" a", false);
        check("(no output)", false);
        check("[Lines 1-2 of 9 are shown.]", false);
        check(&"a".repeat(161), false);
    }

    #[test]
    fn sizes_and_commits_are_read_line_by_line() {
        assert_eq!(sizes("2048\tCargo.lock\nx\ty\n9\t../up\n7"), [(2048, "Cargo.lock".to_owned())]);
        let read =
            commits("abc1234\t2026-01-02\tAdd\u{1b}]0;x\u{7} it\tnow\nnope\nzz\t2026-01-02\tx");
        let [commit] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((commit.hash.as_str(), commit.subject.as_str()), ("abc1234", "Add it now"));
        let check = |bytes, text: &str| assert_eq!(size(bytes), text);
        check(0, "0 B");
        check(1023, "1023 B");
        check(1536, "1.5 KB");
        check(3 * 1_048_576, "3.0 MB");
        assert_eq!((number("  12 ./a\n"), number("(no output)")), (Some(12), None));
    }
}
