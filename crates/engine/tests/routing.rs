//! Sessions, faces and the crew together: faults that such systems really had
//! (ids of `faults.md`), and how sessions are opened, left and ended.

use crew_base::id::SessionId;
use crew_base::model::ModelErrorKind;
use crew_base::tool::ToolOutcome;
use crew_engine::api::{Command, Control, Refusal};
use crew_engine::{Event, Source};
use crew_testkit::play::{Play, a, report, spawn_arguments, steer};
use serde_json::json;

fn results(play: &Play, owner: &str) -> usize {
    play.customs(owner, "crew-result").len()
}

// C001: a new session, a switch and a fork in between lose nothing.
#[test]
fn replacing_the_session_never_swallows_a_result() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    assert_eq!(play.open("B", None), Ok(()));
    play.report(&child, "R");
    assert_eq!((results(&play, "A"), results(&play, "B")), (0, 0));
    assert_eq!(play.attach("A"), Ok(()));
    play.tick();
    assert_eq!((results(&play, "A"), results(&play, "B")), (1, 0));
}

// C001, crew.md RUN-4, OWN-3: left and opened again from its file.
#[test]
fn an_owner_that_was_left_gets_its_results_when_it_is_opened_again() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    assert_eq!(play.command(Command::Leave(a())), Ok(()));
    assert_eq!(play.closed, [a()]);
    play.report(&child, "R");
    let source = Source::File("/A.jsonl".to_owned());
    assert_eq!(play.command(Command::Open { session: a(), source, adopts: None }), Ok(()));
    play.tick();
    assert_eq!(results(&play, "A"), 1);
    assert_eq!(play.statuses("A"), ["completed"]);
}

// crew.md OWN-4: a fork of an owner that was left adopts too.
#[test]
fn a_fork_of_an_owner_that_was_left_adopts_its_subagents() {
    let mut play = Play::default();
    play.spawn("A", &["work"]);
    assert_eq!(play.command(Command::Leave(a())), Ok(()));
    assert_eq!(play.open("F", Some("A")), Ok(()));
    assert_eq!(play.statuses("F"), ["running"]);
}

// crew.md SAFE-4: the write failed and the owner was left before that was known.
#[test]
fn a_failed_write_that_is_told_after_leaving_keeps_the_result() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    play.report(&child, "R");
    let entry = play.last_entry(&a(), "crew-result");
    assert_eq!(play.command(Command::Leave(a())), Ok(()));
    play.append_fails(&a(), entry.clone());
    play.append_fails(&a(), entry);
    let source = Source::File("/A.jsonl".to_owned());
    assert_eq!(play.command(Command::Open { session: a(), source, adopts: None }), Ok(()));
    play.tick();
    assert_eq!(results(&play, "A"), 2, "the lost write, then the delivery");
}

// C004: streaming, in a tool, idle, in the wait for a retry.
#[test]
fn a_result_enters_a_turn_in_every_phase_of_its_owner() {
    let check = |prepare: fn(&mut Play), free: fn(&mut Play)| {
        let mut play = Play::default();
        let child = play.spawn("A", &["work"]).remove(0);
        prepare(&mut play);
        play.report(&child, "R");
        free(&mut play);
        assert_eq!(results(&play, "A"), 1);
        assert!(play.asked(&a()).iter().any(|line| line.starts_with("crew-result")));
    };
    let talk = |play: &mut Play| assert_eq!(play.prompt("A", "talk"), Ok(()));
    check(|_| {}, |_| {});
    check(talk, |play| play.say(&a(), "answer"));
    check(
        |play| {
            assert_eq!(play.prompt("A", "work"), Ok(()));
            play.call(&a(), &[("bash", json!({}))]);
        },
        |play| play.tool_ends(&a(), ToolOutcome::text("ok")),
    );
    check(
        |play| {
            assert_eq!(play.prompt("A", "work"), Ok(()));
            play.fail(&a(), ModelErrorKind::Overloaded, Some(529));
        },
        Play::wait,
    );
    check(talk, |play| play.fail(&a(), ModelErrorKind::Refusal, None));
    check(talk, |play| assert_eq!(play.abort("A"), Ok(())));
}

