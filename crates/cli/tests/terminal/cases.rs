//! Edge cases of `terminal.md` 11 that need the real program: keys in every
//! view, late answers of the terminal, names that are hostile, much output.

use std::time::{Duration, Instant};

use crate::common::server::{Gate, Reply, Request};
use crate::common::{World, until};
use crate::pty::{Terminal, spawns};
use rustix::process::Signal;
use serde_json::json;

/// Keys that open each full-screen view, and what is seen there.
const VIEWS: [(&str, &str); 7] = [
    ("", "─ owner ─"),
    ("\x18b", "last action"),
    ("\x0f", "Esc back"),
    ("\x18m", "model for the owner"),
    ("/resume\r", "this folder"),
    ("/tree\r", "tree"),
    ("\x18?", "any other key: back"),
];

fn echo() -> World {
    World::new(|request| Reply::text(&format!("seen: {}", request.tail())))
}

// Case 15: the key that closes the board does not stop the owner.
#[test]
fn esc_closes_the_board_and_the_owner_goes_on() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("over now").behind(&held));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("waits for the model");
    terminal.send("\x18b");
    terminal.wait_for("no subagent yet");
    terminal.send("\x1b");
    terminal.wait_for("waits for the model");
    gate.open();
    terminal.wait_for("over now");
    assert!(!terminal.all().contains("stopped"), "{}", terminal.all());
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 17: nothing is open, nothing is asked.
#[test]
fn ctrl_c_twice_leaves() {
    let world = echo();
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("\x03\x03");
    assert_eq!(terminal.code(), 0);
    terminal.modes_are_reset();
}

// TERM-39: the terminal has our title while we run, and its own again.
#[test]
fn the_title_is_given_back() {
    let world = echo();
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("/name commas\r");
    terminal.wait_until("the title", |terminal| {
        terminal.bytes().contains("\x1b]2;crew - commas - project\x07")
    });
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    let bytes = terminal.bytes();
    assert_eq!(bytes.matches("\x1b[22;2t").count(), 1);
    assert!(bytes.rfind("\x1b[23;2t") > bytes.rfind("\x1b]2;"));
}

// Case 30, TERM-58, C109: names with controls are one clean line each, and none
// of them reaches the terminal.
#[test]
fn hostile_names_are_clean() {
    const EVIL: &str = "a\u{1b}[2Jb\u{7}\nc\u{202e}d";
    let world = World::new(|request: &Request| {
        let task = json!({"goal": "g", "context": [], "instructions": ["look"]});
        match (request.is_child(), request.has_results()) {
            (true, _) => Reply::report("r"),
            (false, false) => {
                Reply::call("crew_spawn", json!({"subagent": "scout", "brief": EVIL, "task": task}))
            }
            (false, true) => Reply::text("at work"),
        }
    });
    world.project_file(".git/HEAD", "ref: refs/heads/ma\u{1b}[2Jin\u{7}\n");
    let models = std::fs::read_to_string(world.agent().join("models.json")).unwrap();
    world.agent_file("models.json", &models.replace("\"m1\"", "\"m1\\u001b]0;evil\\u0007\""));
    let mut terminal =
        Terminal::start_bare(&world, 30, 100, &["--model", "local/m1\u{1b}]0;evil\u{7}"]);
    terminal.wait_for("0%/128k");
    terminal.send("/name n\u{1b}[200~x\x1b[201~\r");
    terminal.send("go\r");
    terminal.wait_for("✅ scout-");
    terminal.wait_for("<U+202E>");
    terminal.rest();
    let bytes = terminal.bytes();
    for forbidden in ["\x1b[2J", "\x1b]0;evil", "\u{202e}"] {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 32, C125, TERM-28: much output; the clock goes on, frames stay few and
// nothing of the end is lost.
#[test]
fn much_output_keeps_the_clock_going() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request: &Request| match request.has_results() {
        false => Reply::pieces(20_000, "words of an answer ")
            .and_call("bash", json!({"command": "seq 1 700000"})),
        true => Reply::text("over now").behind(&held),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    let begun = Instant::now();
    terminal.send("go\r");
    for second in ["· 1s ·", "· 2s ·", "· 3s ·"] {
        terminal.wait_for(second);
    }
    let frames = terminal.bytes().matches("\x1b[?2026h").count();
    let seconds = begun.elapsed().as_secs_f64();
    assert!(frames as f64 <= 60.0 * seconds + 2.0, "{frames} frames in {seconds} s");
    terminal.wait_for("700000");
    gate.open();
    terminal.wait_for("over now");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 39, TERM-27: Ctrl+\ and signals restore the terminal from every view.
#[test]
fn every_view_gives_the_terminal_back() {
    for (keys, seen) in VIEWS {
        for end in [None, Some((Signal::TERM, 143))] {
            let world = echo();
            let mut terminal = Terminal::start(&world, 30, 100, &[]);
            terminal.wait_for("0%/128k");
            terminal.send(keys);
            terminal.wait_for(seen);
            let code = match end {
                None => {
                    terminal.send("\x1c");
                    131
                }
                Some((signal, code)) => {
                    terminal.signal(signal);
                    code
                }
            };
            assert_eq!(terminal.code(), code, "{keys:?}");
            terminal.modes_are_reset();
            until("nothing lives", || world.living().is_empty());
        }
    }
}

// Case 39, host.md 11.120: suspended, the terminal is the shell's; continued,
// all is drawn again.
#[test]
fn a_suspended_program_comes_back() {
    let world = echo();
    let mut terminal = Terminal::start_as_job(&world, 30, 100);
    terminal.wait_for("0%/128k");
    terminal.send("a draft");
    terminal.wait_for("a draft");
    terminal.send("\x1a");
    terminal.wait_for("crew is suspended; fg goes on");
    terminal.wait_for("the shell");
    terminal.modes_are_reset();
    terminal.send("\n");
    terminal.wait_until("the draft is back", |terminal| {
        terminal.screen().contains("─ owner ─\na draft")
    });
    terminal.send("!");
    terminal.wait_for("a draft!");
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 40, TERM-34: answers of the terminal that come late and in two reads
// are neither text nor Esc.
#[test]
fn late_answers_of_the_terminal_are_swallowed() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("over now").behind(&held));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("waits for the model");
    std::thread::sleep(Duration::from_secs(2));
    for (first, second) in [("\x1b[?1", "u"), ("\x1b[", "I"), ("\x1b[?62;", "4c"), ("\x1b[O", "")] {
        terminal.send(first);
        terminal.send(second);
    }
    terminal.send("x");
    terminal.wait_for("─ owner ─\nx");
    gate.open();
    terminal.wait_for("over now");
    assert!(!terminal.all().contains("stopped"), "{}", terminal.all());
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 26 the other way round, TERM-35: a view that is open stays open when
// everything in it ends.
#[test]
fn a_view_never_closes_by_itself() {
    let gate = Gate::default();
    let held = gate.clone();
    let world =
        World::new(move |request: &Request| match (request.is_child(), request.has_results()) {
            (true, _) => Reply::report("r").behind(&held),
            (false, false) => spawns(2),
            (false, true) => Reply::text("at work"),
        });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("crew 2");
    terminal.send("\x18b");
    terminal.wait_for("2 running");
    gate.open();
    terminal.wait_for("2 done");
    terminal.rest();
    assert!(terminal.screen().contains("last action"), "{}", terminal.screen());
    terminal.send("\x1b");
    terminal.wait_for("─ owner ─");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}
