//! The crate graph against the table of `style.md` 2, and the external
//! dependencies of pure crates (`dependencies.md`, Rules).
//!
//! Owns the table. A new line in it is an architectural change: change
//! `ARCHITECTURE.md` in the same commit. Must never look at sources.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Problem;
use crate::run::Outcome;

/// The workspace's packages and what they depend on.
pub(crate) struct Graph {
    packages: Vec<Package>,
}

struct Package {
    name: String,
    /// Folder name below `crates/`, or `xtask`.
    folder: String,
    manifest: String,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    /// Only for tests and benches.
    dev: bool,
}

impl Graph {
    /// Reads the output of `cargo metadata --no-deps`.
    pub(crate) fn parse(metadata: &str) -> Outcome<Self> {
        let value: Value = serde_json::from_str(metadata)
            .map_err(|error| format!("cargo metadata cannot be read: {error}"))?;
        let packages = value["packages"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self { packages: packages.iter().filter_map(package).collect() })
    }

    /// Returns the names of all libraries that some package uses, tests
    /// included; packages of the workspace left out.
    pub(crate) fn libraries(&self) -> BTreeSet<&str> {
        let own: BTreeSet<&str> = self.packages.iter().map(|own| own.name.as_str()).collect();
        let all = self.packages.iter().flat_map(|own| &own.dependencies);
        all.map(|dependency| dependency.name.as_str()).filter(|name| !own.contains(name)).collect()
    }
}

fn package(value: &Value) -> Option<Package> {
    let manifest = value["manifest_path"].as_str()?.replace('\\', "/");
    let folder = manifest.strip_suffix("/Cargo.toml")?.rsplit('/').next()?;
    let dependencies = value["dependencies"].as_array()?.iter();
    Some(Package {
        name: value["name"].as_str()?.to_owned(),
        folder: folder.to_owned(),
        manifest: match folder {
            "xtask" => "xtask/Cargo.toml".to_owned(),
            _ => format!("crates/{folder}/Cargo.toml"),
        },
        dependencies: dependencies
            .filter_map(|dependency| {
                Some(Dependency {
                    name: dependency["name"].as_str()?.to_owned(),
                    dev: dependency["kind"].as_str() == Some("dev"),
                })
            })
            .collect(),
    })
}

/// Compares the real graph with the table.
pub(crate) fn check(graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in &graph.packages {
        let Some(rule) = TABLE.iter().find(|rule| rule.folder == package.folder) else {
            problems.push(Problem::new(
                &package.manifest,
                1,
                format!("`{}` is not in the crate table", package.folder),
                WHY_TABLE,
            ));
            continue;
        };
        if package.name != package_name(rule.folder) {
            problems.push(Problem::new(
                &package.manifest,
                1,
                format!(
                    "package `{}` should be called `{}`",
                    package.name,
                    package_name(rule.folder)
                ),
                "packages carry the prefix crew-, the binary's is crew",
            ));
        }
        for dependency in &package.dependencies {
            problems.extend(judge(package, rule, dependency));
        }
    }
    problems
}

fn judge(package: &Package, rule: &Rule, dependency: &Dependency) -> Option<Problem> {
    let name = dependency.name.as_str();
    let problem = |what: String, why| Some(Problem::new(&package.manifest, 1, what, why));
    if let Some(target) = TABLE.iter().find(|row| package_name(row.folder) == name) {
        let allowed = rule.may_use.contains(&target.folder);
        let in_test = dependency.dev && (target.folder == "testkit" || rule.folder == "cli");
        if !allowed && !in_test {
            let what = format!("`{}` may not depend on `{}`", rule.folder, target.folder);
            return problem(what, WHY_TABLE);
        }
        return None;
    }
    if dependency.dev {
        return None;
    }
    if let Some(libraries) = rule.libraries_only
        && !libraries.contains(&name)
    {
        let what = format!("`{}` may not use the library `{name}`", rule.folder);
        return problem(what, WHY_LIBRARIES);
    }
    if let Some((_, home)) = HOMES.iter().find(|(library, _)| *library == name)
        && *home != rule.folder
    {
        let what = format!("the library `{name}` belongs to `{home}` alone");
        return problem(what, WHY_HOME);
    }
    None
}

fn package_name(folder: &str) -> String {
    match folder {
        "cli" => "crew".to_owned(),
        "xtask" => "xtask".to_owned(),
        _ => format!("crew-{folder}"),
    }
}

/// What one crate may depend on.
struct Rule {
    folder: &'static str,
    may_use: &'static [&'static str],
    /// The only libraries it may use outside tests; `None` leaves it open.
    libraries_only: Option<&'static [&'static str]>,
}

