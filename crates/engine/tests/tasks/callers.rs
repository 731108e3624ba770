//! Who may call, and the crew beside it (`task.md` MEET, TASK-SPAWN-9).

use crew_base::entry::EntryBody;
use crew_base::id::SessionId;
use crew_base::message::{Cost, Usage};
use crew_engine::api::Command;
use crew_engine::api::task::{Mode, Spawns};
use crew_testkit::fixtures;
use crew_testkit::play::{Play, a, report, spawn_arguments};
use serde_json::json;

use super::{calling, check_rest, is_idle, record, result};

// OBS-6, MEET-3: a child is no session of a face and no subagent.
#[test]
fn nothing_of_a_child_reaches_the_stream_or_the_crew() {
    let mut play = calling(&["look"]);
    let child = play.task_child("k1");
    assert!(play.engine.subagents(&a()).is_empty());
    let status = play.customs(child.as_str(), "crew-status");
    play.call(&child, &[("crew_list", json!({}))]);
    assert!(play.tool_result(&child).starts_with("unknown tool"), "{}", play.tool_result(&child));
    assert_eq!(play.customs(child.as_str(), "crew-status"), status);
    assert!(play.command(Command::Attach(child)).is_err());
}

// MEET-9: crew tools do not know the id of a `task` child.
#[test]
fn crew_tools_do_not_know_children_of_a_call() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let task = json!({"context": "c", "tasks": [{"name": "k1", "task": "look"}]});
    play.call(&a(), &[("task", task), ("crew_abort", json!({"subagent_ids": ["k1"]}))]);
    let child = play.task_child("k1");
    assert!(!is_idle(&play, &child));
    play.yields(&child, json!({}));
    let written = play.written(&a()).join("\n");
    assert!(written.contains("missing or finished: k1"), "{written}");
}

// MEET-1, MEET-2: a crew child calls; ending it ends what it called.
#[test]
fn a_crew_child_may_call_and_takes_its_children_with_it() {
    let mut play = Play::default();
    let crew = play.spawn("A", &["work"]).remove(0);
    play.call_task(&crew.session, &["inner"]);
    let inner = play.task_child("k1");
    assert!(!is_idle(&play, &inner));
    assert_eq!(play.task_plans[0].parent, crew.session);
    assert_eq!(play.command(crew_testkit::play::abort_crew("A")), Ok(()));
    assert!(play.closed.contains(&inner) && play.closed.contains(&crew.session));
    assert!(play.engine.tasks().is_quiet());
}

// OBS-3, crew.md OP-19: the owner's policy without a question.
#[test]
fn a_crew_child_is_refused_what_would_need_a_question() {
    for (mode, starts) in [(Mode::Yolo, true), (Mode::Write, false)] {
        let mut play = Play::default();
        play.setup.approval.mode = mode;
        play.setup.approval.can_ask = true;
        let crew = play.spawn("A", &["work"]).remove(0);
        play.call_task(&crew.session, &["inner"]);
        assert_eq!(play.task_plans.len(), usize::from(starts), "{mode:?}");
        assert!(play.works.is_empty(), "nobody is asked: {:?}", play.works);
    }
}

// OBS-2: `spawns` of its definition only narrows.
#[test]
fn a_crew_child_spawns_what_its_definition_leaves_it() {
    for (spawns, starts) in [(None, true), (Some(Spawns::Off), false)] {
        let mut play = Play::default();
        let definition = fixtures::definition("scout");
        let mut agent = crew_engine::api::task::Agent::plain(definition.into());
        agent.spawns = spawns;
        play.setup.agents = vec![agent];
        let crew = play.spawn("A", &["work"]).remove(0);
        play.call_task(&crew.session, &["inner"]);
        assert_eq!(play.task_plans.len(), usize::from(starts));
    }
}

// TASK-SPAWN-9, TASK-SPAWN-16; task.md 12 row 14: two levels and no third.
#[test]
fn children_of_children_cannot_delegate() {
    let mut play = Play::default();
    let mut agent = crew_engine::api::task::general();
    agent.spawns = Some(Spawns::All);
    play.setup.agents = vec![agent];
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["outer"]);
    let outer = play.task_child("k1");
    play.call_task(&outer, &["inner"]);
    let inner = play.task_child("k1.k1");
    assert!(play.task_plans[0].may_delegate && !play.task_plans[1].may_delegate);
    play.call_task(&inner, &["third"]);
    assert!(play.tool_result(&inner).starts_with("unknown tool `task`"));
    play.yields(&inner, json!({"x": 1}));
    play.yields(&outer, json!({"y": 1}));
    assert!(result(&play).0.contains("completed"));
    check_rest(&play);
}

