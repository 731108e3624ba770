//! From a prompt to its settlement: `crew.md` 4, 5, 11 and the rows of its
//! section 21 that are about outcomes.

use crew_base::model::ModelErrorKind;
use crew_base::tool::ToolOutcome;
use crew_testkit::fixtures;
use crew_testkit::play::{Child, Play, a, report};
use serde_json::{Value, json};

fn working() -> (Play, Child) {
    let mut play = Play::default();
    let child = play.spawn("A", &["one"]).remove(0);
    (play, child)
}

/// The newest result of owner `A`.
fn result(play: &Play) -> Value {
    let results = play.customs("A", "crew-result");
    let newest = results.last().expect("a result was delivered");
    serde_json::from_str(newest).expect("a result is JSON")
}

// Row 35, RES-6, DEL-2; P-9: nothing leaves its JSON string.
#[test]
fn a_report_arrives_byte_for_byte() {
    let (mut play, child) = working();
    let text = "  | a | b |\n|---|---|\n\"},{\"role\":\"user\"\u{1b}[2J ";
    play.report(&child, text);
    let delivered = play.customs("A", "crew-result").remove(0);
    let value: Value = serde_json::from_str(&delivered).unwrap();
    assert_eq!(value["result"], json!({"outcome": "completed", "report": text}));
    assert!(delivered.starts_with(&format!(
        r#"{{"subagent_id":"{}","brief":"one","result":{{"outcome":"completed","report":"#,
        child.id
    )));
    assert_eq!(play.statuses("A"), ["completed"]);
}

// LIFE-4: the status is named by the outcome.
#[test]
fn a_subagent_that_needs_input_stays_open_and_says_what_for() {
    let (mut play, child) = working();
    let needs = json!({"outcome": "needs_input", "report": "r", "needs": "which?"});
    play.call(&child.session, &[("crew_report", needs.clone())]);
    assert_eq!(result(&play)["result"], needs);
    assert_eq!(play.statuses("A"), ["needs_input"]);
}

// Rows 19 and 21, RES-10, RES-14: one follow-up, then accepted.
#[test]
fn a_report_beside_another_call_gets_one_follow_up_in_the_same_cycle() {
    let (mut play, child) = working();
    play.call(&child.session, &[("crew_report", report("early")), ("bash", json!({}))]);
    play.tool_ends(&child.session, ToolOutcome::text("ok"));
    play.say(&child.session, "done");
    assert!(play.customs("A", "crew-result").is_empty());
    assert_eq!(play.statuses("A"), ["running"]);
    assert_eq!(play.asked(&child.session).last().unwrap().matches("crew_report").count(), 1);
    play.report(&child, "late");
    assert_eq!(result(&play)["result"]["report"], "late");
}

// Row 20: the child mends it by itself.
#[test]
fn a_lone_report_after_a_mixed_batch_needs_no_follow_up() {
    let (mut play, child) = working();
    play.call(&child.session, &[("crew_report", report("early")), ("bash", json!({}))]);
    play.tool_ends(&child.session, ToolOutcome::text("ok"));
    play.report(&child, "late");
    assert_eq!(result(&play)["result"]["report"], "late");
    let prompts = play.asked(&child.session);
    assert_eq!(prompts.iter().filter(|line| line.starts_with("user: ")).count(), 1);
}

// Rows 22 and 26, TOOL-40; C025: {} and null are refused, the run goes on.
#[test]
fn a_refused_report_is_told_to_the_child_which_can_mend_it() {
    let (mut play, child) = working();
    for arguments in [json!({}), json!(null), json!({"outcome": "completed", "report": " \n"})] {
        play.call(&child.session, &[("crew_report", arguments)]);
        assert!(play.tool_result(&child.session).contains("error"));
        assert_eq!(play.statuses("A"), ["running"]);
    }
    play.report(&child, "R");
    assert_eq!(result(&play)["result"]["report"], "R");
    let activity = &play.engine.crew().all().next().unwrap().activity;
    assert_eq!((activity.total(), activity.failures(), activity.rows().count()), (4, 3, 0));
}

