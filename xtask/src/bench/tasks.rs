//! Rows of the blocking `task` tool: one call with some items, each of whose
//! children reads a file five times and hands in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::Ran;
use super::provider::{Block, Reply, Request};
use super::rows::{Rows, call, expect, mb, ms, note, say};
use super::world::World;
use super::{Measured, median};
use crate::run::Outcome;

const TOOL_TURNS: usize = 5;
const LATENCY: Duration = Duration::from_millis(50);

/// A finished call.
struct TaskRun {
    ran: Ran,
    /// Last byte of the owner's call to the request with its result.
    took: Duration,
}

/// Measures a call with `count` items; every model takes 50 ms.
pub(super) fn tasks(count: usize) -> Rows {
    // One child more than one tells what each costs; a single one costs what
    // the whole process needs more than without a call.
    let base = if count > 1 { one_call(1, true)?.ran.peak_kb } else { plain()?.peak_kb };
    let beside = count.saturating_sub(1).max(1) as f64;
    let (mut walls, mut cpus, mut peaks) = (vec![], vec![], vec![]);
    for round in 0..6 {
        let watch = round >= 4;
        let done = one_call(count, watch)?;
        if watch {
            peaks.push(mb(done.ran.peak_kb.saturating_sub(base)) / beside);
            continue;
        }
        walls.push(ms(done.took));
        cpus.push(ms(done.ran.cpu) / count as f64);
    }
    // Requests of a child follow each other, so this much is not ours.
    let waited = ms(LATENCY) * (TOOL_TURNS + 1) as f64;
    let what = |part: &str| format!("task with {count} items of five turns: {part}");
    let rows: Vec<Measured> = vec![
        note(&what("to the result"), median(walls.clone()), "ms"),
        note(&what("own time of that"), median(walls) - waited, "ms"),
        note(&what("CPU per child"), median(cpus), "ms"),
        note(&what("memory per child"), median(peaks), "MB"),
    ];
    Ok(rows)
}

/// A run without a call.
fn plain() -> Outcome<Ran> {
    let script = |request: &Request| match request.results {
        0 => call(LATENCY),
        _ => say(LATENCY),
    };
    World::new(Arc::default(), Box::new(script))?.run(&["-p", "go"], true)
}

/// Errors unless every child made its requests and the result came.
fn one_call(count: usize, watch: bool) -> Outcome<TaskRun> {
    let script = move |request: &Request| match (request.child, request.results) {
        (true, ..TOOL_TURNS) => call(LATENCY),
        (true, _) => Reply::after(LATENCY, vec![Block::Call("yield", json!({"data": {"n": 1}}))]),
        (false, 0) => Reply::after(LATENCY, vec![Block::Call("task", items(count))]),
        (false, _) => say(LATENCY),
    };
    let world = World::new(Arc::default(), Box::new(script))?;
    let settings = json!({
        "defaultThinkingLevel": "off",
        "compaction": {"enabled": false},
        "retry": {"enabled": false},
        "crew": {"task": {"maxBatchItems": count}},
    });
    world.write("agent/settings.json", &settings.to_string())?;
    let ran = world.run(&["-p", "go"], watch)?;
    let exchanges = world.provider.take();
    let children = exchanges.iter().filter(|exchange| exchange.child).count();
    expect(children == count * (TOOL_TURNS + 1), "each child makes its requests")?;
    let owner: Vec<_> = exchanges.iter().filter(|exchange| !exchange.child).collect();
    let [first, second] = owner.as_slice() else {
        return Err("expected that the owner asks twice".to_owned());
    };
    let results = super::provider::occurrences(&second.body, b"status=\\\"completed\\\"");
    expect(results == count, "every item is completed")?;
    let (sent, arrived): (Instant, Instant) = (first.sent, second.arrived);
    Ok(TaskRun { ran, took: arrived.saturating_duration_since(sent) })
}

fn items(count: usize) -> Value {
    let item = |number| json!({"name": format!("kid-{number}"), "task": "Read the notes."});
    json!({"context": "They measure.", "tasks": (0..count).map(item).collect::<Vec<_>>()})
}
