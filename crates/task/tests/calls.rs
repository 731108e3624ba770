//! Calls and their children, from dispatch to the one result.

#[path = "calls/wording.rs"]
mod wording;
#[path = "support/world.rs"]
mod world;

use crew_base::id::RunId;
use crew_base::session::RunEnd;
use crew_task::agents;
use crew_task::approval::Policy;
use crew_task::isolation::{Integration, Merged};
use crew_task::settings::Spawns;
use serde_json::{Value, json};
use std::sync::Arc;

use world::{World, answer, prepared, tool_call};

// DELIV-9, TASK-SPAWN-15, SESS-10; task.md 12 row 22.
#[test]
fn a_batch_answers_in_input_order_and_a_failure_stops_nobody() {
    let mut world = World::new();
    world.batch(1, &["alpha", "beta", "gamma"]);
    world.completes("gamma", json!({"n": 3}));
    world.opened("beta");
    world.message("beta", answer("", &[], "error"));
    world.settle("beta", RunEnd::Ended);
    assert!(world.answers.iter().all(|(run, _)| run.0 != 1), "one child still works");
    world.completes("alpha", json!({"n": 1}));
    let answer = world.answer(1);
    assert!(!answer.is_error);
    let order: Vec<_> = ["id=\"alpha\"", "id=\"beta\"", "id=\"gamma\""]
        .iter()
        .map(|id| answer.text.find(id).expect("an envelope"))
        .collect();
    assert!(order.is_sorted());
    assert!(answer.text.contains("[fake/m1] broken"));
    let results = answer.details["results"].as_array().unwrap();
    let exits: Vec<_> = results.iter().map(|record| record["exitCode"].as_i64().unwrap()).collect();
    assert_eq!(exits, [0, 1, 0]);
    assert_eq!(answer.details["usage"]["input"], 30);
    for entry in ["started beta", "failed beta", "completed alpha", "write beta.md"] {
        assert!(world.has(entry), "{entry}: {:?}", world.log);
    }
    assert!(world.tasks.is_quiet());
}

// YIELD-15: the turn is stopped before the outcome is fed.
#[test]
fn an_accepted_yield_stops_the_turn_first() {
    let mut world = World::new();
    world.call(1, json!({"name": "kid", "task": "x"}));
    world.completes("kid", json!(1));
    let stop = world.log.iter().position(|entry| entry == "stop").unwrap();
    let ended = world.log.iter().position(|entry| entry.starts_with("ended 1")).unwrap();
    assert!(stop < ended);
    let record = world.record(1, 0);
    assert_eq!(record["extractedToolData"]["yield"][0]["data"], 1);
    assert_eq!((&record["tokens"], &record["requests"]), (&json!(12), &json!(1)));
    assert_eq!(record["outputPath"], "/s/X/kid.md");
}

// DISP-2, DISP-10, DISP-11; task.md 12 rows 1, 9.
#[test]
fn a_refused_call_starts_nothing_and_uses_up_no_id() {
    let mut world = World::new();
    world.setup.approval.tools.insert("task".into(), Policy::Deny);
    world.call(1, json!({"task": "x", "agent": "nobody"}));
    assert_eq!(world.log, ["ended 1"]);
    let denied = world.answer(1);
    assert!(denied.is_error && denied.text.contains("deny") && !denied.text.contains("nobody"));
    world.setup.approval.tools.clear();
    world.call(2, json!({"context": "c", "tasks": [{"name": "kid", "task": "x"}, {"task": "x", "agent": "nobody"}]}));
    assert_eq!(world.log, ["ended 1", "ended 2"]);
    assert_eq!(world.answer(2).details["results"], json!([]));
    world.call(3, json!({"name": "kid", "task": "x"}));
    assert!(world.has("open kid"));
}

