//! A face that stops reading (`host.md` 3.1.9, 7.1.5).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crew_base::limits::{FACE_NOTICES_MAX, STREAM_BATCHES_MAX};
use crew_base::message::{Block, StopReason};
use crew_base::model::ModelEvent;
use crew_engine::api::{Command, SessionUpdate};
use serde_json::json;

use crate::models::{Fake, begun, calls, finished, report, spawn, text};
use crate::world::{Running, World};

const DELTAS: usize = 5_000;

/// A model whose owner streams numbered deltas, and how many it has sent.
fn counting() -> (Arc<Fake>, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let model = Fake::new(move |_, mut sink| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            sink(begun());
            for at in 0..DELTAS {
                sink(vec![ModelEvent::BlockDelta { index: 0, delta: format!("{at} ") }]);
                count.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
            let block = Block::text("all");
            sink(vec![ModelEvent::BlockEnd { index: 0, block }, finished(StopReason::Stop)]);
        })
    });
    (model, sent)
}

/// Lets everything run until nothing moves any more.
async fn stalled(sent: &AtomicUsize) -> usize {
    loop {
        let before = sent.load(Ordering::SeqCst);
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        if sent.load(Ordering::SeqCst) == before {
            return before;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_face_that_stops_reading_stops_the_stream_and_loses_nothing() {
    let world = World::new();
    let (model, sent) = counting();
    let mut running = world.open(model).await;
    running.prompt("go").await;
    let at = stalled(&sent).await;
    assert!(at < FACE_NOTICES_MAX + STREAM_BATCHES_MAX, "{at}");
    let mut deltas = String::new();
    loop {
        let delta = running
            .until_update(|update| {
                if let SessionUpdate::AgentSettled { .. } = update {
                    return Some(None);
                }
                let SessionUpdate::MessageUpdate { event, .. } = update else { return None };
                let ModelEvent::BlockDelta { delta, .. } = event else { return None };
                Some(Some(delta.clone()))
            })
            .await;
        let Some(delta) = delta else { break };
        deltas.push_str(&delta);
    }
    let expected: String = (0..DELTAS).map(|at| format!("{at} ")).collect();
    assert!(deltas == expected, "lost or out of order");
    running.quit().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_reaches_a_stream_that_waits_for_the_face() {
    let world = World::new();
    let (model, sent) = counting();
    let mut running = world.open(model).await;
    running.prompt("go").await;
    stalled(&sent).await;
    running.handle.send(Command::Abort(Running::owner()));
    running.until_settled().await;
    assert!(sent.load(Ordering::SeqCst) < DELTAS);
    running.quit().await;
}

// The terminal slows nothing (terminal.md TERM-32), nor does a face that is gone.
#[tokio::test(start_paused = true)]
async fn a_face_that_slows_nothing_lets_the_stream_run_on() {
    let world = World::new();
    let (model, sent) = counting();
    let mut running = world.open(model).await;
    running.updates = running.updates.slowing_nothing();
    running.prompt("go").await;
    assert_eq!(stalled(&sent).await, DELTAS);
    running.quit().await;
}

#[tokio::test(start_paused = true)]
async fn children_and_deliveries_go_on_while_the_owner_waits_for_the_face() {
    let world = World::new();
    world.define("one", "tools: read\n");
    let (counted, sent) = counting();
    let owner_model = Arc::clone(&counted);
    let model = Fake::new(move |asked, mut sink| {
        use crew_model::Model;
        let reply = match (asked.is_owner, asked.nth) {
            (true, 0) => calls(&[spawn("one")]),
            (true, 1) => return owner_model.stream(asked.request, sink),
            (true, _) => text("end"),
            (false, nth) if nth < 20 => calls(&[("read", json!({"path": "none"}))]),
            (false, _) => calls(&[report("found")]),
        };
        Box::pin(async move { sink(reply) })
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    stalled(&sent).await;
    // Its tools use threads, which the stalled owner does not wait for.
    while model.asked_by_children().len() < 21 {
        tokio::task::yield_now().await;
    }
    assert!(sent.load(Ordering::SeqCst) < DELTAS);
    running.until_rest().await;
    let last = model.asked().pop().unwrap();
    assert!(serde_json::to_string(&last.messages).unwrap().contains("found"));
    running.quit().await;
}
