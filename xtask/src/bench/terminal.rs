//! The interactive mode in a pseudo terminal: how soon a key is echoed, how many
//! frames are drawn and what they cost while fifteen children stream
//! (`terminal.md` TERM-28 to TERM-31), and how soon the first frame stands
//! (TERM-34).
//!
//! Keys are letters that occur nowhere else on the screen, so the first output
//! that holds one is its echo.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::provider::{Block, Reply, Request, has};
use super::rows::{Rows, expect, ms, note, row, say, spawn_call};
use super::session::long_session;
use super::world::World;
use super::{Measured, median};
use crate::run::Outcome;

/// Seconds of the streams unless told otherwise.
static SECONDS: AtomicU64 = AtomicU64::new(20);
const CHILDREN: usize = 15;
/// Between two deltas of a child: 200 a second.
const GAP: Duration = Duration::from_millis(5);
const DELTAS_PER_SECOND: usize = 200;
const KEYS: u32 = 90;
const ROWS: u16 = 30;
const COLUMNS: u16 = 100;
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Begins each frame.
const FRAME: &[u8] = b"\x1b[?2026h";

/// Chooses how long the children stream.
pub(super) fn stream_for(seconds: &str) -> Outcome {
    let seconds: u64 = seconds.parse().map_err(|_| format!("{seconds} is no number"))?;
    SECONDS.store(seconds.max(1), Ordering::Relaxed);
    Ok(())
}

pub(super) fn terminal() -> Rows {
    let mut rows = first_frames()?;
    rows.extend(streams()?);
    Ok(rows)
}

/// Fifteen children stream while keys are pressed.
fn streams() -> Rows {
    let seconds = SECONDS.load(Ordering::Relaxed);
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let deltas = DELTAS_PER_SECOND * usize::try_from(seconds + 2).unwrap_or(1);
    let script = move |request: &Request| {
        if request.child {
            counted.fetch_add(1, Ordering::Relaxed);
            return Reply { gap: Some(GAP), ..Reply::at_once(vec![Block::Deltas(deltas)]) };
        }
        if request.results > 0 {
            return say(Duration::ZERO);
        }
        Reply::at_once((0..CHILDREN).map(spawn_call).collect())
    };
    let world = World::new(Arc::default(), Box::new(script))?;
    let mut face = Face::start(&world, &[])?;
    face.wait_for(b"owner")?;
    face.press("go\r")?;
    face.wait_until("all children stream", || begun.load(Ordering::Relaxed) >= CHILDREN)?;
    let before = face.written();
    let (cpu, start) = (face.cpu()?, Instant::now());
    let mut echoes = Vec::new();
    for number in 0..KEYS {
        let at = start + Duration::from_secs(seconds) * number / KEYS;
        thread::sleep(at.saturating_duration_since(Instant::now()));
        echoes.push(ms(face.echo(letter(number))?));
    }
    let end = start + Duration::from_secs(seconds);
    thread::sleep(end.saturating_duration_since(Instant::now()));
    let wall = start.elapsed().as_secs_f64();
    let cores = face.cpu()?.saturating_sub(cpu).as_secs_f64() / wall;
    let written = face.written_since(before);
    let frames = written.windows(FRAME.len()).filter(|window| *window == FRAME).count();
    face.end()?;
    echoes.sort_by(f64::total_cmp);
    let p95 = echoes.get(echoes.len() * 95 / 100).copied().unwrap_or(f64::MAX);
    let what = |part: &str| format!("{CHILDREN} children stream: {part}");
    Ok(vec![
        row(&what("key to echo, p95"), p95, "ms", 50.0),
        note(&what("key to echo, median"), median(echoes), "ms"),
        row(&what("frames"), frames as f64 / wall, "/s", 60.0),
        row(&what("CPU"), cores, "cores", 1.0),
        note(&what("output"), written.len() as f64 / wall / 1000.0, "kB/s"),
    ])
}

/// The first frame, also with a long session, whose end comes first.
fn first_frames() -> Rows {
    const BYTES: usize = 50_000_000;
    let world = World::new(Arc::default(), Box::new(|_| say(Duration::ZERO)))?;
    let cwd = world.path("project");
    let mut text = long_session(BYTES, &cwd.to_string_lossy(), true);
    let last = text.trim_end().rsplit('\n').next().unwrap_or_default().to_owned();
    text.push_str(&end_of(&last)?);
    text.push('\n');
    world.write("long.jsonl", &text)?;
    let long = world.path("long.jsonl").to_string_lossy().into_owned();
    let long: [&str; 2] = ["--session", &long];
    let mut rows: Vec<Measured> = Vec::new();
    for (name, args) in [("a new session", &[][..]), ("50 MB resumed", &long[..])] {
        let (mut frames, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let mut face = Face::start(&world, args)?;
            frames.push(ms(face.wait_for(b"owner")?));
            if !args.is_empty() {
                ends.push(ms(face.wait_for(LAST_WORDS.as_bytes())?));
            }
            face.end()?;
        }
        rows.push(row(&format!("first frame, {name}"), median(frames), "ms", 50.0));
        if !ends.is_empty() {
            rows.push(note(&format!("end of the session shown, {name}"), median(ends), "ms"));
        }
    }
    Ok(rows)
}

const LAST_WORDS: &str = "the very last words";

