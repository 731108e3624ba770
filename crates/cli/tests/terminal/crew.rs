//! A crew in the interactive mode, from the first spawn to the last process.
//! Numbers are edge cases of `terminal.md` 11.

use std::time::{Duration, Instant};

use crate::common::server::{Gate, Reply, Request};
use crate::common::{World, until};
use crate::pty::{Terminal, spawns};
use serde_json::json;

/// Which of the children that were spawned asks.
fn number(request: &Request) -> Option<usize> {
    let text = request.all_text();
    let behind = text.split("goal ").nth(1)?;
    behind.split('.').next()?.parse().ok()
}

/// Custom messages in the owner's file, in order.
fn recorded(world: &World, custom_type: &str) -> Vec<String> {
    let files = world.session_files();
    let Some(owner) = files.iter().find(|path| !crate::common::is_child(path)) else {
        return Vec::new();
    };
    let entries = crate::common::lines(owner);
    let is_wanted = |entry: &&serde_json::Value| entry["customType"] == custom_type;
    entries.iter().filter(is_wanted).map(|entry| entry["content"].to_string()).collect()
}

/// What the whole tour is played with: three children that wait, stream and
/// ask; an owner that streams while a result arrives.
struct Tour {
    first: Gate,
    second: Gate,
    streams: Gate,
    answers: Gate,
}

fn tour() -> (World, Tour) {
    let tour = Tour {
        first: Gate::default(),
        second: Gate::default(),
        streams: Gate::default(),
        answers: Gate::default(),
    };
    let (first, second) = (tour.first.clone(), tour.second.clone());
    let (streams, answers) = (tour.streams.clone(), tour.answers.clone());
    let world = World::new(move |request: &Request| {
        if request.is_child() {
            let answered = request.all_text().contains("use tabs");
            return match (number(request), answered) {
                (Some(0), _) => Reply::report("the first report").behind(&first),
                (Some(1), false) => Reply::call(
                    "crew_report",
                    json!({"outcome": "needs_input", "needs": "Tabs or spaces?", "report": "r"}),
                )
                .behind(&second),
                (Some(1), true) => Reply::report("done with tabs"),
                // Streams for ever.
                _ => Reply::pieces(3_000, "words of a child ").held(&streams),
            };
        }
        let text = request.all_text();
        match (request.has_results(), text.contains("Tell me more.")) {
            (false, _) => spawns(3),
            (true, false) => Reply::text("they are at work"),
            (true, true) if !text.contains("the first report") => {
                Reply::text("a long answer begins").and_text(" and ends here.").behind(&answers)
            }
            (true, true) => Reply::text(&format!("answer {}", request.answers())),
        }
    });
    (world, tour)
}

