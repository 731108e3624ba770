//! What cannot be stored is not announced and ends the run (`host.md` 2.2.4,
//! 2.4.8, 3.1.10).

use std::fs;

use crew_base::message::Message;
use crew_engine::api::{SessionUpdate, Update};
use crew_runtime::Notice;
use serde_json::json;

use crate::models::{Fake, calls, last_of, report, spawn, text};
use crate::world::{Running, World};

#[tokio::test(start_paused = true)]
async fn a_prompt_that_cannot_be_stored_fails_and_the_next_one_works() {
    let world = World::new();
    let model = Fake::replies(|_| text("good"));
    let mut running = world.open(model.clone()).await;
    // A file where the session folder would be.
    let obstacle = world.agent_dir.join("sessions");
    fs::write(&obstacle, "in the way").unwrap();
    let before = failed_run(&mut running, "PROMPT-ONE").await;
    assert!(before.iter().all(|text| !text.contains("PROMPT-ONE")), "{before:?}");
    assert!(model.asked().is_empty());
    fs::remove_file(&obstacle).unwrap();
    running.prompt("PROMPT-TWO").await;
    running.until_rest().await;
    let request = serde_json::to_string(&model.asked()[0].messages).unwrap();
    assert!(request.contains("PROMPT-TWO") && !request.contains("PROMPT-ONE"));
    let stored = fs::read_to_string(&World::files(&world.sessions())[0]).unwrap();
    assert!(stored.contains("PROMPT-TWO") && !stored.contains("PROMPT-ONE"));
    let parents = stored.lines().skip(1).filter(|line| line.contains(r#""parentId":null"#));
    assert_eq!(parents.count(), 1);
    running.quit().await;
}

/// Prompts, and yields what was announced as stored up to the failure.
async fn failed_run(running: &mut Running, prompt: &str) -> Vec<String> {
    running.prompt(prompt).await;
    let mut announced = Vec::new();
    loop {
        match running.next().await.unwrap() {
            Notice::Update(Update::RunFailed { error, .. }) => {
                assert!(!error.is_empty());
                return announced;
            }
            Notice::Update(Update::Session {
                update: SessionUpdate::MessageEnd(message), ..
            }) => {
                if !matches!(&*message, Message::Assistant(_)) {
                    announced.push(serde_json::to_string(&*message).unwrap());
                }
            }
            Notice::Update(_)
            | Notice::Warning(_)
            | Notice::Question(_)
            | Notice::QuestionOver(_)
            | Notice::Opened { .. } => {}
        }
    }
}

// crew.md TOOL-25, RES: a child that cannot be stored settles as an error.
#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_be_stored_is_delivered_as_an_error() {
    let world = World::new();
    world.define("one", "tools: []\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn("one")]),
        (true, _) => text("end"),
        (false, _) => calls(&[report("good")]),
    });
    let mut running = world.open(model.clone()).await;
    fs::create_dir_all(world.sessions()).unwrap();
    let obstacle = world.sessions().join("crew");
    fs::write(&obstacle, "in the way").unwrap();
    running.prompt("go").await;
    running.until_rest().await;
    assert!(model.asked_by_children().is_empty());
    let last = last_of(model.asked().last().unwrap());
    assert!(last.contains("error") && !last.contains("good"), "{last}");
    running.quit().await;
}

// host.md 2.2.5
#[tokio::test(start_paused = true)]
async fn a_device_that_takes_nothing_is_refused_as_a_session() {
    use crew_engine::Source;
    use crew_engine::api::Refusal;
    let world = World::new();
    let model = Fake::replies(|_| calls(&[("read", json!({"path": "x"}))]));
    let link = world.cwd.join("full.jsonl");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let mut running = world.start(model.clone());
    let refused = running.open(Source::File(link.display().to_string())).await;
    let Err(Refusal::OpenFailed(error)) = refused else { panic!("{refused:?}") };
    assert!(error.contains("full.jsonl"), "{error}");
    running.quit().await;
    assert!(model.asked().is_empty());
}