/// A further answer behind the last entry of a session.
fn end_of(last: &str) -> Outcome<String> {
    let entry: serde_json::Value =
        serde_json::from_str(last).map_err(|error| format!("the session is broken: {error}"))?;
    let content = [serde_json::json!({"type": "text", "text": LAST_WORDS})];
    let message = serde_json::json!({
        "role": "assistant", "content": content, "stopReason": "stop",
        "api": "anthropic-messages", "provider": "bench", "model": "m1",
    });
    let answer = serde_json::json!({
        "type": "message", "id": "ffffffff", "parentId": entry["id"],
        "timestamp": entry["timestamp"], "message": message,
    });
    Ok(answer.to_string())
}

/// A letter that nothing of ours writes.
fn letter(number: u32) -> char {
    char::from_u32(0x430 + number % 32).unwrap_or('я')
}

/// The program in a terminal.
struct Face {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
    started: Instant,
    /// Kept so that the terminal stays there.
    _master: Box<dyn MasterPty + Send>,
}

/// All that was written, and when each part had come.
#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    times: Vec<(usize, Instant)>,
}

impl Face {
    fn start(world: &World, args: &[&str]) -> Outcome<Face> {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size);
        let pair = pair.map_err(|error| format!("cannot make a terminal: {error}"))?;
        let command = world.command(args);
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.cwd(world.path("project"));
        builder.env_clear();
        builder.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        let reader = pair.master.try_clone_reader();
        let reader = reader.map_err(|error| format!("cannot read the terminal: {error}"))?;
        let keys = pair.master.take_writer();
        let keys = keys.map_err(|error| format!("cannot press keys: {error}"))?;
        let seen: Arc<Mutex<Seen>> = Arc::default();
        watch(reader, Arc::clone(&seen));
        let started = Instant::now();
        let child = pair.slave.spawn_command(builder);
        let child = child.map_err(|error| format!("cannot start the program: {error}"))?;
        Ok(Face { child, keys, seen, started, _master: pair.master })
    }

    fn press(&mut self, keys: &str) -> Outcome {
        let written = self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush());
        written.map_err(|error| format!("cannot press keys: {error}"))
    }

    /// How long after the key its letter was written.
    fn echo(&mut self, letter: char) -> Outcome<Duration> {
        let from = self.written();
        let pressed = Instant::now();
        let text = letter.to_string();
        self.press(&text)?;
        let at = self.when(from, text.as_bytes())?;
        Ok(at.saturating_duration_since(pressed))
    }

    /// How long after the start these bytes were written.
    fn wait_for(&self, wanted: &[u8]) -> Outcome<Duration> {
        Ok(self.when(0, wanted)?.saturating_duration_since(self.started))
    }

    fn when(&self, from: usize, wanted: &[u8]) -> Outcome<Instant> {
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            {
                let seen = lock(&self.seen);
                let behind = seen.bytes.get(from..).unwrap_or_default();
                let at = behind.windows(wanted.len()).position(|window| window == wanted);
                if let Some(at) = at {
                    let end = from + at + wanted.len();
                    let time = seen.times.iter().find(|(until, _)| *until >= end);
                    return Ok(time.map_or_else(Instant::now, |(_, time)| *time));
                }
            }
            thread::sleep(Duration::from_micros(300));
        }
        Err(format!("never written: {}", String::from_utf8_lossy(wanted)))
    }

    fn wait_until(&self, what: &str, holds: impl Fn() -> bool) -> Outcome {
        let begun = Instant::now();
        while !holds() {
            expect(begun.elapsed() < LIMIT, what)?;
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn written(&self) -> usize {
        lock(&self.seen).bytes.len()
    }

    fn written_since(&self, from: usize) -> Vec<u8> {
        lock(&self.seen).bytes.get(from..).unwrap_or_default().to_vec()
    }

    fn cpu(&self) -> Outcome<Duration> {
        let pid = self.child.process_id().ok_or("the program has ended")?;
        super::process::own_cpu(pid)
    }

    /// Ends the program; it must still have been there.
    fn end(&mut self) -> Outcome {
        let is_alive = matches!(self.child.try_wait(), Ok(None));
        // Ctrl+\ exits at once.
        self.press("\x1c")?;
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(2));
        }
        expect(is_alive, "the program runs to the end")?;
        self.wait_until("the terminal is restored", || has(&lock(&self.seen).bytes, b"\x1b[?2004l"))
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(mut reader: Box<dyn Read + Send>, seen: Arc<Mutex<Seen>>) {
    thread::spawn(move || {
        let mut chunk = [0; 64 * 1024];
        while let Ok(count @ 1..) = reader.read(&mut chunk) {
            let mut seen = lock(&seen);
            seen.bytes.extend_from_slice(&chunk[..count]);
            let end = seen.bytes.len();
            seen.times.push((end, Instant::now()));
        }
    });
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_that_nothing_else_writes() {
        for number in 0..KEYS {
            assert!(!letter(number).is_ascii());
        }
        assert_ne!(letter(0), letter(1));
    }

    #[test]
    fn the_last_words_stand_behind_the_last_entry() {
        let entry = end_of(r#"{"id":"0000000a","timestamp":"t"}"#).unwrap();
        let value: serde_json::Value = serde_json::from_str(&entry).unwrap();
        assert_eq!(value["parentId"], "0000000a");
        assert!(end_of("no").is_err());
    }
}
