//! What the person does by hand (`terminal.md` TERM-41 to TERM-44, `host.md`
//! 7.3.4).

use crew_base::id::{SessionId, SubagentId};
use crew_base::message::Message;
use crew_base::time::Time;
use crew_engine::api::{Command, CrewRefusal, Refusal, Status};
use crew_testkit::play::{Child, Play, a};
use serde_json::{Value, json};

fn id(child: &Child) -> SubagentId {
    SubagentId::new(child.id.as_str())
}

fn respond(child: &Child, text: &str) -> Command {
    Command::Respond(a(), id(child), text.to_owned())
}

/// What the owner was told of the person, in order.
fn told(play: &Play) -> Vec<Value> {
    let content = |entry: &String| serde_json::from_str(entry).expect("entries hold JSON");
    play.customs("A", "crew-user").iter().map(content).collect()
}

#[test]
fn an_answer_of_the_person_starts_a_cycle_and_is_told_before_its_result() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    assert!(matches!(
        play.command(respond(&child, "early")),
        Err(Refusal::Subagent(CrewRefusal::WrongPhase(_, Status::Running)))
    ));
    play.report(&child, "first");
    play.say(&a(), "seen");
    let requests = play.requests(&a()).len();
    assert_eq!(play.command(respond(&child, "go on")), Ok(()));
    assert_eq!(play.requests(&a()).len(), requests, "the message starts nothing");
    assert_eq!(told(&play), [json!({"subagent_id": child.id, "user_answered": "go on"})]);
    play.report(&child, "second");
    let asked = play.asked(&a());
    let at = |words: &str| asked.iter().rposition(|line| line.contains(words)).unwrap();
    assert!(at("go on") < at("second"), "{asked:?}");
}

#[test]
fn closing_tells_the_owner_and_stopping_leaves_an_abort_entry() {
    let mut play = Play::default();
    let [done, stopped] = <[Child; 2]>::try_from(play.spawn("A", &["a", "b"])).unwrap();
    play.report(&done, "R");
    play.say(&a(), "seen");
    assert_eq!(play.command(Command::Done(a(), id(&done))), Ok(()));
    assert_eq!(told(&play), [json!({"subagent_id": done.id, "user_closed": ""})]);
    assert_eq!(play.command(Command::AbortSubagent(a(), id(&stopped))), Ok(()));
    assert_eq!(told(&play).len(), 1);
    assert!(play.customs("A", "crew-abort")[0].contains(&stopped.id));
    assert_eq!(play.statuses("A"), Vec::<&str>::new());
    assert!(play.closed.contains(&done.session) && play.closed.contains(&stopped.session));
    let gone = play.command(Command::Done(a(), id(&done)));
    assert!(matches!(gone, Err(Refusal::Subagent(CrewRefusal::UnknownSubagent(_)))));
}

// crew.md OWN-2: the owner must be the attached one.
#[test]
fn the_person_acts_only_on_subagents_of_the_session_that_is_shown() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    assert_eq!(play.open("B", None), Ok(()));
    let abort = |owner: &str| Command::AbortSubagent(SessionId::from(owner), id(&child));
    assert_eq!(play.command(abort("A")), Err(Refusal::NotAttached));
    assert!(matches!(
        play.command(abort("B")),
        Err(Refusal::Subagent(CrewRefusal::ForeignSubagent(_)))
    ));
    assert_eq!(play.statuses("A"), ["running"]);
}

#[test]
fn a_prompt_that_may_wait_starts_while_idle_and_queues_while_running() {
    let mut play = Play::default();
    let message = |text: &str| Message::user_text(text, Time(0));
    assert_eq!(play.command(Command::PromptOrSteer(a(), message("one"))), Ok(()));
    assert_eq!(play.requests(&a()).len(), 1);
    assert_eq!(play.command(Command::PromptOrFollowUp(a(), message("later"))), Ok(()));
    assert_eq!(play.command(Command::PromptOrSteer(a(), message("now"))), Ok(()));
    assert_eq!(play.requests(&a()).len(), 1);
    play.say(&a(), "a reply");
    assert!(play.asked(&a()).iter().any(|line| line.contains("now")));
    play.say(&a(), "a reply");
    assert!(play.asked(&a()).iter().any(|line| line.contains("later")));
}

fn steer(child: &Child, text: &str) -> Command {
    Command::SteerSubagent(a(), id(child), text.to_owned())
}