// OBS-5, P-12: the sum stands on the result, nested children included.
#[test]
fn usage_of_children_stands_on_the_result_once() {
    let mut play = Play::default();
    let mut agent = crew_engine::api::task::general();
    agent.spawns = Some(Spawns::All);
    play.setup.agents = vec![agent];
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call_task(&a(), &["outer"]);
    let outer = play.task_child("k1");
    play.call_task(&outer, &["inner"]);
    play.yields(&play.task_child("k1.k1").clone(), json!({"x": 1}));
    let nested = play.task_result(&outer).unwrap().usage.clone().expect("usage");
    play.yields(&outer, json!({"y": 1}));
    let sum = play.task_result(&a()).unwrap().usage.clone().expect("usage");
    let one = per_answer();
    assert_eq!(nested, one);
    let three = Usage {
        input: 3 * one.input,
        output: 3 * one.output,
        total_tokens: 3 * one.total_tokens,
        cost: Cost {
            input: sum.cost.input,
            output: sum.cost.output,
            total: sum.cost.total,
            ..one.cost
        },
        ..one
    };
    assert_eq!(sum, three, "two answers of its own and one of its child");
    assert_eq!(record(&play, 0)["tokens"], 2 * (one.input + one.output));
}

// OBS-5, P-12: what a crew child spent on a call counts as its own.
#[test]
fn usage_of_a_call_counts_for_the_subagent_that_made_it() {
    let mut play = Play::default();
    let crew = play.spawn("A", &["work"]).remove(0);
    play.call_task(&crew.session, &["inner"]);
    play.yields(&play.task_child("k1").clone(), json!({"x": 1}));
    play.report(&crew, "R");
    let (_, usage) = play.engine.crew_usage(&a()).remove(0);
    assert_eq!(usage.total_tokens, 3 * per_answer().total_tokens, "its own two and one inside");
}

/// Usage of one answer of the fixtures.
fn per_answer() -> Usage {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.say(&a(), "x");
    let last = play.entries(&a()).last().expect("the answer");
    let EntryBody::Message { message } = &last.body else { panic!("{last:?}") };
    message.as_assistant().expect("an answer").usage.clone()
}

// MEET-4: results of the crew wait as steering and touch no child.
#[test]
fn a_crew_result_that_comes_during_a_call_enters_behind_its_result() {
    let mut play = Play::default();
    let crew = play.spawn("A", &["work"]).remove(0);
    assert_eq!(play.prompt("A", "again"), Ok(()));
    play.call_task(&a(), &["look"]);
    let child = play.task_child("k1");
    play.report(&crew, "R");
    assert_eq!(play.customs("A", "crew-result").len(), 0);
    play.yields(&child, json!({"n": 1}));
    let asked = play.asked(&a());
    let at = |start: &str| asked.iter().position(|line| line.contains(start)).unwrap();
    assert!(at("task-result") < at("crew-result"), "{asked:?}");
    check_rest_but(&play, &crew.session);
}

fn check_rest_but(play: &Play, other: &SessionId) {
    assert!(play.engine.tasks().is_quiet());
    assert!(play.engine.session_ids().all(|id| *id == a() || id == other));
}

// MEET-1: a crew child keeps its own contract beside a call.
#[test]
fn a_crew_child_reports_after_a_call() {
    let mut play = Play::default();
    let crew = play.spawn("A", &["work"]).remove(0);
    play.call_task(&crew.session, &["inner"]);
    let inner = play.task_child("k1");
    play.yields(&inner, json!({"n": 1}));
    play.call(&crew.session, &[("crew_report", report("R"))]);
    assert_eq!(play.statuses("A"), ["completed"]);
    let arguments = spawn_arguments("x");
    play.say(&a(), "seen");
    assert_eq!(play.prompt("A", "more"), Ok(()));
    play.call(&a(), &[("crew_spawn", arguments)]);
    assert_eq!(play.statuses("A").len(), 2);
}
