//! Length of files and functions: what is too long asks for a better cut
//! (`style.md` 2).
//!
//! Owns the limits and the short list of files that may be longer.

use super::Problem;
use super::scan::is_test_file;
use super::tree::Tree;

/// Finds files that are too long.
pub(crate) fn files(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, source) in tree.sources() {
        if EXCEPTIONS.iter().any(|(file, _)| *file == path) {
            continue;
        }
        let lines = source.lines().len();
        let max = if is_test_file(path) { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
        if lines > max {
            let what = format!("{lines} lines, at most {max}");
            problems.push(Problem::new(path, max + 1, what, WHY));
        }
    }
    problems
}

/// Finds functions that are too long, tests left out.
pub(crate) fn functions(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, source) in tree.sources() {
        for (name, number, lines) in source.functions() {
            if lines > FUNCTION_LINES_MAX {
                let what = format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}");
                problems.push(Problem::new(path, number, what, WHY));
            }
        }
    }
    problems
}

const FILE_LINES_MAX: usize = 600;
const TEST_FILE_LINES_MAX: usize = 1500;
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

const WHY: &str = "a long file or function asks for a better cut";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn long_files_are_found_and_tests_may_be_longer() {
        let long = "//\n".repeat(FILE_LINES_MAX + 1);
        let longer = "//\n".repeat(TEST_FILE_LINES_MAX + 1);
        let limit = "//\n".repeat(FILE_LINES_MAX);
        let files = [
            ("crates/a/src/limit.rs", limit.as_str()),
            ("crates/a/src/long.rs", &long),
            ("crates/a/tests/long.rs", &long),
            ("crates/a/tests/longer.rs", &longer),
        ];
        assert_eq!(
            found(super::files, &files),
            ["crates/a/src/long.rs:601", "crates/a/tests/longer.rs:1501"]
        );
    }

    #[test]
    fn long_functions_are_found_but_not_in_tests() {
        let body = "    x();\n".repeat(FUNCTION_LINES_MAX - 1);
        let long = format!("fn short() {{}}\nfn long() {{\n{body}}}\n");
        let test = format!("#[test]\nfn long() {{\n{body}}}\n");
        let files = [("crates/a/src/long.rs", long.as_str()), ("crates/a/src/test.rs", &test)];
        assert_eq!(found(functions, &files), ["crates/a/src/long.rs:2"]);
    }
}
