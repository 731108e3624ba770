//! The crew in print and JSON mode (`product.md` P-6 to P-8): nothing is
//! blocked, nothing is lost, nothing survives.

mod common;

use std::time::{Duration, Instant};

use common::server::{Gate, Reply, Request};
use common::{Run, World, is_child, lines, until};
use rustix::process::Signal;
use serde_json::{Value, json};

fn spawn(marker: &str) -> (&'static str, Value) {
    let task =
        json!({"goal": format!("do {marker}"), "context": ["none"], "instructions": ["as usual"]});
    ("crew_spawn", json!({"subagent": "worker", "brief": marker, "task": task}))
}

/// Spawns one child for each marker.
fn spawns(markers: &[&str]) -> Reply {
    markers.iter().fold(Reply::default(), |reply, marker| {
        let (name, arguments) = spawn(marker);
        reply.and_call(name, arguments)
    })
}

/// How many results of the crew a request shows.
fn results(request: &Request) -> usize {
    let messages = request.body["messages"].to_string();
    messages.matches("\\\"brief\\\"").count()
}

/// An owner that spawns children at its first request and ends each turn.
fn owner(markers: &'static [&'static str], request: &Request) -> Reply {
    if request.has_results() {
        Reply::text(&format!("seen {}", results(request)))
    } else {
        spawns(markers)
    }
}

#[test]
fn the_owner_goes_on_while_its_children_are_held_and_gets_every_result() {
    // product.md P-6, crew.md RUN-12
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match request.is_child() {
        true => Reply::report("found it").behind(&held),
        false => owner(&["kid-a", "kid-b"], request),
    });
    let running = world.spawn(&["-p", "go"]);
    // The second request leaves although no child has answered.
    until("the owner's second request", || world.server.owner_requests().len() == 2);
    gate.open();
    let run = running.wait();
    run.is(0, "seen 2\n");
    assert_eq!(world.living(), Vec::<String>::new());
    let files = world.session_files();
    let children: Vec<_> = files.iter().filter(|path| is_child(path)).collect();
    let owner = files.iter().find(|path| !is_child(path)).unwrap();
    assert_eq!(children.len(), 2);
    for child in children {
        // host.md 12.4
        assert_eq!(lines(child)[0]["parentSession"], json!(owner));
    }
    let entries = lines(owner);
    let delivered = |entry: &&Value| entry["customType"] == "crew-result";
    assert_eq!(entries.iter().filter(delivered).count(), 2);
}

#[test]
fn a_question_nobody_answers_is_closed_at_the_end() {
    // product.md P-6, crew.md RUN-5
    let world = World::new(|request| match request.is_child() {
        true => Reply::call(
            "crew_report",
            json!({"outcome": "needs_input", "report": "half", "needs": "which?"}),
        ),
        false => owner(&["kid-a"], request),
    });
    world.print(&["go"]).is(0, "seen 1\n");
    assert!(!world.session().iter().any(|entry| entry["customType"] == "crew-abort"));
}

#[test]
fn a_child_that_fails_is_delivered_and_the_run_ends_well() {
    // C128
    let world = World::new(|request| match request.is_child() {
        true => Reply::status(400, "", "BROKEN"),
        false => owner(&["kid-a"], request),
    });
    world.print(&["go"]).is(0, "seen 1\n");
}

#[test]
fn a_bound_on_the_wait_aborts_what_is_open_and_lists_it() {
    // product.md P-7
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match request.is_child() {
        true => Reply::report("late").behind(&held),
        false => owner(&["kid-a"], request),
    });
    let check = |wait: &str, run: Run| {
        run.is(1, "seen 0\n");
        run.tells(&["waiting is over", "worker-", "kid-a", "running"]);
        assert_eq!(world.living(), Vec::<String>::new(), "{wait}");
    };
    check("0", world.print(&["--crew-wait", "0", "go"]));
    check("0.2", world.print(&["--crew-wait", "0.2", "go"]));
    gate.open();
}

#[test]
fn a_bound_that_is_not_hit_changes_nothing() {
    // product.md P-7
    let world = World::new(|request| match request.is_child() {
        true => Reply::report("soon"),
        false => owner(&["kid-a"], request),
    });
    world.print(&["--crew-wait", "25", "go"]).is(0, "seen 1\n");
    let alone = World::new(|_| Reply::text("alone"));
    alone.print(&["--crew-wait", "0", "go"]).is(0, "alone\n");
}

/// A world whose child runs a command that leaves processes everywhere.
fn busy() -> World {
    World::new(|request| match (request.is_child(), request.has_results()) {
        (true, false) => {
            let command = "(setsid sleep 600 &) ; sleep 600 & sleep 600";
            Reply::call("bash", json!({"command": command}))
        }
        (true, true) => Reply::report("done"),
        (false, _) => owner(&["kid-a"], request),
    })
}

fn sleepers(world: &World) -> usize {
    world.living().iter().filter(|line| line.starts_with("sleep 600")).count()
}

#[test]
fn the_first_signal_ends_everything_in_order() {
    // product.md P-8, host.md 6.1.8
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = busy();
        let running = world.spawn(&["-p", "go"]);
        until("the command runs", || sleepers(&world) == 3);
        until("the owner rests", || world.server.owner_requests().len() == 2);
        running.signal(signal);
        let run = running.wait();
        assert_eq!((run.code, run.out.as_str()), (Some(code), ""), "{}", run.err);
        run.tells(&["stopping", "kid-a", "running"]);
        until("no process is left", || world.living().is_empty());
        let aborts = world.session().iter().filter(|e| e["customType"] == "crew-abort").count();
        assert_eq!(aborts, 1, "the owner's record says what became of it");
    }
}