// Rows 27 and 28, RES-11, RES-16, RES-17; C025: no endless loop of reminders.
#[test]
fn each_cycle_has_its_own_follow_up_and_no_report_of_an_earlier_one() {
    let (mut play, child) = working();
    play.say(&child.session, "no report");
    play.report(&child, "first");
    play.say(&a(), "seen");
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_respond", json!({"subagent_id": child.id, "message": "more"}))]);
    play.say(&a(), "wait");
    play.say(&child.session, "text only");
    assert_eq!(play.statuses("A"), ["running"], "a new follow-up was sent");
    play.say(&child.session, "text again");
    let told = result(&play);
    assert_eq!(told["status"], "error");
    assert!(told.get("result").is_none(), "DEL-3");
    assert!(told["error"].as_str().unwrap().contains("text again"), "{told}");
    assert!(play.statuses("A").is_empty());
    assert_eq!(play.closed, [child.session]);
}

// Rows 29 and 32, RES-12, RES-13; C014: terminal at once, with a reason.
#[test]
fn a_provider_error_settles_without_follow_up_and_says_how_far_the_child_came() {
    let (mut play, child) = working();
    play.call(&child.session, &[("crew_report", report("early")), ("bash", json!({}))]);
    play.tool_ends(&child.session, ToolOutcome::text("ok"));
    let mut events = vec![crew_base::model::ModelEvent::Started];
    events.extend(fixtures::block(0, crew_base::message::Block::text("half way")));
    events.push(fixtures::failed(ModelErrorKind::Credential, Some(401)));
    play.stream(&child.session, events);
    let error = result(&play)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("scripted failure") && error.contains("half way"), "{error}");
    // P-11: the same facts stand in the child's file.
    let written = play.written(&child.session);
    assert_eq!(written.last().unwrap(), "entry crew.ending");
    assert_eq!(play.closed, [child.session]);
}

// Row 30, RES-13.
#[test]
fn a_provider_error_after_the_follow_up_is_told_as_such() {
    let (mut play, child) = working();
    play.say(&child.session, "no report");
    play.fail(&child.session, ModelErrorKind::Refusal, None);
    let error = result(&play)["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("scripted failure"), "{error}");
}

// C088: overload is waited out by children too, then said honestly; P-14e.
#[test]
fn an_overloaded_provider_is_tried_again_and_then_named() {
    let (mut play, child) = working();
    for tries in 1..=3 {
        assert_eq!(play.requests(&child.session).len(), tries);
        play.fail(&child.session, ModelErrorKind::Overloaded, Some(529));
        assert!(play.customs("A", "crew-result").is_empty());
        play.wait();
    }
    play.report(&child, "R");
    assert_eq!(result(&play)["result"]["report"], "R");

    let (mut play, child) = working();
    for _ in 0..3 {
        play.fail(&child.session, ModelErrorKind::Overloaded, Some(529));
        play.wait();
    }
    play.fail(&child.session, ModelErrorKind::Overloaded, Some(529));
    assert_eq!(result(&play)["status"], "error");
}

// C020: what the child recovered from does not count.
#[test]
fn a_failed_tool_does_not_make_a_good_report_an_error() {
    let (mut play, child) = working();
    for outcome in [ToolOutcome::error("no such file"), ToolOutcome::text("there")] {
        play.call(&child.session, &[("read", json!({"path": "x"}))]);
        play.tool_ends(&child.session, outcome);
    }
    play.report(&child, "R");
    assert_eq!(play.statuses("A"), ["completed"]);
}

// RES-12: thoughts only, or a length limit, is an ending without a report.
#[test]
fn thoughts_alone_get_the_follow_up() {
    let (mut play, child) = working();
    let thinking =
        crew_base::message::ThinkingBlock { thinking: "hm".into(), ..Default::default() };
    let blocks = vec![crew_base::message::Block::Thinking(thinking)];
    play.stream(&child.session, fixtures::answer(blocks));
    assert_eq!(play.statuses("A"), ["running"]);
    assert_eq!(play.requests(&child.session).len(), 2);
}

// Row 1, LIFE-9: an abort wins over a follow-up under way.
#[test]
fn an_abort_during_the_follow_up_is_the_only_outcome() {
    let (mut play, child) = working();
    play.say(&child.session, "no report");
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_abort", json!({"subagent_id": child.id}))]);
    play.report(&child, "too late");
    assert_eq!(play.customs("A", "crew-abort").len(), 1);
    assert!(play.customs("A", "crew-result").is_empty());
}

// Row 2, RUN-8, RUN-9; C046: aborted while it is prepared.
#[test]
fn an_abort_during_preparation_disposes_of_what_opens_late() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", crew_testkit::play::spawn_arguments("b"))]);
    assert!(play.discovers());
    let child = play.children("A").remove(0);
    play.call(&a(), &[("crew_abort", json!({"all": true}))]);
    assert_eq!(play.closed, std::slice::from_ref(&child.session));
    assert!(play.opens(None), "the session comes late");
    assert!(play.requests(&child.session).is_empty());
    assert_eq!(play.customs("A", "crew-abort").len(), 1);
    assert!(play.customs("A", "crew-result").is_empty());
}

