//! The repository's own rules, those that no compiler and no lint checks
//! (`style.md` 2, 7, 8, 10).
//!
//! Owns the list of checks; each check is a pure function from the files to
//! the places that break its rule. Must never change a file. Read `tree` and
//! `scan` for how sources are read, then one check, for example `size`.

mod docs;
mod graph;
mod pure;
mod scan;
mod shape;
mod size;
mod spawn;
mod tree;

use std::fmt;

use crate::run::{Outcome, cargo, output, root};
use graph::Graph;
use tree::Tree;

/// Runs every check; errors with the number of broken rules after listing
/// them as `file:line: what (why)`.
pub(crate) fn tidy() -> Outcome {
    let tree = Tree::load(&root())?;
    let metadata = output(cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let graph = Graph::parse(&metadata)?;
    let mut problems = graph::check(&graph);
    for check in CHECKS {
        problems.extend(check(&tree));
    }
    problems.extend(docs::dependencies(&tree, &graph.libraries()));
    problems.sort();
    problems.dedup();
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} files, nothing found", tree.len());
        return Ok(());
    }
    Err(format!("{} places break a rule", problems.len()))
}

/// The checks that need only the files.
const CHECKS: &[fn(&Tree) -> Vec<Problem>] = &[
    pure::calls,
    pure::clippy_copies,
    spawn::calls,
    size::files,
    size::functions,
    shape::module_files,
    shape::module_docs,
    shape::reexports,
    shape::markers,
    shape::lint_exceptions,
    docs::map,
    docs::change_log,
    docs::readme,
    docs::links,
    docs::tests,
];

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    path: String,
    /// Counted from 1; 1 when the whole file is meant.
    line: usize,
    what: String,
    why: &'static str,
}

impl Problem {
    fn new(path: &str, line: usize, what: impl Into<String>, why: &'static str) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), why }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.path, self.line, self.what, self.why)
    }
}

/// Runs one check on made-up files and gives `file:line` of each finding.
#[cfg(test)]
fn found(check: fn(&Tree) -> Vec<Problem>, files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files))
        .iter()
        .map(|problem| format!("{}:{}", problem.path, problem.line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_place_fault_and_reason() {
        let problem = Problem::new("a.rs", 7, "a clock is read", "pure crates have no clock");
        assert_eq!(problem.to_string(), "a.rs:7: a clock is read (pure crates have no clock)");
    }
}
