//! Runs other programs for the tasks: from the repository's root, with the
//! command shown first and the time after it.
//!
//! Must never interpret what a program prints. Read `ci` next.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Result of a task; the error is a sentence for the person at the terminal.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Returns the folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns a command for the cargo that started this program, in the root.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs a command to its end with the terminal's own output; errors when it
/// cannot start or exits with anything but 0.
pub(crate) fn run(mut command: Command) -> Outcome {
    let line = shown(&command);
    println!("--- {line}");
    let start = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start `{line}`: {error}"))?;
    println!("--- {line}: {status}, {:.1} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed ({status})")) }
}

/// Runs a command and returns what it wrote to stdout; errors as [`run`].
pub(crate) fn output(mut command: Command) -> Outcome<String> {
    let line = shown(&command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{line}` printed no UTF-8"))
}

/// Shows a command as one line, cut where it becomes too long to read.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = match program.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => program.to_string_lossy().into_owned(),
    };
    for arg in command.get_args() {
        let arg = arg.to_string_lossy();
        if line.len() + arg.len() > SHOWN_BYTES_MAX {
            line.push_str(" …");
            break;
        }
        line.push(' ');
        line.push_str(&arg);
    }
    line
}

const SHOWN_BYTES_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_its_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        let error = run(command).unwrap_err();
        assert!(error.contains("sh -c exit 3"), "{error}");
        assert!(error.contains('3'), "{error}");
    }

    #[test]
    fn a_long_command_is_cut_when_shown() {
        let mut command = Command::new("/usr/bin/tool");
        command.args(std::iter::repeat_n("argument", 100));
        let line = shown(&command);
        assert!(line.starts_with("tool argument"), "{line}");
        assert!(line.ends_with('…') && line.len() < 200, "{line}");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
