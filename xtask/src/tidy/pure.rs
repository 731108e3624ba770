//! Pure crates stay pure: no clock, environment, file, process, network,
//! thread, randomness, unordered map or async code (`style.md` 2, 8).
//!
//! A second net under each crate's `clippy.toml`, whose copies it keeps equal:
//! lints can be switched off in one line, and they do not know `async`.

use super::Problem;
use super::scan::has_word;
use super::tree::{Tree, crate_of};

/// Finds forbidden words in the product code of pure crates.
pub(crate) fn calls(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, source) in tree.sources() {
        if !crate_of(path).is_some_and(|folder| CRATES.contains(&folder)) {
            continue;
        }
        for (number, line) in source.product() {
            for word in FORBIDDEN {
                if has_word(&line.code, word) {
                    let what = format!("`{word}` in a pure crate");
                    problems.push(Problem::new(path, number, what, WHY));
                }
            }
            for module in grouped_modules(&line.code) {
                let what = format!("`std::{module}` in a pure crate");
                problems.push(Problem::new(path, number, what, WHY));
            }
        }
    }
    problems
}

/// Finds pure crates whose `clippy.toml` is missing or differs from that of
/// `base`.
pub(crate) fn clippy_copies(tree: &Tree) -> Vec<Problem> {
    let original = tree.text("crates/base/clippy.toml");
    let mut problems = Vec::new();
    for folder in tree.crates() {
        let path = format!("crates/{folder}/clippy.toml");
        let copy = tree.text(&path);
        if CRATES.contains(&folder) && (copy.is_none() || copy != original) {
            problems.push(Problem::new(
                &path,
                1,
                "missing, or not the same as crates/base/clippy.toml",
                "the nearest clippy.toml counts alone, so each pure crate has the whole list",
            ));
        }
    }
    problems
}

/// Returns the forbidden modules of a line like `use std::{fs, mem};`.
fn grouped_modules(code: &str) -> Vec<&'static str> {
    let Some(group) = code.trim_start().strip_prefix("use std::{") else {
        return Vec::new();
    };
    let named = group.split([',', '}']).map(str::trim);
    let forbidden = named.filter_map(|item| {
        let module = item.split("::").next().unwrap_or(item);
        MODULES.iter().copied().find(|&name| name == module)
    });
    forbidden.collect()
}

/// Folder names of the pure crates.
pub(crate) const CRATES: &[&str] = &["base", "agent", "cycle", "crew", "task", "engine"];

const MODULES: &[&str] = &["env", "fs", "process", "net", "thread", "io"];

const FORBIDDEN: &[&str] = &[
    "std::env",
    "std::fs",
    "std::process",
    "std::net",
    "std::thread",
    "std::io",
    "SystemTime",
    "Instant",
    "HashMap",
    "HashSet",
    "async",
    ".await",
    "tokio::",
    "rand::",
    "Mutex",
    "RwLock",
];

const WHY: &str = "pure crates have no IO, no async, no clock and no randomness of their own";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn forbidden_words_are_found_in_pure_product_code_only() {
        let files = [
            ("crates/agent/src/step.rs", "fn a() {\n    std::fs::read(x);\n}\n"),
            ("crates/agent/src/word.rs", "// std::fs\nconst A: &str = \"async\";\n"),
            ("crates/agent/tests/a.rs", "use std::fs;\n"),
            ("crates/tools/src/read.rs", "use std::fs;\n"),
            ("crates/engine/src/lib.rs", "use std::{env, mem};\nasync fn a() {}\n"),
        ];
        assert_eq!(
            found(calls, &files),
            [
                "crates/agent/src/step.rs:2",
                "crates/engine/src/lib.rs:1",
                "crates/engine/src/lib.rs:2"
            ]
        );
    }

    #[test]
    fn every_pure_crate_has_the_same_lint_file() {
        let files = [
            ("crates/base/Cargo.toml", ""),
            ("crates/base/clippy.toml", "a"),
            ("crates/agent/Cargo.toml", ""),
            ("crates/agent/clippy.toml", "b"),
            ("crates/crew/Cargo.toml", ""),
            ("crates/tools/Cargo.toml", ""),
        ];
        assert_eq!(
            found(clippy_copies, &files),
            ["crates/agent/clippy.toml:1", "crates/crew/clippy.toml:1"]
        );
    }
}
