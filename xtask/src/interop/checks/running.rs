//! Runs that do not go straight: retry, abort, odd lines (`host.md` 10.9,
//! 10.10, 10.11). Pi is held to the same, so that a check which asks too much
//! is noticed.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::interop::Setup;
use crate::interop::host::Host;
use crate::interop::log::difference;
use crate::interop::rpc::Rpc;
use crate::interop::server::Reply;
use crate::interop::world::World;
use crate::run::Outcome;

/// `host.md` 10.9.
pub(crate) fn retry(setup: &Setup) -> Outcome {
    let ours = retried(setup, Host::Crew)?;
    let theirs = retried(setup, Host::Pi)?;
    let expected =
        json!(["auto_retry_start 1", "entry_appended context_edit", "auto_retry_end true"]);
    if ours["marks"] != expected {
        return Err(format!("the events of the retry are {}", ours["marks"]));
    }
    match difference(&ours, &theirs) {
        Some(found) => Err(format!("the events differ: {found}")),
        None => Ok(()),
    }
}

fn retried(setup: &Setup, host: Host) -> Outcome<Value> {
    let world = World::new(setup)?;
    world.server.answer([Reply::Status(503), Reply::Text("at last".to_owned())]);
    let mut rpc = Rpc::start(&world, host, &["--model", "fake/m1"])?;
    let events = rpc.prompt("try")?;
    rpc.stop()?;
    let log = world.only_log()?;
    let edits = log.of_type("context_edit");
    let [edit] = edits.as_slice() else {
        return Err(format!("{} stored {} context edits", host.name(), edits.len()));
    };
    let target = log.entries.iter().find(|entry| entry["id"] == edit["targetId"]);
    let target = target.ok_or_else(|| format!("{}: no target of {edit}", host.name()))?;
    if !edit["replacement"].is_null() || target["message"]["stopReason"] != "error" {
        return Err(format!("{} omitted {target} by {edit}", host.name()));
    }
    let requests = world.server.take();
    if requests.len() != 2 || requests[1].messages().len() != 1 {
        return Err(format!("{} sent {} requests", host.name(), requests.len()));
    }
    let marks = events.iter().filter_map(|event| match event["type"].as_str()? {
        "auto_retry_start" => Some(format!("auto_retry_start {}", event["attempt"])),
        "auto_retry_end" => Some(format!("auto_retry_end {}", event["success"])),
        "entry_appended" => Some(format!("entry_appended {}", event["entry"]["type"].as_str()?)),
        _ => None,
    });
    let kinds = events.iter().filter(|event| event["type"] != "message_update").map(|event| {
        let role = event["message"]["role"].as_str().unwrap_or_default();
        let will_retry = event.get("willRetry").map(Value::to_string).unwrap_or_default();
        format!("{} {role}{will_retry}", event["type"].as_str().unwrap_or_default())
    });
    Ok(json!({"marks": marks.collect::<Vec<_>>(), "kinds": kinds.collect::<Vec<_>>()}))
}

/// `host.md` 10.10.
pub(crate) fn abort(setup: &Setup) -> Outcome {
    for host in Host::BOTH {
        aborted(setup, host).map_err(|error| format!("{}: {error}", host.name()))?;
    }
    Ok(())
}

fn aborted(setup: &Setup, host: Host) -> Outcome {
    let world = World::new(setup)?;
    world.server.answer([Reply::Slow("endless")]);
    let mut rpc = Rpc::start(&world, host, &["--model", "fake/m1"])?;
    rpc.send(&json!({"id": "p", "type": "prompt", "message": "go on"}).to_string())?;
    rpc.wait(0, "a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta")?;
    // The check is about a run that has been going on for a while.
    thread::sleep(Duration::from_millis(300));
    rpc.send(&json!({"id": "a", "type": "abort"}).to_string())?;
    let response = rpc.wait(0, "the response to abort", |line| line["id"] == "a")?;
    let settled = rpc.wait(0, "agent_settled", |line| line["type"] == "agent_settled")?;
    if rpc.seen[settled]["aborted"] != true {
        return Err(format!("settled as {}", rpc.seen[settled]));
    }
    if response < settled {
        return Err("abort was answered before the run had settled".to_owned());
    }
    world.server.take();
    rpc.prompt("something else")?;
    rpc.stop()?;
    let log = world.only_log()?;
    let stored = log.of_role("assistant");
    let stored = stored.first().ok_or("no assistant message is stored")?;
    if stored["message"]["stopReason"] != "aborted" || !stored.to_string().contains("endless") {
        return Err(format!("stored was {stored}"));
    }
    let requests = world.server.take();
    match requests.first() {
        Some(request) if !request.has("endless") && request.has("go on") => Ok(()),
        Some(request) => Err(format!("the next request was {}", Value::from(request.messages()))),
        None => Err("no request followed".to_owned()),
    }
}

/// `host.md` 10.11.
pub(crate) fn framing(setup: &Setup) -> Outcome {
    for host in Host::BOTH {
        framed(setup, host).map_err(|error| format!("{}: {error}", host.name()))?;
    }
    Ok(())
}

fn framed(setup: &Setup, host: Host) -> Outcome {
    let world = World::new(setup)?;
    let mut rpc = Rpc::start(&world, host, &["--model", "fake/m1"])?;
    let odd = "one\u{2028}two\u{2029}three\u{85}four";
    rpc.prompt(odd)?;
    if !world.server.take().iter().any(|request| request.has(odd)) {
        return Err("the separators did not arrive unchanged".to_owned());
    }
    rpc.send("not json")?;
    let at = rpc.wait(0, "the parse response", |line| line["command"] == "parse")?;
    let parse = &rpc.seen[at];
    let words = parse["error"].as_str().unwrap_or_default();
    if parse["success"] != false || !words.starts_with("Failed to parse command: ") {
        return Err(format!("bad JSON gave {parse}"));
    }
    rpc.send("{\"type\":\"zzz\",\"id\":\"x\"}\r")?;
    let at = rpc.wait(0, "the response to an unknown command", |line| line["command"] == "zzz")?;
    let expected = json!({"id": "x", "type": "response", "command": "zzz", "success": false,
                          "error": "Unknown command: zzz"});
    if rpc.seen[at] != expected {
        return Err(format!("an unknown command gave {}", rpc.seen[at]));
    }
    rpc.stop()
}
