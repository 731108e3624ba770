//! Every piece of started work ends in exactly one event, however it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crew_base::json::Raw;
use crew_base::limits::{SHUTDOWN_GRACE_MS, TOOL_CANCEL_MS_MAX};
use crew_base::message::StopReason;
use crew_base::model::ModelEvent;
use crew_base::tool::{ToolDefinition, ToolOutcome};
use crew_engine::api::{AbortOrigin, Command, SessionUpdate};
use crew_tools::{Tool, ToolContext, ToolFuture, Toolbox};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::models::{Fake, begun, calls, finished, last_of, report, spawn, text, tools_of};
use crate::world::{Running, World};

/// A tool that a test makes misbehave.
struct Odd {
    definition: ToolDefinition,
    act: Box<dyn Fn(ToolContext) -> ToolFuture + Send + Sync>,
    /// While set, whoever asks what the tool is has to wait.
    held: Arc<AtomicBool>,
}

impl Tool for Odd {
    fn definition(&self) -> &ToolDefinition {
        while self.held.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        &self.definition
    }

    fn run(&self, context: ToolContext, _: Value) -> ToolFuture {
        (self.act)(context)
    }
}

fn odd(act: impl Fn(ToolContext) -> ToolFuture + Send + Sync + 'static) -> (Odd, Arc<AtomicBool>) {
    let held: Arc<AtomicBool> = Arc::default();
    let definition = ToolDefinition {
        name: "odd".to_owned(),
        description: "Misbehaves.".to_owned(),
        parameters: Raw::of(&json!({"type": "object"})),
        constrained_sampling: None,
    };
    (Odd { definition, act: Box::new(act), held: Arc::clone(&held) }, held)
}

fn with_tool(tool: Odd) -> World {
    let mut world = World::new();
    world.toolbox = Toolbox::new(vec![Arc::new(tool)]);
    world.tools.changes = vec!["+odd".to_owned()];
    world
}

/// A tool that never ends and reacts to nothing, and when it has begun.
fn hung() -> (World, Arc<Notify>) {
    let begun = Arc::new(Notify::new());
    let notify = Arc::clone(&begun);
    let act = move |_: ToolContext| -> ToolFuture {
        let notify = Arc::clone(&notify);
        Box::pin(async move {
            notify.notify_one();
            std::future::pending().await
        })
    };
    (with_tool(odd(act).0), begun)
}

/// Calls the tool once, then says how it went.
fn calls_odd() -> Arc<Fake> {
    Fake::replies(|asked| if asked.nth == 0 { calls(&[("odd", json!({}))]) } else { text("end") })
}

// C014, style.md 3: the agent hears of the end, tries again and gets through.
#[tokio::test(start_paused = true)]
async fn a_provider_that_breaks_in_any_way_ends_its_request() {
    type Break = fn(crew_model::ModelSink) -> crate::models::Answer;
    let check = async |how: Break| {
        let world = World::new();
        let model = Fake::new(move |asked, mut sink| {
            if asked.nth == 0 { how(sink) } else { Box::pin(async move { sink(text("good")) }) }
        });
        let mut running = world.open(model.clone()).await;
        running.prompt("go").await;
        running.until_rest().await;
        assert_eq!(model.asked().len(), 2);
        running.quit().await;
    };
    check(|_| panic!("before there is a stream")).await;
    check(|_| Box::pin(async { panic!("at once") })).await;
    check(|mut sink| {
        Box::pin(async move {
            sink(begun());
            tokio::time::sleep(Duration::from_millis(5)).await;
            panic!("in the middle")
        })
    })
    .await;
    check(|mut sink| Box::pin(async move { sink(begun()) })).await;
    check(|_| Box::pin(async {})).await;
    // The sink lives on where nobody finds it.
    check(|sink| {
        std::mem::forget(sink);
        Box::pin(async {})
    })
    .await;
}

