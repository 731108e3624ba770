//! How a child is driven: hand-ins, reminders, budget, background commands
//! (`task.md` 5 to 7).

use crew_base::model::{ModelErrorKind, ThinkingLevel, ToolChoice};
use crew_base::tool::ToolOutcome;
use crew_engine::TaskWork;
use crew_engine::api::task::Policy;
use crew_testkit::fixtures;
use crew_testkit::play::{Play, a};
use serde_json::json;

use super::{calling, check_rest, is_idle, record, result};

// YIELD-15: calls of the same batch are cancelled, whichever side they stand.
#[test]
fn a_terminal_yield_cancels_the_rest_of_its_batch() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    let data = json!({"data": {"a": 1}});
    play.call(
        &child,
        &[
            ("bash", json!({"command": "sleep 9"})),
            ("yield", data),
            ("wait", json!({})),
            ("bash", json!({"command": "make", "background": true})),
        ],
    );
    let lines = play.written(&child);
    let errors = lines.iter().filter(|line| line.contains("error: the operation was aborted"));
    assert_eq!(errors.count(), 3, "{lines:#?}");
    assert_eq!(play.requests(&child).len(), 1);
    assert!(!play.worked.iter().any(|work| matches!(work, TaskWork::StartJob { .. })));
    assert!(result(&play).0.contains("completed"));
    check_rest(&play);
}

// EXEC-6, EXEC-8; task.md 12 row 29.
#[test]
fn a_child_that_only_talks_is_reminded_and_in_the_end_forced() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    for _ in 0..4 {
        play.say(&child, "thinking");
    }
    let choices: Vec<_> =
        play.requests(&child).iter().map(|request| request.tool_choice.clone()).collect();
    let forced = ToolChoice::Named("yield".to_owned());
    let expected = [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::Auto, forced];
    assert_eq!(choices, expected);
    assert!(result(&play).0.contains("thinking"));
    check_rest(&play);
}

// EXEC-15, EXEC-16, EXEC-17; task.md 12 rows 34, 35.
#[test]
fn the_budget_stops_the_run_at_a_boundary_and_kills_it_in_the_end() {
    let mut play = Play::default();
    play.setup.settings.soft_request_budget = 4;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["look"]);
    let child = play.task_child("k1");
    for _ in 0..5 {
        play.call(&child, &[("bash", json!({"command": "x"}))]);
        play.tool_ends(&child, ToolOutcome::text("more"));
    }
    assert_eq!(play.customs(child.as_str(), "task-budget").len(), 1);
    play.call(&child, &[("bash", json!({"command": "x"}))]);
    let request = play.requests(&child).last().unwrap();
    assert_eq!(request.tool_choice, ToolChoice::Named("yield".to_owned()));
    assert_eq!(play.requests(&child).len(), 7, "no request between the stop and the reminder");
    for _ in 0..4 {
        play.call(&child, &[("bash", json!({"command": "x"}))]);
        play.tool_ends(&child, ToolOutcome::text("more"));
    }
    assert!(play.task_result(&a()).is_none());
    play.call(&child, &[("bash", json!({"command": "x"}))]);
    let (text, _) = result(&play);
    assert!(text.contains("no yield after the forced wrap-up"), "{text}");
    assert_eq!(record(&play, 0)["requests"], 11);
    check_rest(&play);
}

// EXEC-15, EXEC-27; task.md 12 row 96: the run goes on without a notice that
// cannot be recorded, and the thresholds stay.
#[test]
fn a_budget_notice_that_cannot_be_written_is_done_without() {
    let mut play = Play::default();
    play.setup.settings.soft_request_budget = 4;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["look"]);
    let child = play.task_child("k1");
    let work = |play: &mut Play| {
        play.call(&child, &[("bash", json!({"command": "x"}))]);
        play.tool_ends(&child, ToolOutcome::text("more"));
    };
    (0..4).for_each(|_| work(&mut play));
    let notice = play.entries(&child).last().unwrap().id.clone();
    assert_eq!(play.customs(child.as_str(), "task-budget").len(), 1);
    let held = play.asked(&child);
    play.append_fails(&child, notice);
    assert!(play.task_result(&a()).is_none() && !is_idle(&play, &child));
    assert_eq!(play.asked(&child), held[..held.len() - 1], "the same without the notice");
    work(&mut play);
    play.call(&child, &[("bash", json!({"command": "x"}))]);
    let request = play.requests(&child).last().unwrap();
    assert_eq!(request.tool_choice, ToolChoice::Named("yield".to_owned()), "the stop at 6");
    play.yields(&child, json!({"n": 1}));
    assert!(result(&play).0.contains("completed"));
    check_rest(&play);
}

// host.md 2.2.4: any other entry ends the run.
#[test]
fn a_tool_result_of_a_child_that_cannot_be_written_fails_it() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "x"}))]);
    play.tool_ends(&child, ToolOutcome::text("more"));
    let last = play.entries(&child).last().unwrap().id.clone();
    play.append_fails(&child, last);
    let (text, _) = result(&play);
    assert!(text.contains("failed (exit 1)") && text.contains("disk full"), "{text}");
    check_rest(&play);
}