// DISP-3, DISP-4.
#[test]
fn a_call_that_needs_an_answer_waits_for_the_person() {
    let mut world = World::new();
    world.setup.approval.can_ask = true;
    world.setup.approval.tools.insert("task".into(), Policy::Prompt);
    for run in 1..=3 {
        world.call(run, json!({"name": "kid", "task": "the work"}));
    }
    assert!(world.log[0].contains("Agent: task\nName: kid\nTask: the work"), "{:?}", world.log);
    assert!(!world.has("lease"));
    world.tasks.asked(world.now, RunId(1), false);
    world.tasks.asked(world.now, RunId(2), true);
    world.take();
    assert!(world.cancel(3));
    assert!(world.answer(1).is_error && world.answer(3).is_error);
    assert!(world.has("open kid"));
}

// DELIV-11, DISP-12; task.md 12 row 74.
#[test]
fn a_folder_that_cannot_be_made_is_an_error_without_records() {
    let mut world = World::new();
    world.holds.lease = true;
    world.call(1, json!({"task": "x"}));
    world.tasks.leased(world.now, &mut world.ids, RunId(1), Err("in the way".into()));
    world.take();
    let answer = world.answer(1);
    assert!(answer.is_error && answer.text.contains("in the way"));
    assert_eq!(answer.details["results"], json!([]));
    assert!(world.tasks.is_quiet());
}

#[test]
fn a_child_that_cannot_be_made_flags_the_call() {
    let mut world = World::new();
    world.batch(1, &["good", "bad"]);
    let session = world.session("bad");
    world.tasks.open_failed(world.now, &mut world.ids, &session, "no key");
    world.take();
    world.completes("good", json!(1));
    let answer = world.answer(1);
    assert!(answer.is_error && answer.text.contains("`bad` could not be started: no key"));
    assert_eq!(answer.details["results"].as_array().unwrap().len(), 1);
}

// TASK-SPAWN-14; task.md 12 row 21.
#[test]
fn one_queue_serves_all_calls_and_a_cancelled_waiter_leaves_it() {
    let mut world = World::new();
    world.setup.settings.max_concurrency = 1;
    world.batch(1, &["one", "two"]);
    world.batch(2, &["three"]);
    world.batch(3, &["four"]);
    assert!(world.has("open one") && !world.has("open two"));
    assert!(world.cancel(2));
    assert_eq!(world.answer(2).text, "`three` never started: cancelled by the caller");
    assert!(!world.answer(2).is_error);
    world.completes("one", json!(1));
    assert!(world.has("open two") && !world.has("open four"));
    world.completes("two", json!(2));
    assert!(world.has("open four") && !world.has("open three"));
    world.completes("four", json!(4));
    assert!(world.tasks.is_quiet());
}

#[test]
fn a_raised_limit_admits_waiters_at_once() {
    let mut world = World::new();
    world.setup.settings.max_concurrency = 1;
    world.batch(1, &["one", "two", "three"]);
    world.setup.settings.max_concurrency = 0;
    world.batch(2, &["four"]);
    for id in ["two", "three", "four"] {
        assert!(world.has(&format!("open {id}")), "{id}");
    }
}

// EXEC-19, EXEC-20, EXEC-23, OBS-10; task.md 12 row 38.
#[test]
fn cancelling_ends_what_runs_and_starts_nothing_more() {
    let mut world = World::new();
    world.setup.settings.max_concurrency = 1;
    world.batch(1, &["run", "wait"]);
    world.opened("run");
    assert!(world.cancel(1));
    assert!(world.has("stop"));
    world.message("run", answer("partial   words\n here", &[], "aborted"));
    world.settle("run", RunEnd::Aborted);
    let answer = world.answer(1);
    assert!(!answer.is_error);
    for part in [
        "status=\"cancelled\"",
        "<abort-reason>cancelled by the caller</abort-reason>",
        "last text: &quot;partial words here&quot;",
        "`wait` never started",
    ] {
        assert!(answer.text.contains(part), "{} lacks {part}", answer.text);
    }
    assert!(!world.has("open wait"));
    world.batch(2, &["next"]);
    assert!(world.has("open next"), "the slot is free");
}

