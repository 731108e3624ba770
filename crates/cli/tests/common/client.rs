//! An RPC client: writes commands, reads lines, waits for what must come.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::server::Gate;
use super::{LIMIT, World};

/// A process in RPC mode; killed when dropped.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Arc<Heard>,
    sent: u64,
}

#[derive(Default)]
struct Heard {
    lines: Mutex<Lines>,
    news: Condvar,
    errors: Mutex<String>,
}

#[derive(Default)]
struct Lines {
    values: Vec<Value>,
    ended: bool,
}

impl Client {
    /// `--mode rpc` with `--model local/m1`.
    pub(crate) fn start(world: &World, args: &[&str]) -> Client {
        Client::start_deaf(world, args, None)
    }

    /// As [`Client::start`]; nothing is read before the gate is open.
    pub(crate) fn start_deaf(world: &World, args: &[&str], gate: Option<&Gate>) -> Client {
        let mut command =
            world.command(&[&["--mode", "rpc", "--model", "local/m1"], args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let heard: Arc<Heard> = Arc::default();
        let (stdout, told) = (child.stdout.take().unwrap(), Arc::clone(&heard));
        let gate = gate.cloned();
        std::thread::spawn(move || {
            gate.iter().for_each(Gate::pass);
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                told.add(
                    serde_json::from_str(&line)
                        .unwrap_or(json!({"type": "(no JSON)", "line": line})),
                );
            }
            told.lines.lock().unwrap().ended = true;
            told.news.notify_all();
        });
        let (mut stderr, told) = (child.stderr.take().unwrap(), Arc::clone(&heard));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                told.errors.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let stdin = child.stdin.take();
        Client { child, stdin, heard, sent: 0 }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a command; its id.
    pub(crate) fn send(&mut self, kind: &str, fields: Value) -> String {
        self.sent += 1;
        let id = format!("c{}", self.sent);
        let mut command = Map::from_iter([("id".to_owned(), json!(id))]);
        command.insert("type".to_owned(), json!(kind));
        command.extend(fields.as_object().cloned().unwrap_or_default());
        let line = format!("{}\n", Value::Object(command));
        self.raw(line.as_bytes());
        id
    }

    /// The response to a command that was sent.
    pub(crate) fn response(&self, id: &str) -> Value {
        self.wait(0, |line| line["type"] == "response" && line["id"] == id)
    }

    /// The data of a command that succeeds.
    #[track_caller]
    pub(crate) fn ask(&mut self, kind: &str, fields: Value) -> Value {
        let id = self.send(kind, fields);
        let response = self.response(&id);
        assert_eq!(response["success"], true, "{response}; stderr: {}", self.err());
        response["data"].clone()
    }

    /// The error of a command that fails.
    #[track_caller]
    pub(crate) fn refused(&mut self, kind: &str, fields: Value) -> String {
        let id = self.send(kind, fields);
        let response = self.response(&id);
        assert_eq!(response["success"], false, "{response}");
        response["error"].as_str().unwrap().to_owned()
    }

    /// Prompts and waits until the run has settled; where its lines begin.
    #[track_caller]
    pub(crate) fn prompt(&mut self, text: &str) -> usize {
        let since = self.count();
        self.ask("prompt", json!({"message": text}));
        self.event(since, "agent_settled");
        since
    }

    pub(crate) fn state(&mut self) -> Value {
        self.ask("get_state", json!({}))
    }

    /// How many lines have come.
    pub(crate) fn count(&self) -> usize {
        self.heard.lines.lock().unwrap().values.len()
    }

    /// All lines from a place on.
    pub(crate) fn lines(&self, since: usize) -> Vec<Value> {
        self.heard.lines.lock().unwrap().values[since..].to_vec()
    }

    /// The first event of a type from a place on.
    pub(crate) fn event(&self, since: usize, kind: &str) -> Value {
        self.wait(since, |line| line["type"] == kind)
    }

    /// The first line from a place on that fits.
    #[track_caller]
    pub(crate) fn wait(&self, since: usize, fits: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        let mut lines = self.heard.lines.lock().unwrap();
        let mut at = since;
        loop {
            if let Some(found) = lines.values[at..].iter().find(|line| fits(line)) {
                return found.clone();
            }
            at = lines.values.len();
            let left = LIMIT.saturating_sub(start.elapsed());
            let last = lines.values.last().cloned().unwrap_or_default();
            assert!(
                !lines.ended && !left.is_zero(),
                "waited in vain; last: {last}; {}",
                self.err()
            );
            lines = self.heard.news.wait_timeout(lines, left).unwrap().0;
        }
    }

    pub(crate) fn err(&self) -> String {
        self.heard.errors.lock().unwrap().clone()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Ends the input.
    pub(crate) fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Ends the input; the exit code.
    pub(crate) fn close(mut self) -> Option<i32> {
        self.end_input();
        self.code()
    }

    /// The exit code, once there is one and all output has been read.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < LIMIT, "still running; stderr: {}", self.err());
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        let lines = self.heard.lines.lock().unwrap();
        let ended = self.heard.news.wait_timeout_while(lines, LIMIT, |lines| !lines.ended);
        assert!(ended.unwrap().0.ended, "standard output stays open");
        status.code()
    }
}

impl Heard {
    fn add(&self, value: Value) {
        self.lines.lock().unwrap().values.push(value);
        self.news.notify_all();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
