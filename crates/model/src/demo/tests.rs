//! The script driven without the engine; tool results are made up or come from
//! a real shell. Read `tests::world` for the players.

mod world;

use std::sync::{Arc, Mutex};

use crew_base::message::{Message, ToolCall};
use crew_base::time::Time;
use serde_json::json;

use super::errand::Errand;
use super::round::ANSWERS_MAX;
use super::summary::LINES_MAX;
use super::*;
use crate::auth::{AuthConfig, Credentials};
use crate::catalog::Catalog;
use crate::http::{Http, HttpConfig, StreamOptions};
use crate::provider::Provider;
use world::*;

// product.md P-2.
#[tokio::test]
async fn the_tour_spawns_three_answers_one_follows_up_once_and_closes_each() {
    let folder = project();
    let mut world = World::new(Demo::new(0), real(folder.path()));
    let summary = world.play().await;
    let spawned: Vec<_> = world.done[..3].iter().map(|(_, a)| a["subagent"].clone()).collect();
    assert_eq!(spawned, ["scout", "scout", "code-reviewer"]);
    assert_eq!(world.done[3].0, "bash", "it goes on by itself");
    assert_eq!((world.count("crew_spawn"), world.count("crew_done")), (3, 3));
    let answers = world.done.iter().filter(|(name, _)| name == "crew_respond");
    let answers: Vec<_> = answers.map(|(_, a)| a["message"].as_str().unwrap()).collect();
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().any(|text| text.contains("how many lines")), "{answers:?}");
    assert!(answers.iter().any(|text| text.contains("Review this file")), "{answers:?}");
    assert!(world.children.is_empty());
    for fact in [
        "Languages by files: Rust 2, Markdown 1 (3 files in all)",
        "Entry points: `src/main.rs`",
        "asked once more: `src/main.rs` has 2 lines",
        "Largest files: `README.md` 1.5 KB",
        "git has no history",
        "I chose `src/main.rs`",
        "2 lines read, 0 of them blank; the longest is line 2 with 16 characters",
        "it holds one folder (src/) and one file (README.md)",
        "scout-00000000",
        "code-reviewer-00000002",
    ] {
        assert!(summary.contains(fact), "{fact}\n{summary}");
    }
    assert!(summary.lines().count() <= LINES_MAX);
}

// product.md P-9a: several results in one request are all dealt with.
#[tokio::test]
async fn results_that_arrive_together_are_dealt_with_in_one_answer() {
    let folder = project();
    let mut world = World::new(Demo::new(0), real(folder.path()));
    world.together = true;
    let summary = world.play().await;
    assert_eq!((world.count("crew_respond"), world.count("crew_done")), (2, 3));
    assert!(summary.starts_with("## What the crew found"), "{summary}");
    let answers = world.owner.messages.iter().filter_map(|message| message.as_assistant());
    let busiest = answers.map(|answer| answer.tool_calls().count()).max();
    assert_eq!(busiest, Some(3));
}

#[tokio::test]
async fn an_empty_folder_is_toured_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(Demo::new(0), real(folder.path()));
    let summary = world.play().await;
    assert!(summary.contains("it is empty"), "{summary}");
    assert!(summary.contains("The top folder has 0 entries"), "{summary}");
    assert!(summary.contains("There is no source file to review"), "{summary}");
    assert_eq!(world.count("crew_done"), 3);
}

#[tokio::test]
async fn hostile_tool_results_neither_stop_it_nor_reach_the_answer() {
    let bomb = "\u{1b}]52;c;AAAA\u{7}\u{1b}[2J`x`\u{202e}".to_owned();
    let wall = "9".repeat(50_000);
    let paths = "../../etc/passwd\n-rf\n$(touch x)`y`\n\u{1b}[31mred.rs\n".repeat(99);
    let outputs = [bomb, wall, paths, String::new(), "9 rs\n\t\n9\t\n".to_owned()];
    for output in outputs {
        for is_error in [false, true] {
            let answer = Answer { is_error, ..good(output.as_str()) };
            let mut world = World::new(Demo::new(0), |_: &ToolCall| answer.clone());
            let summary = world.play().await;
            assert_eq!(world.count("crew_done"), 3);
            assert!(summary.lines().count() <= LINES_MAX, "{summary}");
            assert!(summary.chars().count() < 8000);
            let is_clean = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
            assert!(is_clean(&summary), "{summary:?}");
            for (name, arguments) in &world.done {
                let text = arguments.to_string();
                assert!(!text.contains("passwd") && !text.contains("touch x"), "{name} {text}");
            }
        }
    }
}