const fn rule(
    folder: &'static str,
    may_use: &'static [&'static str],
    libraries_only: Option<&'static [&'static str]>,
) -> Rule {
    Rule { folder, may_use, libraries_only }
}

const TABLE: &[Rule] = &[
    rule("base", &[], Some(DATA)),
    rule("agent", &["base"], Some(DATA)),
    rule("cycle", &["agent", "base"], Some(DATA_AND_SCHEMA)),
    rule("crew", &["cycle", "base"], Some(DATA)),
    rule("task", &["cycle", "base"], Some(DATA)),
    rule("engine", PURE, Some(DATA)),
    rule("model", &["base"], None),
    rule("tools", &["task", "base"], None),
    rule("isolation", &["task", "base"], None),
    rule("store", &["task", "base"], None),
    rule("runtime", &["engine", "model", "tools", "isolation", "store", "base"], None),
    rule("tui", &["engine", "base"], None),
    rule("cli", PRODUCT, None),
    rule("testkit", PRODUCT, None),
    rule("xtask", &[], Some(&["serde_json", "portable-pty"])),
];

const PURE: &[&str] = &["base", "agent", "cycle", "crew", "task"];
const PRODUCT: &[&str] = &[
    "base",
    "agent",
    "cycle",
    "crew",
    "task",
    "engine",
    "model",
    "tools",
    "isolation",
    "store",
    "runtime",
    "tui",
];
const DATA: &[&str] = &["serde", "serde_json"];
const DATA_AND_SCHEMA: &[&str] = &["serde", "serde_json", "jsonschema"];

/// Libraries that must not spread beyond the one crate that needs them.
const HOMES: &[(&str, &str)] = &[
    ("reqwest", "model"),
    ("rustls", "model"),
    ("rustls-platform-verifier", "model"),
    ("jsonc-parser", "model"),
    ("serde-saphyr", "store"),
    ("ratatui", "tui"),
    ("crossterm", "tui"),
    ("clap", "cli"),
    ("mimalloc", "cli"),
];

const WHY_TABLE: &str = "the crate table of ARCHITECTURE.md";
const WHY_LIBRARIES: &str = "pure crates take serde and serde_json and nothing else";
const WHY_HOME: &str = "a library sits behind the one crate that needs it";

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks one package with one dependency and gives what is said.
    fn said(folder: &str, name: &str, dependency: &str, kind: &str) -> String {
        let metadata = serde_json::json!({"packages": [{
            "name": name,
            "manifest_path": format!("/somewhere/crates/{folder}/Cargo.toml"),
            "dependencies": [{
                "name": dependency,
                "kind": if kind.is_empty() { Value::Null } else { kind.into() },
            }],
        }]});
        let graph = Graph::parse(&metadata.to_string()).unwrap();
        let lines: Vec<String> = check(&graph).iter().map(Problem::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn the_table_allows_downward_lines_and_refuses_the_rest() {
        assert_eq!(said("engine", "crew-engine", "crew-crew", ""), "");
        assert!(said("crew", "crew-crew", "crew-task", "").contains("may not depend"));
        assert!(said("base", "crew-base", "crew-agent", "").contains("may not depend"));
        assert!(said("model", "crew-model", "crew-testkit", "").contains("may not depend"));
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        assert_eq!(said("engine", "crew-engine", "crew-testkit", "dev"), "");
        assert!(said("engine", "crew-engine", "crew-store", "dev").contains("may not depend"));
    }

    #[test]
    fn pure_crates_take_data_libraries_only() {
        assert_eq!(said("agent", "crew-agent", "serde_json", ""), "");
        assert!(said("agent", "crew-agent", "tokio", "").contains("library `tokio`"));
        assert_eq!(said("agent", "crew-agent", "proptest", "dev"), "");
        assert_eq!(said("cycle", "crew-cycle", "jsonschema", ""), "");
        assert!(said("crew", "crew-crew", "jsonschema", "").contains("jsonschema"));
    }

    #[test]
    fn a_library_stays_in_its_home() {
        assert_eq!(said("model", "crew-model", "reqwest", ""), "");
        assert!(said("tools", "crew-tools", "reqwest", "").contains("`model` alone"));
    }

    #[test]
    fn names_and_unknown_crates_are_noticed() {
        assert!(said("cli", "crew-cli", "serde", "").contains("should be called `crew`"));
        assert!(said("extra", "crew-extra", "serde", "").contains("not in the crate table"));
    }
}
