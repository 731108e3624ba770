//! Commands of sessions end with what started them.

use std::time::{Duration, Instant};

use crew_base::id::Ids;
use crew_engine::api::{Command, SessionUpdate};
use serde_json::json;

use crate::models::{Fake, calls, last_of, report, spawn, text};
use crate::processes::{marked, within};
use crate::world::{Running, World};

// C055: wherever between its start and its first output the abort falls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_around_the_start_of_a_command_leaves_no_process() {
    let world = World::new();
    let model = Fake::replies(|_| {
        let command = "echo began >> began; sleep 600 & setsid sleep 600 & sleep 600";
        calls(&[("bash", json!({"command": command}))])
    });
    let mut running = world.open(model).await;
    let marker = running.host.marker().to_owned();
    let mut ids = Ids::new(11);
    for _ in 0..100 {
        running.prompt("go").await;
        tokio::time::sleep(Duration::from_micros(ids.below(20_000))).await;
        running.handle.send(Command::Abort(Running::owner()));
        running.until_settled().await;
    }
    assert_eq!(marked(&marker), 0);
    assert!(world.cwd.join("began").exists());
    running.quit().await;
}

// C061, C017: the call ends at once, and so does the child that reports; what
// it left behind ends with it (C058, product.md P-14f).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_child_left_running_ends_when_it_is_closed() {
    let world = World::new();
    world.define("one", "tools: bash\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn("one")]),
        (true, _) => text("end"),
        (false, 0) => calls(&[("bash", json!({"command": "sleep 600 & echo ok"}))]),
        (false, _) => calls(&[report("done")]),
    });
    let mut running = world.open(model.clone()).await;
    let marker = running.host.marker().to_owned();
    let begun = Instant::now();
    running.prompt("go").await;
    running.until_rest().await;
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(last_of(&model.asked_by_children()[1]).contains("ok"));
    assert_eq!(marked(&marker), 1);
    running.command(Command::CloseAwaiting(Running::owner())).await.unwrap();
    assert!(within(Duration::from_secs(3), || marked(&marker) == 0));
    running.quit().await;
}

// C056, host.md 4.3.8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quit_ends_the_commands_of_owner_and_children() {
    let world = World::new();
    world.define("one", "tools: bash\n");
    let command = ("bash", json!({"command": "sleep 600 & sleep 600; true"}));
    let model = Fake::replies(move |asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn("one"), spawn("one"), spawn("one")]),
        _ => calls(std::slice::from_ref(&command)),
    });
    let mut running = world.open(model).await;
    let marker = running.host.marker().to_owned();
    running.prompt("go").await;
    running
        .until_update(|update| {
            let SessionUpdate::ToolStart { name, .. } = update else { return None };
            (name == "bash").then_some(())
        })
        .await;
    // The shell and its two sleepers, of the owner and of three children.
    assert!(within(Duration::from_secs(10), || marked(&marker) == 12));
    let took = running.quit().await;
    assert_eq!(marked(&marker), 0);
    assert!(took < Duration::from_secs(3), "{took:?}");
}

// C050: the other result and the owner's next prompt do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_command_of_one_child_holds_up_nobody_else() {
    let world = World::new();
    world.define("stuck", "tools: bash\n");
    world.define("quick", "tools: bash\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn("stuck"), spawn("quick")]),
        (true, _) => text("end"),
        (false, _) if crate::models::prompt_of(&asked.request).contains("role of stuck") => {
            calls(&[("bash", json!({"command": "sleep 100000"}))])
        }
        (false, _) => calls(&[report("quick result")]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    let owner_knows = || {
        let asked = model.asked();
        let owner = asked.iter().rfind(|request| request.session == Running::owner());
        owner.is_some_and(|request| last_of(request).contains("quick result"))
    };
    running.until_settled().await;
    if !owner_knows() {
        running.until_settled().await;
    }
    assert!(owner_knows());
    running.prompt("next").await;
    running.until_settled().await;
    running.quit().await;
}

// host.md 1.2.6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_knows_its_session_and_model() {
    let world = World::new();
    let model = Fake::replies(|asked| match asked.nth {
        0 => calls(&[(
            "bash",
            json!({"command": "echo $PI_SESSION_ID-$CREW_SESSION_ID-$CREW_PROVIDER-$PI_MODEL-$CREW_REASONING_LEVEL; echo $CREW_SESSION_FILE"}),
        )]),
        _ => text("end"),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    let result = last_of(&model.asked()[1]);
    assert!(result.contains("owner-owner-fake-one-medium"), "{result}");
    assert!(result.contains(&world.sessions().display().to_string()), "{result}");
    running.quit().await;
}
