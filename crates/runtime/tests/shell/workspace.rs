//! How owners and children are prepared: files, models, prompts, tools.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crew_base::message::Message;
use crew_base::model::{ModelRequest, ThinkingLevel};
use crew_engine::Source;
use crew_engine::api::{Command, Refusal};
use crew_runtime::{Answer, Notice, Query};
use crew_store::trust::Trust;
use serde_json::json;

use crate::models::{Fake, calls, last_of, prompt_of, report, spawn, text, tools_of};
use crate::world::{Running, World};

/// An owner that spawns one child, which reports at once.
fn spawning(definition: &'static str) -> Arc<Fake> {
    Fake::replies(move |asked| match (asked.is_owner, asked.nth) {
        (true, 0) => calls(&[spawn(definition)]),
        (true, _) => text("end"),
        (false, _) => calls(&[report("the result")]),
    })
}

/// Spawns one child in a world; yields the model and the warnings.
async fn spawned(world: &World, definition: &'static str) -> (Arc<Fake>, Vec<String>) {
    let model = spawning(definition);
    let mut running = world.open(model.clone()).await;
    running.prompt("go").await;
    running.until_rest().await;
    let warnings = running.warnings.clone();
    running.quit().await;
    (model, warnings)
}

fn last_of_owner(model: &Fake) -> String {
    let asked = model.asked();
    let owner = asked.iter().rfind(|request| request.session == Running::owner());
    owner.map(last_of).unwrap()
}

fn only_child(model: &Fake) -> ModelRequest {
    let mut children = model.asked_by_children();
    assert_eq!(children.len(), 1);
    children.remove(0)
}

// C026, C119, crew.md rows 58 and 59, ISO-2, ISO-3, product.md P-14g
#[tokio::test(start_paused = true)]
async fn a_child_has_what_its_definition_names_and_the_report() {
    let check = async |tools: &str, exclude: &[&str], expected: &str| {
        let mut world = World::new();
        world.tools.exclude = exclude.iter().map(|name| (*name).to_owned()).collect();
        world.define("one", tools);
        let (model, _) = spawned(&world, "one").await;
        assert_eq!(tools_of(&only_child(&model)).join(" "), expected);
        assert!(tools_of(&model.asked()[0]).iter().all(|tool| tool != "crew_report"));
    };
    check("tools: read, grep\n", &[], "read grep crew_report").await;
    check("tools: []\n", &[], "crew_report").await;
    check("tools: read, crew_spawn, crew_report\n", &[], "read crew_report").await;
    check("tools: read, bash, write\n", &["bash"], "read write crew_report").await;
    check("tools: read\n", &["crew_*d"], "read crew_report").await;
    check("", &["e*", "l?", "f*"], "read bash write grep ls crew_report").await;
}

// ISO-6, TOOL-9, RES-21
#[tokio::test(start_paused = true)]
async fn prompts_hold_the_rules_and_a_role_is_appended() {
    let mut world = World::new();
    world.prompt.append = vec!["An addendum.".to_owned()];
    fs::write(world.cwd.join("AGENTS.md"), "The rules of this project.").unwrap();
    world.define("one", "tools: read\n");
    let (model, _) = spawned(&world, "one").await;
    let (owner, child) = (prompt_of(&model.asked()[0]), prompt_of(&only_child(&model)));
    for prompt in [&owner, &child] {
        assert!(prompt.contains("An addendum.") && prompt.contains("The rules of this project."));
        assert!(prompt.contains(&world.cwd.display().to_string()));
    }
    assert!(owner.contains("Subagents work in the background"));
    assert!(!owner.contains("The role of one."));
    assert!(child.contains("End every prompt with exactly one `crew_report` call"));
    assert!(!child.contains("Subagents work in the background"));
    let role = child.find("The role of one.").unwrap();
    assert!(child.find("An addendum.").unwrap() < role);
}

