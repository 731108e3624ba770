//! Pi's terminal face in a terminal of its own, for what no command reaches.
//!
//! The terminal comes from the `script` program of Linux; must never be a
//! reason to fail where that is missing.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use super::host::{Host, LIMIT, ended};
use super::log::Log;
use super::world::World;
use crate::run::Outcome;

/// A program on a terminal.
pub(crate) struct Terminal {
    child: Child,
    output: Receiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Terminal {
    /// Starts Pi on a session file; `None` where there is no way to get a
    /// terminal.
    pub(crate) fn start(world: &World, log: &Log) -> Outcome<Option<Self>> {
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let mut command = Command::new("script");
        let pi = world.command(Host::Pi)?;
        command
            .args(["-qfec", "stty rows 40 cols 120; exec \"$PI\" --session \"$SESSION\""])
            .arg("/dev/null")
            .current_dir(world.path("project"))
            .env_clear()
            .envs(pi.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("PI", pi.get_program())
            .env("SESSION", &log.path)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return Ok(None) };
        let (sender, output) = channel();
        if let Some(mut stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                    if sender.send(buffer[..length].to_vec()).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Some(Self { child, output, shown: Vec::new() }))
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) -> Outcome {
        let stdin = self.child.stdin.as_mut().ok_or("the terminal takes no keys")?;
        let typed = stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush());
        typed.map_err(|error| format!("cannot type: {error}"))
    }

    /// Waits until all of these texts have been shown since the last wait.
    pub(crate) fn wait(&mut self, texts: &[&str]) -> Outcome {
        let until = Instant::now() + LIMIT;
        loop {
            let shown = plain(&String::from_utf8_lossy(&self.shown));
            if texts.iter().all(|text| shown.contains(text)) {
                self.shown.clear();
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.shown.extend(bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(format!("the terminal did not show {texts:?} but {shown:?}"));
                }
            }
        }
    }

    /// Waits for the end of the program; errors unless it exits with 0.
    pub(crate) fn end(mut self) -> Outcome {
        // `script` may wait for more keys although the program has ended.
        drop(self.child.stdin.take());
        let status = ended(&mut self.child)?;
        if status.success() { Ok(()) } else { Err(format!("the terminal ended with {status}")) }
    }
}

/// Takes the control sequences out of what a program wrote: `ESC [ … letter`,
/// `ESC ] … BEL`, and the ESC of any other.
fn plain(written: &str) -> String {
    let mut plain = String::with_capacity(written.len());
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => {
                chars.find(|c| ('@'..='~').contains(c));
            }
            Some(']') => {
                chars.find(|&c| c == '\u{7}');
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_taken_out_of_what_is_shown() {
        let written = "\u{1b}[38;5;5m\u{1b}[1muser:\u{1b}[22m hi\u{1b}]8;;\u{7}\u{1b}=!\u{1b}";
        assert_eq!(plain(written), "user: hi=!");
    }
}
