//! Makes a session file with everything in it: tool calls, an omitted
//! attempt, a compaction, a fork, a branch, a label and a name.
//!
//! Must never write an entry by hand: what stands in the file comes from one
//! of the programs, or from Pi's own session library where no command exists.

use std::ffi::OsStr;

use serde_json::{Value, json};

use crate::interop::host::Host;
use crate::interop::log::Log;
use crate::interop::rpc::Rpc;
use crate::interop::server::Reply;
use crate::interop::world::World;
use crate::run::Outcome;

/// Lets a program write such a file and returns it; errors when something it
/// should hold is missing.
pub(crate) fn rich_log(world: &World, host: Host) -> Outcome<Log> {
    let mut rpc = Rpc::start(world, host, &["--model", "fake/m1"])?;
    world.server.answer([
        Reply::Call("read", json!({"path": "notes.txt"})),
        Reply::Text("There is one line.".to_owned()),
    ]);
    rpc.prompt("read the notes")?;
    world.server.answer([Reply::Status(503), Reply::Text("Second, after a while.".to_owned())]);
    rpc.prompt("a second question")?;
    rpc.prompt("a third question, somewhat longer than the ones before")?;
    rpc.call(json!({"type": "compact"}))?;
    rpc.prompt("a question after the summary")?;
    rpc.prompt("a question to fork from")?;
    let asked = rpc.call(json!({"type": "get_fork_messages"}))?;
    let last = asked["messages"].as_array().and_then(|messages| messages.last());
    let target =
        last.ok_or_else(|| format!("no message to fork from: {asked}"))?["entryId"].clone();
    let forked = rpc.call(json!({"type": "fork", "entryId": target}))?;
    if forked["text"] != "a question to fork from" {
        return Err(format!("fork gave {forked}"));
    }
    rpc.call(json!({"type": "set_session_name", "name": "  rich\nfile "}))?;
    rpc.prompt("asked in the fork")?;
    world.server.answer([
        Reply::Call("read", json!({"path": "missing.txt", "limit": 3})),
        Reply::Text("There is no such file.".to_owned()),
    ]);
    rpc.prompt("read another file")?;
    let file = rpc.call(json!({"type": "get_state"}))?["sessionFile"].clone();
    rpc.stop()?;
    let file = file.as_str().ok_or("no sessionFile in the state")?;
    let arguments = [OsStr::new(file)];
    let grown = world.script("grow.mjs", GROW, &arguments)?;
    let log = Log::read(file.as_ref())?;
    let missing = missing(&log, &grown);
    if missing.is_empty() {
        return Ok(log);
    }
    Err(format!("{} wrote a file without {}", host.name(), missing.join(", ")))
}

fn missing(log: &Log, grown: &Value) -> Vec<&'static str> {
    let mut missing = Vec::new();
    let mut needs = |there: bool, what| {
        if !there {
            missing.push(what);
        }
    };
    needs(!log.of_role("toolResult").is_empty(), "a tool result");
    needs(log.of_type("compaction").len() == 1, "one compaction");
    needs(!log.of_type("context_edit").is_empty(), "a context edit");
    needs(log.of_type("session_info").iter().any(|entry| entry["name"] == "rich file"), "a name");
    needs(log.entries[0]["parentSession"].is_string(), "the session it came from");
    needs(!log.of_type("label").is_empty(), "a label");
    let parents = log.entries.iter().filter(|entry| entry["parentId"] == grown["branched"]);
    needs(parents.count() == 2, "a branch");
    missing
}

/// Labels the second question after the compaction and leaves the branch
/// before it: neither has an RPC command.
const GROW: &str = r#"
import { SessionManager } from "@earendil-works/pi-coding-agent";

const session = SessionManager.open(process.argv[2]);
const asked = session.getBranch().filter((entry) => entry.message?.role === "user");
const last = asked.at(-1);
session.appendLabelChange(last.id, "look here");
session.branch(last.parentId);
session.appendCustomMessageEntry("interop.note", "a note on another branch", true, { kept: [1, null] });
console.log(JSON.stringify({ branched: last.parentId }));
"#;