// EXEC-23; task.md 12 row 37.
#[test]
fn a_cancel_after_an_accepted_yield_changes_nothing() {
    let mut world = World::new();
    world.holds.close = true;
    world.call(1, json!({"name": "kid", "task": "x"}));
    world.completes("kid", json!({"ok": 1}));
    world.cancel(1);
    let session = world.session("kid");
    world.tasks.closed(world.now, &mut world.ids, &session);
    world.take();
    assert!(world.answer(1).text.contains("status=\"completed\""));
}

// ART-6, DELIV-5, OP-4, ART-10, OBS-12; task.md 12 rows 65, 66, 72.
#[test]
fn a_pointer_is_given_only_to_a_file_that_stays() {
    let long = "line of the result\n".repeat(600);
    let run = |file: Option<&str>, fails: bool| {
        let mut world = World::new();
        world.file = file.map(str::to_owned);
        world.holds.write_fails = fails;
        world.call(1, json!({"name": "kid", "task": "x"}));
        world.opened("kid");
        world.yields_with("kid", &long, json!({"type": "report"}));
        world
    };
    let saved = run(Some("/s/X.jsonl"), false);
    assert!(saved.answer(1).text.contains("full-output=\"agent://kid\""));
    assert_eq!(saved.answer(1).details["outputPaths"], json!(["/s/X/kid.md"]));
    for (world, kept) in [(run(Some("/s/X.jsonl"), true), 0), (run(None, false), 1)] {
        let answer = world.answer(1);
        assert!(answer.text.contains("<output>") && answer.text.contains(long.trim()));
        assert!(world.record(1, 0).get("outputPath").is_none());
        assert!(answer.text.contains("status=\"completed\""));
        let ended = world.log.iter().filter(|entry| *entry == "end lease /tmp/t").count();
        assert_eq!(ended, kept);
    }
}

