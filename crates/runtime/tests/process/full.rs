//! A session file that can grow no more (`host.md` 2.2.4, 3.1.10).

use std::fs;
use std::process::{Command, ExitCode};

use crew_engine::api::{SessionUpdate, Update};
use crew_runtime::Notice;

use crate::Test;
use crate::models::{Fake, text};
use crate::world::{Running, World};

pub(crate) const TESTS: [Test; 1] = [(
    "an_entry_that_does_not_fit_fails_its_run_and_nothing_else",
    an_entry_that_does_not_fit_fails_its_run_and_nothing_else,
)];

fn an_entry_that_does_not_fit_fails_its_run_and_nothing_else() {
    // With the signal ignored, a write beyond the limit is an error.
    let script = r#"trap "" XFSZ; ulimit -f 128; exec "$0" full"#;
    let program = std::env::current_exe().unwrap();
    let status = Command::new("bash").arg("-c").arg(script).arg(program).status().unwrap();
    assert!(status.success());
}

/// Runs under the limit of 128 KiB for each file.
pub(crate) fn run() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::new();
        let model = Fake::replies(|_| text("good"));
        let mut running = world.open(model.clone()).await;
        running.prompt("first").await;
        running.until_rest().await;
        let file = World::files(&world.sessions()).remove(0);
        let before = fs::read_to_string(&file).unwrap();

        running.prompt(&format!("TOO-LONG {}", "x".repeat(200_000))).await;
        assert!(!is_announced_before_failure(&mut running, "TOO-LONG").await);
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
        assert_eq!(model.asked().len(), 1);

        running.prompt("third").await;
        running.until_rest().await;
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.starts_with(&before) && after.contains("third"));
        let lines: Vec<serde_json::Value> =
            after.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Every parent is in the file.
        for line in &lines[1..] {
            let parent = &line["parentId"];
            assert!(parent.is_null() || lines.iter().any(|other| other["id"] == *parent));
        }
        running.quit().await;
    });
    ExitCode::SUCCESS
}

async fn is_announced_before_failure(running: &mut Running, words: &str) -> bool {
    let mut announced = false;
    loop {
        match running.next().await.unwrap() {
            Notice::Update(Update::RunFailed { .. }) => return announced,
            Notice::Update(Update::Session {
                update: SessionUpdate::MessageEnd(message), ..
            }) => {
                announced |= serde_json::to_string(&*message).unwrap().contains(words);
            }
            Notice::Update(_)
            | Notice::Warning(_)
            | Notice::Question(_)
            | Notice::QuestionOver(_)
            | Notice::Opened { .. } => {}
        }
    }
}