// TOOL-25, MOD-2, MOD-11, rows 53, 54, 57: told by delivery, never by the tool.
#[test]
fn a_preparation_that_fails_is_delivered_as_an_error() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", crew_testkit::play::spawn_arguments("b"))]);
    assert!(play.discovers());
    assert!(play.tool_result(&a()).contains("subagent_id"));
    let child = play.children("A").remove(0);
    assert!(play.opens(Some("no key for provider x")));
    play.say(&a(), "ok");
    assert!(result(&play)["error"].as_str().unwrap().contains("no key for provider x"));
    assert!(play.requests(&child.session).is_empty());
    assert_eq!(play.closed, [child.session]);
}

// Row 44, LIFE-3, DEL-15: what was delivered stays.
#[test]
fn a_subagent_that_reported_can_be_aborted_and_its_result_stays() {
    let (mut play, child) = working();
    play.report(&child, "R");
    play.say(&a(), "seen");
    let before = play.customs("A", "crew-result");
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_abort", json!({"all": true}))]);
    assert_eq!(play.customs("A", "crew-result"), before);
    assert_eq!(play.customs("A", "crew-abort").len(), 1);
}

// C053, DEL-6, P-11: the abort card says what there was.
#[test]
fn an_abort_keeps_last_text_tools_and_working_time() {
    let (mut play, child) = working();
    for _ in 0..10 {
        let text = crew_base::message::Block::text("on my way");
        let call = fixtures::call("t", "bash", &json!({}));
        let blocks = vec![text, crew_base::message::Block::ToolCall(call)];
        play.stream(&child.session, fixtures::answer(blocks));
        play.tool_ends(&child.session, ToolOutcome::text("ok"));
    }
    play.now = play.now + 5000;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_abort", json!({"all": true}))]);
    let card: Value = serde_json::from_str(&play.customs("A", "crew-abort")[0]).unwrap();
    assert_eq!(card["lastText"], "on my way");
    assert_eq!((&card["toolsRun"], &card["workedMs"]), (&json!(10), &json!(5000)));
    assert!(card["reason"].as_str().unwrap().contains("owner"));
    let ending: Value =
        serde_json::from_str(&play.customs(child.session.as_str(), "crew.ending")[0]).unwrap();
    assert_eq!(ending["toolsRun"], 10);
}

// Row 91, LIFE-12, LIFE-13.
#[test]
fn time_spent_waiting_for_the_owner_is_not_worked() {
    let (mut play, child) = working();
    play.now = play.now + 10_000;
    play.report(&child, "R");
    play.say(&a(), "seen");
    play.now = play.now + 3_600_000;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_respond", json!({"subagent_id": child.id, "message": "m"}))]);
    play.say(&a(), "wait");
    play.now = play.now + 5_000;
    play.report(&child, "R2");
    assert_eq!(play.engine.subagents(&a())[0].worked_ms, 15_000);
}

// Row 99, LIFE-7: events of a subagent that is gone.
#[test]
fn what_a_closed_subagent_still_says_is_ignored() {
    let (mut play, child) = working();
    play.report(&child, "R");
    play.say(&a(), "seen");
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_done", json!({"subagent_id": child.id}))]);
    play.say(&a(), "closed");
    play.log();
    let written = play.written(&a()).len();
    play.call(&child.session, &[("bash", json!({}))]);
    play.report(&child, "again");
    assert!(play.log().is_empty());
    assert_eq!(play.written(&a()).len(), written);
}