// C005: the owner's turn ends, the child lives, its report wakes the owner.
#[test]
fn a_child_survives_the_end_of_the_turn_that_spawned_it() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", spawn_arguments("work"))]);
    play.say(&a(), "I wait");
    assert!(play.engine.agent(&a()).unwrap().is_idle());
    let child = play.children("A").remove(0);
    let before = play.requests(&a()).len();
    play.report(&child, "R");
    assert_eq!(play.requests(&a()).len(), before + 1);
}

// C014: a child whose record cannot be written ends with a reason, once.
#[test]
fn a_child_whose_file_fails_is_told_as_an_error() {
    let mut play = Play::default();
    let child = play.spawn("A", &["work"]).remove(0);
    let entry = play.entries(&child.session).last().unwrap().id.clone();
    play.append_fails(&child.session, entry);
    assert!(play.customs("A", "crew-result")[0].contains("disk full"));
    assert_eq!((play.statuses("A").len(), results(&play, "A")), (0, 1));
}

// C052: a spawn alone, and beside another tool, leaves the turn whole.
#[test]
fn a_spawn_ends_no_turn() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", spawn_arguments("x")), ("bash", json!({}))]);
    assert_eq!(play.requests(&a()).len(), 1, "the other tool still runs");
    play.tool_ends(&a(), ToolOutcome::text("ok"));
    let asked = play.asked(&a());
    assert_eq!(asked.iter().filter(|line| line.starts_with("call-")).count(), 2);
    play.call(&a(), &[("crew_spawn", spawn_arguments("y"))]);
    assert_eq!(play.requests(&a()).len(), 3);
}

// C046: three that are still prepared; each has one end and one record.
#[test]
fn subagents_that_never_opened_end_once_each() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let calls = ["x", "y", "z"].map(|brief| ("crew_spawn", spawn_arguments(brief)));
    play.call(&a(), &calls);
    assert!(play.discovers());
    let third = play.children("A").remove(2);
    play.call(&a(), &[("crew_abort", json!({"subagent_id": third.id}))]);
    assert_eq!(play.customs("A", "crew-abort").len(), 1);
    assert_eq!(play.command(crew_testkit::play::abort_crew("A")), Ok(()));
    while play.opens(None) {}
    assert_eq!((play.customs("A", "crew-abort").len(), play.closed.len()), (3, 3));
    assert_eq!(play.engine.session_ids().count(), 1);
}

// C055, pure part: an abort at every point of a tool call leaves no call open.
#[test]
fn an_abort_at_any_moment_around_a_tool_call_ends_it() {
    for moment in 0..4 {
        let mut play = Play::default();
        assert_eq!(play.prompt("A", "go"), Ok(()));
        let abort = |play: &mut Play, now: u32| {
            if now == moment {
                assert_eq!(play.abort("A"), Ok(()));
            }
        };
        abort(&mut play, 0);
        if moment > 0 {
            play.call(&a(), &[("bash", json!({"command": "sleep 1"}))]);
        }
        abort(&mut play, 1);
        if moment > 1 {
            play.tool_ends(&a(), ToolOutcome::text("ok"));
        }
        abort(&mut play, 2);
        if moment > 2 {
            play.say(&a(), "done");
        }
        abort(&mut play, 3);
        assert!(play.engine.agent(&a()).unwrap().is_idle(), "moment {moment}");
        let written = play.written(&a());
        let calls = written.iter().filter(|line| line.starts_with("ToolUse")).count();
        let results = written.iter().filter(|line| line.starts_with("call-")).count();
        assert_eq!(calls, results, "moment {moment}: {written:?}");
    }
}

// C038: what is typed reaches the session it was typed into.
#[test]
fn steering_reaches_its_addressee_only() {
    let mut play = Play::default();
    let open = play.spawn("A", &["x", "y"]);
    assert_eq!(play.prompt("A", "talk"), Ok(()));
    assert_eq!(play.command(steer("A", "marker")), Ok(()));
    play.say(&a(), "ok");
    assert!(play.asked(&a()).contains(&"user: marker".to_owned()));
    for child in &open {
        play.call(&child.session, &[("bash", json!({}))]);
        play.tool_ends(&child.session, ToolOutcome::text("ok"));
        assert!(!play.asked(&child.session).iter().any(|line| line.contains("marker")));
    }
    let refused = play.command(Command::Steer(
        open[0].session.clone(),
        crew_base::message::Message::user_text("x", play.now),
    ));
    assert_eq!(refused, Err(Refusal::NotAttached));
}

