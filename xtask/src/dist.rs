//! The release archive: `crew-{version}-{target}.tar.gz` and its checksum file
//! in `target/dist` (`dependencies.md` 11).
//!
//! Must never publish anything. Read `CONTRIBUTING.md` for the release steps.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{Outcome, cargo, output, root, run};

/// Builds the program, packs it with its papers and writes the checksum.
pub(crate) fn dist() -> Outcome {
    let root = root();
    run(cargo(&["build", "--release", "--locked", "-p", "crew"]))?;
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV");
    let target = host_target(&output(rustc)?)?;
    let version = workspace_version(&read(&root.join("Cargo.toml"))?)?;
    let name = format!("crew-{version}-{target}");

    let folder = root.join("target").join("dist");
    let stage = folder.join(&name);
    let _ = fs::remove_dir_all(&stage);
    fs::create_dir_all(&stage).map_err(|error| format!("cannot make {name}: {error}"))?;
    let binary = format!("crew{}", std::env::consts::EXE_SUFFIX);
    let built = root.join("target").join("release").join(&binary);
    copy(&built, &stage.join(&binary))?;
    for paper in PAPERS {
        copy(&root.join(paper), &stage.join(paper))?;
    }

    let archive = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.current_dir(&folder).args(["-czf", &archive, &name]);
    run(tar)?;
    let checksum = checksum(&folder, &archive)?;
    fs::write(folder.join(format!("{archive}.sha256")), &checksum)
        .map_err(|error| format!("cannot write the checksum: {error}"))?;
    print!("target/dist/{archive}\n{checksum}");
    Ok(())
}

/// Returns the checksum line of a file, by whichever program is there.
fn checksum(folder: &Path, archive: &str) -> Outcome<String> {
    let mut gnu = Command::new("sha256sum");
    gnu.current_dir(folder).arg(archive);
    output(gnu).or_else(|_| {
        let mut bsd = Command::new("shasum");
        bsd.current_dir(folder).args(["-a", "256", archive]);
        output(bsd)
    })
}

/// Reads the `host:` line of the compiler's verbose version.
fn host_target(verbose: &str) -> Outcome<String> {
    verbose
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(|target| target.trim().to_owned())
        .ok_or_else(|| "the compiler names no host target".to_owned())
}

/// Reads `version` of `[workspace.package]`.
fn workspace_version(manifest: &str) -> Outcome<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[workspace.package]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .ok_or_else(|| "no version in [workspace.package]".to_owned())
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to)
        .map(|_| ())
        .map_err(|error| format!("cannot copy {}: {error}", from.display()))
}

const PAPERS: &[&str] = &["README.md", "LICENSE", "CHANGELOG.md"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_workspace_table() {
        let manifest = "[package]\nversion = \"9\"\n[workspace.package]\nedition = \"2024\"\nversion = \"1.2.3\"\n[x]\n";
        assert_eq!(workspace_version(manifest), Ok("1.2.3".to_owned()));
        assert!(workspace_version("[workspace.package]\n[x]\nversion = \"1\"\n").is_err());
    }

    #[test]
    fn the_target_is_the_compilers_host() {
        let verbose = "rustc 1.95.0\nhost: aarch64-apple-darwin\nrelease: 1.95.0\n";
        assert_eq!(host_target(verbose), Ok("aarch64-apple-darwin".to_owned()));
        assert!(host_target("rustc 1.95.0\n").is_err());
    }
}