// Issue 5, TERM-1, TERM-2, TERM-22, TERM-42, TERM-44, cases 2, 12, 38: the whole
// tour. No stale row, no lost key, no escape, no process left.
#[test]
fn a_whole_day_with_a_crew() {
    let (world, tour) = tour();
    let mut terminal = Terminal::start(&world, 40, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("they are at work");
    terminal.wait_for("crew 3");
    // Typed while they stream.
    terminal.send("Tell me more.");
    terminal.wait_for("Tell me more.");
    terminal.send("\r");
    terminal.wait_for("waits for the model");
    // A result arrives while the owner streams; another while it is idle.
    tour.first.open();
    terminal.wait_for("✅ scout-");
    tour.answers.open();
    terminal.wait_for("and ends here.");
    terminal.wait_for("the first report");
    terminal.wait_for("answer ");
    tour.second.open();
    terminal.wait_for("1 needs you: Ctrl+X a");
    terminal.rest_of_owner();
    // The answer goes where the rule says, the draft comes back.
    terminal.send("half a draft");
    terminal.send("\x18a");
    terminal.wait_for("answer to scout-");
    terminal.send("use tabs\r");
    terminal.wait_for("You answered scout-");
    terminal.wait_for("done with tabs");
    terminal.wait_for("half a draft");
    terminal.send("\x03");
    // The one that streams is stopped by its id.
    let screen = terminal.screen();
    let running = screen.lines().find(|row| row.contains(" - Part 2"));
    let id = running.and_then(|row| row.split_whitespace().nth(1)).map(str::to_owned);
    terminal.send(&format!("/crew stop {}\r", id.expect("the widget names the one that streams")));
    terminal.wait_for("aborted by the user");
    for (rows, columns) in [(40, 200), (40, 22), (12, 7), (30, 120), (40, 100)] {
        terminal.resize(rows, columns);
        std::thread::sleep(Duration::from_millis(150));
    }
    terminal.wait_for("─ owner ─");
    let paste = "rm -rf / \x1b[201~ line\r".repeat(10_000);
    terminal.send(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal.wait_for("[paste #1 +10001 lines]");
    terminal.send("\x03");
    terminal.wait_gone("[paste #1");
    // A fork from the first message takes the crew along.
    terminal.send("/fork\r");
    terminal.wait_for("fork from");
    terminal.wait_for("Tell me more.");
    terminal.send("\r");
    terminal.wait_until("the text is back", |terminal| {
        terminal.screen().contains("─ owner ─\nTell me more.")
    });
    terminal.wait_for("crew 2");
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
    ends_clean(&terminal, &world);
    // The forked session goes on where it was.
    let mut terminal = Terminal::start(&world, 40, 100, &["-c"]);
    terminal.wait_for("they are at work");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    ends_clean(&terminal, &world);
    let told = recorded(&world, "crew-user");
    assert!(told.iter().any(|text| text.contains("use tabs")), "{told:?}");
    tour.streams.open();
}

/// No mode, no row of the region and no process is left.
fn ends_clean(terminal: &Terminal, world: &World) {
    terminal.modes_are_reset();
    let all = terminal.all();
    for stale in ["─ owner", "| ctrl+x d", "Esc stops", "› "] {
        let rows: Vec<_> = terminal.rows().into_iter().filter(|row| row.contains(stale)).collect();
        assert!(rows.is_empty(), "{stale}: {rows:?}\n{all}");
    }
    assert!(!all.contains('\u{1b}') && !all.contains("[201~") && !all.contains("[?"), "{all}");
    until("nothing lives", || world.living().is_empty());
}

// Case 11, TERM-28: a hundred results at once; each card once and in the order
// of the record, and never more than sixty frames a second.
#[test]
fn a_hundred_results_are_a_hundred_cards_in_order() {
    const COUNT: usize = 100;
    let gate = Gate::default();
    let held = gate.clone();
    let world =
        World::new(move |request: &Request| match (request.is_child(), request.has_results()) {
            (true, _) => {
                let number = number(request).unwrap_or_default();
                Reply::report(&format!("report of {number}.")).behind(&held)
            }
            (false, false) => spawns(COUNT),
            (false, true) => Reply::text("at work"),
        });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("crew 100");
    terminal.send("a draft");
    terminal.wait_for("a draft");
    let frames = |terminal: &Terminal| terminal.bytes().matches("\x1b[?2026h").count();
    let (before, begun) = (frames(&terminal), Instant::now());
    gate.open();
    terminal
        .wait_until("all cards", |terminal| terminal.all().matches("report of ").count() >= COUNT);
    let (drawn, seconds) = (frames(&terminal) - before, begun.elapsed().as_secs_f64());
    assert!(drawn as f64 <= 60.0 * seconds + 2.0, "{drawn} frames in {seconds} s");
    terminal.rest_of_owner();
    let all = terminal.all();
    let shown: Vec<&str> =
        all.split("report of ").skip(1).filter_map(|rest| rest.split('.').next()).collect();
    let results = recorded(&world, "crew-result");
    let stored: Vec<&str> = results
        .iter()
        .filter_map(|text| text.split("report of ").nth(1)?.split('.').next())
        .collect();
    assert_eq!(shown, stored);
    assert!(terminal.screen().contains("a draft"));
    terminal.send("\x03\x04\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 26, C034: the view of a subagent is open, it ends, the person types.
#[test]
fn what_is_typed_in_a_view_never_reaches_the_owner() {
    let gate = Gate::default();
    let held = gate.clone();
    let world =
        World::new(move |request: &Request| match (request.is_child(), request.has_results()) {
            (true, _) => Reply::report("found it").behind(&held),
            (false, false) => spawns(1),
            (false, true) => Reply::text(&format!("heard {}", request.answers())),
        });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("heard 1");
    terminal.send("\x18b");
    terminal.wait_for("last action");
    terminal.send("\r");
    terminal.wait_for("─ steer scout-");
    gate.open();
    terminal.wait_for("─ answer to scout-");
    until("the owner was told", || {
        world.server.requests().iter().any(|request| request.all_text().contains("found it"))
    });
    let before = world.server.requests().len();
    // None of these letters is a key of the view.
    terminal.send("hello world\r");
    terminal.send("\x1b");
    terminal.wait_for("last action");
    terminal.send("\x1b");
    terminal.wait_for("─ owner ─");
    terminal.rest();
    assert_eq!(world.server.requests().len(), before, "nothing was sent");
    assert!(!terminal.screen().contains("hello"), "{}", terminal.screen());
    let asked = world.server.requests();
    assert!(!asked.iter().any(|request| request.all_text().contains("hello world")));
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-42, TERM-46: words to a subagent at work reach it and the owner hears.
#[test]
fn the_person_talks_to_a_subagent_at_work() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request: &Request| {
        if request.is_child() {
            return match request.has_results() {
                false => Reply::call("ls", json!({"path": "."})).behind(&held),
                true if request.all_text().contains("mind the tabs") => Reply::report("with tabs"),
                true => Reply::report("without"),
            };
        }
        match request.has_results() {
            false => spawns(1),
            true => Reply::text(&format!("heard {}", request.answers())),
        }
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("heard 1");
    terminal.send("/crew steer scout mind the tabs\r");
    terminal.wait_for("queued steer to scout-");
    gate.open();
    terminal.wait_for("You steered scout-");
    terminal.wait_for("has taken it");
    terminal.wait_for("with tabs");
    terminal.wait_gone("queued steer");
    let told = recorded(&world, "crew-user");
    assert!(told[0].contains("user_steered") && told[0].contains("mind the tabs"), "{told:?}");
    terminal.rest_of_owner();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// C029: sessions come and go quickly while subagents end.
#[test]
fn twenty_sessions_open_and_close_while_subagents_end() {
    let gate = Gate::default();
    let held = gate.clone();
    let world =
        World::new(move |request: &Request| match (request.is_child(), request.has_results()) {
            (true, _) => Reply::report("found it").behind(&held),
            (false, false) => spawns(5),
            (false, true) => Reply::text("at work"),
        });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("crew 5");
    terminal.rest_of_owner();
    for number in 1..=20 {
        terminal.send("/new\r");
        terminal.wait_until("a new session", |terminal| {
            terminal.all().matches("── new session ──").count() >= number
        });
        if number == 10 {
            gate.open();
        }
    }
    terminal.wait_gone("ctrl+x d");
    let screen = terminal.screen();
    assert!(!screen.contains("crew 5") && screen.contains("─ owner ─"), "{screen}");
    terminal.send("still here");
    terminal.wait_for("still here");
    terminal.send("\x03/resume\r");
    terminal.wait_for("5 subagents");
    terminal.send("\x1b");
    terminal.wait_for("─ owner ─");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    ends_clean(&terminal, &world);
}

// C131, TERM-47: twenty children are shown at work, and stand below their
// owner in the list of sessions.
#[test]
fn children_are_seen_at_work_and_nested_in_the_list() {
    let gate = Gate::default();
    let held = gate.clone();
    let world =
        World::new(move |request: &Request| match (request.is_child(), request.has_results()) {
            (true, false) => Reply::call("ls", json!({"path": "."})),
            (true, true) => Reply::report("found it").behind(&held),
            (false, false) => spawns(20),
            (false, true) => Reply::text("at work"),
        });
    let mut terminal = Terminal::start(&world, 50, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("look around\r");
    terminal.wait_for("crew 20");
    terminal.wait_for("crew_spawn  scout · Part 19");
    terminal.send("\x18b");
    terminal.wait_for("20 open: 20 running");
    terminal.wait_for("waits for the model");
    terminal.send("\x1b");
    gate.open();
    terminal
        .wait_until("all are done", |terminal| terminal.all().matches("✅ scout-").count() >= 20);
    terminal.rest_of_owner();
    terminal.send("/resume\r");
    terminal.wait_for("20 subagents");
    let list = terminal.screen();
    assert_eq!(list.matches("look around").count(), 1, "{list}");
    assert!(!list.contains("Part 7"), "folded: {list}");
    terminal.send("\x1b[C");
    terminal.wait_for("✅ scout · Part 7");
    terminal.send("\x1b");
    terminal.wait_for("─ owner ─");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// C013: nothing is shown of a subagent that has ended but how it ended.
#[test]
fn what_has_ended_is_not_shown_as_waiting() {
    let world = World::new(|request: &Request| match (request.is_child(), request.has_results()) {
        (true, _) => Reply::report("found it"),
        (false, false) => spawns(1),
        (false, true) => Reply::text(&format!("heard {}", request.answers())),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("go\r");
    terminal.wait_for("✅ scout-");
    terminal.rest_of_owner();
    terminal.send("/crew close scout\r");
    terminal.wait_for("You closed scout-");
    terminal.wait_gone("ctrl+x d");
    terminal.send("\x18b");
    terminal.wait_for("0 open: 1 ended");
    let board = terminal.screen();
    let row = board.lines().find(|row| row.contains("scout-")).unwrap_or_default();
    assert!(row.contains("closed ") && !row.contains("waits"), "{board}");
    terminal.send("\x1b");
    terminal.wait_for("─ owner ─");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// RUN-4, OWN-3, WID-15, TERM-37: another session is shown and left again; the
// crew went on, what it needs is known and can be answered, results wait.
#[test]
fn a_crew_waits_for_its_owner_to_come_back() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request: &Request| {
        if request.is_child() {
            let answered = request.all_text().contains("use tabs");
            return match (number(request), answered) {
                (Some(0), _) => Reply::report("the late report").behind(&held),
                (_, true) => Reply::report("done with tabs"),
                (_, false) => Reply::call(
                    "crew_report",
                    json!({"outcome": "needs_input", "needs": "Tabs or spaces?", "report": "r"}),
                ),
            };
        }
        match request.has_results() {
            false => spawns(2),
            true => Reply::text(&format!("heard {}", request.answers())),
        }
    });
    let mut terminal = Terminal::start(&world, 40, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("the first session\r");
    terminal.wait_for("1 needs you: Ctrl+X a");
    terminal.rest_of_owner();
    terminal.send("/new\r");
    terminal.wait_for("── new session ──");
    terminal.wait_gone("needs you");
    terminal.wait_gone("ctrl+x d");
    gate.open();
    terminal.rest();
    assert!(!terminal.all().contains("the late report"), "it waits for its owner");
    terminal.send("/resume\r");
    terminal.wait_for("2 subagents");
    terminal.send("\r");
    terminal.wait_for("the late report");
    terminal.wait_for("1 needs you: Ctrl+X a");
    terminal.send("\x18a");
    terminal.wait_for("asks: Tabs or spaces?");
    terminal.send("use tabs\r");
    terminal.wait_for("done with tabs");
    terminal.rest_of_owner();
    assert_eq!(terminal.all().matches("the late report").count(), 1, "{}", terminal.all());
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    ends_clean(&terminal, &world);
}
