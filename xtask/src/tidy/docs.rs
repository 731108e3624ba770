//! Documents keep step with the tree: every crate and every library is on the
//! map, the change log starts with what is unreleased, the README begins with
//! the two commands, links lead somewhere, named tests exist (`style.md` 7, 10).

use std::collections::BTreeSet;

use super::Problem;
use super::tree::Tree;

/// Finds crates that `ARCHITECTURE.md` does not name.
pub(crate) fn map(tree: &Tree) -> Vec<Problem> {
    let Some(text) = tree.text(MAP) else {
        return vec![Problem::new(MAP, 1, "missing", WHY_MAP)];
    };
    let unnamed =
        tree.crates().into_iter().filter(|folder| !text.contains(&format!("`crates/{folder}`")));
    unnamed.map(|folder| Problem::new(MAP, 1, format!("no `crates/{folder}`"), WHY_MAP)).collect()
}

/// Finds libraries in use that `ARCHITECTURE.md` has no row for, and libraries
/// of the workspace's manifest that are not in use.
pub(crate) fn dependencies(tree: &Tree, used: &BTreeSet<&str>) -> Vec<Problem> {
    let manifest = tree.text("Cargo.toml").unwrap_or_default();
    let text = tree.text(MAP).unwrap_or_default();
    let why = "dependencies are few, each named with its reason";
    let unnamed = used
        .iter()
        .filter(|name| !text.contains(&format!("| `{name}` |")))
        .map(|name| Problem::new(MAP, 1, format!("no row for `{name}`"), why));
    let unused = workspace_dependencies(manifest)
        .filter(|name| !name.starts_with("crew-") && !used.contains(name))
        .map(|name| Problem::new("Cargo.toml", 1, format!("no crate uses `{name}`"), why));
    unnamed.chain(unused).collect()
}

/// Finds a change log that does not start with `Unreleased`.
pub(crate) fn change_log(tree: &Tree) -> Vec<Problem> {
    let text = tree.text("CHANGELOG.md").unwrap_or_default();
    let first = text.lines().find_map(|line| line.strip_prefix("## "));
    if first == Some("Unreleased") {
        return Vec::new();
    }
    let why = "users read first what the next release changes";
    let what = "the first section is not `## Unreleased`";
    vec![Problem::new("CHANGELOG.md", 1, what, why)]
}

/// Finds a README that does not begin with the two commands, or a gate that
/// does not run the second (`product.md` P-1).
pub(crate) fn readme(tree: &Tree) -> Vec<Problem> {
    let text = tree.text("README.md").unwrap_or_default();
    let gate = tree.text(".ci/run").unwrap_or_default();
    let why = "one command runs the main job, one runs all tests";
    let mut problems = Vec::new();
    let first = code_lines(text);
    let first = &first[..first.len().min(README_CODE_LINES)];
    for command in [RUN_COMMAND, TEST_COMMAND] {
        if !first.iter().any(|line| line.starts_with(command)) {
            let what = format!("`{command}` is not among the first lines of code");
            problems.push(Problem::new("README.md", 1, what, why));
        }
    }
    if !gate.contains(TEST_COMMAND) {
        let what = format!("`{TEST_COMMAND}` of the README is not run");
        problems.push(Problem::new(".ci/run", 1, what, why));
    }
    problems
}

/// Finds links in documents that lead to no file of the tree.
pub(crate) fn links(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (index, line) in text.lines().enumerate() {
            for target in relative_links(line) {
                if !exists(tree, folder, target) {
                    let what = format!("the link {target} leads nowhere");
                    let why = "documents keep step with the tree";
                    problems.push(Problem::new(path, index + 1, what, why));
                }
            }
        }
    }
    problems
}

/// Finds tests that the document on testing names and that do not exist:
/// `crate/path.rs::name`, below `crates/`.
pub(crate) fn tests(tree: &Tree) -> Vec<Problem> {
    let why = "a fault is covered by a test that exists";
    let text = tree.text(TESTING).unwrap_or_default();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for named in line.split('`').skip(1).step_by(2) {
            let Some((path, name)) = named.split_once(".rs::") else { continue };
            let source = tree.text(&format!("crates/{path}.rs"));
            if !source.is_some_and(|source| source.contains(&format!("fn {name}("))) {
                problems.push(Problem::new(TESTING, index + 1, format!("no test {named}"), why));
            }
        }
    }
    problems
}