// C025 and TOOL-39: the acknowledgement of a report goes to the child only.
#[test]
fn tools_of_the_crew_never_reach_the_shell() {
    let mut play = Play::default();
    let child = play.spawn("A", &["x"]).remove(0);
    play.call(&child.session, &[("crew_report", report("R"))]);
    assert_eq!(play.tool_result(&child.session), "{}");
    assert!(!play.written(&a()).iter().any(|line| line.ends_with("ok: {}")));
}

// crew.md CAT-8: calls of one batch share one discovery, later ones do not.
#[test]
fn the_spawns_of_a_batch_share_one_look_at_the_definitions() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let calls = ["x", "y", "z"].map(|brief| ("crew_spawn", spawn_arguments(brief)));
    play.call(&a(), &calls);
    assert!(play.discovers());
    assert!(!play.discovers());
    assert_eq!(play.children("A").len(), 3);
}

// crew.md RUN-5, row 80: nothing is written to any owner, everything is closed.
#[test]
fn a_quit_closes_all_sessions_and_writes_to_no_owner() {
    let mut play = Play::default();
    let first = play.spawn("A", &["runs", "waits"]);
    play.report(&first[1], "R");
    play.say(&a(), "seen");
    assert_eq!(play.open("B", None), Ok(()));
    let second = play.spawn("B", &["runs"]);
    let before = (play.written(&a()).len(), play.written(&"B".into()).len());
    assert_eq!(play.command(Command::Quit), Ok(()));
    assert_eq!((play.written(&a()).len(), play.written(&"B".into()).len()), before);
    assert!(play.exited);
    assert_eq!(play.closed.len(), 5);
    for child in [&first[0], &second[0]] {
        let card = &play.customs(child.session.as_str(), "crew.ending")[0];
        assert!(card.contains("host ended"), "RUN-10: {card}");
    }
    assert_eq!(play.prompt("A", "more"), Err(Refusal::Ending));
    assert_eq!(play.open("C", None), Err(Refusal::Ending));
}

// A tool that never ends does not hold the end back for longer than the grace.
#[test]
fn a_quit_waits_for_a_hung_tool_only_until_its_deadline() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("bash", json!({}))]);
    play.hangs = true;
    assert_eq!(play.command(Command::Quit), Ok(()));
    assert!(!play.exited);
    play.tick();
    assert!(play.exited);
    assert_eq!(play.closed, [a()]);
    assert_eq!(play.engine.deadline(), None);
}

// Every command has its one answer, also an opening that a quit cuts off.
#[test]
fn an_opening_that_a_quit_cuts_off_is_answered() {
    let mut play = Play::default();
    play.is_obedient = false;
    let open = Command::Open {
        session: SessionId::from("B"),
        source: Source::New { name: None },
        adopts: None,
    };
    let id = play.give(open);
    assert_eq!(play.answer(id), None);
    assert_eq!(play.command(Command::Quit), Ok(()));
    assert_eq!(play.answer(id), Some(Err(Refusal::Ending)));
    assert!(play.exited);
}

// An owner that is open is shown, not opened over.
#[test]
fn opening_an_open_owner_attaches_it() {
    let mut play = Play::default();
    play.spawn("A", &["x"]);
    assert_eq!(play.open("B", None), Ok(()));
    assert_eq!(play.open("A", None), Ok(()));
    assert_eq!(play.engine.attached(), Some(&a()));
    assert_eq!(play.statuses("A"), ["running"]);
    assert!(play.closed.is_empty());
}