// crew.md rows 53, 54 and 57; MOD-1, MOD-2, MOD-11, TOOL-25
#[tokio::test(start_paused = true)]
async fn a_child_whose_model_cannot_be_used_is_an_error_that_says_so() {
    let check = async |field: &str, expected: &[&str]| {
        let world = World::new();
        world.define("one", &format!("tools: read\n{field}\n"));
        let (model, _) = spawned(&world, "one").await;
        assert!(model.asked_by_children().is_empty());
        let delivered = last_of_owner(&model);
        for text in expected {
            assert!(delivered.contains(text), "{text}: {delivered}");
        }
    };
    check("model: fake/none", &["fake/none", "error"]).await;
    check("model: malformed", &["malformed", "error"]).await;
    check("model: FAKE/one", &["FAKE/one", "error"]).await;
    check("model: locked/three", &["locked", "locked/three", "error"]).await;
}

// MOD-1, MOD-3, C043
#[tokio::test(start_paused = true)]
async fn a_child_runs_its_own_model_and_level_or_those_of_its_owner() {
    let check = async |fields: &str, model: &str, level: ThinkingLevel| {
        let mut world = World::new();
        world.model.thinking = Some(ThinkingLevel::Low);
        world.define("one", fields);
        let (asked, _) = spawned(&world, "one").await;
        let child = only_child(&asked);
        assert_eq!(child.model.reference(), model);
        assert_eq!(child.thinking, level);
    };
    check("thinking: high\n", "fake/one", ThinkingLevel::High).await;
    check("model: fake/deep/two\nthinking: minimal\n", "fake/deep/two", ThinkingLevel::Minimal)
        .await;
    // The person's level is for the owner (ISO-13).
    check("", "fake/one", ThinkingLevel::Medium).await;
}

