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