#[tokio::test]
async fn reports_of_another_hand_are_cleaned_and_shortened() {
    let mut talk = Talk::owner();
    let ids = spawn_all(&mut talk).await;
    let wild = format!("- \u{1b}[2Ja\u{7}b{}", "- line\n".repeat(5000));
    for id in &ids {
        let result =
            json!({"outcome": "needs_input", "report": wild, "needs": "\u{1b}[1m? ".repeat(999)});
        talk.crew("crew-result", &json!({"subagent_id": id, "result": result}));
    }
    let mut last = String::new();
    for _ in 0..6 {
        let answer = talk.ask().await;
        last = answer.text();
        assert!(!last.chars().any(|c| c.is_control() && c != '\n'), "{last:?}");
        assert!(last.lines().count() <= LINES_MAX);
        let calls: Vec<_> = answer.tool_calls().cloned().collect();
        for call in calls {
            let id = call.arguments.value()["subagent_id"].clone();
            talk.result(&call, &good(json!({"subagent_id": id}).to_string()));
            if call.name == "crew_respond" {
                let result = json!({"outcome": "needs_input", "report": wild, "needs": "?"});
                talk.crew("crew-result", &json!({"subagent_id": id, "result": result}));
            }
        }
    }
    assert!(last.contains("The scripted tour is over"), "{last}");
}