/// Returns the names of the table `[workspace.dependencies]`.
fn workspace_dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .filter(|name| !name.starts_with('#'))
}

/// Returns the lines inside the fenced blocks of a document.
fn code_lines(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside && !line.trim().is_empty() {
            lines.push(line.trim());
        }
    }
    lines
}

/// Returns the targets of `[text](target)` that are paths in the tree.
fn relative_links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split([')', '#']).next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .collect()
}

fn exists(tree: &Tree, folder: &str, target: &str) -> bool {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let inside = format!("{path}/");
    // The licence is the one file without an ending that documents link to.
    path == "LICENSE" || tree.files().any(|(file, _)| file == path || file.starts_with(&inside))
}

const MAP: &str = "ARCHITECTURE.md";
const TESTING: &str = "docs/testing.md";
const WHY_MAP: &str = "every crate is on the map";
const RUN_COMMAND: &str = "cargo run --release -- demo";
const TEST_COMMAND: &str = "cargo test --workspace";
const README_CODE_LINES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn every_crate_is_on_the_map() {
        let files = [
            ("crates/base/Cargo.toml", ""),
            ("crates/agent/Cargo.toml", ""),
            (MAP, "`crates/base` holds nouns"),
        ];
        assert_eq!(found(map, &files), ["ARCHITECTURE.md:1"]);
        assert_eq!(found(map, &[]), ["ARCHITECTURE.md:1"]);
    }

    #[test]
    fn every_library_in_use_has_a_row_and_every_listed_one_is_in_use() {
        let manifest = "[workspace.dependencies]\ncrew-base = { path = \"x\" }\n# why\nserde = \"1\"\nclap = \"4\"\n\n[profile.dev]\nx = 1\n";
        let tree = Tree::of(&[("Cargo.toml", manifest), (MAP, "| `serde` | data |")]);
        let used = BTreeSet::from(["serde", "tokio"]);
        let problems = dependencies(&tree, &used);
        let said: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(said, ["no row for `tokio`", "no crate uses `clap`"]);
    }

    #[test]
    fn the_change_log_starts_with_what_is_unreleased() {
        let good = [("CHANGELOG.md", "# Changes\n\n## Unreleased\n\n## 0.1.0\n")];
        assert_eq!(found(change_log, &good), [""; 0]);
        let bad = [("CHANGELOG.md", "## 0.1.0\n\n## Unreleased\n")];
        assert_eq!(found(change_log, &bad), ["CHANGELOG.md:1"]);
    }

    #[test]
    fn the_readme_begins_with_the_two_commands_and_the_gate_runs_the_tests() {
        let text = format!("# x\n\n```\n{RUN_COMMAND}\n{TEST_COMMAND}\n```\n");
        let good = [("README.md", text.as_str()), (".ci/run", TEST_COMMAND)];
        assert_eq!(found(readme, &good), [""; 0]);
        let late = format!("```\na\nb\nc\nd\n{RUN_COMMAND}\n```\n{TEST_COMMAND}\n");
        let bad = [("README.md", late.as_str()), (".ci/run", "true")];
        assert_eq!(found(readme, &bad), ["README.md:1", "README.md:1", ".ci/run:1"]);
    }

    #[test]
    fn named_tests_exist() {
        let named = "| C001 | `a/tests/x.rs::good`, `a/tests/x.rs::gone` |\n| `a/no.rs::x` |\n";
        let files = [(TESTING, named), ("crates/a/tests/x.rs", "async fn good() {}")];
        assert_eq!(found(tests, &files), ["docs/testing.md:1", "docs/testing.md:2"]);
        assert_eq!(found(tests, &[]), [""; 0]);
    }

    #[test]
    fn links_lead_to_files_of_the_tree() {
        let files = [
            ("docs/a.md", "[b](b.md#x) [up](../README.md) [out](https://x.y)\n[no](c.md)\n"),
            ("docs/b.md", ""),
            ("README.md", "[docs](docs) [licence](LICENSE)\n"),
        ];
        assert_eq!(found(links, &files), ["docs/a.md:2"]);
    }
}
