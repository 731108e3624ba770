//! The shape of sources: module files, their opening words, re-exports, stray
//! markers, lint exceptions (`style.md` 2, 7, 10).

use super::Problem;
use super::scan::{has_word, is_test_file};
use super::tree::Tree;

/// Finds `mod.rs` files; only `tests/common/mod.rs` must have that name.
pub(crate) fn module_files(tree: &Tree) -> Vec<Problem> {
    let stray = tree.sources().filter(|(path, _)| {
        path.ends_with("/mod.rs") && !path.contains("/tests/") && !path.contains("/benches/")
    });
    stray
        .map(|(path, _)| {
            let why = "`name.rs` stands beside the folder `name/`";
            Problem::new(path, 1, "a module file called mod.rs", why)
        })
        .collect()
}

/// Finds modules that do not open with `//!`.
pub(crate) fn module_docs(tree: &Tree) -> Vec<Problem> {
    let silent = tree.sources().filter(|(path, source)| {
        let first = source.lines().iter().find(|line| !line.text.is_empty());
        !is_test_file(path) && !first.is_some_and(|line| line.text.starts_with("//!"))
    });
    silent
        .map(|(path, _)| {
            let why = "a module says what it owns, what it must never do, where to read next";
            Problem::new(path, 1, "the module does not open with //!", why)
        })
        .collect()
}

/// Finds `pub use` of anything but names of the file's own private modules,
/// so that each name has one public path.
pub(crate) fn reexports(tree: &Tree) -> Vec<Problem> {
    let why = "a name has one path; a new re-export is an architectural change";
    let mut problems = Vec::new();
    for (path, source) in tree.sources() {
        if FACADES.iter().any(|(file, _)| *file == path) {
            continue;
        }
        for (number, line) in source.product() {
            let Some(names) = line.code.trim_start().strip_prefix("pub use ") else {
                continue;
            };
            let names = names.trim_start_matches("self::");
            let first = names.split("::").next().unwrap_or_default();
            let private = format!("mod {first};");
            let mut codes = source.product().map(|(_, line)| line.code.trim());
            let what = if names.contains('*') {
                "`pub use` of everything"
            } else if !codes.any(|code| code == private) {
                "`pub use` of something that is not a private child module's"
            } else {
                continue;
            };
            problems.push(Problem::new(path, number, what, why));
        }
    }
    problems
}

/// Finds markers of unfinished work in any text file.
pub(crate) fn markers(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            for marker in NOTES {
                if has_word(line, marker) {
                    let what = format!("stray marker {marker}");
                    problems.push(Problem::new(path, index + 1, what, WHY_MARKER));
                }
            }
        }
    }
    for (path, source) in tree.sources() {
        for (index, line) in source.lines().iter().enumerate() {
            for marker in STUBS {
                if has_word(&line.code, marker) {
                    let what = format!("stray marker `{marker}`");
                    problems.push(Problem::new(path, index + 1, what, WHY_MARKER));
                }
            }
        }
    }
    problems
}

/// Finds lint exceptions that are not `#[expect(.., reason = "..")]`. Helpers
/// shared by several test programs are left out: what one of them does not use
/// another does, so no expectation holds for all.
pub(crate) fn lint_exceptions(tree: &Tree) -> Vec<Problem> {
    let why = "an exception is `#[expect(.., reason = \"..\")]`, which ends when it is not needed";
    let mut problems = Vec::new();
    let own = tree.sources().filter(|(path, _)| !path.contains("/tests/common/"));
    for (path, source) in own {
        for (index, line) in source.lines().iter().enumerate() {
            let code = line.code.trim_start();
            if code.starts_with("#[allow(") || code.starts_with("#![allow(") {
                problems.push(Problem::new(path, index + 1, "`allow` of a lint", why));
            }
            let expects = code.starts_with("#[expect(") || code.starts_with("#![expect(");
            let mut attribute = source.lines()[index..].iter().map(|line| &line.code);
            if expects && !has_reason(&mut attribute) {
                problems.push(Problem::new(path, index + 1, "`expect` without reason", why));
            }
        }
    }
    problems
}

/// Says whether the attribute that starts at the first line gives a reason.
fn has_reason<'a>(lines: &mut impl Iterator<Item = &'a String>) -> bool {
    for code in lines {
        if has_word(code, "reason") {
            return true;
        }
        if code.trim_end().ends_with(")]") {
            return false;
        }
    }
    false
}

/// Files that may re-export the names of others, with the reason.
const FACADES: &[(&str, &str)] = &[(
    "crates/engine/src/api.rs",
    "faces depend on the engine alone and find there all that they name",
)];

// Split so that this file does not find itself.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const STUBS: &[&str] = &["dbg!", "todo!", "unimplemented!", "#[ignore"];

const WHY_MARKER: &str = "work is finished or it is an issue";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn module_files_stand_beside_their_folder() {
        let files = [("crates/a/src/x/mod.rs", ""), ("crates/a/tests/common/mod.rs", "")];
        assert_eq!(found(module_files, &files), ["crates/a/src/x/mod.rs:1"]);
    }

    #[test]
    fn modules_open_with_their_purpose() {
        let files = [
            ("crates/a/src/good.rs", "//! Owns x.\n"),
            ("crates/a/src/bad.rs", "use x;\n"),
            ("crates/a/tests/free.rs", "use x;\n"),
        ];
        assert_eq!(found(module_docs, &files), ["crates/a/src/bad.rs:1"]);
    }

    #[test]
    fn names_have_one_path() {
        let lib =
            "mod x;\npub mod y;\npub use x::Y;\npub use x::*;\npub use y::A;\npub use other::Z;\n";
        let files = [("crates/a/src/lib.rs", lib)];
        assert_eq!(
            found(reexports, &files),
            ["crates/a/src/lib.rs:4", "crates/a/src/lib.rs:5", "crates/a/src/lib.rs:6"]
        );
    }

    #[test]
    fn markers_are_found_as_words() {
        let note = format!("// {}: later\n", NOTES[0]);
        let stub = format!("const NAME: &str = \"{0}\";\nfn a() {{ {0}(); }}\n", STUBS[1]);
        let ignored = format!("{}]\nfn a() {{}}\n", STUBS[3]);
        let files = [
            ("crates/a/src/note.rs", note.as_str()),
            ("crates/a/src/stub.rs", &stub),
            ("crates/a/tests/ignored.rs", &ignored),
            ("docs/a.md", "mktemp name.XXXXXX\n"),
        ];
        assert_eq!(
            found(markers, &files),
            ["crates/a/src/note.rs:1", "crates/a/src/stub.rs:2", "crates/a/tests/ignored.rs:1"]
        );
    }

    #[test]
    fn lint_exceptions_end_by_themselves_and_say_why() {
        let bad = "#[allow(dead_code)]\nfn a() {}\n#[expect(dead_code)]\nfn b() {}\n";
        let good = "#[expect(\n    dead_code,\n    reason = \"x\"\n)]\nfn a() {}\n";
        let files = [
            ("crates/a/src/bad.rs", bad),
            ("crates/a/src/good.rs", good),
            ("crates/a/tests/common/mod.rs", bad),
        ];
        assert_eq!(
            found(lint_exceptions, &files),
            ["crates/a/src/bad.rs:1", "crates/a/src/bad.rs:3"]
        );
    }
}
