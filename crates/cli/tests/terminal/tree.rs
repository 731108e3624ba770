//! The session tree in a pseudo terminal (sketch S-10; `host.md` 2.8.2, 2.8.3,
//! 8.19).

use crate::common::server::{Gate, Reply, Request};
use crate::common::{World, until};
use crate::pty::Terminal;

fn is_summary(request: &Request) -> bool {
    request.body.to_string().contains("working notes")
}

fn say(terminal: &mut Terminal, text: &str, answer: &str) {
    terminal.send(&format!("{text}\r"));
    terminal.wait_for(answer);
    terminal.rest_of_owner();
}

#[test]
fn a_message_is_written_anew_a_place_is_labelled_and_a_branch_summed_up() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match is_summary(request) {
        true => Reply::text("WHAT WAS LEARNT").behind(&held),
        false => Reply::text(&format!("echo of {}", request.tail())),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    say(&mut terminal, "way-1", "echo of way-1");
    say(&mut terminal, "way-2", "echo of way-2");

    // A label, and an answer to the question about a summary: no.
    terminal.send("/tree\r");
    terminal.wait_for("you are here");
    terminal.send("way-2");
    terminal.wait_for("find: way-2");
    terminal.send("L");
    terminal.wait_for("\nlabel:");
    terminal.send("plan B\r");
    terminal.wait_for("[label: plan B]");
    terminal.send("\r");
    terminal.wait_for("summarise the branch you leave?");
    terminal.send("\r");
    // Leaving the view gives the main screen back, with the message to edit.
    terminal.wait_for("another place in the tree");
    terminal.wait_until("the message is back", |terminal| {
        terminal.screen().lines().any(|row| row.trim() == "way-2")
    });
    // An export is of the branch that the session stands on (2.8.10).
    terminal.send("\x15/export out.jsonl\r");
    terminal.wait_for("exported to");
    let exported = std::fs::read_to_string(world.project().join("out.jsonl"));
    let exported = exported.expect("it was written");
    assert!(exported.contains("way-1") && !exported.contains("way-2"), "{exported}");
    terminal.send("way-3\r");
    terminal.wait_for("echo of way-3");
    terminal.rest_of_owner();
    let sent = world.server.requests().last().unwrap().all_text();
    assert!(sent.contains("way-1") && !sent.contains("way-2"), "{sent}");

    // Back to the first answer with a summary that is cancelled, then made.
    for esc in [true, false] {
        terminal.send("/tree\r");
        terminal.wait_for("you are here");
        terminal.send("echo of way-1");
        terminal.wait_for("find: echo of way-1");
        terminal.send("\rs");
        if esc {
            terminal.wait_for("summarising the branch you leave");
            terminal.send("\x1b");
            terminal.wait_for("was stopped; nothing changed");
            gate.open();
        }
    }
    terminal.wait_for("a branch that was left");
    say(&mut terminal, "way-4", "echo of way-4");
    let sent = world.server.requests().last().unwrap().all_text();
    assert!(sent.contains("WHAT WAS LEARNT") && sent.contains("way-1"), "{sent}");
    assert!(!sent.contains("way-3") && !sent.contains("way-2"), "{sent}");

    // Nothing is lost: the tree shows all of it.
    terminal.send("/tree\r");
    for text in ["way-2", "[label: plan B]", "way-3", "branch that was left", "way-4"] {
        terminal.wait_for(text);
    }
    terminal.send("\x1b");
    terminal.wait_gone("filter: default");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    let stored = world.session();
    let kinds = stored.iter().filter(|entry| entry["type"] == "branch_summary").count();
    assert_eq!((kinds, stored.iter().filter(|e| e["type"] == "label").count()), (1, 1));
    until("nothing lives", || world.living().is_empty());
}
