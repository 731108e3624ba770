//! The commands that scripted children run: reading only, bounded, the same
//! text for the same errand, and good for any folder.
//!
//! They use what POSIX systems have. Settings that would make git start a
//! helper program are switched off, because the folder may be anybody's.

/// Where the names of files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// What git tracks, and what it neither tracks nor ignores.
    Git,
    /// The folder tree itself, to a bounded depth.
    Find,
}

impl Source {
    /// A pipeline that prints one path a line.
    fn paths(self) -> &'static str {
        match self {
            Source::Git => concat!(
                "GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor ",
                "GIT_CONFIG_VALUE_0=false git ls-files -coz --exclude-standard ",
                "-x target -x node_modules 2>/dev/null | tr '\\0' '\\n' | head -n 20000",
            ),
            Source::Find => concat!(
                "find . -maxdepth 6 \\( -name .git -o -name target -o -name node_modules ",
                "-o -name .venv \\) -prune -o -type f -print 2>/dev/null | head -n 20000 ",
                "| sed 's|^\\./||'",
            ),
        }
    }
}

/// Prints `COUNT EXTENSION` lines, largest first; `*` stands for all files.
pub(super) fn census(source: Source) -> String {
    let count = "{ n++; f = $0; sub(/.*\\//, \"\", f); \
                 if (match(f, /[^.]\\.[A-Za-z0-9_+-]+$/)) { sub(/.*\\./, \"\", f); \
                 if (length(f) < 12) c[tolower(f)]++ } } \
                 END { print n + 0, \"*\"; for (e in c) print c[e], e }";
    format!("{} | LC_ALL=C awk '{count}' | LC_ALL=C sort -rn | head -n 40", source.paths())
}

/// Prints paths by whose names programs usually start, nearest to the top first.
pub(super) fn entries(source: Source) -> String {
    let names = "(^|/)(main\\.(rs|go|py|c|cc|cpp|java|kt|swift|ts|js|rb|dart)|__main__\\.py|\
                 manage\\.py|(index|app|server)\\.(ts|tsx|js|jsx|mjs|py|html)|Program\\.cs|lib\\.rs)$";
    format!("{} | grep -E '{names}' | {} | head -n 24", source.paths(), BY_DEPTH)
}

/// Prints `BYTES<tab>PATH` lines, largest first. Nothing is opened, so that
/// pipes and devices cannot hold it up.
pub(super) fn sizes(source: Source) -> String {
    let size =
        "/^-/ { s = $5; for (i = 0; i < 8; i++) sub(/^ *[^ ]+ +/, \"\"); print s \"\\t\" $0 }";
    format!(
        "{} | tr '\\n' '\\0' | TIME_STYLE=locale QUOTING_STYLE=literal LS_BLOCK_SIZE=1 \
         LC_ALL=C xargs -0 ls -ldn -- 2>/dev/null | LC_ALL=C awk '{size}' | LC_ALL=C sort -rn | head -n 5",
        source.paths()
    )
}

/// Prints `HASH<tab>DATE<tab>SUBJECT` of the newest commits of this folder.
pub(super) fn commits() -> String {
    "GIT_NO_LAZY_FETCH=1 git log -n 5 --no-color --no-show-signature --date=short \
     --format='%h%x09%ad%x09%s' -- . 2>/dev/null | cut -c 1-200"
        .to_owned()
}

/// Prints paths that are worth a review: sources, then a readme, nearest to
/// the top first.
pub(super) fn candidates(source: Source) -> String {
    let names = "\\.(rs|go|py|c|cc|cpp|h|hpp|java|kt|swift|ts|tsx|js|jsx|mjs|rb|php|cs|sh|lua|zig)$\
                 |(^|/)README[^/]*$";
    format!("{} | grep -E '{names}' | {} | head -n 12", source.paths(), BY_DEPTH)
}

/// Prints the line count of a plain path (see `facts::is_plain`).
pub(super) fn measure(path: &str) -> String {
    let quoted = path.replace('\'', "'\\''");
    format!("find './{quoted}' -type f -exec wc -l {{}} +")
}

/// Prints how many entries the working directory has.
pub(super) fn count_top() -> String {
    "ls -Aq | wc -l".to_owned()
}

