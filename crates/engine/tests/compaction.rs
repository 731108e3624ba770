//! Compaction of owners and children within the whole (`crew.md` CTX-30 to
//! CTX-32, `product.md` P-14h).

use crew_base::id::SessionId;
use crew_base::message::{Block, Message, StopReason, Usage};
use crew_base::model::ModelEvent;
use crew_engine::api::{Command, Refusal};
use crew_testkit::fixtures;
use crew_testkit::play::{Child, Play, a, abort_crew, report, steer};
use serde_json::json;

/// Characters of more tokens than a compaction keeps.
const LONG: usize = 100_000;

/// An answer of these blocks that says how much it used.
fn uses(play: &mut Play, session: &SessionId, blocks: Vec<Block>, total_tokens: u64) {
    let mut events = fixtures::answer(blocks);
    let usage = Usage { output: 1, total_tokens, ..Usage::default() };
    let end = events.pop().expect("an answer ends");
    events.extend([ModelEvent::Usage(usage), end]);
    play.stream(session, events);
}

fn long_exchange(play: &mut Play) {
    assert_eq!(play.prompt("A", &"q".repeat(LONG)), Ok(()));
    play.say(&a(), "answered");
}

fn compact(play: &mut Play) -> Result<(), Refusal> {
    play.command(Command::Compact(a(), None))
}

fn is_compacting(play: &Play, session: &SessionId) -> bool {
    play.engine.agent(session).is_some_and(|agent| agent.is_compacting())
}

fn summarise(play: &mut Play, session: &SessionId) {
    while is_compacting(play, session) {
        play.say(session, "the summary");
    }
}

/// A child that reported, with so much in its context that it is due.
fn due_child(play: &mut Play) -> Child {
    let child = play.spawn("A", &["work"]).remove(0);
    let text = Block::text("w".repeat(LONG));
    let call = fixtures::call("r1", "crew_report", &report("ONE"));
    uses(play, &child.session, vec![text, Block::ToolCall(call)], 95_000);
    child
}

// host.md 3.1.11, 3.4.6; crew.md CTX-30, DEL-5.
#[test]
fn prompts_are_refused_and_results_wait_while_the_owner_compacts() {
    let mut play = Play::default();
    long_exchange(&mut play);
    long_exchange(&mut play);
    let child = play.spawn("A", &["work"]).remove(0);
    assert_eq!(compact(&mut play), Ok(()));
    assert!(is_compacting(&play, &a()));
    assert_eq!(play.prompt("A", "now?"), Err(Refusal::Busy));
    let message = Message::user_text("now?", play.now);
    assert_eq!(play.command(Command::PromptOrSteer(a(), message.clone())), Err(Refusal::Busy));
    assert_eq!(play.command(Command::PromptOrFollowUp(a(), message)), Err(Refusal::Busy));
    assert_eq!(play.command(steer("A", "typed")), Ok(()));
    play.report(&child, "R");
    assert!(play.customs("A", "crew-result").is_empty());
    summarise(&mut play, &a());
    assert_eq!(play.customs("A", "crew-result").len(), 1);
    assert!(play.asked(&a()).iter().any(|line| line.contains("typed")));
    assert_eq!(play.statuses("A"), ["completed"]);
}

// product.md P-14c.
#[test]
fn a_result_that_waits_for_the_compaction_goes_back_when_the_owner_is_detached() {
    let mut play = Play::default();
    long_exchange(&mut play);
    long_exchange(&mut play);
    let child = play.spawn("A", &["work"]).remove(0);
    assert_eq!(compact(&mut play), Ok(()));
    play.report(&child, "R");
    assert_eq!(play.detach("A"), Ok(()));
    assert!(!is_compacting(&play, &a()));
    assert!(play.customs("A", "crew-result").is_empty());
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!(play.customs("A", "crew-result").len(), 1);
}