// TERM-42, TERM-46: words to a running subagent are taken with its next turn;
// the owner is told then, and nothing starts in it.
#[test]
fn words_to_a_running_subagent_are_told_once_they_are_taken() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let requests = play.requests(&a()).len();
    let waiting = play.give(steer(&child, "tabs, please"));
    assert_eq!((play.answer(waiting), told(&play)), (None, Vec::new()));
    play.call(&child.session, &[("bash", json!({"command": "ls"}))]);
    play.tool_ends(&child.session, crew_base::tool::ToolOutcome::text("a"));
    assert_eq!(play.answer(waiting), Some(Ok(())));
    assert_eq!(told(&play), [json!({"subagent_id": child.id, "user_steered": "tabs, please"})]);
    assert_eq!(play.requests(&a()).len(), requests, "the message starts nothing");
    assert!(play.asked(&child.session).iter().any(|line| line.contains("tabs, please")));
}

// `crew.md` SAFE-1: an owner that is away, or is just being opened, is told when
// it is back; one entry in a session that is not there would lose its place.
#[test]
fn words_that_are_taken_while_the_owner_is_away_are_told_when_it_is_back() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let waiting = play.give(steer(&child, "tabs, please"));
    assert_eq!(play.open("B", None), Ok(()));
    play.call(&child.session, &[("bash", json!({"command": "ls"}))]);
    play.tool_ends(&child.session, crew_base::tool::ToolOutcome::text("a"));
    assert_eq!((play.answer(waiting), told(&play)), (Some(Ok(())), Vec::new()));
    assert_eq!(play.attach("A"), Ok(()));
    assert_eq!(told(&play), [json!({"subagent_id": child.id, "user_steered": "tabs, please"})]);
    assert_eq!(play.attach("B"), Ok(()));
    assert_eq!(play.attach("A"), Ok(()));
    assert_eq!(told(&play).len(), 1, "and only once");
}

// TERM-46: words that came with the report are taken: the cycle goes on and its
// later report counts.
#[test]
fn words_that_came_with_the_report_make_the_cycle_go_on() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let waiting = play.give(steer(&child, "also the tests"));
    play.report(&child, "first");
    assert_eq!(play.answer(waiting), Some(Ok(())));
    assert_eq!(play.statuses("A"), ["running"]);
    play.report(&child, "with the tests");
    assert_eq!(play.statuses("A"), ["completed"]);
    play.say(&a(), "seen");
    let results = play.customs("A", "crew-result");
    assert!(results.len() == 1 && results[0].contains("with the tests"), "{results:?}");
    // To one that waits, words are an answer.
    assert_eq!(play.command(steer(&child, "go on")), Ok(()));
    assert_eq!(told(&play)[1], json!({"subagent_id": child.id, "user_answered": "go on"}));
}

// TERM-46: words wait through a failed request and are taken by the next one.
#[test]
fn words_outlive_a_failed_request() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let waiting = play.give(steer(&child, "use the other key"));
    play.fail(&child.session, crew_base::model::ModelErrorKind::Credential, Some(401));
    assert_eq!((play.answer(waiting), play.statuses("A")), (Some(Ok(())), vec!["running"]));
    let unknown = Command::SteerSubagent(a(), SubagentId::new("x"), "y".to_owned());
    assert!(matches!(
        play.command(unknown),
        Err(Refusal::Subagent(CrewRefusal::UnknownSubagent(_)))
    ));
}

// Words that wait when the subagent is stopped are answered too.
#[test]
fn words_to_a_subagent_that_is_stopped_are_refused() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let late = play.give(steer(&child, "too late"));
    assert_eq!(play.command(Command::AbortSubagent(a(), id(&child))), Ok(()));
    assert!(matches!(
        play.answer(late),
        Some(Err(Refusal::Subagent(CrewRefusal::WrongPhase(_, Status::Aborted))))
    ));
    assert_eq!(told(&play), Vec::<Value>::new());
}

// terminal.md 11, case 24: an answer given while the owner is between a call
// and its result stands behind the result and before the next request.
#[test]
fn an_answer_during_a_call_of_the_owner_stands_behind_its_result() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    play.report(&child, "first");
    play.call(&a(), &[("bash", json!({"command": "ls"}))]);
    let requests = play.requests(&a()).len();
    assert_eq!(play.command(respond(&child, "go on")), Ok(()));
    assert_eq!(play.requests(&a()).len(), requests);
    play.tool_ends(&a(), crew_base::tool::ToolOutcome::text("the listing"));
    assert_eq!(play.requests(&a()).len(), requests + 1);
    let asked = play.asked(&a());
    let at = |words: &str| asked.iter().rposition(|line| line.contains(words)).unwrap();
    assert!(at("the listing") < at("user_answered"), "{asked:?}");
}
