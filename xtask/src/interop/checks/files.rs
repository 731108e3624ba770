//! Sessions on disk: what one program wrote, the other reads and continues
//! (`host.md` 10.1, 10.2, 10.4, 10.5, 10.6, 10.14).
//!
//! Must never judge wording; only places, bytes and shapes count.

use std::fs;

use serde_json::{Value, json};

use super::rich::rich_log;
use crate::interop::Setup;
use crate::interop::host::Host;
use crate::interop::log::{Log, difference};
use crate::interop::rpc::Rpc;
use crate::interop::server::{Reply, usual_text};
use crate::interop::terminal::Terminal;
use crate::interop::world::World;
use crate::run::Outcome;

/// `host.md` 10.1.
pub(crate) fn pi_continues_ours(setup: &Setup) -> Outcome {
    continues(&World::new(setup)?, Host::Crew)
}

/// `host.md` 10.2.
pub(crate) fn ours_continues_pi(setup: &Setup) -> Outcome {
    continues(&World::new(setup)?, Host::Pi)?;
    let world = World::new(setup)?;
    let log = rich_log(&world, Host::Pi)?;
    let before = tree_of(&world, Host::Pi, &log)?;
    let after = tree_of(&world, Host::Crew, &log)?;
    if let Some(found) = difference(&after, &before) {
        return Err(format!("get_tree differs: {found}"));
    }
    let mut rpc = Rpc::open(&world, Host::Crew, &log.argument())?;
    let state = rpc.call(json!({"type": "get_state"}))?;
    if state["sessionName"] != "rich file" {
        return Err(format!("the name is lost: {state}"));
    }
    rpc.prompt("and one more")?;
    rpc.stop()?;
    log.grown()?;
    Ok(())
}

/// One program asks first, the other continues the newest session.
fn continues(world: &World, first: Host) -> Outcome {
    first.run(world, &["-p", "--model", "fake/m1", "say hi"])?;
    let log = world.only_log()?;
    let second = first.other();
    second.run(world, &["-p", "-c", "--model", "fake/m1", "and again"])?;
    world.only_log()?;
    let grown = log.grown()?;
    let asked = grown.of_role("user").len();
    if asked != 2 {
        return Err(format!("{asked} questions in the file instead of 2"));
    }
    let requests = world.server.take();
    let [_, request] = requests.as_slice() else {
        return Err(format!("{} requests instead of 2", requests.len()));
    };
    for text in ["say hi", &usual_text("say hi"), "and again"] {
        if !request.has(text) {
            return Err(format!(
                "{text:?} is not in the request of {}: {}",
                second.name(),
                Value::from(request.messages())
            ));
        }
    }
    Ok(())
}

fn tree_of(world: &World, host: Host, log: &Log) -> Outcome<Value> {
    let copy = world.copy(log, &format!("tree-{}.jsonl", host.name()))?;
    let mut rpc = Rpc::open(world, host, &copy.to_string_lossy())?;
    let tree = rpc.call(json!({"type": "get_tree"}))?;
    rpc.stop()?;
    Ok(tree)
}

/// `host.md` 10.4.
pub(crate) fn round_trip(setup: &Setup) -> Outcome {
    for writer in Host::BOTH {
        let world = World::new(setup)?;
        let mut log = rich_log(&world, writer)?;
        for (turn, host) in [Host::Pi, Host::Crew, Host::Pi, Host::Crew].into_iter().enumerate() {
            let mut rpc = Rpc::open(&world, host, &log.argument())?;
            let name = format!("name {turn}");
            rpc.call(json!({"type": "set_session_name", "name": name}))?;
            rpc.stop()?;
            let of_whom =
                |error| format!("{} on a file of {}: {error}", host.name(), writer.name());
            log = log.grown().map_err(of_whom)?;
            if log.entries.last().map(|entry| &entry["name"]) != Some(&Value::from(name)) {
                return Err(of_whom("the last entry is not the new name".to_owned()));
            }
        }
    }
    Ok(())
}

/// `host.md` 10.5; the other direction too.
pub(crate) fn unknown_data(setup: &Setup) -> Outcome {
    for (writer, reader) in [(Host::Crew, Host::Pi), (Host::Pi, Host::Crew)] {
        let world = World::new(setup)?;
        writer.run(&world, &["-p", "--model", "fake/m1", "say hi"])?;
        let log = with_unknown_data(&world.only_log()?)?;
        reader.run(&world, &["-p", "--session", &log.argument(), "x"])?;
        let grown = log.grown().map_err(|error| format!("{}: {error}", reader.name()))?;
        let added = &grown.entries[log.entries.len()];
        if added["parentId"] != "cafe0002" {
            return Err(format!("{} does not chain after them: {added}", reader.name()));
        }
    }
    Ok(())
}

