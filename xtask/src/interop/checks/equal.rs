//! What both programs make of one file: the same conversation, and the same
//! request for the next prompt (`host.md` 10.3).
//!
//! Instructions, tools and the words around a summary differ by design and are
//! left out, and a single text is the same as a list of one; everything else of
//! a request counts.

use serde_json::{Value, json};

use super::rich::rich_log;
use crate::interop::Setup;
use crate::interop::host::Host;
use crate::interop::log::{Log, difference};
use crate::interop::rpc::Rpc;
use crate::interop::world::World;
use crate::run::Outcome;

/// `host.md` 10.3, for a file of each program.
pub(crate) fn same_conversation(setup: &Setup) -> Outcome {
    let mut faults = Vec::new();
    for writer in Host::BOTH {
        let world = World::new(setup)?;
        let log = rich_log(&world, writer)?;
        let ours = look(&world, Host::Crew, &log)?;
        let theirs = look(&world, Host::Pi, &log)?;
        for (what, ours, theirs) in [
            ("get_messages", &ours.messages, &theirs.messages),
            ("the next request", &ours.request, &theirs.request),
        ] {
            if let Some(found) = difference(ours, theirs) {
                faults.push(format!("{what} for a file of {}: {found}", writer.name()));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// What one program makes of a file.
struct Look {
    messages: Value,
    request: Value,
}

fn look(world: &World, host: Host, log: &Log) -> Outcome<Look> {
    let copy = world.copy(log, "copy.jsonl")?;
    let mut rpc = Rpc::open(world, host, &copy.to_string_lossy())?;
    let data = rpc.call(json!({"type": "get_messages"}))?;
    let messages = data["messages"].as_array().cloned().unwrap_or_default();
    let messages = messages.into_iter().filter(|message| message["role"] != "system");
    let messages = messages.collect();
    world.server.take();
    rpc.prompt("and now")?;
    rpc.stop()?;
    let requests = world.server.take();
    let [request] = requests.as_slice() else {
        return Err(format!("{} sent {} requests instead of 1", host.name(), requests.len()));
    };
    let mut body = request.body.clone();
    let sent = request.messages().into_iter();
    body["messages"] = sent.map(|message| unwrapped(message, log)).collect();
    if let Some(body) = body.as_object_mut() {
        body.remove("tools");
    }
    Ok(Look { messages, request: body })
}

/// Takes the list around a single text and the words around a summary away.
fn unwrapped(mut message: Value, log: &Log) -> Value {
    let content = &message["content"];
    let single = content.as_array().filter(|parts| parts.len() == 1);
    let text = single.map_or(content, |parts| &parts[0]["text"]).as_str().map(str::to_owned);
    let Some(text) = text else { return message };
    let mut summaries = log
        .of_type("compaction")
        .into_iter()
        .filter_map(|entry| entry["summary"].as_str().filter(|summary| text.contains(summary)));
    message["content"] = summaries.next_back().map_or(text.as_str(), |summary| summary).into();
    message
}
