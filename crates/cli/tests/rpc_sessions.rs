//! RPC mode across sessions (`host.md` 7.1.6, 7.3.7, 2.8) and with a crew
//! (`crew.md` OWN, DEL; `terminal.md` TERM-41 to TERM-44).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::client::Client;
use common::server::{Gate, Reply, Request};
use common::{World, lines, until};
use serde_json::{Value, json};

fn answering(text: &'static str) -> World {
    World::new(move |_| Reply::text(text))
}

fn file(client: &mut Client) -> String {
    client.state()["sessionFile"].as_str().unwrap().to_owned()
}

fn messages(client: &mut Client) -> u64 {
    client.state()["messageCount"].as_u64().unwrap()
}

#[test]
fn a_session_that_cannot_be_opened_leaves_the_current_one_as_it_was() {
    // host.md 7.3.7, 2.3.3, 11.29
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    client.ask("set_session_name", json!({"name": "unsaved"}));
    let path = file(&mut client);
    world.project_file("bad.jsonl", "{}\n");
    let gone =
        json!({"type": "session", "version": 3, "id": "gone", "timestamp": "", "cwd": "/no/such"});
    world.project_file("gone.jsonl", format!("{gone}\n"));
    for (name, word) in
        [("bad.jsonl", "not a session"), ("gone.jsonl", "/no/such"), (".", "session")]
    {
        let error = client.refused("switch_session", json!({"sessionPath": name}));
        assert!(error.contains(word), "{error}");
        let state = client.state();
        assert_eq!(
            (&state["sessionFile"], &state["sessionName"]),
            (&json!(path), &json!("unsaved"))
        );
    }
    client.prompt("still here");
    assert!(Path::new(&path).exists());
}

#[test]
fn a_running_answer_is_stopped_and_told_before_the_other_session_is_there() {
    // host.md 2.8.8, 7.1.6, 7.3.7
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match request.tail().as_str() {
        "long" => Reply::text("begun").held(&held),
        _ => Reply::text("ok"),
    });
    let mut client = Client::start(&world, &[]);
    let old = file(&mut client);
    client.ask("prompt", json!({"message": "long"}));
    client.wait(0, |line| line["assistantMessageEvent"]["delta"] == "begun");
    let fresh = world.project().join("new/place.jsonl");
    let since = client.count();
    // All three are written at once and take effect in their order.
    let moved = client.send("switch_session", json!({"sessionPath": fresh}));
    let prompted = client.send("prompt", json!({"message": "here"}));
    let asked = client.send("get_state", json!({}));
    assert_eq!(client.response(&moved)["data"], json!({"cancelled": false}));
    assert_eq!(client.response(&prompted)["success"], true);
    assert_eq!(client.response(&asked)["data"]["sessionFile"], json!(fresh));
    client.wait(since, |line| line["type"] == "agent_settled" && line["aborted"] == false);
    let lines_since = client.lines(since);
    let at = |fits: &dyn Fn(&Value) -> bool| lines_since.iter().position(fits).unwrap();
    let settled = at(&|line| line["type"] == "agent_settled" && line["aborted"] == true);
    let marker = at(&|line| line["id"] == json!(moved));
    let begun = at(&|line| line["type"] == "agent_start");
    assert!(settled < marker && marker < begun, "{settled} {marker} {begun}");
    let stored = lines(Path::new(&old));
    assert_eq!(stored.last().unwrap()["message"]["stopReason"], "aborted");
    assert!(fresh.exists());
    // And back, twice: the lock of a session that was left is gone.
    for _ in 0..2 {
        client.ask("switch_session", json!({"sessionPath": old}));
        assert_eq!(messages(&mut client), 3);
        client.ask("switch_session", json!({"sessionPath": fresh}));
    }
    // To itself, saved: it is read anew.
    client.ask("switch_session", json!({"sessionPath": fresh}));
    assert_eq!(messages(&mut client), 3);
    gate.open();
}

#[test]
fn a_copy_with_the_same_id_is_opened_instead_and_the_old_one_comes_back_if_that_fails() {
    // host.md 7.3.7
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    client.prompt("one");
    let path = file(&mut client);
    let copy = world.project().join("copy.jsonl");
    fs::copy(&path, &copy).unwrap();
    client.ask("switch_session", json!({"sessionPath": copy}));
    assert_eq!(file(&mut client), copy.to_string_lossy());
    client.prompt("two");
    // Somebody else has the first one open.
    let mut other = Client::start(&world, &["--session", &path]);
    assert_eq!(messages(&mut other), 3);
    let error = client.refused("switch_session", json!({"sessionPath": path}));
    assert!(error.contains("another process"), "{error}");
    assert_eq!(file(&mut client), copy.to_string_lossy());
    assert_eq!(messages(&mut client), 5);
    client.prompt("three");
    assert_eq!(lines(&copy).len(), lines(Path::new(&path)).len() + 4);
}

