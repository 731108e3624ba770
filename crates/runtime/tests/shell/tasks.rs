//! Work for the `task` tool: what is asked of people, what children are given,
//! and that nothing of a call outlives it.

use std::fs;
use std::path::PathBuf;

use crew_engine::api::Command;
use crew_runtime::{Notice, Question};
use serde_json::{Value, json};

use crate::models::{Asked, Fake, calls, last_of, prompt_of, report, spawn, text, tools_of};
use crate::world::{Running, World};

/// A call with one child.
fn task(fields: &Value) -> (&'static str, Value) {
    let mut item = json!({"name": "kid", "task": "the assignment"});
    item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    ("task", json!({"context": "shared", "tasks": [item]}))
}

fn done(data: &Value) -> (&'static str, Value) {
    ("yield", json!({"data": data}))
}

/// An owner that calls `task` once, and a child as the test says.
fn with_child(
    child: impl Fn(&Asked) -> Vec<crew_base::model::ModelEvent> + Send + Sync + 'static,
) -> std::sync::Arc<Fake> {
    Fake::replies(move |asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[task(&json!({}))]),
        (true, _) => text("end"),
        (false, _) => child(asked),
    })
}

fn settings(world: &World, crew: &Value) {
    let text = json!({"crew": crew}).to_string();
    fs::write(world.agent_dir.join("settings.json"), text).unwrap();
}

async fn question(running: &mut Running) -> Question {
    running
        .until(|notice| match notice {
            Notice::Question(question) => Some(question.clone()),
            Notice::Update(_)
            | Notice::Warning(_)
            | Notice::QuestionOver(_)
            | Notice::Opened { .. } => None,
        })
        .await
}

/// The folder of the only session, once it is saved.
fn folder(world: &World) -> PathBuf {
    let files = World::files(&world.sessions());
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].with_extension("")
}

