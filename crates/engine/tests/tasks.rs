//! Calls of `task` through the whole engine: who may call, how a child is
//! driven, how everything ends (`task.md`).

#[path = "tasks/callers.rs"]
mod callers;
#[path = "tasks/driving.rs"]
mod driving;
#[path = "tasks/endings.rs"]
mod endings;
#[path = "tasks/wording.rs"]
mod wording;

use crew_base::entry::EntryBody;
use crew_base::id::SessionId;
use crew_base::model::ModelErrorKind;
use crew_engine::api::task::Policy;
use crew_engine::{Event, TaskWork};
use crew_testkit::play::{Play, a};
use serde_json::Value;
use serde_json::json;

/// The owner calls `task` with these assignments.
pub(crate) fn calling(tasks: &[&str]) -> Play {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), tasks);
    play
}

/// Text and error flag of the owner's newest result of `task`.
pub(crate) fn result(play: &Play) -> (String, bool) {
    let result = play.task_result(&a()).expect("the call has its result");
    (result.content.iter().filter_map(|block| block.as_text()).collect(), result.is_error)
}

pub(crate) fn record(play: &Play, at: usize) -> Value {
    let result = play.task_result(&a()).expect("the call has its result");
    result.details.as_ref().expect("details").value()["results"][at].clone()
}

pub(crate) fn is_idle(play: &Play, session: &SessionId) -> bool {
    play.engine.agent(session).is_none_or(|agent| agent.is_idle())
}

/// Nothing of `task` is left.
pub(crate) fn check_rest(play: &Play) {
    assert!(play.engine.tasks().is_quiet(), "{:?}", play.engine.tasks());
    let left: Vec<_> = play.engine.session_ids().filter(|id| **id != a()).collect();
    assert!(left.is_empty(), "{left:?}");
}

// DISP-2, SESS-6, DELIV-14: the whole way of a call that goes well.
#[test]
fn a_call_opens_a_child_drives_it_and_gives_its_result_to_the_loop() {
    let mut play = calling(&["look around"]);
    let child = play.task_child("k1");
    assert!(play.asked(&child)[0].ends_with("look around"), "{:?}", play.asked(&child));
    play.yields(&child, json!({"found": 3}));
    let (text, is_error) = result(&play);
    assert!(text.contains("status=\"completed\"") && text.contains("found"), "{text}");
    assert!(!is_error);
    assert_eq!(play.task_updates, ["started k1", "completed k1"]);
    assert_eq!(play.requests(&a()).len(), 2, "the result went back to the model");
    assert_eq!(play.closed, [child]);
    play.say(&a(), "done");
    check_rest(&play);
}

// OBS-4, SESS-2: the record stands first, before model and thinking level.
#[test]
fn the_first_entry_of_a_child_is_its_record() {
    let play = calling(&["look"]);
    let entries = play.entries(&play.task_child("k1"));
    let EntryBody::Custom { custom_type, data: Some(data) } = &entries[0].body else {
        panic!("{:?}", entries[0]);
    };
    assert_eq!(custom_type, "task-child");
    let data = data.value();
    assert_eq!((&data["model"], &data["agent"]), (&json!("sim/m"), &json!("task")));
    assert_eq!((&data["system"], data["tools"].as_array().unwrap().len()), (&json!("p"), 9));
    let kinds: Vec<_> = entries.iter().map(|entry| entry.body.kind()).collect();
    assert_eq!(kinds[..3], ["custom", "model_change", "thinking_level_change"]);
}

// TASK-SPAWN-15, DELIV-9; task.md 12 row 22.
#[test]
fn a_failing_item_leaves_its_siblings_alone() {
    let mut play = calling(&["one", "two"]);
    let (one, two) = (play.task_child("k1"), play.task_child("k2"));
    play.fail(&one, ModelErrorKind::Credential, Some(401));
    assert!(play.task_result(&a()).is_none());
    play.yields(&two, json!({"ok": true}));
    let (text, is_error) = result(&play);
    assert!(text.contains("failed (exit 1)") && text.contains("completed"), "{text}");
    assert!(!is_error, "DISP-12");
    check_rest(&play);
}

// DELIV-9, DELIV-11: the one that could not be opened is an error beside.
#[test]
fn an_opening_that_fails_is_told_and_closed() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["one"]);
    while play.works() {}
    assert!(play.opens(Some("no credential")));
    let (text, is_error) = result(&play);
    assert!(text.contains("no credential") && is_error, "{text}");
    assert_eq!(play.closed.len(), 1);
    check_rest(&play);
}

// DISP-3, DISP-4; task.md 12 row 1.
#[test]
fn a_call_that_needs_an_answer_waits_for_it() {
    for is_allowed in [true, false] {
        let mut play = Play::default();
        play.setup.approval.can_ask = true;
        play.setup.approval.tools.insert("task".to_owned(), Policy::Prompt);
        assert_eq!(play.prompt("A", "go"), Ok(()));
        play.call_task(&a(), &["look around"]);
        let Some(TaskWork::Ask { run, view, .. }) = play.works.pop() else {
            panic!("{:?}", play.works)
        };
        assert!(view.contains("look around"));
        assert!(play.task_plans.is_empty());
        play.event(Event::TaskAnswered { run, is_allowed });
        assert_eq!(play.task_plans.len(), usize::from(is_allowed));
        if !is_allowed {
            assert!(result(&play).1);
            assert_eq!(play.worked.len(), 2, "neither lease nor child: {:?}", play.worked);
        }
    }
}

// TASK-SPAWN-14: the queue is one for all calls of a session.
#[test]
fn calls_of_one_batch_share_the_queue_of_their_session() {
    let mut play = Play::default();
    play.setup.settings.max_concurrency = 1;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let task = |name: &str| json!({"context": "c", "tasks": [{"name": name, "task": "x"}]});
    play.call(&a(), &[("task", task("x")), ("task", task("y"))]);
    assert_eq!(play.task_plans.len(), 1);
    let setups = play.worked.iter().filter(|work| matches!(work, TaskWork::ReadSetup { .. }));
    assert_eq!(setups.count(), 1, "one reading for the batch");
    play.yields(&play.task_child("x").clone(), json!({}));
    assert_eq!(play.task_plans.len(), 2);
    play.yields(&play.task_child("y").clone(), json!({}));
    assert_eq!(play.requests(&a()).len(), 2);
    check_rest(&play);
}