#[test]
fn forks_clones_and_new_sessions_name_their_parent() {
    // host.md 2.3.4, 2.8.4, 2.8.6, 7.3.6
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    assert!(client.refused("clone", json!({})).contains("saved"));
    client.prompt("first");
    client.prompt("second");
    let source = file(&mut client);
    let before = fs::read(&source).unwrap();
    assert_eq!(client.refused("fork", json!({"entryId": "nope"})), "Invalid entry ID for forking");
    let found = client.ask("get_fork_messages", json!({}));
    let texts: Vec<&Value> =
        found["messages"].as_array().unwrap().iter().map(|m| &m["text"]).collect();
    assert_eq!(texts, ["first", "second"]);
    let entry = found["messages"][1]["entryId"].clone();
    let forked = client.ask("fork", json!({"entryId": entry}));
    assert_eq!(forked, json!({"text": "second", "cancelled": false}));
    assert_eq!(messages(&mut client), 3);
    let fork = file(&mut client);
    assert_eq!(lines(Path::new(&fork))[0]["parentSession"], json!(source));
    assert_eq!(client.ask("clone", json!({})), json!({"cancelled": false}));
    let clone = file(&mut client);
    assert_eq!(lines(Path::new(&clone))[0]["parentSession"], json!(fork));
    let tree = client.ask("get_tree", json!({}));
    let entries = client.ask("get_entries", json!({}));
    assert_eq!(tree["leafId"], entries["leafId"]);
    client.ask("new_session", json!({"parentSession": source}));
    client.prompt("third");
    let new = file(&mut client);
    assert_eq!(lines(Path::new(&new))[0]["parentSession"], json!(source));
    assert_eq!(fs::read(&source).unwrap(), before);
    let missing = client.refused("get_entries", json!({"since": "ffffffff"}));
    assert_eq!(missing, "Entry not found: ffffffff");
}

#[test]
fn a_copy_gets_no_entry_of_its_own_for_a_model_set_before() {
    // host.md 2.4.3, 2.8.4
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    client.prompt("first");
    client.prompt("second");
    client.ask("set_model", json!({"provider": "local", "modelId": "m2"}));
    let entry = client.ask("get_fork_messages", json!({}))["messages"][1]["entryId"].clone();
    let source = client.ask("get_entries", json!({}))["entries"].clone();
    client.ask("clone", json!({}));
    assert_eq!(client.ask("get_entries", json!({}))["entries"], source);
    client.ask("fork", json!({"entryId": entry}));
    let copied = client.ask("get_entries", json!({}))["entries"].clone();
    assert!(source.as_array().unwrap().starts_with(copied.as_array().unwrap()), "{copied}");
}

#[test]
fn a_session_in_memory_has_no_file_and_cannot_be_copied() {
    // host.md 6.3.4, 7.3.1, crew.md OWN-7
    let world = answering("ok");
    let mut client = Client::start(&world, &["--no-session"]);
    client.prompt("x");
    assert!(client.state().get("sessionFile").is_none());
    assert!(client.refused("clone", json!({})).contains("memory"));
    client.ask("new_session", json!({}));
    assert_eq!(messages(&mut client), 0);
    client.prompt("y");
    assert_eq!(client.close(), Some(0));
    assert_eq!(world.session_files(), Vec::<std::path::PathBuf>::new());
}

/// An owner that spawns one child for each word of a prompt `spawn A B …`.
fn spawning(request: &Request) -> Reply {
    let tail = request.tail();
    let Some(words) = tail.strip_prefix("spawn ") else { return Reply::text("ok") };
    words.split(' ').fold(Reply::default(), |reply, word| {
        let task =
            json!({"goal": format!("do {word}"), "context": ["none"], "instructions": ["go"]});
        reply.and_call("crew_spawn", json!({"subagent": "worker", "brief": word, "task": task}))
    })
}

fn subagents(client: &mut Client) -> Vec<Value> {
    client.ask("crew_list_open", json!({}))["subagents"].as_array().unwrap().clone()
}

fn customs(client: &mut Client, kind: &str) -> Vec<Value> {
    let entries = client.ask("get_entries", json!({}));
    let entries = entries["entries"].as_array().unwrap().iter();
    entries.filter(|entry| entry["customType"] == kind).cloned().collect()
}

