//! The owner tools as a model meets them: `crew.md` 2 and the rows of its
//! section 21 that are about calls.

use crew_base::definition::Discovery;
use crew_testkit::play::{Play, a, spawn_arguments};
use serde_json::{Value, json};

/// Calls one tool in a run of its own and gives its result.
fn call(play: &mut Play, owner: &str, name: &str, arguments: Value) -> Value {
    let session = owner.into();
    assert_eq!(play.prompt(owner, "go"), Ok(()));
    play.call(&session, &[(name, arguments)]);
    let text = play.tool_result(&session);
    if !play.engine.agent(&session).is_some_and(|agent| agent.is_idle()) {
        play.say(&session, "ok");
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn error(play: &mut Play, name: &str, arguments: Value) -> String {
    let result = call(play, "A", name, arguments);
    result["error"].as_str().unwrap_or_else(|| panic!("{name} gave {result}")).to_owned()
}

/// An owner whose one subagent has reported.
fn reported() -> (Play, String) {
    let mut play = Play::default();
    let child = play.spawn("A", &["one"]).remove(0);
    play.report(&child, "R");
    play.say(&a(), "seen");
    (play, child.id)
}

// Rows 49 and 50; TOOL-20, TASK-10.
#[test]
fn a_spawn_is_checked_brief_first_then_task_then_name_and_creates_nothing() {
    let mut play = Play::default();
    let mut check = |brief: &str, task: Value, name: &str, part: &str| {
        let arguments = json!({"subagent": name, "brief": brief, "task": task});
        let text = error(&mut play, "crew_spawn", arguments);
        assert!(text.contains(part), "{text}");
        assert!(play.statuses("A").is_empty());
    };
    let good = json!({"goal": "g", "context": [], "instructions": ["i"]});
    check(" \n", json!("do it"), "nobody", "`brief`");
    check("b", json!("do it"), "nobody", "`task`");
    check("b", json!({"goal": "g", "context": [], "instructions": []}), "scout", "instructions");
    check("b", json!({"goal": "g", "context": [" "], "instructions": ["i"]}), "scout", "context");
    check("b", json!({"goal": "g", "x": 1}), "scout", "`x`");
    check("b", good.clone(), "nobody", "nobody");
    check("b", good, "Scout", "available: scout");
}

// TOOL-21: the word `none`; TOOL-16.
#[test]
fn without_definitions_a_spawn_says_so_and_the_list_names_the_folders() {
    let mut play = Play::default();
    let folders = vec!["/p/agents".to_owned(), "/u/agents".to_owned()];
    play.discovery = Discovery { folders, ..Discovery::default() };
    assert!(error(&mut play, "crew_spawn", spawn_arguments("b")).contains("available: none"));
    let list = call(&mut play, "A", "crew_list", json!({}));
    assert_eq!(list["subagents"], json!([]));
    let warning = list["warnings"][0]["message"].as_str().unwrap();
    assert!(warning.contains("/p/agents") && warning.contains("/u/agents"), "{warning}");
}

// TOOL-7, TOOL-22, TOOL-23, LIFE-2; C005 in part: the id is there at once.
#[test]
fn a_spawn_returns_before_the_child_is_prepared() {
    let mut play = Play::default();
    play.is_obedient = false;
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_spawn", spawn_arguments("  look around  "))]);
    assert!(play.discovers());
    let result: Value = serde_json::from_str(&play.tool_result(&a())).unwrap();
    let id = result["subagent_id"].as_str().unwrap();
    let digits = id.strip_prefix("scout-").unwrap();
    assert!(digits.len() == 8 && digits.chars().all(|c| c.is_ascii_hexdigit()));
    assert_eq!(result.as_object().unwrap().len(), 1);
    assert_eq!(play.requests(&a()).len(), 2, "the owner goes on");
    let view = play.engine.subagents(&a()).remove(0);
    assert_eq!((view.brief.as_str(), view.status.word()), ("look around", "running"));
}

// TOOL-12 to TOOL-14, TOOL-17, TOOL-18.
#[test]
fn list_and_status_have_their_keys_in_order() {
    let mut play = Play::default();
    let list = call(&mut play, "A", "crew_list", json!({})).to_string();
    assert_eq!(
        list,
        r#"{"subagents":[{"name":"scout","description":"d","source":"bundled","model":null,"thinking":null,"tools":["read","bash","edit","write","grep","find","ls"],"skills":null}],"warnings":[]}"#
    );
    let none = call(&mut play, "A", "crew_status", json!({})).to_string();
    assert_eq!(none, r#"{"sessions":[]}"#);
    let id = play.spawn("A", &["b"]).remove(0).id;
    let one = call(&mut play, "A", "crew_status", json!({})).to_string();
    let expected = format!(
        r#"{{"sessions":[{{"subagent_id":"{id}","subagent":"scout","brief":"b","status":"running","model":"sim/m"}}]}}"#
    );
    assert_eq!(one, expected);
}

// TOOL-11, P-9b: judged as the model sent them, nothing dropped or converted.
#[test]
fn unknown_keys_and_wrong_types_are_rejected_without_effect() {
    let (mut play, id) = reported();
    for (name, arguments) in [
        ("crew_list", json!({"x": 1})),
        ("crew_status", json!({"all": null})),
        ("crew_respond", json!({"subagent_id": id, "message": "m", "x": null})),
        ("crew_respond", json!({"subagent_id": id, "message": 5})),
        ("crew_done", json!({"subagent_id": [id]})),
        ("crew_done", json!({"subagent_id": id, "reason": "r"})),
        ("crew_abort", json!({"all": "true"})),
        ("crew_abort", json!({"subagent_id": id, "subagent_ids": null})),
        ("crew_abort", json!({"subagent_ids": id})),
    ] {
        error(&mut play, name, arguments);
        assert_eq!(play.statuses("A"), ["completed"], "{name}");
    }
}

// Rows 4 and 47, TOOL-26, TOOL-29.
#[test]
fn a_running_subagent_can_be_neither_answered_nor_closed() {
    let mut play = Play::default();
    let child = play.spawn("A", &["b"]).remove(0);
    for (name, arguments) in [
        ("crew_respond", json!({"subagent_id": child.id, "message": "m"})),
        ("crew_done", json!({"subagent_id": child.id})),
    ] {
        let text = error(&mut play, name, arguments);
        assert!(text.contains(&child.id) && text.contains("running"), "{text}");
    }
    assert_eq!(play.statuses("A"), ["running"]);
    // Also while the one follow-up is answered (row 4).
    play.say(&child.session, "no report");
    let message = json!({"subagent_id": child.id, "message": "m"});
    assert!(error(&mut play, "crew_respond", message).contains("running"));
    play.report(&child, "R");
    assert_eq!(play.statuses("A"), ["completed"]);
}

// Row 3, LIFE-8, ISO-11: whichever is taken first decides, and there is never a
// second cycle beside the first.
#[test]
fn a_response_and_a_settlement_at_one_moment_take_effect_one_after_the_other() {
    let check = |settles_first: bool| {
        let mut play = Play::default();
        let child = play.spawn("A", &["b"]).remove(0);
        let before = play.requests(&child.session).len();
        let respond = json!({"subagent_id": child.id, "message": "m"});
        if settles_first {
            play.report(&child, "R");
            play.call(&a(), &[("crew_respond", respond)]);
            assert_eq!(play.requests(&child.session).len(), before + 1);
            assert_eq!(play.statuses("A"), ["running"]);
        } else {
            assert!(error(&mut play, "crew_respond", respond).contains("running"));
            play.report(&child, "R");
            assert_eq!(play.requests(&child.session).len(), before);
            assert_eq!(play.statuses("A"), ["completed"]);
        }
        assert_eq!(play.customs("A", "crew-result").len(), 1);
    };
    check(true);
    check(false);
}

// TOOL-26 in its order, row 48.
#[test]
fn a_response_is_checked_message_first_then_id_then_owner() {
    let (mut play, id) = reported();
    let blank = json!({"subagent_id": "nobody", "message": " "});
    assert!(error(&mut play, "crew_respond", blank).contains("`message`"));
    let unknown = json!({"subagent_id": "nobody-1", "message": "m"});
    assert!(error(&mut play, "crew_respond", unknown).contains("nobody-1"));
    assert_eq!(play.open("B", None), Ok(()));
    let foreign = json!({"subagent_id": id, "message": "m"});
    let refused = call(&mut play, "B", "crew_respond", foreign);
    let text = refused["error"].as_str().unwrap();
    assert!(text.contains(&id) && text.contains("another session"), "{text}");
}

// TOOL-27, LIFE-10, RES-11: only the new message, in the old conversation.
#[test]
fn a_response_continues_the_conversation_with_exactly_its_message() {
    let (mut play, id) = reported();
    let child = play.children("A").remove(0);
    let result =
        call(&mut play, "A", "crew_respond", json!({"subagent_id": id, "message": " m\n"}));
    assert_eq!(result, json!({"subagent_id": id}));
    assert_eq!(play.statuses("A"), ["running"]);
    let asked = play.asked(&child.session);
    assert_eq!(asked.last().unwrap(), "user:  m\n");
    assert_eq!(asked.iter().filter(|line| line.starts_with("user: ## Goal")).count(), 1);
}

// TOOL-30: nothing reaches the child, nothing is delivered.
#[test]
fn done_closes_and_delivers_nothing() {
    let (mut play, id) = reported();
    let child = play.children("A").remove(0);
    let before = (play.customs("A", "crew-result"), play.requests(&child.session).len());
    assert_eq!(
        call(&mut play, "A", "crew_done", json!({"subagent_id": id})),
        json!({"subagent_id": id})
    );
    assert_eq!(play.closed, std::slice::from_ref(&child.session));
    assert_eq!((play.customs("A", "crew-result"), play.requests(&child.session).len()), before);
    assert!(play.customs("A", "crew-abort").is_empty());
}

// Row 45, LIFE-8: each call sees what the one before it left.
#[test]
fn done_and_respond_in_one_batch_take_effect_in_order() {
    let (mut play, id) = reported();
    assert_eq!(play.prompt("A", "go"), Ok(()));
    let done = ("crew_done", json!({"subagent_id": id}));
    play.call(&a(), &[done, ("crew_respond", json!({"subagent_id": id, "message": "m"}))]);
    let asked = play.asked(&a());
    assert!(asked.iter().any(|line| line.contains(&format!("ok: {{\"subagent_id\":\"{id}\"}}"))));
    assert!(play.tool_result(&a()).contains("no open subagent"));
    assert!(play.statuses("A").is_empty());
}

// Rows 39 to 43, TOOL-31 to TOOL-36.
#[test]
fn an_abort_sorts_its_ids_and_says_what_it_did() {
    let mut play = Play::default();
    let own = play.spawn("A", &["own"]).remove(0).id;
    assert_eq!(play.open("B", None), Ok(()));
    let foreign = play.spawn("B", &["foreign"]).remove(0).id;
    assert_eq!(play.attach("A"), Ok(()));

    for arguments in [
        json!({}),
        json!({"all": false}),
        json!({"subagent_id": "", "subagent_ids": []}),
        json!({"subagent_id": own, "all": true}),
        json!({"subagent_id": own, "subagent_ids": [own]}),
    ] {
        let text = error(&mut play, "crew_abort", arguments);
        assert!(["subagent_id", "subagent_ids", "all"].iter().all(|mode| text.contains(mode)));
    }
    let text = error(&mut play, "crew_abort", json!({"subagent_ids": [foreign, "nobody-1"]}));
    assert!(text.contains(&foreign) && text.contains("nobody-1"), "{text}");
    error(&mut play, "crew_abort", json!({"subagent_ids": [" "]}));
    assert_eq!((play.statuses("A").len(), play.statuses("B").len()), (1, 1));

    let ids = json!({"subagent_ids": [format!(" {own} "), foreign, "nobody-1", own, " "]});
    let result = call(&mut play, "A", "crew_abort", ids).to_string();
    let expected = format!(
        r#"{{"aborted_ids":["{own}"],"missing_ids":["nobody-1"],"foreign_ids":["{foreign}"]}}"#
    );
    assert_eq!(result, expected);
    error(&mut play, "crew_abort", json!({"all": true}));
    assert_eq!(play.statuses("B"), ["running"]);
}

// TOOL-37: a successful one ends the run, a failed one does not.
#[test]
fn a_successful_abort_ends_the_owners_run() {
    let mut play = Play::default();
    let child = play.spawn("A", &["b"]).remove(0);
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_abort", json!({"all": true}))]);
    assert!(play.engine.agent(&a()).unwrap().is_idle());
    assert_eq!(play.closed, [child.session]);
    assert_eq!(play.prompt("A", "go"), Ok(()));
    play.call(&a(), &[("crew_abort", json!({"all": true}))]);
    assert!(!play.engine.agent(&a()).unwrap().is_idle());
}

// TOOL-36: every open one of the caller and no other.
#[test]
fn abort_all_takes_every_open_subagent_of_the_caller_and_no_other() {
    let (mut play, first) = reported();
    let second = play.spawn("A", &["two"]).remove(0).id;
    assert_eq!(play.open("B", None), Ok(()));
    play.spawn("B", &["other"]);
    assert_eq!(play.attach("A"), Ok(()));
    let result = call(&mut play, "A", "crew_abort", json!({"all": true}));
    assert_eq!(result["aborted_ids"], json!([first, second]));
    assert_eq!(result["foreign_ids"], json!([]));
    assert_eq!(play.statuses("B"), ["running"]);
}
