//! The real program in a pane of Herdr: a double of its socket hears how many
//! subagents are at work (`crew.md` HERDR-1 to HERDR-9).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
#[expect(dead_code, reason = "this program needs a part of it")]
#[path = "terminal/pty.rs"]
mod pty;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use common::server::{Gate, Reply};
use common::{World, until};
use pty::Terminal;
use serde_json::{Value, json};

/// Answers every request and keeps its token.
fn listen(world: &mut World) -> Arc<Mutex<Vec<Value>>> {
    let socket = world.at("home").join("herdr.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let heard: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let request: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(request["method"], "pane.report_metadata");
            kept.lock().unwrap().push(request["params"]["tokens"]["crew"].clone());
            let answer = json!({"id": request["id"], "result": {"type": "ok"}});
            (&stream).write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    });
    let socket = socket.to_string_lossy().into_owned();
    let pane = [("HERDR_ENV", "1"), ("HERDR_PANE_ID", "w1:p1"), ("HERDR_SOCKET_PATH", &socket)];
    world.variables.extend(pane.map(|(name, value)| (name.to_owned(), value.to_owned())));
    heard
}

fn world(gate: &Gate) -> World {
    let gate = gate.clone();
    World::new(move |request| match (request.is_child(), request.has_results()) {
        (true, _) => Reply::report("found it").behind(&gate),
        (false, true) => Reply::text("it is at work"),
        (false, false) => {
            let task = json!({"goal": "look", "context": [], "instructions": ["look"]});
            let spawn = json!({"subagent": "scout", "brief": "Look", "task": task});
            Reply::call("crew_spawn", spawn)
        }
    })
}

#[test]
fn the_sidebar_hears_of_work_and_of_its_end() {
    let gate = Gate::default();
    let mut world = world(&gate);
    let heard = listen(&mut world);
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    until("one at work", || *heard.lock().unwrap() == [json!("1 subagent")]);
    gate.open();
    until("the clear", || heard.lock().unwrap().last() == Some(&Value::Null));
    // The owner takes the result in; leaving in its run would ask.
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    assert_eq!(*heard.lock().unwrap(), [json!("1 subagent"), Value::Null]);
}

#[test]
fn leaving_in_the_middle_of_work_clears_the_sidebar() {
    let gate = Gate::default();
    let mut world = world(&gate);
    let heard = listen(&mut world);
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("it is at work");
    until("one at work", || !heard.lock().unwrap().is_empty());
    terminal.send("\x04");
    terminal.wait_for("Quit and stop 1 subagent?");
    terminal.send("\x04");
    terminal.code();
    assert_eq!(*heard.lock().unwrap(), [json!("1 subagent"), Value::Null]);
    gate.open();
}

// HERDR-1, HOST-10: only the terminal reports.
#[test]
fn print_mode_reports_nothing() {
    let gate = Gate::default();
    gate.open();
    let mut world = world(&gate);
    let heard = listen(&mut world);
    world.print(&["go"]).is(0, "it is at work\n");
    assert_eq!(*heard.lock().unwrap(), Vec::<Value>::new());
}
