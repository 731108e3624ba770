//! Requests that failed before their answer began are sent again without a
//! trace (`host.md` 3.6.9).

use crew_agent::{Input, RetrySettings, Settings};
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent};
use crew_testkit::session_play::SessionPlay;

fn play() -> SessionPlay {
    let retry = RetrySettings {
        enabled: false,
        resends_max: 2,
        resend_delay_ms_max: Some(5000),
        ..RetrySettings::default()
    };
    let mut play = SessionPlay::new(Settings { retry, ..Settings::default() });
    play.prompt("go");
    play.log();
    play
}

fn told_to_wait(play: &mut SessionPlay, retry_after_ms: u64) {
    let error = ModelError {
        status: Some(429),
        retry_after_ms: Some(retry_after_ms),
        ..ModelError::new(ModelErrorKind::RateLimit, "slow down")
    };
    play.stream(vec![ModelEvent::Failed(error)]);
}

#[test]
fn the_servers_delay_is_waited_for_and_nobody_is_told() {
    let mut play = play();
    told_to_wait(&mut play, 1000);
    assert_eq!(play.log(), [""; 0]);
    let waited = play.agent.deadline().unwrap().since(play.now);
    assert!((1000..=1200).contains(&waited), "{waited}");
    play.wait();
    assert_eq!(play.log(), ["ask with 2"]);
}

#[test]
fn the_third_failure_counts() {
    let mut play = play();
    for _ in 0..2 {
        play.fail(ModelErrorKind::Server, Some(503));
        play.wait();
    }
    play.log();
    play.fail(ModelErrorKind::Server, Some(503));
    assert!(play.log().iter().any(|line| line.starts_with("message_end Error")));
    assert!(play.agent.is_idle());
}

// host.md 11.49.
#[test]
fn a_delay_above_the_limit_fails_at_once_and_names_both() {
    let mut play = play();
    told_to_wait(&mut play, 3_600_000);
    let log = play.log().join("\n");
    assert!(log.contains("3600 s") && log.contains("5 s"), "{log}");
    assert!(play.agent.is_idle());
}

// host.md 11.51.
#[test]
fn an_abort_during_the_wait_ends_the_run() {
    let mut play = play();
    told_to_wait(&mut play, 1000);
    play.input(Input::Abort);
    assert!(play.log().iter().any(|line| line.contains("Aborted")));
    assert!(play.agent.is_idle() && play.agent.deadline().is_none());
}