// ISO-8, ISO-9, host.md 12.4, product.md P-14a
#[tokio::test(start_paused = true)]
async fn a_childs_file_lies_beside_its_owners_and_names_it() {
    let world = World::new();
    world.define("one", "tools: read\n");
    let (_, _) = spawned(&world, "one").await;
    let owner = World::files(&world.sessions()).remove(0);
    let child = World::files(&world.sessions().join("crew")).remove(0);
    let stored = fs::read_to_string(&child).unwrap();
    let header: serde_json::Value = serde_json::from_str(stored.lines().next().unwrap()).unwrap();
    assert_eq!(header["parentSession"], json!(owner));
    assert_eq!(header["cwd"], json!(world.cwd));
    assert!(stored.contains(r#""type":"session_info""#));
    assert!(stored.contains("crew: one · a brief"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&owner), mode(&child)), (0o600, 0o600));
    assert_eq!(mode(child.parent().unwrap()), 0o700);
}

#[tokio::test(start_paused = true)]
async fn a_child_of_an_owner_in_memory_is_in_memory() {
    let mut world = World::new();
    world.in_memory = true;
    world.define("one", "tools: read\n");
    let (model, _) = spawned(&world, "one").await;
    assert!(last_of_owner(&model).contains("the result"));
    assert!(!world.agent_dir.join("sessions").exists());
}

// ISO-7
#[tokio::test(start_paused = true)]
async fn an_unknown_skill_is_a_warning_and_the_child_starts() {
    let world = World::new();
    for name in ["first", "second"] {
        let folder = world.agent_dir.join("skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: The {name} skill.\n---\nText.\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    world.define("one", "tools: read\nskills: first, third\n");
    let (model, warnings) = spawned(&world, "one").await;
    let prompt = prompt_of(&only_child(&model));
    assert!(prompt.contains("The first skill.") && !prompt.contains("The second skill."));
    assert!(prompt_of(&model.asked()[0]).contains("The second skill."));
    assert!(warnings.iter().any(|warning| warning.contains("third")), "{warnings:?}");
}

// product.md P-14d: a child cannot widen what the next child may do.
#[tokio::test(start_paused = true)]
async fn trust_that_was_implied_covers_nothing_that_appears_later() {
    let check = async |trust: Trust, expected: bool| {
        let mut world = World::new();
        world.trust = trust;
        let model = Fake::replies(|asked| match (asked.is_owner, asked.nth) {
            (true, 0) => text("wait"),
            (true, 1) => calls(&[("crew_list", json!({}))]),
            (true, _) => text("end"),
            (false, _) => calls(&[report("r")]),
        });
        let mut running = world.open(model.clone()).await;
        running.prompt("go").await;
        running.until_rest().await;
        let folder = world.cwd.join(".pi/agents");
        fs::create_dir_all(&folder).unwrap();
        let definition = "---\nname: sneaky\ndescription: d\n---\nRole.\n";
        fs::write(folder.join("sneaky.md"), definition).unwrap();
        running.prompt("go on").await;
        running.until_rest().await;
        running.quit().await;
        let listed = last_of(model.asked().last().unwrap());
        assert_eq!(listed.contains("sneaky"), expected, "{listed}");
    };
    check(Trust::Implied, false).await;
    check(Trust::Untrusted, false).await;
    check(Trust::Trusted, true).await;
}

/// Runs one prompt in a world and yields the file.
async fn stored(world: &World) -> String {
    let mut running = world.open(Fake::replies(|_| text("good"))).await;
    running.prompt("go").await;
    running.until_rest().await;
    running.quit().await;
    World::files(&world.sessions()).remove(0).display().to_string()
}

// host.md 1.7.1, 1.7.2
#[tokio::test(start_paused = true)]
async fn a_resumed_session_has_its_model_and_level_back() {
    let mut world = World::new();
    world.model.model = Some("fake/deep/two".to_owned());
    world.model.thinking = Some(ThinkingLevel::High);
    let file = stored(&world).await;
    world.model = Default::default();
    let model = Fake::replies(|_| text("again"));
    let mut running = world.start(model.clone());
    running.open(Source::File(file)).await.unwrap();
    running.prompt("more").await;
    running.until_rest().await;
    running.quit().await;
    let request = model.asked().remove(0);
    assert_eq!(request.model.reference(), "fake/deep/two");
    assert_eq!(request.thinking, ThinkingLevel::High);
    let texts: Vec<String> = request
        .messages
        .iter()
        .filter_map(|message| {
            let Message::User(user) = &**message else { return None };
            Some(user.content.text())
        })
        .collect();
    assert_eq!(texts, ["go", "more"]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_whose_model_is_gone_gets_another_with_a_warning() {
    let mut world = World::new();
    let file = stored(&world).await;
    let text = fs::read_to_string(&file).unwrap().replace(r#""one""#, r#""gone""#);
    fs::write(&file, text).unwrap();
    world.model = Default::default();
    let mut running = world.start(Fake::replies(|_| crate::models::text("again")));
    let session = Running::owner();
    running.handle.send(Command::Open { session, source: Source::File(file), adopts: None });
    let model = running
        .until(|notice| match notice {
            Notice::Opened { model, .. } => Some(model.clone()),
            Notice::Update(_)
            | Notice::Warning(_)
            | Notice::Question(_)
            | Notice::QuestionOver(_) => None,
        })
        .await;
    assert!(model.is_some_and(|model| model.id != "gone"));
    assert!(running.warnings.iter().any(|text| text.contains("gone")), "{:?}", running.warnings);
    running.quit().await;
}

// host.md 2.2.5, 2.3
#[tokio::test(start_paused = true)]
async fn what_cannot_be_opened_is_refused_and_left_as_it_was() {
    let world = World::new();
    let check = async |name: &str, content: &str, expected: &str| {
        let file = world.cwd.join(name);
        fs::write(&file, content).unwrap();
        let mut running = world.start(Fake::replies(|_| text("never")));
        let refused = running.open(Source::File(file.display().to_string())).await;
        let Err(Refusal::OpenFailed(error)) = refused else { panic!("{refused:?}") };
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        running.quit().await;
    };
    check("notes.txt", "no session at all\n", "notes.txt").await;
    let gone = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-30T13:43:03.766Z","cwd":"/no/such/folder"}"#;
    check("gone.jsonl", &format!("{gone}\n"), "/no/such/folder").await;
}

// host.md 12.8: leaving gives the file free at once, so that it can be resumed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_left_can_be_opened_again_at_once() {
    let world = World::new();
    let file = stored(&world).await;
    let mut running = world.start(Fake::replies(|_| text("again")));
    for _ in 0..20 {
        running.open(Source::File(file.clone())).await.unwrap();
        running.prompt("more").await;
        running.until_rest().await;
        running.command(Command::Leave(Running::owner())).await.unwrap();
    }
    running.open(Source::File(file)).await.unwrap();
    let state = running.handle.ask(&Running::owner(), Query::Totals).await.unwrap();
    let Answer::Totals(totals) = state else { panic!("{state:?}") };
    assert_eq!(totals.own.user_messages, 21);
    running.quit().await;
}