// EXEC-2, EXEC-22.
#[test]
fn the_runtime_limit_ends_a_child() {
    let mut play = Play::default();
    play.setup.settings.max_runtime_ms = 60_000;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["look"]);
    while play.task_result(&a()).is_none() {
        play.tick();
    }
    assert!(result(&play).0.contains("task.maxRuntimeMs=60000"));
    check_rest(&play);
}

// BARRIER-3, BARRIER-4, BARRIER-7, OBS-8; task.md 12 rows 40, 41.
#[test]
fn a_yield_before_the_end_of_a_command_is_parked_and_given_anew() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "make", "background": true}))]);
    assert_eq!(play.tool_result(&child), r#"{"job_id":"job-1"}"#);
    play.yields(&child, json!({"n": 1}));
    assert!(play.asked(&child).last().unwrap().contains("job-1"), "{:?}", play.asked(&child));
    play.say(&child, "I wait");
    assert!(is_idle(&play, &child) && play.task_result(&a()).is_none());
    play.job_ends(&child, "built");
    let asked = play.asked(&child);
    assert!(asked.last().unwrap().contains("built"), "{asked:?}");
    play.yields(&child, json!({"n": 2}));
    assert!(record(&play, 0)["output"].as_str().unwrap().contains("\"n\": 2"));
    check_rest(&play);
}

// OBS-8: between a turn's tool results and the request that follows.
#[test]
fn a_result_of_a_command_enters_at_the_next_boundary() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "make", "background": true}))]);
    play.call(&child, &[("bash", json!({"command": "ls"}))]);
    play.job_ends(&child, "built");
    assert_eq!(play.customs(child.as_str(), "task-job").len(), 0);
    play.tool_ends(&child, ToolOutcome::text("files"));
    let asked = play.asked(&child);
    let last: Vec<_> = asked.iter().rev().take(2).collect();
    assert!(last[0].contains("built") && last[1].contains("files"), "{asked:?}");
}

// BARRIER-1, OBS-8; task.md 12 row 44.
#[test]
fn wait_answers_once_its_commands_have_ended() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "make", "background": true}))]);
    play.call(&child, &[("wait", json!({}))]);
    assert_eq!(play.requests(&child).len(), 2);
    play.job_ends(&child, "built");
    assert!(play.tool_result(&child).contains("built"));
    play.yields(&child, json!({"n": 1}));
    assert!(result(&play).0.contains("completed"));
    assert_eq!(play.customs(child.as_str(), "task-job").len(), 0);
    check_rest(&play);
}

// OBS-8: the argument is for this tool alone.
#[test]
fn a_plain_command_of_a_child_runs_outside_without_the_extra_argument() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    play.call(&child, &[("bash", json!({"command": "ls", "background": false}))]);
    let (session, call) = play.ran.last().unwrap();
    assert_eq!((session, call.arguments.text()), (&child, r#"{"command":"ls"}"#));
}

// OBS-3, SESS-3: nobody can be asked in a child, and `deny` holds there too.
#[test]
fn a_denied_command_does_not_start_in_the_background() {
    for policy in [Policy::Deny, Policy::Prompt] {
        let mut play = Play::default();
        play.setup.approval.can_ask = true;
        play.setup.approval.tools.insert("bash".to_owned(), policy);
        assert_eq!(play.prompt("A", "go"), Ok(()));
        play.call_task(&a(), &["look"]);
        let child = play.task_child("k1");
        play.call(&child, &[("bash", json!({"command": "make", "background": true}))]);
        assert!(play.tool_result(&child).contains("approval.tools.bash"), "{policy:?}");
        assert!(!play.worked.iter().any(|work| matches!(work, TaskWork::StartJob { .. })));
    }
}

// TASK-SPAWN-13, 1.2: a fallback takes over, and what gave up last is named.
#[test]
fn a_child_goes_on_with_its_fallback_and_names_what_gave_up() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["look"]);
    while play.works() {}
    play.opening().1.fallbacks = vec![(fixtures::model("other"), ThinkingLevel::Off)];
    assert!(play.opens(None));
    play.is_obedient = true;
    let child = play.task_child("k1");
    play.fail(&child, ModelErrorKind::Credential, Some(401));
    play.tick();
    assert_eq!(play.requests(&child).last().unwrap().model.id, "other");
    for tries in 3..6 {
        play.fail(&child, ModelErrorKind::Overloaded, Some(529));
        while play.task_result(&a()).is_none() && play.requests(&child).len() < tries {
            play.tick();
        }
    }
    let record = record(&play, 0);
    assert_eq!(record["exitCode"], 1);
    assert_eq!(record["retryFailure"]["errorMessage"], "scripted failure", "{record}");
    check_rest(&play);
}
