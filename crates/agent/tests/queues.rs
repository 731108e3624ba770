//! Steering, follow-up, results of the crew, and what starts nothing
//! (`host.md` 3.4, `product.md` P-9a).

use crew_agent::{Control, Input, QueueMode, Settings};
use crew_base::message::Message;
use crew_base::model::ModelErrorKind;
use crew_base::tool::ToolOutcome;
use crew_testkit::session_play::{SessionPlay, custom};

fn play(mode: QueueMode) -> SessionPlay {
    let settings = Settings { steering: mode, follow_up: mode, ..Settings::default() };
    SessionPlay::new(settings)
}

// host.md 3.4.1, 11.30: no call is skipped.
#[test]
fn steering_enters_after_all_results_of_the_batch() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    play.call(&[("a", "bash"), ("b", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    play.steer("look");
    play.tool("b", ToolOutcome::text("B"));
    let expected = ["user: go", "ToolUse: bash(a) + bash(b)", "a ok: A", "b ok: B", "user: look"];
    assert_eq!(play.asked(), expected);
}

// host.md 3.4.2, 11.31.
#[test]
fn the_mode_says_how_many_typed_messages_enter_at_once() {
    let check = |mode: QueueMode, first: usize, second: usize| {
        let mut play = play(mode);
        play.prompt("go");
        play.steer("one");
        play.steer("two");
        play.say("answer");
        assert_eq!(play.asked().len(), 2 + first);
        play.say("answer");
        assert_eq!(play.asked().len(), 2 + second);
    };
    check(QueueMode::OneAtATime, 1, 3);
    check(QueueMode::All, 2, 2);
}

// host.md 3.4.1, 3.4.3.
#[test]
fn a_follow_up_enters_when_the_run_would_stop() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    play.follow_up("then this");
    play.call(&[("a", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    assert!(!play.asked().contains(&"user: then this".to_owned()));
    play.log();
    play.say("done");
    assert_eq!(play.asked().last().unwrap(), "user: then this");
    // The list is told as empty before the message is (host.md 3.4.4).
    let log = play.log();
    let gone = log.iter().position(|line| line == "queue [] []").unwrap();
    let told = log.iter().position(|line| line == "message_start user").unwrap();
    assert!(gone < told);
    play.say("done");
    assert!(play.agent.is_idle());
}

// product.md P-9a, crew.md DEL-5.
#[test]
fn all_results_that_wait_enter_before_one_request_and_pass_typed_messages() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    play.steer("one");
    play.steer("two");
    play.results(&[1, 2]);
    play.results(&[3]);
    let before = play.requests();
    play.say("answer");
    assert_eq!(play.requests(), before + 1);
    let asked = play.asked();
    let entered: Vec<_> = asked[2..].iter().map(String::as_str).collect();
    let results = ["crew-result: result 1", "crew-result: result 2", "crew-result: result 3"];
    assert_eq!(entered, [&["user: one"][..], &results].concat());
}

// crew.md DEL-5: an idle owner is started; host.md 3.4.9: no queue list tells.
#[test]
fn results_start_a_run_in_an_idle_session_and_are_in_no_list() {
    let mut play = play(QueueMode::OneAtATime);
    play.results(&[1]);
    assert_eq!(play.asked(), ["crew-result: result 1"]);
    play.results(&[2]);
    assert!(!play.log().iter().any(|line| line.starts_with("queue")));
    assert_eq!(play.agent.clear_queue(), (Vec::new(), Vec::new()));
    assert!(play.agent.has_results());
}

// faults.md C004: in back-off too.
#[test]
fn a_result_during_the_wait_for_a_retry_enters_with_the_retry() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    play.fail(ModelErrorKind::Overloaded, Some(529));
    play.results(&[1]);
    play.wait();
    assert_eq!(play.asked(), ["user: go", "crew-result: result 1"]);
}

// host.md 3.1.8: what waits starts another loop run after a final failure.
#[test]
fn what_waits_goes_on_after_a_failure_that_is_not_tried_again() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    play.results(&[1]);
    play.log();
    play.fail(ModelErrorKind::Credential, Some(401));
    let log = play.log();
    let end = log.iter().position(|line| line == "agent_end").unwrap();
    assert_eq!(log[end + 1..][..2], ["queue [] []", "agent_start"]);
    assert_eq!(play.asked().last().unwrap(), "crew-result: result 1");
}

// host.md 3.4.7, 11.35: never between a call and its result.
#[test]
fn an_injected_message_waits_for_the_end_of_the_turn() {
    let mut play = play(QueueMode::OneAtATime);
    play.input(Input::Inject(custom("crew-user", "idle")));
    assert_eq!(play.log()[0], "write crew-user: idle");
    play.prompt("go");
    play.call(&[("a", "bash")]);
    play.input(Input::Inject(custom("crew-user", "later")));
    play.tool("a", ToolOutcome::text("A"));
    assert_eq!(play.asked()[3..], ["a ok: A", "crew-user: later"]);
}

// host.md 3.4.7: with no turn to wait for it is not forgotten.
#[test]
fn an_injected_message_survives_an_abort_of_the_wait_for_a_retry() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    play.fail(ModelErrorKind::Overloaded, Some(529));
    play.input(Input::Inject(custom("crew-user", "held")));
    play.input(Input::Abort);
    assert!(play.log().contains(&"write crew-user: held".to_owned()));
}

// host.md 3.4.8, 11.36.
#[test]
fn what_is_injected_for_after_the_run_is_written_when_it_has_ended() {
    let mut play = play(QueueMode::OneAtATime);
    play.prompt("go");
    let typed = Message::user_text("!ls", play.now);
    play.input(Input::InjectAfterRun(typed));
    play.call(&[("a", "bash")]);
    play.tool("a", ToolOutcome::text("A"));
    assert!(!play.asked().contains(&"user: !ls".to_owned()));
    play.log();
    play.say("done");
    let log = play.log();
    let end = log.iter().position(|line| line == "agent_end").unwrap();
    assert_eq!(log[end + 1], "write user: !ls");
}

// host.md 12.5, 11.37: the queue goes on once, the failed prompt not by itself.
#[test]
fn giving_up_a_retry_delivers_what_is_queued() {
    let give_up = |play: &mut SessionPlay| {
        let mut ids = crew_base::id::Ids::new(9);
        play.agent.control(play.now, &mut ids, Control::AbortRetry)
    };
    let mut alone = play(QueueMode::OneAtATime);
    alone.prompt("go");
    alone.fail(ModelErrorKind::Overloaded, Some(529));
    assert!(!give_up(&mut alone).is_empty());
    assert!(alone.agent.is_idle());

    let mut queued = play(QueueMode::OneAtATime);
    queued.prompt("go");
    queued.fail(ModelErrorKind::Overloaded, Some(529));
    queued.follow_up("next");
    assert!(!give_up(&mut queued).is_empty());
    queued.input(Input::Proceed(Vec::new()));
    assert_eq!(queued.asked(), ["user: go", "user: next"]);
}