// C017: a stream that said its last word and stays is no reason to wait.
#[tokio::test(start_paused = true)]
async fn a_stream_that_stays_after_its_end_holds_up_nothing() {
    let world = World::new();
    let streams = Arc::new(());
    let held = Arc::clone(&streams);
    let model = Fake::new(move |_, mut sink| {
        let held = Arc::clone(&held);
        Box::pin(async move {
            sink(text("good"));
            sink(vec![ModelEvent::Started, finished(StopReason::Stop)]);
            std::future::pending::<()>().await;
            drop(held);
        })
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("one").await;
    running.until_rest().await;
    running.prompt("two").await;
    running.until_rest().await;
    assert_eq!(model.asked().len(), 2);
    tokio::time::sleep(Duration::from_secs(5)).await;
    // The test's, and that in the script: no stream holds one any more.
    assert_eq!(Arc::strong_count(&streams), 2);
    running.quit().await;
}

// host.md 3.5.1, 3.5.2
#[tokio::test(start_paused = true)]
async fn an_abort_drops_a_hanging_stream_and_keeps_what_it_said() {
    let world = World::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::clone(&dropped);
    let model = Fake::new(move |asked, mut sink| {
        let count = Count(Arc::clone(&count));
        Box::pin(async move {
            if asked.nth == 1 {
                return sink(text("good"));
            }
            let mut events = begun();
            events.push(ModelEvent::BlockDelta { index: 0, delta: "half".to_owned() });
            sink(events);
            std::future::pending::<()>().await;
            drop(count);
        })
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("one").await;
    running
        .until_update(|update| matches!(update, SessionUpdate::MessageUpdate { .. }).then_some(()))
        .await;
    running.command(Command::Abort(Running::owner())).await.unwrap();
    tokio::task::yield_now().await;
    running.prompt("two").await;
    running.until_rest().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    let stored = std::fs::read_to_string(&World::files(&world.sessions())[0]).unwrap();
    assert!(stored.contains(r#""text":"half""#) && stored.contains(r#""stopReason":"aborted""#));
    running.quit().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_is_an_error_for_the_model() {
    let check = async |act: fn(ToolContext) -> ToolFuture| {
        let world = with_tool(odd(act).0);
        let model = calls_odd();
        let mut running = world.open(model.clone()).await;
        running.prompt("go").await;
        running.until_rest().await;
        assert!(last_of(&model.asked()[1]).contains(r#""isError":true"#));
        running.quit().await;
    };
    check(|_| panic!("before there is a future")).await;
    check(|_| Box::pin(async { panic!("inside") })).await;
}

// C050: what does not react to its cancellation is abandoned.
#[tokio::test(start_paused = true)]
async fn an_abort_gives_up_a_tool_that_does_not_react() {
    let (world, has_begun) = hung();
    let model = calls_odd();
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    has_begun.notified().await;
    let begun = Instant::now();
    running.handle.send(Command::Abort(Running::owner()));
    let outcome = running
        .until_update(|update| {
            let SessionUpdate::ToolEnd { outcome, .. } = update else { return None };
            Some(outcome.clone())
        })
        .await;
    assert!(outcome.is_error && outcome.joined_text().contains("did not stop in time"));
    assert!(begun.elapsed() >= Duration::from_millis(TOOL_CANCEL_MS_MAX));
    running.until_rest().await;
    assert_eq!(model.asked().len(), 1);
    running.quit().await;
}

// product.md P-14b, style.md 3: hung work costs its grace and no more.
#[tokio::test(start_paused = true)]
async fn a_hung_tool_does_not_keep_a_shutdown_longer_than_its_grace() {
    let (world, has_begun) = hung();
    let mut running = world.open(calls_odd()).await;
    running.prompt("go").await;
    has_begun.notified().await;
    let took = running.quit().await;
    // The kill of commands runs in a thread that the paused clock knows not of,
    // and its limit is three seconds.
    assert!(took <= Duration::from_millis(SHUTDOWN_GRACE_MS + 4_000), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_with_a_hung_tool_takes_its_grace_in_real_time() {
    let (world, has_begun) = hung();
    let mut running = world.open(calls_odd()).await;
    running.prompt("go").await;
    has_begun.notified().await;
    let took = running.quit().await;
    assert!(took >= Duration::from_millis(SHUTDOWN_GRACE_MS), "{took:?}");
    assert!(took < Duration::from_millis(SHUTDOWN_GRACE_MS + 1_000), "{took:?}");
}

// C047: quitting reaches all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quit_while_fifty_children_stream_leaves_nothing() {
    let world = World::new();
    world.define("talker", "tools: []\n");
    let streaming = Arc::new(AtomicUsize::new(0));
    let all_stream = Arc::new(Notify::new());
    let (count, notify) = (Arc::clone(&streaming), Arc::clone(&all_stream));
    let model = Fake::new(move |asked, mut sink| {
        if asked.is_owner {
            let spawns: Vec<_> = (0..50).map(|_| spawn("talker")).collect();
            let reply = if asked.nth == 0 { calls(&spawns) } else { text("started") };
            return Box::pin(async move { sink(reply) });
        }
        let (count, notify) = (Arc::clone(&count), Arc::clone(&notify));
        Box::pin(async move {
            sink(begun());
            if count.fetch_add(1, Ordering::SeqCst) + 1 == 50 {
                notify.notify_one();
            }
            loop {
                sink(vec![ModelEvent::BlockDelta { index: 0, delta: "more ".to_owned() }]);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_settled().await;
    tokio::time::timeout(crate::world::LONG, all_stream.notified()).await.unwrap();
    let took = running.quit().await;
    assert!(took < Duration::from_millis(SHUTDOWN_GRACE_MS), "{took:?}");
    let files = World::files(&world.sessions().join("crew"));
    assert_eq!(files.len(), 50);
    for file in files {
        let stored = std::fs::read_to_string(file).unwrap();
        assert!(stored.contains("crew.ending"), "{stored}");
    }
}

// RUN-8, RUN-9, crew.md row 2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_closed_while_it_is_prepared_is_never_prompted() {
    let (tool, held) = odd(|_| Box::pin(async { ToolOutcome::text("t") }));
    let world = with_tool(tool);
    world.define("slow", "tools: odd\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn("slow"), spawn("slow"), spawn("slow")]),
        (true, _) => text("end"),
        (false, _) => calls(&[report("too late")]),
    });
    let mut running = world.open(model.clone()).await;
    held.store(true, Ordering::SeqCst);
    running.prompt("go").await;
    running.until_settled().await;
    let abort = Command::AbortCrew(Running::owner(), AbortOrigin::Tool);
    running.command(abort).await.unwrap();
    held.store(false, Ordering::SeqCst);
    running.prompt("again").await;
    running.until_rest().await;
    running.quit().await;
    assert!(model.asked_by_children().is_empty());
    assert!(World::files(&world.sessions().join("crew")).is_empty());
}

// TOOL-25: a broken preparation is an error delivery, not a child that hangs.
#[tokio::test(start_paused = true)]
async fn a_preparation_that_panics_is_delivered_as_an_error() {
    struct Trap(ToolDefinition, AtomicBool);
    impl Tool for Trap {
        fn definition(&self) -> &ToolDefinition {
            assert!(!self.1.load(Ordering::SeqCst), "a trap");
            &self.0
        }
        fn run(&self, _: ToolContext, _: Value) -> ToolFuture {
            Box::pin(async { ToolOutcome::text("t") })
        }
    }
    let definition = odd(|_| Box::pin(std::future::pending())).0.definition.clone();
    let trap = Arc::new(Trap(definition, AtomicBool::new(false)));
    let mut world = World::new();
    world.toolbox = Toolbox::new(vec![trap.clone()]);
    world.define("slow", "tools: odd\n");
    let model = Fake::replies(|asked| match asked.nth {
        0 => calls(&[spawn("slow")]),
        _ => text("end"),
    });
    let mut running = world.open(model.clone()).await;
    trap.1.store(true, Ordering::SeqCst);
    running.prompt("go").await;
    running.until_rest().await;
    let last = last_of(model.asked().last().unwrap());
    assert!(last.contains("could not be prepared"), "{last}");
    trap.1.store(false, Ordering::SeqCst);
    running.quit().await;
    assert_eq!(tools_of(&model.asked()[0]).len(), 7);
}
