//! Other models that are asked when one gives up (`task.md` TASK-SPAWN-13).

use crew_agent::{Input, RetrySettings, Settings};
use crew_base::model::{ModelErrorKind, ThinkingLevel};
use crew_testkit::fixtures;
use crew_testkit::session_play::SessionPlay;

fn play(retries_max: u32) -> SessionPlay {
    let retry = RetrySettings { retries_max, ..RetrySettings::default() };
    let mut play = SessionPlay::new(Settings { retry, ..Settings::default() });
    let models = ["second", "third"].map(|id| (fixtures::model(id), ThinkingLevel::Off));
    play.agent.fall_back_on(models.to_vec());
    play.prompt("go");
    play.log();
    play
}

fn model(play: &SessionPlay) -> String {
    play.agent.model().expect("a model").id.clone()
}

#[test]
fn a_model_that_gives_up_is_followed_by_the_next_at_once() {
    let mut play = play(1);
    play.fail(ModelErrorKind::Overloaded, Some(529));
    assert_eq!(model(&play), "m", "retries come first");
    play.wait();
    play.log();
    play.fail(ModelErrorKind::Overloaded, Some(529));
    assert_eq!(model(&play), "second");
    let log = play.log();
    assert!(log.contains(&"retry_end false 1 scripted failure".to_owned()), "{log:#?}");
    assert!(log.contains(&"retry_start 1/1 0ms scripted failure".to_owned()), "{log:#?}");
    assert!(log.contains(&"write model_change".to_owned()), "{log:#?}");
    assert_eq!(play.agent.deadline(), Some(play.now));
    play.wait();
    assert_eq!(play.asked(), ["user: go"], "without the failed attempt");
    play.say("done");
    assert!(play.log().contains(&"retry_end true 1 -".to_owned()));
}

#[test]
fn a_failure_that_no_retry_helps_goes_on_to_the_next_and_the_last_one_counts() {
    let mut play = play(3);
    for id in ["second", "third"] {
        play.fail(ModelErrorKind::Credential, Some(401));
        assert_eq!(model(&play), id);
        play.wait();
    }
    play.fail(ModelErrorKind::Credential, Some(401));
    assert!(play.agent.is_idle());
    assert_eq!(play.requests(), 3);
}

#[test]
fn an_abort_is_no_failure_of_the_model() {
    let mut play = play(0);
    play.input(Input::Abort);
    assert!(play.agent.is_idle());
    assert_eq!(model(&play), "m");
}

#[test]
fn without_retries_there_are_no_fallbacks() {
    let mut play = play(1);
    drop(play.agent.control(
        play.now,
        &mut crew_base::id::Ids::new(9),
        crew_agent::Control::Retry(false),
    ));
    play.fail(ModelErrorKind::Credential, Some(401));
    assert!(play.agent.is_idle());
    assert_eq!(model(&play), "m");
}