/// Adds entries and a header field that neither program writes.
fn with_unknown_data(log: &Log) -> Outcome<Log> {
    let mut header = log.entries[0].clone();
    header["crewTest"] = json!({"kept": true});
    let last = log.entries.last().map_or(Value::Null, |entry| entry["id"].clone());
    let time = "2026-11-30T13:43:03.766Z";
    let added = [
        json!({"type": "crew_test", "id": "cafe0001", "parentId": last, "timestamp": time,
               "anything": [1, 2.50, "\u{2028}"]}),
        json!({"type": "custom", "id": "cafe0002", "parentId": "cafe0001", "timestamp": time,
               "customType": "crew.test", "data": {"z": 1, "a": null}}),
    ];
    let lines = std::iter::once(&header).chain(&log.entries[1..]).chain(&added);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(&log.path, text).map_err(|error| format!("cannot change the session: {error}"))?;
    Log::read(&log.path)
}

/// `host.md` 10.6; the file is a rich one.
pub(crate) fn export(setup: &Setup) -> Outcome {
    let world = World::new(setup)?;
    let log = rich_log(&world, Host::Crew)?;
    let page = world.path("out.html");
    Host::Pi.run(&world, &["--export", &log.argument(), &page.to_string_lossy()])?;
    let text = fs::read_to_string(&page).map_err(|error| format!("no page: {error}"))?;
    if text.contains("<html") { Ok(()) } else { Err("the page is no HTML".to_owned()) }
}

/// `host.md` 10.14.
pub(crate) fn subagents(setup: &Setup) -> Outcome {
    let world = World::new(setup)?;
    fs::create_dir_all(world.path("agent/agents"))
        .map_err(|error| format!("cannot make a folder: {error}"))?;
    let definition = "---\nname: scout\ndescription: Reads files.\n---\nYou read files.\n";
    world.write("agent/agents/scout.md", definition)?;
    let mut rpc = Rpc::start(&world, Host::Crew, &["--model", "fake/m1"])?;
    let task = json!({"goal": "Read.", "context": [], "instructions": ["Read the notes."]});
    let arguments = json!({"subagent": "scout", "brief": "read the notes", "task": task});
    world.server.answer([Reply::Call("crew_spawn", arguments)]);
    let from = rpc.seen.len();
    rpc.prompt("let somebody read the notes")?;
    rpc.wait(from, "the delivery", |line| {
        line["type"] == "message_end" && line["message"]["role"] == "custom"
    })?;
    rpc.call(json!({"type": "abort"}))?;
    rpc.stop()?;
    let log = world.only_log()?;
    if log.of_type("custom").is_empty() && log.of_type("custom_message").is_empty() {
        return Err("the session holds no trace of the subagent".to_owned());
    }
    let ours = tree_of(&world, Host::Crew, &log)?;
    let theirs = tree_of(&world, Host::Pi, &log)?;
    if let Some(found) = difference(&ours, &theirs) {
        return Err(format!("get_tree differs: {found}"));
    }
    let mut rpc = Rpc::open(&world, Host::Pi, &log.argument())?;
    rpc.prompt("what was found")?;
    rpc.stop()?;
    in_the_tree(&world, &log.grown()?)
}

/// Opens Pi's tree on a terminal: it lists the first and the last question.
fn in_the_tree(world: &World, log: &Log) -> Outcome {
    let Some(mut terminal) = Terminal::start(world, log)? else {
        println!("     10.14  no terminal is to be had; Pi's /tree is left out");
        return Ok(());
    };
    terminal.wait(&["what was found"])?;
    terminal.keys("/tree\r")?;
    terminal.wait(&["user: let somebody", "user: what was found"])?;
    terminal.keys(ESCAPE)?;
    // The tree gives way to the editor, which gets the keys that follow.
    terminal.wait(&["what was found"])?;
    terminal.keys(CONTROL_C_TWICE)?;
    terminal.end()
}

const ESCAPE: &str = "\u{1b}";
const CONTROL_C_TWICE: &str = "\u{3}\u{3}";
