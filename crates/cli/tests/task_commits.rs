//! Changes of isolated children as commits, through the real binary
//! (`task.md` ISO-9, ISO-15).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;

use common::World;
use common::server::{Reply, Request};
use serde_json::{Value, json};

/// A world in a repository whose owner has one isolated child change `a.txt`;
/// what asks for a commit message is answered by the test.
fn world(commits: &str, message: impl Fn() -> Reply + Send + Sync + 'static) -> World {
    let world = World::new(move |request| {
        if request.is_task_child() {
            match request.answers() {
                0 => Reply::call("bash", json!({"command": "echo NEW >> a.txt"})),
                _ => Reply::call("yield", json!({"data": {"x": 1}})),
            }
        } else if asks_for_message(request) {
            message()
        } else if request.has_results() {
            Reply::text("seen")
        } else {
            let item = json!({"name": "kid", "task": "change it", "isolated": true});
            Reply::call("task", json!({"context": "c", "tasks": [item]}))
        }
    });
    let isolation = json!({"enabled": true, "merge": "branch", "commits": commits});
    world.settings(&json!({"crew": {"task": {"isolation": isolation}}}));
    git(&world, &["init", "-q", "-b", "main"]);
    world.project_file("a.txt", "base\n");
    git(&world, &["add", "a.txt"]);
    git(&world, &["commit", "-qm", "base"]);
    // The person's own work is in no commit and in no request.
    world.project_file("mine.txt", "MINE\n");
    world
}

fn asks_for_message(request: &Request) -> bool {
    request.all_text().contains("<diff>")
}

fn git(world: &World, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=U", "-c", "user.email=u@x"]).args(args);
    command.current_dir(world.project()).env("HOME", world.at("home"));
    let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs it and gives the message of the commit.
fn committed(world: &World) -> String {
    world.print(&["go"]).is(0, "seen\n");
    assert_eq!(fs::read_to_string(world.project().join("a.txt")).unwrap(), "base\nNEW\n");
    assert_eq!(git(world, &["status", "--porcelain"]), "?? mine.txt");
    assert_eq!(git(world, &["rev-list", "--count", "HEAD"]), "2");
    assert_eq!(git(world, &["for-each-ref", "--format=%(refname:short)"]), "main");
    assert_eq!(world.living(), Vec::<String>::new());
    git(world, &["log", "-1", "--format=%B"])
}

fn asked(world: &World) -> Vec<Request> {
    world.server.requests().into_iter().filter(asks_for_message).collect()
}

#[test]
fn the_message_of_a_commit_is_made_from_the_diff() {
    // ISO-9, OBS-5, product.md P-12
    let world = world("ai", || Reply::text("Append NEW to a.txt\n\nA body."));
    assert_eq!(committed(&world), "Append NEW to a.txt");
    let asked = asked(&world);
    assert_eq!(asked.len(), 1);
    let text = asked[0].all_text();
    assert!(text.contains("+NEW") && !text.contains("MINE"), "{text}");
    assert!(asked[0].tools().is_empty());
    let entries = common::lines(&world.session_files()[0]);
    let found = entries.iter().find(|entry| entry["message"]["toolName"] == "task");
    let message = &found.unwrap()["message"];
    let count = |value: &Value| value["input"].as_u64().unwrap();
    // Two requests of the child and that for the message.
    assert_eq!(count(&message["usage"]), 3 * count(&entries_usage(&entries)));
    assert_eq!(message["details"]["results"][0]["requests"], 2);
}

/// Usage of the owner's first answer; every answer costs the same.
fn entries_usage(entries: &[Value]) -> Value {
    let found = entries.iter().find(|entry| entry["message"]["role"] == "assistant");
    found.unwrap()["message"]["usage"].clone()
}

#[test]
fn without_a_usable_message_the_commit_is_called_after_its_child() {
    // ISO-9
    let refused = || Reply::status(400, "", r#"{"error": {"message": "no"}}"#);
    let world = world("ai", refused);
    assert_eq!(committed(&world), "kid");
    assert_eq!(asked(&world).len(), 1, "one attempt");
}

#[test]
fn generic_messages_cost_no_request() {
    // ISO-9
    let world = world("generic", || Reply::text("never"));
    assert_eq!(committed(&world), "kid");
    assert_eq!(asked(&world).len(), 0);
}