#[tokio::test]
async fn with_every_tool_failing_it_says_so_and_ends() {
    let mut talk = Talk::owner();
    let mut text = String::new();
    for turn in 0.. {
        assert!(turn < 4, "it comes to an end");
        let answer = talk.ask().await;
        text.push_str(&answer.text());
        let calls: Vec<_> = answer.tool_calls().cloned().collect();
        if calls.is_empty() {
            break;
        }
        for call in calls {
            talk.result(&call, &bad(r#"{"error":"no\u001b[1m room"}"#));
        }
    }
    assert!(text.contains("did not start: no room"), "{text}");
    assert!(text.contains("no result: no room"), "{text}");
    assert!(text.contains("it could not be listed"), "{text}");
}

#[tokio::test]
async fn children_that_end_as_error_or_are_stopped_are_named_in_the_summary() {
    let mut talk = Talk::owner();
    let ids = spawn_all(&mut talk).await;
    let waiting = talk.ask().await.text();
    assert!(waiting.contains("`x-0`, `x-1`, `x-2` are still at work"), "{waiting}");
    talk.crew(
        "crew-result",
        &json!({"subagent_id": ids[0], "brief": "b", "status": "error", "error": "model\n gone"}),
    );
    let told = talk.ask().await.text();
    assert!(told.contains("`x-1`, `x-2` are still at work"), "{told}");
    // Stopped by the person: only the snapshot tells (CTX-1, DEL-6).
    talk.crew("crew-status", &json!({"crew_status": []}));
    talk.user("go on");
    let summary = talk.ask().await.text();
    assert!(summary.contains("no result: model gone"), "{summary}");
    assert_eq!(summary.matches("stopped before it reported").count(), 2, "{summary}");
    assert!(summary.contains("I am scripted and cannot take that in"), "{summary}");
}

#[tokio::test]
async fn what_the_person_did_to_a_child_is_not_done_again() {
    // terminal.md TERM-42.
    let mut talk = Talk::owner();
    let ids = spawn_all(&mut talk).await;
    for id in &ids {
        let result = json!({"outcome": "completed", "report": "- r"});
        talk.crew("crew-result", &json!({"subagent_id": id, "result": result}));
    }
    talk.crew("crew-user", &json!({"subagent_id": ids[0], "user_answered": "go"}));
    talk.crew("crew-user", &json!({"subagent_id": ids[1], "user_closed": ""}));
    let answer = talk.ask().await;
    let calls: Vec<_> = answer.tool_calls().map(|call| call.arguments.value()).collect();
    assert_eq!(calls, [json!({"subagent_id": ids[2]})]);
}

#[tokio::test]
async fn a_new_prompt_after_the_end_plays_the_tour_again() {
    let folder = project();
    let mut world = World::new(Demo::new(0), real(folder.path()));
    let first = world.play().await;
    world.owner.user("and now?");
    world.done.clear();
    let second = world.play().await;
    assert_eq!((world.count("crew_spawn"), world.count("crew_done")), (3, 3));
    assert_eq!(first, second);
}

#[tokio::test]
async fn an_owner_is_bounded_whatever_is_delivered() {
    let mut talk = Talk::owner();
    let ids = spawn_all(&mut talk).await;
    let mut calls = 0;
    for _ in 0..ANSWERS_MAX + 5 {
        let result = json!({"outcome": "completed", "report": "r"});
        talk.crew("crew-result", &json!({"subagent_id": ids[0], "result": result}));
        calls = talk.ask().await.tool_calls().count();
    }
    assert_eq!(calls, 0);
    talk.user("again");
    assert_eq!(talk.ask().await.tool_calls().count(), 3);
}

#[tokio::test]
async fn results_of_others_are_left_alone() {
    let mut talk = Talk::new(Demo::new(0), &OWNER_TOOLS);
    let result = json!({"outcome": "completed", "report": "r"});
    talk.crew("crew-result", &json!({"subagent_id": "worker-1", "result": result}));
    let answer = talk.ask().await;
    assert_eq!(answer.tool_calls().count(), 0);
    assert!(answer.text().contains("worker-1"));
}

#[tokio::test]
async fn without_crew_tools_it_says_what_it_is() {
    for tools in [&[][..], &["read", "bash"]] {
        let mut talk = Talk::new(Demo::new(0), tools);
        talk.user("hi");
        let answer = talk.ask().await;
        assert_eq!(answer.tool_calls().count(), 0);
        assert!(answer.text().contains("scripted model"));
    }
}

#[tokio::test]
async fn tools_that_were_left_out_are_not_called() {
    // product.md P-10, P-14g.
    let mut talk = Talk::new(Demo::new(0), &["crew_spawn"]);
    talk.user("hi");
    let ids: Vec<_> = talk.ask().await.tool_calls().cloned().collect();
    for (at, call) in ids.iter().enumerate() {
        talk.result(call, &good(json!({"subagent_id": format!("x-{at}")}).to_string()));
    }
    assert_eq!(talk.ask().await.tool_calls().count(), 0);
    let result = json!({"outcome": "completed", "report": "r"});
    for at in 0..3 {
        let id = format!("x-{at}");
        talk.crew("crew-result", &json!({"subagent_id": id, "result": result}));
    }
    let answer = talk.ask().await;
    assert_eq!(answer.tool_calls().count(), 0);
    assert!(answer.text().contains("## What the crew found"), "{}", answer.text());

    let mut child = Talk::new(Demo::new(0), &["crew_report"]);
    child.user(&prompt(&Errand::Languages.task()));
    let answer = child.ask().await;
    let call = answer.tool_calls().next().unwrap();
    assert_eq!(call.name, "crew_report");
    assert!(call.arguments.text().contains("`bash` is missing"), "{}", call.arguments.text());
}

#[tokio::test]
async fn a_child_prompted_out_of_turn_reports_what_it_knows() {
    // crew.md RES-14, and a steer of the person.
    let mut talk = Talk::child(Errand::Sizes);
    let calls: Vec<_> = talk.ask().await.tool_calls().cloned().collect();
    assert_eq!(calls.len(), 2, "both commands at once");
    talk.result(&calls[0], &good("2048\tbig.bin\n"));
    talk.result(&calls[1], &good("abc1234\t2026-01-02\tStart \u{1b}[1mit\n"));
    talk.user("You stopped. Call `crew_report` now.");
    let answer = talk.ask().await;
    let report = answer.tool_calls().next().unwrap().arguments.text().to_owned();
    assert!(report.contains("`big.bin` 2.0 KB"), "{report}");
    assert!(report.contains("`abc1234` of 2026-01-02, Start it"), "{report}");

    let mut foreign = Talk::new(Demo::new(0), &CHILD_TOOLS);
    foreign.user("## Goal\n\nBuild a ship");
    let answer = foreign.ask().await;
    assert!(answer.tool_calls().next().unwrap().arguments.text().contains("Nothing was done"));
}

#[tokio::test]
async fn a_report_that_is_refused_is_not_repeated_for_ever() {
    let mut talk = Talk::child(Errand::Review);
    let mut reports = 0;
    loop {
        let answer = talk.ask().await;
        let Some(call) = answer.tool_calls().next().cloned() else { break };
        reports += usize::from(call.name == "crew_report");
        talk.result(&call, &bad("refused"));
        assert!(reports < 9);
    }
    assert!(reports > 0);
}

#[tokio::test]
async fn only_the_shown_part_of_a_long_file_is_spoken_of() {
    let mut talk = Talk::child(Errand::Review);
    talk.user("Review this file and leave the others alone: `a.rs`");
    let answer = talk.ask().await;
    let call = answer.tool_calls().next().unwrap().clone();
    assert_eq!((call.name.as_str(), call.arguments.text()), ("read", r#"{"path":"a.rs"}"#));
    let text = "x\nyy\n\n[Lines 1-2 of 90 are shown.]";
    talk.result(&call, &Answer { is_cut: true, ..good(text) });
    let answer = talk.ask().await;
    let report = answer.tool_calls().next().unwrap().arguments.text().to_owned();
    assert!(report.contains("the first 2 lines read, 0 of them blank"), "{report}");
}

#[tokio::test]
async fn an_answer_that_was_cut_off_does_not_count() {
    let mut talk = Talk::owner();
    let mut answer = talk.ask().await;
    answer.stop_reason = StopReason::Aborted;
    *talk.messages.last_mut().unwrap() = Arc::new(Message::Assistant(answer));
    talk.user("again");
    assert_eq!(talk.ask().await.tool_calls().count(), 3);
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer() {
    let talk = Talk::owner();
    let first = stream(&Demo::new(0), &talk.messages).await;
    assert_eq!(first, stream(&Demo::new(0), &talk.messages).await);
}

// product.md P-2: under five seconds with the tools; the children run side by
// side, so the sum of everything is more than a person waits.
#[tokio::test(start_paused = true)]
async fn the_whole_tour_takes_few_seconds_at_full_speed() {
    let folder = project();
    let mut owner_ms = 0;
    let began = tokio::time::Instant::now();
    let mut world = World::new(Demo::new(100), real(folder.path()));
    world.play().await;
    let total_ms = began.elapsed().as_millis();
    for length in 2..world.owner.messages.len() {
        let is_answer = world.owner.messages[length].as_assistant().is_some();
        if is_answer {
            let began = tokio::time::Instant::now();
            stream(&Demo::new(100), &world.owner.messages[..length]).await;
            owner_ms += began.elapsed().as_millis();
        }
    }
    assert!((1500..4000).contains(&owner_ms), "{}", owner_ms);
    assert!(total_ms > owner_ms + 1500, "{total_ms}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_says_no_more() {
    let talk = Talk::owner();
    let seen = Arc::new(Mutex::new(0));
    let counted = seen.clone();
    let request = request(&talk.messages);
    let sink = Box::new(move |events: Vec<ModelEvent>| {
        *counted.lock().unwrap() += 1;
        let ends = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
        assert!(!events.iter().any(ends));
    });
    let stream = Demo::new(100).stream(request, sink);
    assert!(tokio::time::timeout(Duration::from_millis(200), stream).await.is_err());
    let before = *seen.lock().unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(before > 1 && before == *seen.lock().unwrap());
}

// product.md P-3: chosen like any model, without a credential and without HTTP.
#[tokio::test(start_paused = true)]
async fn the_provider_of_the_process_hands_its_requests_to_the_script() {
    let (catalog, _) = Catalog::build(None);
    let (credentials, _) = Credentials::new(AuthConfig {
        catalog: Arc::new(catalog),
        auth_path: "auth.json".to_owned(),
        auth_text: None,
        environment: Arc::new(|_| None),
        clock: Arc::new(|| Time(1)),
    });
    let http = Arc::new(Http::new(HttpConfig::default()));
    let provider = Provider::new(http, Arc::new(credentials), StreamOptions::default());
    let talk = Talk::owner();
    let events = stream(&provider, &talk.messages).await;
    assert_eq!(events, stream(&Demo::new(0), &talk.messages).await);
}