// OBS-8, BARRIER-1, BARRIER-4; task.md 12 rows 40, 41, 44.
#[test]
fn background_commands_hold_a_yield_back_until_their_result_was_seen() {
    let mut world = World::new();
    world.call(1, json!({"name": "kid", "task": "x"}));
    world.opened("kid");
    let session = world.session("kid");
    let bash = tool_call("bash", "b", &json!({"command": "make all", "background": true}));
    assert!(world.tasks.child_called(world.now, &session, RunId(50), &bash));
    let plain = tool_call("bash", "b", &json!({"command": "ls"}));
    assert!(!world.tasks.child_called(world.now, &session, RunId(51), &plain));
    world.take();
    assert_eq!(world.answer(50).text, r#"{"job_id":"job-1"}"#);
    assert!(world.has("job job-1 make all"));
    world.yields("kid", json!({"data": "first"}));
    assert!(world.has("prompt task-pending"));
    world.say("kid", "waiting");
    world.tasks.job_ended(world.now, &session, "job-1", Some(0), "done");
    world.take();
    assert!(world.has("prompt task-job"));
    let result = json!({"role": "custom", "customType": "task-job",
        "content": r#"{"job_id":"job-1","exit_code":0,"output":"done"}"#});
    world.message("kid", result);
    world.yields("kid", json!({"data": "second"}));
    assert_eq!(world.record(1, 0)["output"], "\"second\"");
}

#[test]
fn a_cancelled_wait_is_answered_and_a_finished_one_too() {
    let mut world = World::new();
    world.call(1, json!({"name": "kid", "task": "x"}));
    world.opened("kid");
    let session = world.session("kid");
    let bash = tool_call("bash", "b", &json!({"command": "make", "background": true}));
    world.tasks.child_called(world.now, &session, RunId(50), &bash);
    let wait = tool_call("wait", "w", &json!({}));
    world.tasks.child_called(world.now, &session, RunId(51), &wait);
    assert!(world.cancel(51));
    assert!(world.answer(51).is_error);
    world.tasks.child_called(world.now, &session, RunId(52), &wait);
    world.tasks.job_ended(world.now, &session, "job-1", Some(2), "out");
    world.take();
    assert_eq!(world.answer(52).text, r#"[{"job_id":"job-1","exit_code":2,"output":"out"}]"#);
    assert!(!world.cancel(77), "not one of ours");
}

// SESS-12; task.md 12 rows 84, 85.
#[test]
fn cleanup_that_hangs_changes_only_an_aborted_result() {
    let hang = |aborts: bool| {
        let mut world = World::new();
        world.holds.close = true;
        world.call(1, json!({"name": "kid", "task": "x"}));
        if aborts {
            world.opened("kid");
            world.cancel(1);
            world.settle("kid", RunEnd::Aborted);
        } else {
            world.completes("kid", json!({"ok": 1}));
        }
        world.wait(9_999);
        assert!(world.answers.iter().all(|(run, _)| run.0 != 1));
        world.wait(1);
        world.answer(1).text.clone()
    };
    assert!(hang(false).contains("status=\"completed\""));
    let text = hang(true);
    assert!(
        text.contains("<abort-reason>cleanup took longer than 10000 ms</abort-reason>"),
        "{text}"
    );
    assert!(text.contains("working directory may remain"), "{text}");
}

// EXEC-2, EXEC-22.
#[test]
fn waiting_in_the_queue_is_no_runtime() {
    let mut world = World::new();
    world.setup.settings.max_concurrency = 1;
    world.setup.settings.max_runtime_ms = 700;
    world.batch(1, &["one", "two"]);
    world.opened("one");
    world.now = world.now + 600;
    world.yields("one", json!({"data": 1}));
    world.opened("two");
    world.wait(650);
    assert!(world.answers.iter().all(|(run, _)| run.0 != 1));
    world.wait(50);
    world.settle("two", RunEnd::Aborted);
    let record = world.record(1, 1);
    assert_eq!((&record["aborted"], &record["exitCode"]), (&json!(true), &json!(1)));
    assert_eq!(record["abortReason"], "runtime limit reached (task.maxRuntimeMs=700)");
}

// TASK-SPAWN-2, DISP-7, DISP-8; task.md 12 row 12.
#[test]
fn shared_context_reaches_the_system_prompt_only_while_batch_is_on() {
    for batch in [true, false] {
        let mut world = World::new();
        world.setup.settings.batch = batch;
        world.call(1, json!({"name": "with", "task": "x", "context": " SHARED "}));
        world.call(2, json!({"name": "without", "task": "y"}));
        let told = |id: &str| {
            let open = world.opens.iter().find(|open| open.id == id);
            open.map(|open| open.prompt_part.matches("SHARED").count())
        };
        assert_eq!(told("with"), batch.then_some(1));
        assert_eq!(told("without"), Some(0));
        if batch {
            world.opened("with");
            assert!(world.has("prompt user"));
        } else {
            assert!(world.answer(1).is_error && world.answer(1).text.contains("`context`"));
        }
    }
}

fn isolated(world: &mut World) {
    world.setup.settings.isolation.enabled = true;
    world.call(1, json!({"name": "kid", "task": "x", "isolated": true}));
    assert!(world.has("isolate kid") && !world.has("open kid"));
}

fn conflict() -> Integration {
    Integration {
        has_root_changes: true,
        patch: Some("/tmp/t/kid.patch".into()),
        merged: Merged::Conflict("a.txt was changed meanwhile".into()),
        ..Integration::default()
    }
}

// ISO-2, ISO-6, ISO-13, ISO-17, ISO-19.
#[test]
fn isolated_changes_come_back_after_everything_ended() {
    let mut world = World::new();
    world.holds.close = true;
    isolated(&mut world);
    world.copied(prepared());
    let open = world.opens.last().unwrap();
    assert_eq!(open.cwd.as_deref(), Some("/copy/kid"));
    assert!(open.prompt_part.contains("/copy/kid"));
    world.completes("kid", json!({"ok": 1}));
    world.wait(10_000);
    assert!(!world.has("integrate"), "something of the child may still write");
    let session = world.session("kid");
    world.tasks.closed(world.now, &mut world.ids, &session);
    world.take();
    assert_eq!(world.captures[0].1.folder, "/s/X");
    let merged = Integration {
        has_root_changes: true,
        patch: Some("/s/X/kid.patch".into()),
        merged: Merged::Applied,
        ..Integration::default()
    };
    world.integrated(Ok(merged));
    let record = world.record(1, 0);
    assert_eq!(
        (&record["isolated"], &record["patchPath"]),
        (&json!(true), &json!("/s/X/kid.patch"))
    );
    assert!(world.answer(1).text.contains("<merge-summary>"));
    assert!(world.has("discard"));
}

// OP-7, ART-10; task.md 12 row 78.
#[test]
fn a_conflict_is_told_and_keeps_a_temporary_folder() {
    let mut world = World::new();
    world.file = None;
    isolated(&mut world);
    world.copied(prepared());
    world.completes("kid", json!({"ok": 1}));
    world.integrated(Ok(conflict()));
    let text = &world.answer(1).text;
    assert!(
        text.contains("status=\"merge failed\"") && text.contains("/tmp/t/kid.patch"),
        "{text}"
    );
    assert!(!world.log.iter().any(|entry| entry.starts_with("end lease")));
}

// DELIV-10; task.md 12 row 73.
#[test]
fn a_merge_that_throws_flags_the_result_and_keeps_the_record() {
    let mut world = World::new();
    isolated(&mut world);
    world.copied(prepared());
    world.completes("kid", json!({"ok": 1}));
    world.integrated(Err("git is gone".into()));
    let answer = world.answer(1);
    assert!(answer.is_error && answer.text.contains("git is gone"), "{}", answer.text);
    assert!(answer.text.contains("agent://kid"));
    let record = world.record(1, 0);
    assert_eq!(record["exitCode"], 0);
    assert!(record["error"].as_str().unwrap().contains("git is gone"));
}

// ISO-6; task.md 12 row 83.
#[test]
fn a_failed_isolated_child_is_not_captured() {
    let mut world = World::new();
    isolated(&mut world);
    world.copied(prepared());
    world.opened("kid");
    world.yields("kid", json!({"error": "no way"}));
    assert!(!world.has("integrate") && world.has("discard"));
    assert!(world.answer(1).text.contains("status=\"cancelled\""));
}

// ISO-2, DELIV-11; EXEC-1, ART-7; task.md 12 row 24.
#[test]
fn without_a_copy_no_child_runs() {
    let mut world = World::new();
    isolated(&mut world);
    world.copied(Err("not a git repository".into()));
    assert!(world.answer(1).is_error && world.answer(1).text.contains("not a git repository"));
    assert!(!world.has("open kid"));

    let mut world = World::new();
    isolated(&mut world);
    world.cancel(1);
    world.copied(prepared());
    let record = world.record(1, 0);
    assert_eq!(record["stderr"], "cancelled before the child started");
    assert_eq!((&record["requests"], &record["aborted"]), (&json!(0), &json!(true)));
    assert!(!world.has("open kid") && world.has("discard") && world.writes.is_empty());
}

// TASK-SPAWN-9, TASK-SPAWN-16, SESS-4, OBS-4; task.md 12 row 14.
#[test]
fn depth_ends_at_the_grandchildren_and_ids_nest() {
    let mut world = World::new();
    let mut boss = agents::general();
    boss.definition = Arc::new(crew_base::definition::Definition {
        name: "boss".into(),
        ..(*boss.definition).clone()
    });
    boss.spawns = Some(Spawns::All);
    world.setup.agents.push(boss);
    world.call(1, json!({"name": "kid", "agent": "boss", "task": "x"}));
    world.opened("kid");
    let kid = world.session("kid");
    let caller = world.tasks.caller(&kid, None).expect("a child can call");
    assert_eq!((caller.depth, caller.file.as_deref()), (1, Some("/s/X/kid.jsonl")));
    world.call_from(caller, 2, json!({"name": "Low", "agent": "boss", "task": "y"}));
    let tools = |world: &World, id: &str| -> Vec<String> {
        world.opens.iter().find(|open| open.id == id).unwrap().tools.clone()
    };
    assert!(tools(&world, "kid").contains(&"task".to_owned()));
    assert!(!tools(&world, "kid.Low").contains(&"task".to_owned()));
    world.opened("kid.Low");
    let low = world.session("kid.Low");
    let deeper = world.tasks.caller(&low, None).unwrap();
    world.call_from(deeper, 3, json!({"agent": "boss", "task": "z"}));
    assert!(world.answer(3).is_error && world.answer(3).text.contains("depth 2"));
    world.yields("kid.Low", json!({"data": 1}));
    assert_eq!(world.record(2, 0)["outputPath"], "/s/X/kid/kid.Low.md");
    world.yields("kid", json!({"data": 1}));
    assert!(world.tasks.is_quiet());
}

// TASK-SPAWN-16.
#[test]
fn ids_of_files_that_were_found_are_not_used_again() {
    let mut world = World::new();
    world.found = vec!["W".into(), "w-2".into()];
    world.call(1, json!({"name": "W", "task": "x"}));
    assert!(world.has("open W-3"));
}

// SESS-10, OBS-6.
#[test]
fn snapshots_are_coalesced_and_tools_are_told_at_once() {
    let mut world = World::new();
    world.call(1, json!({"name": "kid", "task": "x"}));
    world.opened("kid");
    let told = world.snapshots.len();
    for _ in 0..5 {
        world.message("kid", answer("text", &["bash"], "toolUse"));
    }
    assert_eq!(world.snapshots.len(), told);
    assert_eq!(world.tasks.deadline(), Some(world.now + 150));
    world.wait(150);
    assert_eq!(world.snapshots.len(), told + 1);
    let session = world.session("kid");
    world.tasks.child_tool_started(world.now, &session, "b1", "bash");
    world.take();
    let last: &Value = world.snapshots.last().unwrap();
    let item = &last["progress"][0];
    assert_eq!((&item["currentTool"], &item["requests"]), (&json!("bash"), &json!(5)));
    world.yields("kid", json!({"data": 1}));
    let last = &world.snapshots.last().unwrap()["progress"][0];
    assert_eq!((&last["status"], &last["requests"]), (&json!("completed"), &json!(6)));
}

// EXEC-19, MEET-5.
#[test]
fn quitting_ends_every_child_and_starts_none() {
    let mut world = World::new();
    world.setup.settings.max_concurrency = 1;
    world.batch(1, &["one", "two"]);
    world.opened("one");
    world.tasks.quit(world.now);
    world.take();
    world.settle("one", RunEnd::Aborted);
    let text = &world.answer(1).text;
    assert!(text.contains("background work was shut down") && !world.has("open two"), "{text}");
    assert!(world.tasks.is_quiet());
}

#[test]
fn a_child_that_somebody_else_closed_fails() {
    let mut world = World::new();
    world.call(1, json!({"name": "kid", "task": "x"}));
    world.opened("kid");
    let session = world.session("kid");
    world.tasks.closed(world.now, &mut world.ids, &session);
    world.take();
    assert!(world.answer(1).text.contains("the child session was closed"));
    assert!(world.tasks.is_quiet());
}

// SESS-2, OBS-4.
#[test]
fn the_first_record_of_a_child_names_what_it_was_given() {
    let mut world = World::new();
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    world.call(
        1,
        json!({"name": "kid", "task": "the work", "outputSchema": schema, "schemaMode": "strict"}),
    );
    let session = world.session("kid");
    let made = crew_task::child::Made {
        system: "S".into(),
        tools: vec!["yield".into()],
        model: "fake/m1".into(),
    };
    let data = world.tasks.first_record(&session, &made).unwrap();
    assert!(data["prompt"].as_str().unwrap().ends_with("\n\nthe work"));
    assert_eq!((&data["schemaMode"], &data["agent"]), (&json!("strict"), &json!("task")));
    assert_eq!(data["schema"]["properties"]["x"]["type"], "integer");
    assert!(world.opens[0].yield_tool.parameters.text().contains("integer"));
}
