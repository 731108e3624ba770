//! A client of the RPC mode (`host.md` 7) that keeps every line it gets, in
//! order, so that checks can ask what came before what.
//!
//! Must never answer for the program: a missing line is an error after a
//! while.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::host::{Host, LIMIT, ended};
use super::world::World;
use crate::run::Outcome;

/// A program in RPC mode.
pub(crate) struct Rpc {
    host: Host,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything that came so far.
    pub(crate) seen: Vec<Value>,
    calls: usize,
}

impl Rpc {
    /// Starts a program with these arguments behind the mode.
    pub(crate) fn start(world: &World, host: Host, args: &[&str]) -> Outcome<Self> {
        let mut command = world.command(host)?;
        command
            .args(["--mode", "rpc"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let started = command.spawn();
        let mut child =
            started.map_err(|error| format!("{} does not start: {error}", host.name()))?;
        let stdin = child.stdin.take();
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                    if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self { host, child, stdin, lines, seen: Vec::new(), calls: 0 })
    }

    /// Starts a program on this session file.
    pub(crate) fn open(world: &World, host: Host, session: &str) -> Outcome<Self> {
        Self::start(world, host, &["--session", session])
    }

    /// Sends one line as it is.
    pub(crate) fn send(&mut self, line: &str) -> Outcome {
        let stdin = self.stdin.as_mut().ok_or("its stdin is closed")?;
        let sent = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        sent.map_err(|error| format!("{} takes no input: {error}", self.host.name()))
    }

    /// Sends a command and waits for its response; returns its data. Errors
    /// when the command fails.
    pub(crate) fn call(&mut self, mut command: Value) -> Outcome<Value> {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        command["id"] = Value::from(id.as_str());
        let from = self.seen.len();
        self.send(&command.to_string())?;
        let at = self.wait(from, &id, |line| line["type"] == "response" && line["id"] == id)?;
        let response = &self.seen[at];
        if response["success"] == true {
            return Ok(response["data"].clone());
        }
        Err(format!("{}: {command} gave {response}", self.host.name()))
    }

    /// Sends a prompt, waits until the run has settled and returns what came.
    pub(crate) fn prompt(&mut self, message: &str) -> Outcome<Vec<Value>> {
        let from = self.seen.len();
        self.call(json!({"type": "prompt", "message": message}))?;
        let end = self.wait(from, "agent_settled", |line| line["type"] == "agent_settled")?;
        Ok(self.seen[from..=end].to_vec())
    }

    /// Returns the place of the first line from `from` on that fits; reads on
    /// until it has come.
    pub(crate) fn wait(
        &mut self,
        from: usize,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Outcome<usize> {
        let mut at = from;
        loop {
            while let Some(line) = self.seen.get(at) {
                if fits(line) {
                    return Ok(at);
                }
                at += 1;
            }
            let line = self.lines.recv_timeout(LIMIT).map_err(|_| {
                let last = self.seen.last().map(Value::to_string).unwrap_or_default();
                format!("{}: {what} did not come; the last line was {last}", self.host.name())
            })?;
            let parsed = serde_json::from_str(&line)
                .map_err(|error| format!("{} wrote no JSON ({error}): {line}", self.host.name()))?;
            self.seen.push(parsed);
        }
    }

    /// Closes its stdin and waits for its end; errors unless it exits with 0.
    pub(crate) fn stop(mut self) -> Outcome {
        self.stdin = None;
        let status = ended(&mut self.child)?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{} ended with {status} after its stdin closed", self.host.name()))
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
