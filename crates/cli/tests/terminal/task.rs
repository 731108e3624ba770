//! Calls of `task` in a pseudo terminal: the person is asked, sees the children
//! at work, and their outcome (`task.md` OBS-3, OBS-6; `host.md` 8.15).

use crate::common::server::{Gate, Reply};
use crate::common::{World, until};
use crate::pty::Terminal;
use serde_json::json;

#[test]
fn a_call_is_allowed_watched_and_told() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| {
        if request.is_task_child() {
            let result = Reply::call("yield", json!({"data": {"found": "FOUR USES"}}));
            if request.all_text().contains("slow") { result.behind(&held) } else { result }
        } else if request.has_results() {
            Reply::text("the owner goes on")
        } else {
            let tasks =
                json!([{"name": "Quick", "task": "quick"}, {"name": "Slow", "task": "slow"}]);
            Reply::call("task", json!({"context": "c", "tasks": tasks}))
        }
    });
    world.settings(&json!({"crew": {"approval": {"tools": {"task": "prompt"}}}}));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("Run task?");
    terminal.wait_for("Name: Quick");
    // What is typed meanwhile stays a draft and answers nothing.
    terminal.send("yes no");
    terminal.wait_for("yes no");
    assert!(!world.server.requests().iter().any(|request| request.is_task_child()));
    terminal.send("\x18o");
    terminal.wait_gone("Run task?");
    until("both children ask", || {
        world.server.requests().iter().filter(|request| request.is_task_child()).count() == 2
    });
    terminal.wait_for("Slow · task");
    gate.open();
    terminal.wait_for("the owner goes on");
    let all = terminal.all();
    assert!(all.contains("Quick · task · completed"), "{all}");
    assert!(all.contains("→ agent://Slow") && all.contains("FOUR USES"), "{all}");
    assert!(terminal.screen().contains("yes no"));
    terminal.send("\x15\x04");
    assert_eq!(terminal.code(), 0);
    assert_eq!(world.living(), Vec::<String>::new());
}

#[test]
fn a_call_that_is_refused_starts_nothing_and_an_abort_takes_the_question_away() {
    let world = World::new(|request| {
        if request.has_results() {
            Reply::text("as you like")
        } else {
            let item = json!({"name": "Kid", "task": "a thing"});
            Reply::call("task", json!({"context": "c", "tasks": [item]}))
        }
    });
    world.settings(&json!({"crew": {"approval": {"tools": {"task": "prompt"}}}}));
    let mut terminal = Terminal::start(&world, 20, 60, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("Run task?");
    terminal.send("/refuse\r");
    terminal.wait_for("as you like");
    assert!(world.server.requests().last().unwrap().tail().contains("refused by the person"));
    terminal.rest_of_owner();
    terminal.send("/new\r");
    terminal.send("again\r");
    terminal.wait_for("Run task?");
    terminal.send("\x1b");
    terminal.wait_gone("Run task?");
    terminal.rest_of_owner();
    assert!(!world.server.requests().iter().any(|request| request.is_task_child()));
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}