/// Prints the entries of the working directory, folders with a slash.
pub(super) fn top_folder() -> String {
    "ls -Apq | head -n 500".to_owned()
}

const BY_DEPTH: &str = "awk -F/ '{ print NF \"\\t\" $0 }' | LC_ALL=C sort -k 1,1n -k 2 | cut -f 2-";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::super::facts;
    use super::*;

    fn sh(folder: &Path, command: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(folder);
        // A folder of tests must not count as part of a checkout around it.
        shell.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("TIME_STYLE", "long-iso");
        let output = shell.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
        assert!(output.status.success(), "{command}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fill(folder: &Path) {
        for (path, text) in [
            ("src/main.rs", "fn main() {}\n"),
            ("src/a b's.rs", "//\n"),
            ("README.md", "# It\n\ntext\n"),
            (".gitignore", "build/\n"),
            ("build/out.o", "0123456789012345678901234567890123456789"),
            ("target/x.rs", "no\n"),
            ("deep/er/index.html", "<p>\n"),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(folder.join("bad\u{1b}[31m\n`name`.py"), "x").unwrap();
    }

    fn kinds(text: &str) -> Vec<(String, u64)> {
        facts::census(text).kinds
    }

    #[test]
    fn an_empty_folder_gives_nothing_and_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        for source in [Source::Git, Source::Find] {
            assert_eq!(
                facts::census(&sh(folder.path(), &census(source))),
                facts::Census::default()
            );
            for command in [entries(source), candidates(source), sizes(source)] {
                assert_eq!(sh(folder.path(), &command), "", "{command}");
            }
        }
        assert_eq!(sh(folder.path(), &commits()), "");
        assert_eq!(facts::number(&sh(folder.path(), &count_top())), Some(0));
        assert_eq!(sh(folder.path(), &top_folder()), "");
    }

    #[test]
    fn a_folder_without_git_is_walked() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let run = |command: String| sh(folder.path(), &command);
        assert_eq!(run(entries(Source::Git)), "");
        assert_eq!(kinds(&run(census(Source::Find)))[0], ("Rust".to_owned(), 2));
        let found = facts::paths(&run(entries(Source::Find)));
        assert_eq!(found, ["src/main.rs", "deep/er/index.html"]);
        let found = facts::paths(&run(candidates(Source::Find)));
        assert_eq!(found, ["README.md", "src/a b's.rs", "src/main.rs"]);
        let weighed = facts::sizes(&run(sizes(Source::Find)));
        assert_eq!(weighed[0], (40, "build/out.o".to_owned()));
        assert_eq!(weighed[1], (13, "src/main.rs".to_owned()));
        assert_eq!(facts::number(&run(measure("README.md"))), Some(3));
        assert_eq!(facts::number(&run(measure("src/a b's.rs"))), Some(1));
        assert_eq!(facts::number(&run(count_top())), Some(7));
        assert!(run(top_folder()).contains("src/\n"));
    }

    #[test]
    fn a_checkout_is_read_through_git_without_what_it_ignores() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let run = |command: String| sh(folder.path(), &command);
        run("git init -q && git add README.md && git -c user.name=n -c user.email=e@x \
             commit -q -m 'First one'"
            .to_owned());
        // A checkout of somebody else must not start programs.
        run("git config core.fsmonitor 'touch started; true'".to_owned());
        let found = facts::census(&run(census(Source::Git)));
        assert_eq!(found.kinds[0], ("Rust".to_owned(), 2));
        let found = facts::paths(&run(entries(Source::Git)));
        assert_eq!(found, ["src/main.rs", "deep/er/index.html"]);
        assert_eq!(facts::sizes(&run(sizes(Source::Git)))[0].1, "src/main.rs");
        let history = facts::commits(&run(commits()));
        assert_eq!((history.len(), history[0].subject.as_str()), (1, "First one"));
        assert!(!folder.path().join("started").exists());
    }

    #[test]
    fn people_see_which_program_a_command_runs() {
        // `crew.md` ACT-18 drops the words of the environment.
        for command in [census(Source::Git), sizes(Source::Git), commits()] {
            let mut words = command.split(' ').skip_while(|word| word.contains('='));
            assert_eq!(words.next(), Some("git"), "{command}");
        }
    }
}
