//! Pi's own client drives either program (`host.md` 10.7, 10.8).
//!
//! The client can start only a script, so a script stands between them and
//! hands everything on.

use std::fs;

use serde_json::Value;

use crate::interop::Setup;
use crate::interop::host::Host;
use crate::interop::log::difference;
use crate::interop::server::usual_text;
use crate::interop::world::World;
use crate::run::Outcome;

/// `host.md` 10.7.
pub(crate) fn drives_us(setup: &Setup) -> Outcome {
    let ours = drive(setup, Host::Crew)?;
    let theirs = drive(setup, Host::Pi)?;
    for (what, expected) in [
        ("text", Value::from(usual_text("hello"))),
        ("saved", Value::from(true)),
        ("stopped", Value::from(true)),
    ] {
        if ours[what] != expected {
            return Err(format!("{what} is {} instead of {expected}", ours[what]));
        }
    }
    match difference(&ours["calls"], &theirs["calls"]) {
        Some(found) => Err(format!("the answers to calls differ: {found}")),
        None => Ok(()),
    }
}

/// `host.md` 10.8.
pub(crate) fn same_events(setup: &Setup) -> Outcome {
    let ours = drive(setup, Host::Crew)?;
    let theirs = drive(setup, Host::Pi)?;
    match difference(&ours["events"], &theirs["events"]) {
        Some(found) => Err(format!("the events differ: {found}")),
        None => Ok(()),
    }
}

fn drive(setup: &Setup, host: Host) -> Outcome<Value> {
    let world = World::new(setup)?;
    let shim = world.path("shim.mjs");
    fs::write(&shim, SHIM).map_err(|error| format!("cannot write the shim: {error}"))?;
    let program = match host {
        Host::Crew => setup.crew.clone(),
        Host::Pi => setup.pi.program(),
    };
    let driven = world.script("drive.mjs", DRIVE, &[shim.as_os_str(), program.as_os_str()]);
    let driven = driven.map_err(|error| format!("driving {}: {error}", host.name()))?;
    Ok(without(driven, &world.server.url()))
}

/// Takes a text out of all texts of a value: two fake providers have two
/// addresses.
fn without(value: Value, text: &str) -> Value {
    match value.to_string().replace(text, "").parse() {
        Ok(value) => value,
        Err(_) => value,
    }
}

const SHIM: &str = r#"
import { spawn } from "node:child_process";

const program = spawn(process.env.DRIVEN, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
  process.on(signal, () => program.kill(signal));
}
program.on("exit", (code, signal) => process.exit(code ?? (signal ? 143 : 1)));
"#;

/// Arguments: the shim, the driven program. `calls` holds only what must not
/// depend on the program: shapes instead of ids, paths and wording.
const DRIVE: &str = r#"
import { existsSync } from "node:fs";
import { RpcClient } from "@earendil-works/pi-coding-agent";

const [cliPath, DRIVEN] = process.argv.slice(2);
const client = new RpcClient({ cliPath, args: ["--model", "fake/m1"], env: { DRIVEN } });
const shape = (value) => {
  if (Array.isArray(value)) return value.map(shape);
  if (value === null || typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, shape(value[key])]));
};
await client.start();
const before = await client.getState();
const events = (await client.promptAndWait("hello")).map((event) => {
  const inner = event.assistantMessageEvent?.type ?? event.message?.role;
  return inner ? `${event.type} ${inner}` : event.type;
});
const text = await client.getLastAssistantText();
const after = await client.getState();
const saved = existsSync(after.sessionFile);
const stats = await client.getSessionStats();
const model = after.model;
const levels = await client.getAvailableThinkingLevels();
await client.setThinkingLevel("low");
const queued = await client.steer("later");
const cleared = await client.clearQueue();
const shell = await client.bash("echo out");
await client.setSessionName("driven");
const named = (await client.getState()).sessionName;
const switched = await client.setModel("fake", "m2");
const cycled = await client.cycleModel();
const asked = await client.getForkMessages();
const messages = (await client.getMessages()).map((message) => [message.role, Object.keys(message).sort()]);
const forked = await client.fork(asked[0].entryId);
const branched = await client.getState();
const entries = await client.getEntries();
const tree = await client.getTree();
const unknown = await client.getEntries("nothing").then(() => "accepted", (error) => error.message);
const fresh = await client.newSession();
const empty = await client.getState();
const start = performance.now();
await client.stop();
const stopped = performance.now() - start < 1000;
console.log(JSON.stringify({
  events, text, saved, stopped,
  calls: {
    before: [before.isStreaming, before.messageCount, shape(before)],
    after: [after.isStreaming, after.messageCount, shape(after)],
    stats: [shape(stats), stats.userMessages, stats.assistantMessages, stats.totalMessages, stats.tokens],
    model, levels, queued, cleared, shell, named, switched, cycled, messages,
    asked: asked.map((message) => message.text),
    forked, unknown, fresh,
    branched: [branched.model.id, branched.thinkingLevel, branched.messageCount],
    entries: [entries.entries.map((entry) => entry.type), entries.leafId === entries.entries.at(-1)?.id],
    tree: [shape(tree.tree).length, tree.leafId === entries.leafId],
    empty: [empty.messageCount, empty.sessionName ?? "none"],
  },
}));
"#;
