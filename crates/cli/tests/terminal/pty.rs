//! The real program in a pseudo terminal; what it writes goes into a terminal
//! emulator.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use serde_json::json;

use crate::common::server::Reply;
use crate::common::{LIMIT, World};

/// Stands for a terminal with a shell that has jobs.
const JOB: &str = "job";

/// What was written and what is seen.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

/// A program in a terminal.
pub(crate) struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<Mutex<Seen>>,
    paused: Arc<AtomicBool>,
}

/// An answer of an owner that spawns so many scouts.
pub(crate) fn spawns(count: usize) -> Reply {
    (0..count).fold(Reply::default(), |reply, number| {
        let task =
            json!({"goal": format!("goal {number}."), "context": [], "instructions": ["look"]});
        let brief = format!("Part {number}");
        reply.and_call("crew_spawn", json!({"subagent": "scout", "brief": brief, "task": task}))
    })
}

fn size(rows: u16, columns: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn side(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}

impl Terminal {
    /// The face with the model of the world.
    pub(crate) fn start(world: &World, rows: u16, columns: u16, args: &[&str]) -> Terminal {
        Terminal::start_below(world, rows, columns, 0, args)
    }

    /// The same below lines of a shell.
    pub(crate) fn start_below(
        world: &World,
        rows: u16,
        columns: u16,
        lines: usize,
        args: &[&str],
    ) -> Terminal {
        let args = [&["--model", "local/m1"], args].concat();
        Terminal::open(world, rows, columns, lines, "", &args)
    }

    /// The same with keys that were pressed before the program ran.
    pub(crate) fn start_typed(world: &World, rows: u16, columns: u16, keys: &str) -> Terminal {
        Terminal::open(world, rows, columns, 0, keys, &["--model", "local/m1"])
    }

    /// The face in a terminal that can do nothing.
    pub(crate) fn start_dumb(world: &World, rows: u16, columns: u16) -> Terminal {
        Terminal::open_as(world, "dumb", rows, columns, 0, "", &["--model", "local/m1"])
    }

    /// The face as a job of a shell, which says so when it has the terminal and
    /// takes the job up again after a line.
    pub(crate) fn start_as_job(world: &World, rows: u16, columns: u16) -> Terminal {
        Terminal::open_as(world, JOB, rows, columns, 0, "", &["--model", "local/m1"])
    }

    /// The face as started by these arguments alone.
    pub(crate) fn start_bare(world: &World, rows: u16, columns: u16, args: &[&str]) -> Terminal {
        Terminal::open(world, rows, columns, 0, "", args)
    }

    fn open(
        world: &World,
        rows: u16,
        columns: u16,
        lines: usize,
        typed: &str,
        args: &[&str],
    ) -> Terminal {
        Terminal::open_as(world, "xterm-256color", rows, columns, lines, typed, args)
    }

    fn open_as(
        world: &World,
        term: &str,
        rows: u16,
        columns: u16,
        lines: usize,
        typed: &str,
        args: &[&str],
    ) -> Terminal {
        let pair = native_pty_system().openpty(size(rows, columns)).unwrap();
        let mut parser = vt100::Parser::new(side(rows), side(columns), 5_000);
        for line in 0..lines {
            parser.process(format!("shell {line}\r\n").as_bytes());
        }
        let command = world.command(args);
        let mut builder = CommandBuilder::new(command.get_program());
        if term == JOB {
            builder = CommandBuilder::new("bash");
            builder.args(["-mc", "\"$0\" \"$@\"; echo the shell; read -r; fg >/dev/null"]);
            builder.arg(command.get_program());
        }
        builder.args(command.get_args());
        builder.cwd(command.get_current_dir().unwrap());
        builder.env_clear();
        builder.env("TERM", if term == JOB { "xterm-256color" } else { term });
        builder.env("LANG", "C.UTF-8");
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        let mut keys = pair.master.take_writer().unwrap();
        keys.write_all(typed.as_bytes()).unwrap();
        let child = pair.slave.spawn_command(builder).unwrap();
        drop(pair.slave);
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new(), ended: false }));
        let paused = Arc::new(AtomicBool::new(false));
        let reader = pair.master.try_clone_reader().unwrap();
        watch(reader, Arc::clone(&seen), Arc::clone(&paused));
        Terminal { master: pair.master, keys, child, seen, paused }
    }

    /// Presses keys.
    pub(crate) fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        // Two gestures are not one read.
        std::thread::sleep(Duration::from_millis(15));
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.seen.lock().unwrap().parser.screen_mut().set_size(side(rows), side(columns));
        self.master.resize(size(rows, columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.process_id().unwrap()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Reads nothing of what the program writes.
    pub(crate) fn pause(&self) {
        self.paused.store(true, Ordering::Relaxed);
    }

    pub(crate) fn go_on(&self) {
        self.paused.store(false, Ordering::Relaxed);
    }

    /// The rows that are seen, trailing blanks gone.
    pub(crate) fn rows(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let screen = seen.parser.screen();
        let (_, columns) = screen.size();
        screen.rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect()
    }

    pub(crate) fn screen(&self) -> String {
        self.rows().join("\n")
    }

    /// Scrollback and screen.
    pub(crate) fn all(&self) -> String {
        let mut seen = self.seen.lock().unwrap();
        let (_, columns) = seen.parser.screen().size();
        let mut rows = Vec::new();
        seen.parser.screen_mut().set_scrollback(usize::MAX);
        let mut above = seen.parser.screen().scrollback();
        while above > 0 {
            seen.parser.screen_mut().set_scrollback(above);
            rows.extend(seen.parser.screen().rows(0, columns.get()).next());
            above -= 1;
        }
        seen.parser.screen_mut().set_scrollback(0);
        rows.extend(seen.parser.screen().rows(0, columns.get()));
        rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n")
    }

    /// Everything that was written.
    pub(crate) fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Terminal) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < LIMIT, "never seen: {what}\n{}", self.all());
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits until a text is seen, in the scrollback too.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |terminal| {
            terminal.screen().contains(text) || terminal.all().contains(text)
        });
    }

    /// Waits until a text is no longer on the screen.
    pub(crate) fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("no {text}"), |terminal| !terminal.screen().contains(text));
    }

    /// Waits until nothing is written any more.
    pub(crate) fn rest(&self) {
        let begun = Instant::now();
        let mut last = (self.bytes().len(), Instant::now());
        while last.1.elapsed() < Duration::from_millis(700) {
            assert!(begun.elapsed() < LIMIT, "it never rests\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
            let length = self.bytes().len();
            if length != last.0 {
                last = (length, Instant::now());
            }
        }
    }

    /// Waits until the owner does nothing, whatever its subagents do.
    pub(crate) fn rest_of_owner(&self) {
        let begun = Instant::now();
        let mut idle = Instant::now();
        while idle.elapsed() < Duration::from_millis(400) {
            assert!(begun.elapsed() < LIMIT, "it never rests\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
            if self.screen().contains("Esc stops") {
                idle = Instant::now();
            }
        }
    }

    /// Waits for the end; yields the exit code.
    pub(crate) fn code(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What was written last is still on its way.
                while !self.seen.lock().unwrap().ended && begun.elapsed() < LIMIT {
                    std::thread::sleep(Duration::from_millis(3));
                }
                return status.exit_code();
            }
            assert!(begun.elapsed() < LIMIT, "it never ends\n{}", self.all());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Cursor, screen and modes are those of a shell.
    pub(crate) fn modes_are_reset(&self) {
        let seen = self.seen.lock().unwrap();
        let screen = seen.parser.screen();
        assert!(!screen.hide_cursor() && !screen.alternate_screen() && !screen.bracketed_paste());
        let bytes = String::from_utf8_lossy(&seen.bytes).into_owned();
        for mode in ["1004", "2004", "2026"] {
            let on = bytes.rfind(&format!("\x1b[?{mode}h"));
            let off = bytes.rfind(&format!("\x1b[?{mode}l"));
            assert!(on <= off, "mode {mode} is left on");
        }
        let (pushed, popped) =
            (bytes.matches("\x1b[>1u").count(), bytes.matches("\x1b[<u").count());
        assert_eq!(pushed, popped, "the key report is left on");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(mut reader: Box<dyn Read + Send>, seen: Arc<Mutex<Seen>>, paused: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        loop {
            while paused.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            match reader.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    let mut seen = seen.lock().unwrap();
                    seen.bytes.extend_from_slice(&chunk[..count]);
                    seen.parser.process(&chunk[..count]);
                }
            }
        }
        seen.lock().unwrap().ended = true;
    });
}
