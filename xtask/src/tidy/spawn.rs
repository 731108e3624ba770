//! Only the shell starts work (`style.md` 2): tasks and threads are spawned by
//! `runtime` and, for its own start and its streams, by the binary.
//!
//! Adapters may move blocking work away with `spawn_blocking`, which their
//! caller awaits; that is no work of its own. Owns the list of exceptions,
//! each with its reason.

use super::Problem;
use super::scan::has_word;
use super::tree::{Tree, crate_of};

/// Finds places outside the shell that start a task or a thread.
pub(crate) fn calls(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, source) in tree.sources() {
        let free = crate_of(path).is_none_or(|folder| FREE.contains(&folder));
        if free || EXCEPTIONS.iter().any(|(file, _)| *file == path) {
            continue;
        }
        for (number, line) in source.product() {
            for call in CALLS {
                if has_word(&line.code, call) {
                    let what = format!("`{}` outside the shell", call.trim_end_matches('('));
                    problems.push(Problem::new(path, number, what, WHY));
                }
            }
        }
    }
    problems
}

const CALLS: &[&str] = &[
    "tokio::spawn(",
    "task::spawn(",
    "task::spawn_local(",
    "thread::spawn(",
    "thread::Builder",
    "thread::scope(",
    "JoinSet",
    "Runtime::new(",
];

/// Crates that may start work.
const FREE: &[&str] = &["runtime", "cli", "testkit", "xtask"];

/// Files that may start work although their crate may not, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "crates/tools/src/host.rs",
    "reads pipes of processes that outlived their command to nowhere; bounded in number",
)];

const WHY: &str = "only `runtime` spawns tasks, so that shutdown can wait for all of them";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn only_the_shell_starts_tasks() {
        let files = [
            ("crates/tools/src/bash.rs", "fn a() {\n    tokio::spawn(b());\n}\n"),
            ("crates/tools/src/grep.rs", "fn a() {\n    task::spawn_blocking(b);\n}\n"),
            ("crates/runtime/src/run.rs", "fn a() {\n    tokio::spawn(b());\n}\n"),
            (
                "crates/store/src/lib.rs",
                "#[cfg(test)]\nmod tests {\n    fn a() {\n        std::thread::spawn(b);\n    }\n}\n",
            ),
        ];
        assert_eq!(found(calls, &files), ["crates/tools/src/bash.rs:2"]);
    }
}
