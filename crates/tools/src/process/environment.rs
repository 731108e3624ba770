//! The shell and the environment a command gets (`host.md` 1.2.6, 4.3.1).
//!
//! The one place of the crate that reads the environment: the search path and
//! the outer marker are inherited by the command, not configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::sweep::MARKER_VARIABLE;
use crate::context::ShellConfig;
use crate::error::Error;

/// Set per command, hence removed from what is inherited.
const SESSION_VARIABLES: [&str; 5] =
    ["SESSION_ID", "SESSION_FILE", "PROVIDER", "MODEL", "REASONING_LEVEL"];
const PREFIXES: [&str; 2] = ["PI_", "CREW_"];
/// Outer markers that are kept; a deeper nesting forgets the outermost.
const CHAIN_MARKERS_MAX: usize = 16;

/// Shells to try, in order; all take `-c`.
pub(super) fn shells(config: &ShellConfig) -> Result<Vec<PathBuf>, Error> {
    if let Some(path) = &config.path {
        if !path.exists() {
            return Err(Error::NoShell { path: path.display().to_string() });
        }
        return Ok(vec![path.clone()]);
    }
    let fixed = PathBuf::from("/bin/bash");
    let found = fixed.exists().then_some(fixed);
    let by_name = ["bash", "sh"].map(PathBuf::from);
    Ok(found.into_iter().chain(by_name).collect())
}

/// The text for `-c`: `shellCommandPrefix`, a line feed, the command.
pub(super) fn script(config: &ShellConfig, command: &str) -> String {
    match &config.prefix {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{command}"),
        Some(_) | None => command.to_owned(),
    }
}

/// Sets the variables of a command; `env` wins over what is inherited.
pub(super) fn apply(
    process: &mut Command,
    config: &ShellConfig,
    env: &[(String, String)],
    marker: &str,
) {
    for prefix in PREFIXES {
        for name in SESSION_VARIABLES {
            process.env_remove(format!("{prefix}{name}"));
        }
    }
    if let Some(bin) = &config.bin_dir {
        process.env("PATH", search_path(bin, std::env::var_os("PATH")));
    }
    process.envs(env.iter().map(|(name, value)| (name, value)));
    let outer = std::env::var(MARKER_VARIABLE).unwrap_or_default();
    process.env(MARKER_VARIABLE, chain(&outer, marker));
}

fn search_path(bin: &Path, inherited: Option<OsString>) -> OsString {
    let mut path = bin.as_os_str().to_owned();
    if let Some(rest) = inherited.filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

fn chain(outer: &str, marker: &str) -> String {
    let mut markers: Vec<&str> = outer.split(':').filter(|m| !m.is_empty()).collect();
    markers.push(marker);
    let surplus = markers.len().saturating_sub(CHAIN_MARKERS_MAX);
    markers[surplus..].join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_managed_folder_comes_first_in_the_search_path() {
        // host.md 4.3.1
        let joined = search_path(Path::new("/a/bin"), Some("/usr/bin".into()));
        assert_eq!(joined, "/a/bin:/usr/bin");
        assert_eq!(search_path(Path::new("/a/bin"), None), "/a/bin");
    }

    #[test]
    fn a_command_inside_a_command_carries_both_markers() {
        assert_eq!(chain("", "b"), "b");
        assert_eq!(chain("a", "b"), "a:b");
        let deep = (0..40).fold(String::new(), |c, n| chain(&c, &n.to_string()));
        assert_eq!(deep.split(':').count(), CHAIN_MARKERS_MAX);
        assert!(deep.ends_with(":39"));
    }

    #[test]
    fn a_missing_configured_shell_is_an_error() {
        let config = ShellConfig { path: Some("/no/such/shell".into()), ..ShellConfig::default() };
        assert!(matches!(shells(&config), Err(Error::NoShell { .. })));
    }

    #[test]
    fn the_prefix_stands_on_its_own_line() {
        let config =
            ShellConfig { prefix: Some("shopt -s extglob".into()), ..ShellConfig::default() };
        assert_eq!(script(&config, "ls"), "shopt -s extglob\nls");
        assert_eq!(script(&ShellConfig::default(), "ls"), "ls");
    }
}
