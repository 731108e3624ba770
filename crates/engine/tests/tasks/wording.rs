//! Commit messages from a model (`task.md` ISO-9): a request beside every
//! conversation.

use crew_base::message::Message;
use crew_base::model::{ModelErrorKind, ToolChoice};
use crew_engine::TaskWork;
use crew_engine::api::Command;
use crew_engine::api::task::Merge;
use crew_testkit::play::{Play, a};
use serde_json::json;

use super::{calling, check_rest, record, result};

/// An isolated child has handed in, and the model was asked for a message.
fn asking() -> Play {
    let mut play = Play::default();
    play.setup.settings.isolation.enabled = true;
    play.setup.settings.isolation.merge = Merge::Branch;
    play.setup.settings.isolation.generated_messages = true;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let item = json!({"name": "k1", "task": "x", "isolated": true});
    play.call(&a(), &[("task", json!({"context": "c", "tasks": [item]}))]);
    let child = play.task_child("k1");
    play.yields(&child, json!({"n": 1}));
    play
}

fn message(play: &Play) -> &str {
    let found = play.worked.iter().find_map(|work| {
        let TaskWork::Integrate { capture, .. } = work else { return None };
        Some(capture.message.as_str())
    });
    found.expect("the changes are brought back")
}

// ISO-9, OBS-5: the caller's model, without tools; no record holds a word of it.
#[test]
fn the_message_is_made_by_the_callers_model_and_stands_in_no_record() {
    let mut play = asking();
    let requests = play.requests(&a());
    let request = requests.last().unwrap();
    assert_eq!((requests.len(), request.model.id.as_str()), (2, "m"));
    assert_eq!((request.messages.len(), &request.tool_choice), (2, &ToolChoice::Auto));
    let Message::User(user) = &*request.messages[1] else { panic!("{:?}", request.messages) };
    assert!(user.content.text().contains("+ work of"));
    let mut plain = calling(&["x"]);
    plain.yields(&plain.task_child("k1"), json!({"n": 1}));
    let alone = record(&plain, 0)["usage"]["input"].as_u64();
    let entries = play.entries(&a()).len();
    play.say(&a(), "Do it well");
    assert_eq!(message(&play), "Do it well");
    let written: Vec<_> = play.entries(&a())[entries..].iter().map(|e| e.body.kind()).collect();
    assert_eq!(written, ["message"], "the result of the call alone");
    assert!(result(&play).0.contains("completed"));
    assert!(record(&play, 0)["usage"]["input"].as_u64() > alone);
    assert_eq!(record(&play, 0)["requests"], 1);
    play.say(&a(), "done");
    check_rest(&play);
}

// ISO-9: any failure costs the message only, and nothing is tried again.
#[test]
fn a_request_that_fails_leaves_the_id_as_the_message() {
    let mut play = asking();
    play.fail(&a(), ModelErrorKind::Overloaded, Some(529));
    assert_eq!(message(&play), "k1");
    assert_eq!(play.task_result(&a()).map(|result| result.is_error), Some(false));
    while play.requests(&a()).len() < 3 {
        // The provider asked everybody to wait (product.md P-13).
        play.tick();
    }
    play.say(&a(), "done");
    check_rest(&play);
}

// OBS-10: what is finished comes back; the request is let go.
#[test]
fn an_abort_lets_the_request_go_and_brings_the_work_back() {
    let mut play = asking();
    play.log();
    assert_eq!(play.abort("A"), Ok(()));
    assert!(play.log().contains(&"A cancels".to_owned()));
    assert_eq!(message(&play), "k1");
    assert!(result(&play).0.contains("completed"));
    // What the stream says now is late.
    play.say(&a(), "Late");
    check_rest(&play);
}

// A quit does not wait for it.
#[test]
fn a_quit_does_not_wait_for_a_message() {
    let mut play = asking();
    assert_eq!(play.command(Command::Quit), Ok(()));
    assert_eq!(message(&play), "k1");
    assert!(play.exited);
}