/// How many owner requests pass until a reminder is written.
fn requests_until_reminder(compacts: bool) -> usize {
    let mut play = Play::default();
    long_exchange(&mut play);
    long_exchange(&mut play);
    let child = play.spawn("A", &["work"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    let summaries = play.requests(&a()).len();
    if compacts {
        assert_eq!(compact(&mut play), Ok(()));
        summarise(&mut play, &a());
        assert!(play.requests(&a()).len() > summaries);
    }
    let mut passed = 0;
    while play.customs("A", "crew-reminder").is_empty() {
        assert!(passed < 20, "no reminder comes");
        passed += 1;
        assert_eq!(play.prompt("A", "and?"), Ok(()));
        play.say(&a(), "wait");
    }
    passed
}

// crew.md CTX-17.
#[test]
fn requests_for_a_summary_do_not_count_for_reminders() {
    assert_eq!(requests_until_reminder(true), requests_until_reminder(false));
}

/// An owner whose only snapshot will be compacted away.
fn with_old_snapshot() -> (Play, Child) {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    assert_eq!(play.prompt("A", "and?"), Ok(()));
    play.say(&a(), "wait");
    assert_eq!(play.customs("A", "crew-status").len(), 1);
    long_exchange(&mut play);
    long_exchange(&mut play);
    (play, child)
}

fn shown_snapshots(play: &Play) -> Vec<String> {
    let request = play.requests(&a()).last().expect("the owner asked");
    let customs = request.messages.iter().filter_map(|message| {
        let Message::Custom(custom) = message.as_ref() else { return None };
        (custom.custom_type == "crew-status").then(|| custom.content.text())
    });
    customs.collect()
}

// crew.md CTX-11, CTX-27, row 73.
#[test]
fn a_compaction_that_removed_the_snapshot_brings_a_fresh_one() {
    let (mut play, child) = with_old_snapshot();
    assert_eq!(compact(&mut play), Ok(()));
    summarise(&mut play, &a());
    assert_eq!(play.prompt("A", "after"), Ok(()));
    let item = json!({"crew_status": [{"subagent_id": child.id, "status": "running"}]});
    assert_eq!(shown_snapshots(&play), [item.to_string()]);
    play.say(&a(), "yes");
    assert_eq!(play.prompt("A", "again"), Ok(()));
    assert_eq!(shown_snapshots(&play).len(), 1);
}

// crew.md CTX-12, CTX-10, row 74.
#[test]
fn when_nothing_is_open_after_it_one_empty_snapshot_follows() {
    let (mut play, _) = with_old_snapshot();
    assert_eq!(compact(&mut play), Ok(()));
    assert_eq!(play.command(abort_crew("A")), Ok(()));
    summarise(&mut play, &a());
    assert_eq!(play.prompt("A", "after"), Ok(()));
    assert_eq!(shown_snapshots(&play), [r#"{"crew_status":[]}"#]);
    play.say(&a(), "yes");
    assert_eq!(play.prompt("A", "again"), Ok(()));
    assert_eq!(shown_snapshots(&play).len(), 1);
}

// product.md P-14h; crew.md RES-11, CTX-31, row 34.
#[test]
fn a_child_compacts_before_its_next_prompt_and_is_judged_on_that_cycle_only() {
    let mut play = Play::default();
    let child = due_child(&mut play);
    assert!(!is_compacting(&play, &child.session));
    assert_eq!(play.customs("A", "crew-result").len(), 1, "the result was not delayed");
    let respond = json!({"subagent_id": child.id, "message": "go on"});
    play.call(&a(), &[("crew_respond", respond)]);
    assert!(is_compacting(&play, &child.session));
    assert_eq!(play.statuses("A"), ["running"]);
    play.say(&a(), "it works");
    summarise(&mut play, &child.session);
    let asked = play.asked(&child.session);
    assert!(asked.last().is_some_and(|line| line.contains("go on")), "{asked:?}");
    // The report of the first cycle does not stand in for the second.
    play.say(&child.session, "no report");
    assert_eq!(play.statuses("A"), ["running"]);
    play.report(&child, "TWO");
    assert_eq!(play.statuses("A"), ["completed"]);
    assert_eq!(play.customs("A", "crew-result").len(), 2);
}

// crew.md ACT-6.
#[test]
fn a_childs_summary_counts_in_its_usage() {
    let mut play = Play::default();
    let child = due_child(&mut play);
    let total = |play: &Play| {
        let subagent = play.engine.crew().of_session(&child.session);
        subagent.map_or(0, |subagent| subagent.usage.total_tokens)
    };
    let before = total(&play);
    let respond = json!({"subagent_id": child.id, "message": "go on"});
    play.call(&a(), &[("crew_respond", respond)]);
    summarise(&mut play, &child.session);
    assert!(total(&play) > before, "{before}");
}

// crew.md CTX-32, RUN-8.
#[test]
fn aborting_a_subagent_cancels_its_compaction_and_prompts_it_no_more() {
    let mut play = Play::default();
    let child = due_child(&mut play);
    let respond = json!({"subagent_id": child.id, "message": "go on"});
    play.call(&a(), &[("crew_respond", respond)]);
    assert!(is_compacting(&play, &child.session));
    let requests = play.requests(&child.session).len();
    assert_eq!(play.command(abort_crew("A")), Ok(()));
    assert_eq!(play.requests(&child.session).len(), requests);
    assert_eq!(play.closed, std::slice::from_ref(&child.session));
    let kinds = play.entries(&child.session).iter().map(|entry| entry.body.kind());
    assert!(kinds.into_iter().all(|kind| kind != "compaction"));
}

// crew.md CAT-18.
#[test]
fn a_definition_can_switch_it_off() {
    let mut play = Play::default();
    let mut definition = fixtures::definition("scout");
    definition.compaction = false;
    play.discovery.definitions = vec![definition.into()];
    let child = due_child(&mut play);
    let respond = json!({"subagent_id": child.id, "message": "go on"});
    play.call(&a(), &[("crew_respond", respond)]);
    assert!(!is_compacting(&play, &child.session));
    assert!(play.asked(&child.session).last().is_some_and(|line| line.contains("go on")));
}

// host.md 3.8.5 in a child: a context that is too long is no failed cycle.
#[test]
fn a_child_recovers_from_an_overflow_within_its_cycle() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let text = Block::text("w".repeat(LONG));
    let call = fixtures::call("b1", "bash", &json!({"command": "true"}));
    uses(&mut play, &child.session, vec![text, Block::ToolCall(call)], 100);
    play.tool_ends(&child.session, crew_base::tool::ToolOutcome::text("ok"));
    let usage = Usage { input: 99_500, total_tokens: 99_500, ..Usage::default() };
    let end = ModelEvent::Finished { stop_reason: StopReason::Length, raw_stop_reason: None };
    play.stream(&child.session, vec![ModelEvent::Started, ModelEvent::Usage(usage), end]);
    assert!(is_compacting(&play, &child.session));
    summarise(&mut play, &child.session);
    play.report(&child, "R");
    assert_eq!(play.statuses("A"), ["completed"]);
}