// SESS-1 to SESS-7, OBS-4.
#[tokio::test]
async fn a_child_is_prepared_from_its_parent_and_its_files_lie_beside() {
    let world = World::new();
    fs::write(world.cwd.join("CLAUDE.md"), "NOTES").unwrap();
    fs::write(world.agent_dir.join("AGENTS.md"), "INSTRUCTIONS").unwrap();
    world.define("role", "tools: [read, bash]\nspawns: [scout]\nmodel: fake/deep/two:high\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[task(&json!({"agent": "role"}))]),
        (true, _) => text("end"),
        (false, _) => calls(&[done(&json!({"x": 1}))]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    let child = &model.asked_by_children()[0];
    assert_eq!(tools_of(child), ["read", "bash", "task", "wait", "yield"]);
    assert_eq!((child.model.id.as_str(), child.thinking.word()), ("deep/two", "high"));
    let prompt = prompt_of(child);
    assert!(prompt.contains("The role of role.") && prompt.contains("shared"), "{prompt}");
    assert!(prompt.contains("NOTES") && !prompt.contains("INSTRUCTIONS"), "{prompt}");
    let part = prompt.find("<task-child>").unwrap();
    assert!(prompt[part..].ends_with("</cwd>"), "the child part stands before the last section");
    let names: Vec<_> = World::files(&folder(&world)).into_iter().collect();
    let names: Vec<_> = names.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["kid.jsonl", "kid.md"]);
    assert!(last_of(model.asked().last().unwrap()).contains("completed"));
}

// TASK-SPAWN-13: a model that cannot be used is told and replaced.
#[tokio::test]
async fn the_first_usable_model_counts_and_the_parents_is_the_last() {
    let world = World::new();
    world.define("list", "model: [locked/three, fake/deep/two]\n");
    world.define("poor", "model: locked/three\n");
    let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[task(&json!({"agent": "list"})), task(&json!({"agent": "poor"}))]),
        (true, _) => text("end"),
        (false, _) => calls(&[done(&json!({"x": 1}))]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    let warnings = running.warnings.clone();
    running.quit().await;
    let mut used: Vec<_> =
        model.asked_by_children().iter().map(|request| request.model.id.clone()).collect();
    used.sort();
    assert_eq!(used, ["deep/two", "one"]);
    let told = warnings.iter().filter(|text| text.contains("locked/three")).count();
    assert_eq!(told, 2, "{warnings:?}");
}

// OBS-3, DISP-3: asked, allowed; asked, refused; withdrawn by an abort.
#[tokio::test]
async fn a_call_of_task_waits_for_the_persons_word() {
    for answer in [Some(true), Some(false), None] {
        let mut world = World::new();
        world.can_ask = true;
        settings(&world, &json!({"approval": {"tools": {"task": "prompt"}}}));
        let model = with_child(|_| calls(&[done(&json!({"x": 1}))]));
        let mut running = world.open(model.clone()).await;
        running.prompt("go").await;
        let Question { id, tool, view, .. } = question(&mut running).await;
        assert_eq!(tool, "task");
        assert!(view.contains("the assignment"), "{view}");
        match answer {
            Some(is_allowed) => running.handle.answer(id, is_allowed),
            None => {
                running.handle.send(Command::Abort(Running::owner()));
                running
                    .until(|notice| match notice {
                        Notice::QuestionOver(over) => (*over == id).then_some(()),
                        Notice::Update(_)
                        | Notice::Warning(_)
                        | Notice::Question(_)
                        | Notice::Opened { .. } => None,
                    })
                    .await;
                // Too late: nothing happens.
                running.handle.answer(id, true);
            }
        }
        running.until_rest().await;
        running.quit().await;
        let children = model.asked_by_children().len();
        assert_eq!(children, usize::from(answer == Some(true)), "{answer:?}");
        if answer == Some(false) {
            assert!(last_of(model.asked().last().unwrap()).contains("refused by the person"));
        }
    }
}

// OBS-3, SESS-3, `crew.md` OP-19.
#[tokio::test]
async fn the_approval_of_other_tools_is_that_of_the_settings() {
    let mut world = World::new();
    world.can_ask = true;
    settings(&world, &json!({"approval": {"mode": "write", "tools": {"ls": "deny"}}}));
    let model = Fake::replies(|asked| match asked.nth {
        0 => calls(&[
            ("ls", json!({})),
            ("bash", json!({"command": "touch ran"})),
            ("write", json!({"path": "made", "content": "x"})),
        ]),
        1 => calls(&[("bash", json!({"command": "touch never"}))]),
        _ => text("end"),
    });
    world.tools.changes = vec!["+ls".to_owned()];
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    let first = question(&mut running).await;
    assert!(first.tool == "bash" && first.view.contains("touch ran"), "{first:?}");
    running.handle.answer(first.id, true);
    let second = question(&mut running).await;
    running.handle.answer(second.id, false);
    running.until_rest().await;
    running.quit().await;
    let made = |name: &str| world.cwd.join(name).exists();
    assert_eq!((made("ran"), made("made"), made("never")), (true, true, false));
    let shown = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert!(shown.contains("approval.tools.ls: deny"), "{shown}");
}

// OBS-3, `crew.md` OP-19: what would need a dialogue is refused in a child; a
// child of `task` needs none, but the policies hold (SESS-3).
#[tokio::test]
async fn nobody_is_asked_for_a_child() {
    let mut world = World::new();
    world.can_ask = true;
    let tools = json!({"task": "allow", "crew_spawn": "allow", "ls": "prompt"});
    settings(&world, &json!({"approval": {"mode": "always-ask", "tools": tools}}));
    let work = [("bash", json!({"command": "true"})), ("ls", json!({}))];
    let model = Fake::replies(move |asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[task(&json!({})), spawn("worker")]),
        (true, _) => text("end"),
        (false, 0) => calls(&work),
        (false, _) if tools_of(&asked.request).contains(&"yield".to_owned()) => {
            calls(&[done(&json!({"x": 1}))])
        }
        (false, _) => calls(&[report("done")]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    for request in model.asked_by_children().iter().filter(|request| request.messages.len() > 3) {
        let shown = serde_json::to_string(&request.messages).unwrap();
        let is_task = tools_of(request).contains(&"yield".to_owned());
        assert!(shown.contains("approval.tools.ls: prompt"), "{shown}");
        assert_eq!(shown.contains("nobody can give here"), !is_task, "{shown}");
    }
    assert_eq!(model.asked_by_children().len(), 4);
}

// OBS-12, ART-10, ART-12; task.md 12 row 72.
#[tokio::test]
async fn the_files_of_an_unsaved_session_are_gone_with_the_call() {
    let mut world = World::new();
    world.in_memory = true;
    let tmp = world.cwd.parent().unwrap().join("tmp");
    let seen = tmp.clone();
    let model = with_child(move |_| {
        let folder = fs::read_dir(&seen).unwrap().next().unwrap().unwrap().path();
        assert!(folder.join("kid.jsonl").exists());
        calls(&[done(&json!({"x": 1}))])
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    assert_eq!(fs::read_dir(tmp).unwrap().count(), 0);
    assert_eq!(model.asked_by_children().len(), 1);
}

// SESS-11, OBS-8: quitting ends a background command with its child.
#[tokio::test]
async fn nothing_of_a_call_outlives_the_host() {
    let world = World::new();
    let model = with_child(|asked| match asked.nth {
        0 => calls(&[("bash", json!({"command": "touch up; sleep 61.7", "background": true}))]),
        _ => calls(&[("wait", json!({}))]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    while !world.cwd.join("up").exists() {
        tokio::task::yield_now().await;
    }
    running.quit().await;
}

// ART-8, ART-9; task.md 12 row 94: siblings and parents read by address.
#[tokio::test]
async fn a_result_is_read_by_address() {
    let world = World::new();
    let read = |path: &str| calls(&[("read", json!({"path": path}))]);
    let model = Fake::replies(move |asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[task(&json!({}))]),
        (true, 1) => calls(&[task(&json!({"name": "second", "task": "read it"}))]),
        (true, 2) => read("agent://second/got"),
        (true, _) => text("end"),
        (false, 0) if last_of(&asked.request).contains("read it") => read("agent://kid"),
        (false, 0) => calls(&[done(&json!({"secret": "VALUE-OF-KID"}))]),
        (false, _) => calls(&[done(&json!({"got": last_of(&asked.request)}))]),
    });
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    let last = last_of(model.asked().last().unwrap());
    assert!(last.contains("VALUE-OF-KID") && last.contains("of `second`"), "{last}");
}
