//! Puts Pi and a fitting Node below `target/interop` and keeps them there for
//! the next time.
//!
//! Must never install anything outside that folder. That npm is missing or
//! reaches nothing is not a failure: the checks are then skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{Outcome, output, root};

/// Pi and the Node that runs it.
pub(crate) struct Installed {
    folder: PathBuf,
    /// Folder with a fitting `node`; `None` when the one on the path fits.
    node_folder: Option<PathBuf>,
}

impl Installed {
    /// Returns what is there, else installs it; `None`, after saying why, when
    /// that is not possible.
    pub(crate) fn find_or_install() -> Outcome<Option<Self>> {
        let folder = root().join("target").join("interop");
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let mut packages = Vec::new();
        if package_version(&folder, PI).is_none_or(|version| !version.starts_with(PI_VERSION)) {
            packages.push(format!("{PI}@{PI_VERSION}"));
        }
        let node_fits = node_version(Path::new("node")).is_ok_and(|found| is_new_enough(&found));
        let package = node_package();
        let node_folder = folder.join("node_modules").join(&package).join("bin");
        if !node_fits && !node_folder.join("node").is_file() {
            packages.push(format!("{package}@{NODE_MAJOR}"));
        }
        if !packages.is_empty()
            && let Err(error) = npm_install(&folder, &packages)
        {
            println!("interop: skipped, {} cannot be installed: {error}", packages.join(" and "));
            return Ok(None);
        }
        let node_folder = (!node_fits).then_some(node_folder);
        Ok(Some(Self { folder, node_folder }))
    }

    /// Returns the folder in which scripts find Pi's library.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of Pi's program, a script with a `node` first line.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("node_modules").join(".bin").join("pi")
    }

    /// Returns the search path for programs, the fitting Node first.
    pub(crate) fn search_path(&self) -> Outcome<std::ffi::OsString> {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let parts = self.node_folder.iter().cloned().chain(std::env::split_paths(&old));
        std::env::join_paths(parts).map_err(|error| format!("cannot extend PATH: {error}"))
    }

    /// Returns Pi's name and version.
    pub(crate) fn version(&self) -> Outcome<String> {
        let version = package_version(&self.folder, PI);
        version.map(|version| format!("{PI} {version}")).ok_or_else(|| format!("no {PI}"))
    }

    /// Returns the version of the Node that runs Pi.
    pub(crate) fn node_version(&self) -> Outcome<String> {
        node_version(&self.node())
    }

    /// Returns the program that runs scripts.
    pub(crate) fn node(&self) -> PathBuf {
        self.node_folder.as_ref().map_or_else(|| "node".into(), |folder| folder.join("node"))
    }
}

fn node_version(node: &Path) -> Outcome<String> {
    let mut command = Command::new(node);
    command.arg("--version");
    output(command).map(|version| version.trim().to_owned())
}

fn npm_install(folder: &Path, packages: &[String]) -> Outcome {
    println!("interop: installing {}", packages.join(" and "));
    let ended = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(folder)
        .args(packages)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm does not start: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&ended.stderr);
    let first = words.lines().find(|line| line.contains("error")).unwrap_or("it says nothing");
    Err(format!("npm failed ({}): {first}", ended.status))
}

fn package_version(folder: &Path, package: &str) -> Option<String> {
    let path = folder.join("node_modules").join(package).join("package.json");
    let manifest: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    manifest.get("version")?.as_str().map(str::to_owned)
}

/// Returns the name of the package that holds a Node for this machine.
fn node_package() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("node-{system}-{machine}")
}

/// Says whether a version as `node --version` prints it can run Pi.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim().trim_start_matches('v').split('.');
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    (number(), number()) >= NODE_VERSION_MIN
}

const PI: &str = "@earendil-works/pi-coding-agent";
const PI_VERSION: &str = "1.6";
const NODE_VERSION_MIN: (u32, u32) = (22, 19);
const NODE_MAJOR: &str = "22";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: &str, expected: bool) {
        assert_eq!(is_new_enough(version), expected, "{version}");
    }

    #[test]
    fn only_a_node_that_pi_accepts_is_new_enough() {
        check("v22.19.0\n", true);
        check("v22.23.5", true);
        check("v24.0.1", true);
        check("v22.18.9", false);
        check("v20.20.2", false);
        check("", false);
    }

    #[test]
    fn the_version_of_a_package_is_read_from_its_manifest() {
        let folder = std::env::temp_dir().join(format!("crew-interop-{}", std::process::id()));
        let package = folder.join("node_modules").join("some");
        fs::create_dir_all(&package).unwrap();
        assert_eq!(package_version(&folder, "some"), None);
        fs::write(package.join("package.json"), r#"{"version":"1.6.0"}"#).unwrap();
        assert_eq!(package_version(&folder, "some").as_deref(), Some("1.6.0"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