// host.md 3.1.11, crew.md RUN-3.
#[test]
fn commands_for_a_session_that_is_busy_or_not_shown_are_refused() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    assert_eq!(play.prompt("A", "again"), Err(Refusal::Busy));
    assert_eq!(play.prompt("nobody", "x"), Err(Refusal::UnknownSession));
    assert_eq!(play.attach("nobody"), Err(Refusal::UnknownSession));
    assert_eq!(play.open("B", None), Ok(()));
    assert_eq!(play.detach("A"), Err(Refusal::NotAttached));
    assert_eq!(play.engine.attached(), Some(&SessionId::from("B")));
    assert_eq!(
        play.command(crew_testkit::play::abort_crew("nobody")),
        Err(Refusal::UnknownSession)
    );
}

// product.md P-6: rest is told once all is quiet, also after a failed write.
#[test]
fn rest_is_told_when_nothing_is_in_flight_and_nothing_on_its_way() {
    let mut play = Play::default();
    assert_eq!(play.log().last().unwrap(), "A at rest");
    let child = play.spawn("A", &["x"]).remove(0);
    assert!(!play.log().contains(&"A at rest".to_owned()), "a subagent runs");
    play.report(&child, "R");
    assert!(!play.log().contains(&"A at rest".to_owned()), "the result is taken in");
    play.say(&a(), "seen");
    assert_eq!(play.log().iter().filter(|line| *line == "A at rest").count(), 1);
    let abort = crew_testkit::play::abort_crew("A");
    assert_eq!(play.command(abort), Ok(()));
    let entry = play.last_entry(&a(), "crew-abort");
    play.append_fails(&a(), entry);
    let log = play.log();
    assert!(log.contains(&"A failed: disk full".to_owned()), "{log:?}");
    assert_eq!(play.engine.crew().undelivered(&a()), 1);
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.tick();
    assert_eq!(play.customs("A", "crew-abort").len(), 2, "tried again with the prompt");
    play.say(&a(), "done");
    assert_eq!(play.log().last().unwrap(), "A at rest");
}

// host.md 12.5 through the engine: the boundary of the new loop is answered.
#[test]
fn giving_up_a_retry_goes_on_with_what_is_queued() {
    let mut play = Play::default();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.fail(&a(), ModelErrorKind::Overloaded, Some(529));
    assert_eq!(play.command(steer("A", "instead")), Ok(()));
    assert_eq!(play.command(Command::Control(a(), Control::AbortRetry)), Ok(()));
    // The request waits only for the cool-down of the provider (P-13).
    play.wait();
    assert_eq!(play.asked(&a()).last().unwrap(), "user: instead");
}

// terminal.md TERM-42: what the person does by hand is told before its result.
#[test]
fn what_the_person_answers_is_told_to_the_owner() {
    let mut play = Play::default();
    let child = play.spawn("A", &["x"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    let id = crew_base::id::SubagentId::new(child.id.as_str());
    let respond = Command::Respond(a(), id.clone(), "go on".to_owned());
    assert_eq!(play.command(respond), Ok(()));
    assert_eq!(play.asked(&child.session).last().unwrap(), "user: go on");
    play.report(&child, "R2");
    let written = play.written(&a());
    let at = |part: &str| written.iter().rposition(|line| line.contains(part)).unwrap();
    assert!(at("user_answered") < at("R2"));
    play.say(&a(), "seen");
    assert_eq!(play.command(Command::Done(a(), id.clone())), Ok(()));
    let refused = play.command(Command::Done(a(), id));
    assert!(matches!(refused, Err(Refusal::Subagent(_))), "{refused:?}");
}

// style.md 3: a second time makes no difference, whatever ended.
#[test]
fn repeated_and_unknown_endings_are_dropped() {
    let mut play = Play::default();
    let child = play.spawn("A", &["x"]).remove(0);
    let repeated =
        Event::SessionOpened { session: child.session.clone(), result: Err("again".to_owned()) };
    play.event(repeated);
    play.event(Event::ToolEnded {
        session: SessionId::from("nobody"),
        run: crew_base::id::RunId(1),
        outcome: ToolOutcome::text("x"),
    });
    play.event(Event::AppendFailed {
        session: a(),
        entry: crew_base::id::EntryId::from("none"),
        error: "x".to_owned(),
    });
    assert_eq!(play.statuses("A"), ["running"]);
    assert!(play.log().iter().all(|line| !line.contains("failed")));
}
