//! Moves in the session tree and labels over RPC (`host.md` 2.8.2, 2.8.3,
//! 2.4.5, 7.3.12).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::path::Path;

use common::client::Client;
use common::server::{Gate, Reply, Request};
use common::{World, lines};
use serde_json::{Value, json};

fn entries(client: &mut Client) -> Vec<Value> {
    client.ask("get_entries", json!({}))["entries"].as_array().unwrap().clone()
}

/// The entry of a message of the person.
fn said(client: &mut Client, text: &str) -> Value {
    let is_it = |entry: &Value| entry["message"]["content"][0]["text"] == text;
    entries(client).into_iter().find(is_it).unwrap_or_else(|| panic!("nobody said {text}"))
}

fn leaf(client: &mut Client) -> Value {
    client.ask("get_entries", json!({}))["leafId"].clone()
}

fn is_summary(request: &Request) -> bool {
    request.body.to_string().contains("working notes")
}

fn newest(world: &World) -> String {
    world.server.requests().last().unwrap().all_text()
}

#[test]
fn a_message_is_written_anew_on_a_branch_of_its_own() {
    // host.md 2.8.2, 2.4.1
    let world = World::new(|request| Reply::text(&format!("answer to {}", request.tail())));
    let mut client = Client::start(&world, &[]);
    client.prompt("way-1");
    client.prompt("way-2");
    let two = said(&mut client, "way-2");
    let moved = client.ask("crew_navigate", json!({"entryId": two["id"]}));
    assert_eq!(moved, json!({"leafId": two["parentId"], "text": "way-2", "cancelled": false}));
    assert_eq!(leaf(&mut client), two["parentId"]);
    let messages = client.ask("get_messages", json!({}))["messages"].to_string();
    assert!(messages.contains("answer to way-1") && !messages.contains("way-2"), "{messages}");
    client.prompt("way-3");
    assert_eq!(said(&mut client, "way-3")["parentId"], two["parentId"]);
    let tree = client.ask("get_tree", json!({})).to_string();
    assert!(tree.contains("\"way-2\"") && tree.contains("\"way-3\""));
    // What the model was sent last holds nothing of the other branch.
    let sent = newest(&world);
    assert!(sent.contains("answer to way-1") && !sent.contains("way-2"), "{sent}");
}

#[test]
fn a_clone_after_a_move_holds_the_branch_it_stands_on() {
    // host.md 2.8.4
    let world = World::new(|_| Reply::text("ok"));
    let mut client = Client::start(&world, &[]);
    client.prompt("way-1");
    client.prompt("way-2");
    let two = said(&mut client, "way-2");
    client.ask("crew_navigate", json!({"entryId": two["id"]}));
    client.ask("clone", json!({}));
    let text = json!(entries(&mut client)).to_string();
    assert!(text.contains("way-1") && !text.contains("way-2"), "{text}");
}

#[test]
fn what_is_left_is_summarised_and_the_next_request_holds_it() {
    // host.md 2.8.3, 3.8.12, 2.6.6
    let world =
        World::new(|request| Reply::text(if is_summary(request) { "THE NOTES" } else { "ok" }));
    let mut client = Client::start(&world, &[]);
    client.prompt("way-1");
    client.prompt("way-2");
    let (two, old) = (said(&mut client, "way-2"), leaf(&mut client));
    let since = client.count();
    let moved = client.ask(
        "crew_navigate",
        json!({"entryId": two["parentId"], "instructions": "ONLY NAMES", "label": " plan\nB "}),
    );
    let sent = newest(&world);
    assert!(sent.contains("ONLY NAMES") && sent.contains("User: way-2"), "{sent}");
    assert!(!sent.contains("User: way-1"), "{sent}");
    let told = client.lines(since);
    let kinds = told.iter().filter_map(|line| line["type"].as_str());
    let kinds: Vec<&str> = kinds.filter(|kind| kind.starts_with("crew_")).collect();
    assert_eq!(kinds, ["crew_branch_summary_start", "crew_tree_move_end"]);
    let path = client.state()["sessionFile"].as_str().unwrap().to_owned();
    let stored = lines(Path::new(&path));
    let [summary, label] = &stored[stored.len() - 2..] else { panic!("two entries") };
    assert_eq!(summary["type"], "branch_summary");
    assert_eq!((&summary["parentId"], &summary["fromId"]), (&two["parentId"], &old));
    assert_eq!((&summary["summary"], &summary["fromHook"]), (&json!("THE NOTES"), &json!(false)));
    assert_eq!(moved["summaryEntryId"], summary["id"]);
    assert_eq!((&label["type"], &label["targetId"]), (&json!("label"), &summary["id"]));
    assert_eq!(label["label"], "plan B");
    assert_eq!(leaf(&mut client), label["id"]);
    client.prompt("next");
    let sent = newest(&world);
    assert!(sent.contains("THE NOTES") && !sent.contains("way-2"), "{sent}");
}

#[test]
fn an_abort_cancels_the_summary_and_the_move() {
    // host.md 2.8.3, 3.5.1
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match is_summary(request) {
        true => Reply::text("notes").held(&held),
        false => Reply::text("ok"),
    });
    let mut client = Client::start(&world, &[]);
    client.prompt("way-1");
    client.prompt("way-2");
    let (one, before) = (said(&mut client, "way-1"), leaf(&mut client));
    let since = client.count();
    let moving = client.send("crew_navigate", json!({"entryId": one["id"], "summary": true}));
    client.wait(since, |line| line["type"] == "crew_branch_summary_start");
    // Refused while the branch is summarised (host.md 3.1.11, 2.8.2).
    let error = client.refused("prompt", json!({"message": "now"}));
    assert!(error.contains("summarised"), "{error}");
    let error = client.refused("crew_navigate", json!({"entryId": one["id"]}));
    assert!(error.contains("summarised"), "{error}");
    client.ask("abort", json!({}));
    assert_eq!(client.response(&moving)["data"], json!({"cancelled": true}));
    assert_eq!(leaf(&mut client), before);
    gate.open();
    client.prompt("still here");
    assert_eq!(said(&mut client, "still here")["parentId"], before);
}

#[test]
fn labels_are_set_and_removed_and_unknown_entries_refused() {
    // host.md 2.4.5, 7.3.6
    let world = World::new(|_| Reply::text("ok"));
    let mut client = Client::start(&world, &[]);
    client.prompt("way-1");
    let one = said(&mut client, "way-1")["id"].clone();
    client.ask("crew_set_label", json!({"entryId": one, "label": "plan B"}));
    let tree = client.ask("get_tree", json!({})).to_string();
    assert!(tree.contains("\"label\":\"plan B\",\"labelTimestamp\""), "{tree}");
    client.ask("crew_set_label", json!({"entryId": one}));
    let tree = client.ask("get_tree", json!({})).to_string();
    assert!(!tree.contains("labelTimestamp"), "{tree}");
    for command in ["crew_set_label", "crew_navigate"] {
        let error = client.refused(command, json!({"entryId": "ffffffff", "label": "x"}));
        assert_eq!(error, "Entry not found: ffffffff");
    }
}
