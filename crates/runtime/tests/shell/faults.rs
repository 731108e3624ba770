//! Faults that need the real shell: many children at once, lists of tools,
//! what stays of a child (`faults.md`; the table is in `docs/testing.md`).

use std::fs;
use std::time::{Duration, Instant};

use crew_base::message::{Block, Message};
use crew_base::model::{ModelEvent, ModelRequest};
use serde_json::{Value, json};

use crate::models::{Fake, begun, calls, last_of, report, spawn, text};
use crate::world::{LONG, World};

/// So many spawns of a definition in one answer.
fn spawns(count: usize, definition: &'static str) -> Vec<ModelEvent> {
    let spawns: Vec<(&str, Value)> = (0..count).map(|_| spawn(definition)).collect();
    calls(&spawns)
}

/// Texts of all tool results of a request, errors marked.
fn results(request: &ModelRequest) -> Vec<(bool, String)> {
    let result = |message: &std::sync::Arc<Message>| {
        let Message::ToolResult(result) = &**message else { return None };
        let text = result.content.iter().filter_map(Block::as_text).collect();
        Some((result.is_error, text))
    };
    request.messages.iter().filter_map(result).collect()
}

// C016: a thousand children make one quick call each, the provider answers
// after random waits; every one goes on from its result to its next request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_children_go_on_after_their_tool_result() {
    const CHILDREN: usize = 1000;
    let mut world = World::new();
    world.in_memory = true;
    world.define("one", "tools: ls\n");
    let model = Fake::new(|asked, mut sink| {
        let wait = match asked.is_owner {
            true => 0,
            false => asked.request.session.as_str().bytes().map(u64::from).sum::<u64>() % 50,
        };
        let events = match (asked.is_owner, asked.nth) {
            (true, 0) => spawns(CHILDREN, "one"),
            (true, _) => text("end"),
            (false, 0) => calls(&[("ls", json!({}))]),
            (false, _) => calls(&[report("done")]),
        };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            sink(events);
        })
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    let children = model.asked_by_children();
    assert_eq!(children.len(), 2 * CHILDREN, "one request before, one after the tool");
    let went_on = children.iter().filter(|request| results(request).len() == 1).count();
    assert_eq!(went_on, CHILDREN);
}

// C119, product.md P-10: what is not in its list is refused when a child calls
// it, whether it exists elsewhere or not, and nothing of it happens.
#[tokio::test(start_paused = true)]
async fn calls_beyond_a_childs_list_are_refused_and_do_nothing() {
    let world = World::new();
    fs::write(world.cwd.join("kept.txt"), "as it was").unwrap();
    world.define("reader", "tools: read, grep\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn("reader")]),
        (true, _) => text("end"),
        (false, 0) => calls(&[
            ("bash", json!({"command": "touch made-by-bash"})),
            ("write", json!({"path": "made-by-write", "content": "x"})),
            (
                "edit",
                json!({"path": "kept.txt", "edits": [{"oldText": "as", "newText": "not as"}]}),
            ),
            spawn("reader"),
            ("crew_abort", json!({"all": true})),
            ("no_such_tool", json!({})),
            ("read", json!({"path": "kept.txt"})),
        ]),
        (false, _) => calls(&[report("done")]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    let children = model.asked_by_children();
    assert_eq!(children.len(), 2, "nobody else was started");
    let results = results(&children[1]);
    let refused: Vec<bool> = results.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(refused, [true, true, true, true, true, true, false], "{results:?}");
    assert!(results[6].1.contains("as it was"));
    for name in ["made-by-bash", "made-by-write"] {
        assert!(!world.cwd.join(name).exists(), "{name}");
    }
    assert_eq!(fs::read_to_string(world.cwd.join("kept.txt")).unwrap(), "as it was");
}

// C022, C023, C082: long work stays with the child, whole and to be read after
// the end; the owner's file grows by reports only.
#[tokio::test(start_paused = true)]
async fn what_children_write_is_in_their_own_files_and_only_reports_in_the_owners() {
    const CHILDREN: usize = 40;
    const LENGTH: usize = 200_000;
    let world = World::new();
    world.define("one", "tools: ls\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => spawns(CHILDREN, "one"),
        (true, _) => text("end"),
        (false, 0) => {
            let mut events = begun();
            let long = "w".repeat(LENGTH);
            events.push(ModelEvent::BlockDelta { index: 0, delta: long.clone() });
            events.push(ModelEvent::BlockEnd { index: 0, block: Block::text(long) });
            events.extend(calls(&[("ls", json!({}))]).into_iter().skip(1).map(second_block));
            events
        }
        (false, _) => calls(&[report("see above")]),
    });
    let mut running = world.open(model).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    let owner = World::files(&world.sessions()).remove(0);
    let children = World::files(&world.sessions().join("crew"));
    assert_eq!(children.len(), CHILDREN);
    for child in &children {
        let kept = fs::read_to_string(child).unwrap();
        assert!(kept.contains(&"w".repeat(LENGTH)), "{}", child.display());
        assert!(kept.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    }
    let bytes = fs::metadata(&owner).unwrap().len();
    assert!(bytes < CHILDREN as u64 * 5_000, "{bytes} bytes for {CHILDREN} reports");
}

/// Moves the events of a first block to the second.
fn second_block(event: ModelEvent) -> ModelEvent {
    match event {
        ModelEvent::BlockStart { block, .. } => ModelEvent::BlockStart { index: 1, block },
        ModelEvent::BlockEnd { block, .. } => ModelEvent::BlockEnd { index: 1, block },
        ModelEvent::BlockDelta { delta, .. } => ModelEvent::BlockDelta { index: 1, delta },
        ModelEvent::Started
        | ModelEvent::Usage(_)
        | ModelEvent::Identity { .. }
        | ModelEvent::Finished { .. }
        | ModelEvent::Failed(_) => event,
    }
}

// C014, C017: a provider that says nothing more, to the owner's other children
// it makes no difference, and the owner itself can be asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_whose_provider_is_silent_keeps_nobody_from_going_on() {
    let mut world = World::new();
    world.in_memory = true;
    for name in ["silent", "quick"] {
        world.define(name, "tools: ls\n");
    }
    let model = Fake::new(|asked, mut sink| {
        let silent = crate::models::prompt_of(&asked.request).contains("role of silent");
        let events = match (asked.is_owner, asked.nth) {
            (true, 0) => calls(&[spawn("silent"), spawn("quick")]),
            (true, _) => text("end"),
            (false, _) => calls(&[report("quick result")]),
        };
        Box::pin(async move {
            if silent {
                sink(vec![ModelEvent::Started]);
                return std::future::pending().await;
            }
            sink(events);
        })
    });
    let mut running = world.open(model.clone()).await;
    let begun = Instant::now();
    running.prompt("go").await;
    let has_result = |model: &Fake| {
        let asked = model.asked();
        asked.iter().any(|request| last_of(request).contains("quick result"))
    };
    while !has_result(&model) {
        running.until_settled().await;
        assert!(begun.elapsed() < LONG);
    }
    running.prompt("still there?").await;
    running.until_settled().await;
    running.quit().await;
}