#[test]
fn the_second_signal_ends_at_once_and_leaves_nothing_either() {
    // product.md P-8
    let world = busy();
    let running = world.spawn(&["-p", "go"]);
    until("the command runs", || sleepers(&world) == 3);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    let start = Instant::now();
    assert_eq!(running.wait().code, Some(130));
    assert!(start.elapsed() < Duration::from_secs(5));
    until("no process is left", || world.living().is_empty());
}

#[test]
fn no_command_outlives_a_killed_host_by_three_seconds() {
    // product.md P-14b
    let world = busy();
    let running = world.spawn(&["-p", "go"]);
    until("the command runs", || sleepers(&world) == 3);
    running.signal(Signal::KILL);
    let start = Instant::now();
    until("no process is left", || world.living().is_empty());
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn an_interrupted_answer_is_kept_in_the_session() {
    // host.md 3.5.2
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("never").behind(&held));
    let running = world.spawn(&["--mode", "json", "go"]);
    until("the request", || world.server.requests().len() == 1);
    running.signal(Signal::INT);
    let run = running.wait();
    assert_eq!(run.code, Some(130), "{}", run.err);
    run.tells(&["the owner's run"]);
    let events = run.events();
    let ended = |event: &&Value| event["message"]["stopReason"] == "aborted";
    assert!(events.iter().any(|event| ended(&event)), "{}", run.out);
    assert_eq!(events.last().unwrap()["type"], "agent_settled");
    assert!(world.session().iter().any(|entry| entry["message"]["stopReason"] == "aborted"));
    gate.open();
}

#[test]
fn two_hundred_children_end_well() {
    // product.md P-9a, 5
    let world = World::new(|request| {
        if request.is_child() {
            return Reply::report("one of many");
        }
        if request.has_results() {
            return Reply::text(&format!("seen {}", results(request)));
        }
        (0..200).fold(Reply::default(), |reply, number| {
            let (name, arguments) = spawn(&format!("kid-{number}"));
            reply.and_call(name, arguments)
        })
    });
    world.print(&["go"]).is(0, "seen 200\n");
    let children = world.session_files().iter().filter(|path| is_child(path)).count();
    assert_eq!(children, 200);
    assert_eq!(world.living(), Vec::<String>::new());
}

#[test]
fn the_next_prompt_does_not_wait_for_the_crew() {
    // host.md 6.1.6
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| {
        if request.is_child() {
            return Reply::report("late").behind(&held);
        }
        owner(&["kid-a"], request)
    });
    let running = world.spawn(&["-p", "one", "two"]);
    until("the second prompt", || {
        world.server.owner_requests().iter().any(|request| request.tail() == "two")
    });
    gate.open();
    running.wait().is(0, "seen 1\n");
}

// crew.md 21 row 56, MOD-6, MOD-8, MOD-9: a key that is only in memory reaches
// the child of that provider, that of another provider does not, and no list of
// models is asked for.
#[test]
fn a_child_gets_the_key_of_its_own_provider_and_no_other() {
    let world = World::new(|request| match request.is_child() {
        true => Reply::report("done"),
        false => owner(&["kid-a"], request),
    });
    std::fs::create_dir_all(world.agent().join("agents")).unwrap();
    world.agent_file(
        "agents/worker.md",
        "---\nname: worker\ndescription: works\nmodel: local/m2\n---\nWork.\n",
    );
    world.agent_file("auth.json", r#"{"openai":{"type":"api_key","key":"sk-of-another"}}"#);
    world.print(&["--api-key", "sk-in-memory", "go"]).is(0, "seen 1\n");
    let requests = world.server.requests();
    let children: Vec<_> = requests.iter().filter(|request| request.is_child()).collect();
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].body["model"], "m2");
    for request in &requests {
        assert!(request.headers.contains("sk-in-memory"), "{}", request.headers);
        assert!(!request.headers.contains("sk-of-another"), "{}", request.headers);
        assert!(request.headers.starts_with("POST /v1/messages "), "{}", request.headers);
    }
}

/// Runs a program of ours in a command: the text of its prompt.
fn nested(prompt: &str) -> Reply {
    let crew = env!("CARGO_BIN_EXE_crew");
    let command = format!("{crew} --model local/m1 --no-session -p {prompt}");
    Reply::call("bash", json!({"command": command}))
}

// C064: depth is counted across processes too. An owner starts a child, whose
// command starts an owner, which must not start another crew.
#[test]
fn a_crew_started_by_a_command_of_a_child_cannot_delegate() {
    let check = |settings: &str, may: bool| {
        let world = World::new(|request| {
            let text = request.all_text();
            match (request.is_child(), request.has_results()) {
                (true, false) => nested("innermost"),
                (true, true) => Reply::report("done"),
                (false, _) if text.contains("innermost") => Reply::text("end"),
                (false, _) => owner(&["kid-a"], request),
            }
        });
        if !settings.is_empty() {
            world.agent_file("settings.json", settings);
        }
        world.print(&["go"]).is(0, "seen 1\n");
        let requests = world.server.owner_requests();
        let inner = requests.iter().find(|request| request.all_text().contains("innermost"));
        let tools = inner.unwrap().tools();
        let has = |name: &str| tools.iter().any(|tool| tool == name);
        assert_eq!((has("crew_spawn"), has("task"), has("bash")), (may, may, true), "{tools:?}");
        let outer = requests[0].tools();
        assert!(outer.iter().any(|tool| tool == "crew_spawn"), "{outer:?}");
    };
    check("", false);
    check(r#"{"crew":{"task":{"maxRecursionDepth":3}}}"#, true);
}
