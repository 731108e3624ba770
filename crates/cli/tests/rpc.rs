//! RPC mode (`host.md` 7): framing, prompts, aborts, ends, back-pressure.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::client::Client;
use common::golden::{Names, golden, normal};
use common::server::{Gate, Reply};
use common::{SECRET, World, until};
use rustix::process::Signal;
use serde_json::{Value, json};

fn answering(text: &'static str) -> World {
    World::new(move |_| Reply::text(text))
}

/// Types of the lines from a place on, with the roles of messages; a row of
/// equal ones counts once.
fn kinds(client: &Client, since: usize) -> Vec<String> {
    let kind = |line: &Value| {
        let kind = line["type"].as_str().unwrap();
        match line["message"]["role"].as_str().filter(|_| kind.starts_with("message_")) {
            Some(role) => format!("{kind}:{role}"),
            None => kind.to_owned(),
        }
    };
    let mut kinds: Vec<String> = client.lines(since).iter().map(kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn no_line_ends_the_process_and_the_half_line_at_the_end_counts() {
    // C130, host.md 7.1.1, 7.1.2, 7.2.2
    let world = answering("fine");
    let mut client = Client::start(&world, &[]);
    client.raw(b"{\"id\":\"early\",\"type\":\"get_state\"}\r\n");
    client.response("early");
    assert_eq!(client.count(), 1, "nothing comes unasked");
    let long = format!("{{\"type\":\"zzz\",\"x\":\"{}\"}}\n", "y".repeat(10_000_000));
    for line in [&b"ls\n"[..], b"\n", b"\xff\xfe\n", b"[]\n", b"{\"type\":7}\n", long.as_bytes()] {
        client.raw(line);
    }
    let told = client.wait(0, |line| line["command"] == "zzz");
    assert_eq!(told["error"], "Unknown command: zzz");
    let refused = client.lines(1);
    assert_eq!(refused.len(), 6, "{refused:?}");
    for line in &refused[..5] {
        assert_eq!((&line["command"], &line["success"]), (&json!("parse"), &json!(false)));
        assert!(line["error"].as_str().unwrap().starts_with("Failed to parse command: "));
        assert!(line.get("id").is_none());
    }
    client.prompt("still there");
    client.raw(b"{\"id\":\"half\",\"type\":\"get_last_assistant_text\"}");
    client.end_input();
    assert_eq!(client.code(), Some(0));
    assert_eq!(client.response("half")["data"], json!({"text": "fine"}));
    until("no process", || world.living().is_empty());
}

#[test]
fn a_response_stands_before_the_events_it_leads_to() {
    // host.md 7.3.3, 7.4.1 to 7.4.3
    let world = answering("hello there");
    let mut client = Client::start(&world, &[]);
    let since = client.prompt("hi");
    assert_eq!(
        kinds(&client, since),
        [
            "response",
            "agent_start",
            "turn_start",
            "message_start:system",
            "message_end:system",
            "message_start:user",
            "message_end:user",
            "message_start:assistant",
            "message_update",
            "message_end:assistant",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    let response = &client.lines(since)[0];
    assert_eq!(response["data"], json!({"disposition": "started"}));
}

#[test]
fn a_message_for_the_running_or_the_next_run_is_never_left_waiting() {
    // host.md 3.4.3, 7.3.4: whether a run goes on is decided where it is known
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    let texts: Vec<String> = (0..60).map(|number| format!("<word {number}>")).collect();
    for (number, text) in texts.iter().enumerate() {
        let way = if number % 2 == 0 { "steer" } else { "followUp" };
        client.ask("prompt", json!({"message": text, "streamingBehavior": way}));
    }
    let all = || world.server.requests().last().map(|last| last.all_text()).unwrap_or_default();
    until("every message at the model", || texts.iter().all(|text| all().contains(text.as_str())));
    until("rest", || client.state()["isStreaming"] == false);
    assert_eq!(client.state()["pendingMessageCount"], 0);
}

#[test]
fn a_prompt_during_a_run_needs_a_place_in_the_queue() {
    // host.md 7.3.3, 3.1.11, 3.4.4
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("late").behind(&held));
    let mut client = Client::start(&world, &[]);
    let started = client.ask("prompt", json!({"message": "one"}));
    assert_eq!(started, json!({"disposition": "started"}));
    assert!(client.refused("prompt", json!({"message": "two"})).contains("already processing"));
    let queued = json!({"disposition": "queued"});
    let way = json!({"message": "three", "streamingBehavior": "followUp"});
    assert_eq!(client.ask("prompt", way), queued);
    assert_eq!(client.ask("steer", json!({"message": "four"})), queued);
    let state = client.state();
    assert_eq!((&state["isStreaming"], &state["pendingMessageCount"]), (&json!(true), &json!(2)));
    let cleared = client.ask("clear_queue", json!({}));
    assert_eq!(cleared, json!({"steering": ["four"], "followUp": ["three"]}));
    gate.open();
    client.event(0, "agent_settled");
    assert_eq!(world.server.requests().len(), 1);
}

#[test]
fn an_abort_is_answered_when_idle_and_else_after_the_run_has_settled() {
    // host.md 3.5.1, 3.5.2, 7.3
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("begun").held(&held));
    let mut client = Client::start(&world, &[]);
    client.ask("abort", json!({}));
    client.ask("prompt", json!({"message": "go"}));
    client.wait(0, |line| line["assistantMessageEvent"]["type"] == "text_delta");
    let since = client.count();
    client.ask("abort", json!({}));
    let kinds = kinds(&client, since);
    assert_eq!(&kinds[kinds.len() - 2..], ["agent_settled", "response"]);
    assert_eq!(client.event(since, "agent_settled")["aborted"], true);
    assert_eq!(client.ask("get_last_assistant_text", json!({})), json!({"text": "begun"}));
    gate.open();
}

#[test]
fn every_end_is_quick_stores_the_partial_answer_and_leaves_no_process() {
    // host.md 7.1.4, 6.1.8, 3.5.2, 4.3.8, 11.88
    let check = |end: Option<Signal>, code: i32| {
        let gate = Gate::default();
        let held = gate.clone();
        let world = World::new(move |request| match request.has_results() {
            true => Reply::text("begun").held(&held),
            false => Reply::call("bash", json!({"command": "sleep 321 & echo $!"})),
        });
        let mut client = Client::start(&world, &[]);
        client.ask("prompt", json!({"message": "go"}));
        client.wait(0, |line| line["assistantMessageEvent"]["delta"] == "begun");
        client.send("bash", json!({"command": "sleep 654"}));
        until("the person's command", || {
            world.living().iter().any(|line| line.contains("sleep 654"))
        });
        let start = Instant::now();
        match end {
            Some(signal) => client.signal(signal),
            None => client.end_input(),
        }
        assert_eq!(client.code(), Some(code), "{end:?}");
        assert!(start.elapsed() < Duration::from_secs(2), "{end:?}: {:?}", start.elapsed());
        // The guard sees the end of its host and follows.
        until("no process", || world.living().is_empty());
        let session = world.session();
        let last = &session.last().unwrap()["message"];
        assert_eq!(last["stopReason"], "aborted", "{end:?}: {last}");
        assert_eq!(last["content"][0]["text"], "begun");
        gate.open();
    };
    check(None, 0);
    check(Some(Signal::TERM), 143);
    check(Some(Signal::HUP), 129);
    check(Some(Signal::INT), 130);
}

#[test]
fn the_end_of_the_input_and_a_signal_do_not_cut_each_other_short() {
    // host.md 7.1.4, 11.89
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |_| Reply::text("begun").held(&held));
    let mut client = Client::start(&world, &[]);
    client.ask("prompt", json!({"message": "go"}));
    client.wait(0, |line| line["assistantMessageEvent"]["delta"] == "begun");
    client.end_input();
    client.signal(Signal::TERM);
    assert!(matches!(client.code(), Some(0 | 143)));
    assert_eq!(world.session().last().unwrap()["message"]["stopReason"], "aborted");
    gate.open();
}

#[test]
fn a_client_that_does_not_read_slows_its_session_and_loses_nothing() {
    // host.md 7.1.5, 11.87
    const PIECES: usize = 150_000;
    let world = World::new(|_| Reply::pieces(PIECES, "a piece of text, "));
    let gate = Gate::default();
    let mut client = Client::start_deaf(&world, &[], Some(&gate));
    client.send("prompt", json!({"message": "go"}));
    until("a request", || !world.server.requests().is_empty());
    let memory = || resident_kb(client.id());
    // Long enough for all of it, if it were taken.
    std::thread::sleep(Duration::from_millis(1500));
    let held = memory();
    assert!(held < 80_000, "{held} kB are held for a client that does not read");
    // What changes state is taken meanwhile, and ends the run.
    client.send("abort", json!({}));
    gate.open();
    let end = client.event(0, "agent_settled");
    assert_eq!(end["aborted"], true);
    let world = World::new(|_| Reply::pieces(20_000, "ab"));
    let gate = Gate::default();
    let mut client = Client::start_deaf(&world, &[], Some(&gate));
    client.send("prompt", json!({"message": "go"}));
    until("a request", || !world.server.requests().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    gate.open();
    client.event(0, "agent_settled");
    let pieces = client.lines(0);
    let pieces = pieces.iter().filter(|l| l["assistantMessageEvent"]["type"] == "text_delta");
    let text: String =
        pieces.map(|l| l["assistantMessageEvent"]["delta"].as_str().unwrap().to_owned()).collect();
    assert_eq!(text.len(), 40_000);
}

fn resident_kb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_command_of_the_person_streams_is_stopped_and_is_told_to_the_model() {
    // host.md 7.3.8, 2.7.10, 3.4.8
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    let ran = client.ask("bash", json!({"command": "printf red; exit 3"}));
    assert_eq!(
        ran,
        json!({"output": "red", "exitCode": 3, "cancelled": false, "truncated": false})
    );
    let chunk = client.event(0, "bash_execution_update");
    assert_eq!((&chunk["id"], &chunk["delta"]), (&json!("c1"), &json!("red")));
    let id = client.send("bash", json!({"command": "echo begun; sleep 777"}));
    client.wait(0, |line| line["delta"] == "begun\n");
    assert!(client.refused("bash", json!({"command": "true"})).contains("running"));
    client.ask("abort_bash", json!({}));
    let stopped = &client.response(&id)["data"];
    assert_eq!((&stopped["cancelled"], stopped.get("exitCode")), (&json!(true), None));
    client.ask("bash", json!({"command": "echo hidden", "excludeFromContext": true}));
    client.prompt("and now");
    let text = world.server.requests()[0].all_text();
    assert!(text.contains("red") && text.contains('3') && !text.contains("hidden"), "{text}");
}

#[test]
fn output_of_a_command_that_nobody_reads_is_not_gathered() {
    // host.md 7.1.5
    let world = answering("ok");
    let gate = Gate::default();
    let mut client = Client::start_deaf(&world, &[], Some(&gate));
    let id = client.send("bash", json!({"command": "yes a-long-line-of-output"}));
    std::thread::sleep(Duration::from_millis(800));
    let held = resident_kb(client.id());
    assert!(held < 80_000, "{held} kB are held");
    client.send("abort_bash", json!({}));
    gate.open();
    assert_eq!(client.response(&id)["data"]["cancelled"], true);
}

#[test]
fn what_the_person_sets_is_kept_and_goes_on_in_the_next_session() {
    // host.md 1.3.9, 1.3.3
    let world = answering("ok");
    let mut client = Client::start(&world, &[]);
    for (kind, fields) in [
        ("set_steering_mode", json!({"mode": "all"})),
        ("set_follow_up_mode", json!({"mode": "all"})),
        ("set_auto_compaction", json!({"enabled": false})),
        ("set_auto_retry", json!({"enabled": false})),
    ] {
        client.ask(kind, fields);
    }
    client.ask("set_model", json!({"provider": "local", "modelId": "m2"}));
    client.ask("new_session", json!({}));
    let state = client.state();
    let modes = ["steeringMode", "followUpMode", "autoCompactionEnabled"].map(|name| &state[name]);
    assert_eq!(modes, [&json!("all"), &json!("all"), &json!(false)]);
    assert_eq!(state["model"]["id"], "m2");
    client.prompt("x");
    assert_eq!(world.server.requests()[0].body["model"], "m2");
    let settings = fs::read_to_string(world.agent().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["steeringMode"], "all");
    assert_eq!(settings["followUpMode"], "all");
    assert_eq!(settings["compaction"]["enabled"], false);
    assert_eq!(settings["retry"], json!({"maxRetries": 2, "baseDelayMs": 5, "enabled": false}));
    assert!(settings.get("defaultModel").is_none());
}

#[test]
fn models_are_listed_switched_and_cycled_without_their_keys() {
    // host.md 7.3.6, 7.3.10, 7.2.3, 1.7.6
    let world = answering("ok");
    let mut client = Client::start(&world, &["--models", "local/*"]);
    let models = client.ask("get_available_models", json!({}));
    let ids: Vec<&Value> = models["models"].as_array().unwrap().iter().map(|m| &m["id"]).collect();
    assert!(ids.contains(&&json!("m1")) && ids.contains(&&json!("m2")), "{ids:?}");
    assert!(!models.to_string().contains(SECRET));
    let next = client.ask("cycle_model", json!({}));
    assert_eq!((&next["model"]["id"], &next["isScoped"]), (&json!("m2"), &json!(true)));
    assert_eq!(client.ask("cycle_thinking_level", json!({})), Value::Null);
    assert_eq!(client.ask("get_available_thinking_levels", json!({})), json!({"levels": ["off"]}));
    client.ask("set_thinking_level", json!({"level": "no such level"}));
    assert_eq!(client.state()["thinkingLevel"], "off");
    let unknown = client.refused("set_model", json!({"provider": "local", "modelId": "m9"}));
    assert_eq!(unknown, "Model not found: local/m9");
    let known = json!({"provider": "anthropic", "modelId": "claude-opus-4-5"});
    let refused = client.refused("set_model", known);
    assert!(
        ["No API key for ", "Model not found: "].iter().any(|words| refused.starts_with(words)),
        "{refused}"
    );
    let alone = Client::start(&world, &["--models", "local/m1"]);
    let mut alone = alone;
    assert_eq!(alone.ask("cycle_model", json!({})), Value::Null);
}

#[test]
fn templates_skills_and_images_reach_the_model() {
    // host.md 7.3.5, 2.7.1, 5.4, 5.3.6
    let world = answering("ok");
    fs::create_dir(world.agent().join("prompts")).unwrap();
    world.agent_file("prompts/greet.md", "Say hello to $1.");
    let mut client = Client::start(&world, &[]);
    let commands = client.ask("get_commands", json!({}));
    let commands = commands["commands"].as_array().unwrap();
    let greet = commands.iter().find(|command| command["name"] == "greet").unwrap();
    assert_eq!(greet["source"], "prompt");
    assert_eq!(greet["sourceInfo"]["scope"], "user");
    assert!(commands.iter().any(|command| command["name"] == "skill:pi-crew"));
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    client.ask("follow_up", json!({"message": "/greet Ada"}));
    client.ask("prompt", json!({"message": "/unknown words", "images": [image]}));
    until("both messages at the model", || world.server.requests().len() == 2);
    let requests = world.server.requests();
    assert_eq!(requests[0].tail(), "/unknown words");
    assert!(requests[0].body["messages"].to_string().contains("iVBORw0KGgo="));
    assert_eq!(requests[1].tail(), "Say hello to Ada.");
}

#[test]
fn a_session_is_named_counted_and_exported() {
    // host.md 7.3.2, 2.4.4, 2.8.10
    let world = World::new(|request| match request.has_results() {
        true => Reply::text("done <b>"),
        false => Reply::call("bash", json!({"command": "true"})),
    });
    let mut client = Client::start(&world, &[]);
    assert_eq!(client.ask("get_last_assistant_text", json!({})), json!({"text": null}));
    assert!(client.refused("export_html", json!({})).contains("saved"));
    client.prompt("x");
    client.ask("set_session_name", json!({"name": " a\nname "}));
    assert_eq!(client.state()["sessionName"], "a name");
    assert_eq!(client.event(0, "session_info_changed")["name"], "a name");
    let stats = client.ask("get_session_stats", json!({}));
    let counts = ["userMessages", "assistantMessages", "toolCalls", "toolResults"];
    assert_eq!(counts.map(|name| stats[name].as_u64().unwrap()), [1, 2, 1, 1]);
    assert_eq!(stats["tokens"]["output"], 10);
    assert!(stats.get("crew").is_none());
    assert!(stats["contextUsage"]["tokens"].as_u64().unwrap() > 0);
    let path = client.ask("export_html", json!({"outputPath": "page.html"}))["path"].clone();
    assert_eq!(path, json!(world.project().join("page.html")));
    let page = fs::read_to_string(world.project().join("page.html")).unwrap();
    assert!(page.contains("done &lt;b&gt;"));
}

#[test]
fn a_compaction_answers_with_its_result_or_says_why_there_is_none() {
    // host.md 7.3.6, 3.8.15, 3.8.16
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match request.tools().is_empty() {
        true if request.all_text().contains("WAIT") => Reply::text("late").behind(&held),
        true => Reply::text("## Goal\nthe summary"),
        false => Reply::text("a reply of some length, which stays"),
    });
    world.agent_file("settings.json", r#"{"compaction":{"keepRecentTokens":5}}"#);
    let mut client = Client::start(&world, &[]);
    let nothing = client.refused("compact", json!({}));
    assert_eq!(nothing, "Nothing to compact (session too small)");
    client.prompt("one");
    client.prompt("two");
    let result = client.ask("compact", json!({"customInstructions": "briefly"}));
    assert!(result["summary"].as_str().unwrap().contains("the summary"), "{result}");
    let kinds = kinds(&client, 0);
    assert!(kinds.contains(&"compaction_start".to_owned()));
    let usage = client.ask("get_session_stats", json!({}))["contextUsage"].clone();
    assert_eq!((&usage["tokens"], &usage["percent"]), (&Value::Null, &Value::Null));
    assert_eq!(client.refused("compact", json!({})), "Already compacted");
    client.prompt("WAIT three");
    client.prompt("four");
    let id = client.send("compact", json!({}));
    until("a summary request", || {
        world
            .server
            .requests()
            .iter()
            .any(|r| r.tools().is_empty() && r.all_text().contains("WAIT"))
    });
    assert_eq!(client.state()["isCompacting"], true);
    let refused = client.refused("prompt", json!({"message": "now"}));
    assert!(refused.contains("compacted"), "{refused}");
    client.ask("abort", json!({}));
    assert_eq!(client.response(&id)["success"], false);
    assert_eq!(client.state()["isCompacting"], false);
    client.prompt("five");
    gate.open();
}

#[test]
fn rpc_takes_no_files_and_needs_a_model() {
    // host.md 6.1.7, 6.1.9
    let world = answering("never");
    world.project_file("f.txt", "x");
    world.run(&["--mode", "rpc", "@f.txt"]).is(1, "");
    world.agent_file("models.json", r#"{"providers":{}}"#);
    let run = world.finish(&mut world.command(&["--mode", "rpc"]));
    run.is(1, "");
    run.tells(&["no model"]);
}

#[test]
fn a_run_with_a_tool_gives_the_golden_transcript() {
    // host.md 7.6
    let world = World::new(|request| match request.has_results() {
        true => Reply::text("It says hi."),
        false => Reply::text("I look.").and_call("bash", json!({"command": "echo hi"})),
    });
    let mut client = Client::start(&world, &[]);
    client.ask("get_state", json!({}));
    client.prompt("what does it say?");
    client.ask("get_messages", json!({}));
    client.ask("get_session_stats", json!({}));
    client.ask("get_fork_messages", json!({}));
    client.ask("get_tree", json!({}));
    client.refused("set_model", json!({"provider": "local", "modelId": "m3"}));
    let mut names = Names::default();
    let project = world.project().to_string_lossy().into_owned();
    let sessions = world.agent().to_string_lossy().into_owned();
    let shown = |line: Value, names: &mut Names| {
        let text = normal(line, &project, names).to_string();
        // The file's name holds the time and the id of the session.
        let text = text.replace(&sessions, "<agent>").replace(&world.server.url(), "<server>");
        let Some(at) = text.find("<agent>/sessions/") else { return text };
        let end = text[at..].find(".jsonl").map_or(text.len(), |end| at + end);
        format!("{}<session file>{}", &text[..at], &text[end..])
    };
    // How often a tool shows what it has is a matter of timing.
    let lines = client.lines(0).into_iter();
    let lines = lines.filter(|line| line["type"] != "tool_execution_update");
    let text: String = lines.map(|line| shown(line, &mut names) + "\n").collect();
    golden("rpc_tool.jsonl", &text);
}