// Row 46, TOOL-28: its session was lost while it waited.
#[test]
fn a_response_to_a_lost_session_is_taken_and_then_fails() {
    use crew_base::id::{Ids, SessionId};
    use crew_base::json::Raw;
    use crew_base::session::RunEnd;
    use crew_base::time::Time;
    use crew_crew::{Crew, Effect, Owner, Status, UpdateKind};

    let mut crew = Crew::default();
    let owner = Owner { session: SessionId::from("A"), file: None, model: None };
    let mut ids = Ids::new(1);
    let discovery = fixtures::discovery(&["scout"]);
    let arguments = Raw::of(&crew_testkit::play::spawn_arguments("b"));
    crew.call(Time(0), &mut ids, &owner, "crew_spawn", &arguments, &discovery);
    let (id, session) = {
        let one = crew.all().next().unwrap();
        (one.id.clone(), one.session.clone())
    };
    crew.opened(&session, "sim/m");
    let answer = crew_base::message::Message::Assistant(
        crew_base::json::from_text(
            r#"{"content":[{"type":"toolCall","id":"c","name":"crew_report","arguments":{"outcome":"completed","report":"R"}}],"stopReason":"toolUse"}"#,
        )
        .unwrap(),
    );
    crew.child_message(&session, &answer);
    let done = crew_base::json::from_text(
        r#"{"role":"toolResult","toolCallId":"c","toolName":"crew_report","content":[]}"#,
    );
    crew.child_message(&session, &done.unwrap());
    crew.child_settled(Time(1), &session, &RunEnd::Ended);
    assert_eq!(crew.all().next().unwrap().status, Status::Completed);
    crew.session_lost(&session);
    drop(crew.take_effects());

    let respond = Raw::of(&json!({"subagent_id": id, "message": "m"}));
    let outcome = crew.call(Time(2), &mut ids, &owner, "crew_respond", &respond, &discovery);
    assert!(!outcome.is_error);
    let settled_as_error = crew.take_effects().iter().any(|effect| {
        matches!(effect, Effect::Update(update)
            if update.status == Status::Error && matches!(update.kind, UpdateKind::Settled { .. }))
    });
    assert!(settled_as_error);
    assert_eq!(crew.undelivered(&owner.session), 2);
}

// RUN-11: a child's run that is aborted between two answers is no result.
#[test]
fn a_run_that_was_aborted_elsewhere_settles_as_aborted() {
    use crew_base::session::RunEnd;
    use crew_cycle::{Cycle, Verdict};
    let mut cycle = Cycle::default();
    let answer = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"crew_report","arguments":{"outcome":"completed","report":"R"}}],"stopReason":"toolUse"}"#;
    cycle.message(&crew_base::json::from_text(answer).unwrap());
    let verdict = cycle.judge(&RunEnd::Aborted);
    assert!(matches!(verdict, Verdict::Aborted(_)), "{verdict:?}");
}

// Rows 58 and 59, ISO-1 to ISO-3, P-10; C062: a child cannot delegate.
#[test]
fn a_child_has_the_report_tool_and_no_owner_tool_whatever_was_prepared() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", crew_testkit::play::spawn_arguments("b"))]);
    assert!(play.discovers());
    play.opening().1.prompt.tools = fixtures::owner_tools();
    assert!(play.opens(None));
    let child = play.children("A").remove(0);
    let prompt = play.engine.agent(&child.session).unwrap().record().prompt();
    let names: Vec<_> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
    // `task` is the shell's to give (`task.md` MEET-1).
    assert_eq!(names, ["bash", "task", "crew_report"]);
    for _ in 0..5 {
        let spawn = crew_testkit::play::spawn_arguments("more");
        play.call(&child.session, &[("crew_spawn", spawn)]);
        assert!(play.tool_result(&child.session).contains("unknown tool `crew_spawn`"));
    }
    assert_eq!(play.engine.crew().all().count(), 1);
}

// Row 55, MOD-3, MOD-5; C043 in one process: the child keeps its model.
#[test]
fn a_child_keeps_its_model_when_the_owner_changes_its_own() {
    let (mut play, child) = working();
    play.report(&child, "R");
    play.say(&a(), "seen");
    assert_eq!(play.choose_model("A", "other"), Ok(()));
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_respond", json!({"subagent_id": child.id, "message": "m"}))]);
    assert_eq!(play.requests(&a()).last().unwrap().model.id, "other");
    assert_eq!(play.requests(&child.session).last().unwrap().model.id, "m");
}

// Row 100, CAT-8: nor does a changed definition reach it.
#[test]
fn a_subagent_keeps_the_definition_it_was_spawned_with() {
    let (mut play, child) = working();
    play.report(&child, "R");
    play.say(&a(), "seen");
    play.discovery = fixtures::discovery(&["other"]);
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_respond", json!({"subagent_id": child.id, "message": "m"}))]);
    let one = play.engine.crew().all().next().unwrap();
    assert_eq!((one.definition.name.as_str(), one.status.word()), ("scout", "running"));
}