#[test]
fn the_person_answers_closes_and_stops_subagents() {
    // terminal.md TERM-41, TERM-42, TERM-44; crew.md OWN-2, DEL-6
    let gate = Gate::default();
    let held = gate.clone();
    let asked = AtomicUsize::new(0);
    let world = World::new(move |request| match request.is_child() {
        false => spawning(request),
        true if request.all_text().contains("do hangs") => Reply::report("late").behind(&held),
        true if request.tail() == "the left one" => Reply::report("left it is"),
        true => {
            asked.fetch_add(1, Ordering::SeqCst);
            let arguments =
                json!({"outcome": "needs_input", "report": "so far", "needs": "which?"});
            Reply::call("crew_report", arguments)
        }
    });
    let mut client = Client::start(&world, &[]);
    client.prompt("spawn asks hangs");
    until("a question", || subagents(&mut client)[0]["status"] == "needs_input");
    until("rest", || client.state()["isStreaming"] == false);
    let open = subagents(&mut client);
    let ids: Vec<String> =
        open.iter().map(|s| s["subagentId"].as_str().unwrap().to_owned()).collect();
    assert_eq!((&open[0]["brief"], &open[1]["status"]), (&json!("asks"), &json!("running")));
    let answer = |id: &str| json!({"subagentId": id, "message": "the left one"});
    let busy = client.refused("crew_respond", answer(&ids[1]));
    assert!(busy.contains(&ids[1]) && busy.contains("running"), "{busy}");
    client.ask("crew_respond", answer(&ids[0]));
    client.wait(0, |line| line["type"] == "crew_delivered" && line["status"] == "completed");
    until("rest", || client.state()["isStreaming"] == false);
    let told = customs(&mut client, "crew-user");
    let content: Value = serde_json::from_str(told[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, json!({"subagent_id": ids[0], "user_answered": "the left one"}));
    let last = world.server.owner_requests().last().unwrap().all_text();
    let (words, result) = (last.find("user_answered").unwrap(), last.rfind("left it is").unwrap());
    assert!(words < result, "what the person said comes before what it led to");
    client.ask("crew_done", json!({"subagentId": ids[0]}));
    client.ask("crew_abort", json!({"subagentId": ids[1]}));
    client.wait(0, |line| line["type"] == "crew_closed" && line["subagentId"] == json!(ids[1]));
    assert_eq!(subagents(&mut client), Vec::<Value>::new());
    assert_eq!(customs(&mut client, "crew-user").len(), 2);
    let aborted = customs(&mut client, "crew-abort");
    assert_eq!(aborted.len(), 1);
    assert!(aborted[0].to_string().contains(&ids[1]));
    let unknown = client.refused("crew_done", json!({"subagentId": "worker-none"}));
    assert!(unknown.contains("worker-none"));
    gate.open();
}

#[test]
fn prompts_reach_the_owner_while_its_children_end_and_all_results_come() {
    // C035, crew.md DEL-13
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match request.is_child() {
        false => spawning(request),
        true => Reply::report("a report").behind(&held),
    });
    let mut client = Client::start(&world, &[]);
    client.prompt("spawn a b c d e f g");
    gate.open();
    for number in 0..5 {
        let text = format!("talk {number}");
        client.ask("prompt", json!({"message": text, "streamingBehavior": "steer"}));
    }
    until("seven results", || customs(&mut client, "crew-result").len() == 7);
    until("rest", || client.state()["isStreaming"] == false);
    let last = world.server.owner_requests().last().unwrap().all_text();
    for number in 0..5 {
        assert!(last.contains(&format!("talk {number}")), "{last}");
    }
    let spawned = client.lines(0).into_iter().filter(|line| line["type"] == "crew_spawned");
    let id = client.state()["sessionId"].clone();
    assert!(spawned.into_iter().all(|line| line["ownerId"] == id));
    let stats = client.ask("get_session_stats", json!({}));
    assert_eq!(stats["crew"]["tokens"]["output"], 35);
}

#[test]
fn a_crew_outlives_a_move_and_follows_only_a_copy() {
    // crew.md RUN-4, OWN-3, OWN-4, DEL-8; host.md 2.8.8
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match request.is_child() {
        false => spawning(request),
        true => Reply::report("for its owner").behind(&held),
    });
    let mut client = Client::start(&world, &[]);
    client.prompt("spawn one");
    let first = file(&mut client);
    client.ask("new_session", json!({}));
    assert_eq!(subagents(&mut client), Vec::<Value>::new());
    client.ask("switch_session", json!({"sessionPath": first}));
    assert_eq!(subagents(&mut client).len(), 1);
    client.ask("clone", json!({}));
    assert_eq!(subagents(&mut client).len(), 1);
    let since = client.count();
    gate.open();
    client.event(since, "crew_delivered");
    until("rest", || client.state()["isStreaming"] == false);
    assert_eq!(customs(&mut client, "crew-result").len(), 1);
    client.ask("switch_session", json!({"sessionPath": first}));
    assert_eq!(subagents(&mut client), Vec::<Value>::new());
    assert_eq!(customs(&mut client, "crew-result"), Vec::<Value>::new());
}
