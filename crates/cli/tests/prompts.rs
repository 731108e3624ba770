//! The plan and the review prompt, played to their end by a scripted owner
//! that does what they say (`crew.md` BUND-20 to BUND-33, CMD-1).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::World;
use common::client::Client;
use common::server::{Reply, Request};
use serde_json::{Value, json};

/// Inputs of all calls of a tool so far.
fn calls(request: &Request, name: &str) -> Vec<Value> {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let ours = blocks.filter(|block| block["type"] == "tool_use" && block["name"] == name);
    ours.map(|block| block["input"].clone()).collect()
}

/// Results that the crew delivered so far, oldest first.
fn deliveries(request: &Request) -> Vec<Value> {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let users = messages.iter().filter(|message| message["role"] == "user");
    let text = |content: &Value| -> Vec<String> {
        let blocks = content.as_array().cloned().unwrap_or_default();
        let blocks = blocks.iter().filter_map(|block| block["text"].as_str());
        blocks.chain(content.as_str()).map(str::to_owned).collect()
    };
    let texts = users.flat_map(|message| text(&message["content"]));
    let values = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
    values.filter(|value| value["brief"].is_string()).collect()
}

fn of_brief(request: &Request, brief: &str) -> Vec<Value> {
    deliveries(request).into_iter().filter(|value| value["brief"] == brief).collect()
}

fn task(goal: &str, context: &[&str]) -> Value {
    json!({"goal": goal, "context": context, "instructions": ["Keep to it."]})
}

fn spawn(reply: Reply, subagent: &str, brief: &str, task: Value) -> Reply {
    reply.and_call("crew_spawn", json!({"subagent": subagent, "brief": brief, "task": task}))
}

/// Closes those of these briefs that have reported and are still open.
fn close(request: &Request, mut reply: Reply, briefs: &[&str]) -> Reply {
    let closed = calls(request, "crew_done");
    for brief in briefs {
        let id = of_brief(request, brief).last().map(|value| value["subagent_id"].clone());
        if let Some(id) = id.filter(|id| !closed.iter().any(|call| call["subagent_id"] == *id)) {
            reply = reply.and_call("crew_done", json!({"subagent_id": id}));
        }
    }
    reply
}

/// Whether the agents of the list that was read may do what the prompts ask
/// to check: look, and not write.
fn listed(request: &Request, name: &str) -> bool {
    let text = request.all_text();
    text.contains(&format!("\"name\":\"{name}\""))
}

/// The owner of the plan prompt, one decision for each request.
fn plan_owner(request: &Request) -> Reply {
    let scouts = ["Entry points", "Settings"];
    if calls(request, "crew_list").is_empty() {
        assert!(request.tail().contains("Task: add a --greet option"), "{}", request.tail());
        return Reply::call("crew_list", json!({}));
    }
    let spawned = calls(request, "crew_spawn");
    if spawned.is_empty() {
        assert!(listed(request, "scout") && listed(request, "planner"), "{}", request.all_text());
        let scout = |reply, brief| spawn(reply, "scout", brief, task(brief, &["None yet."]));
        return scouts.into_iter().fold(Reply::default(), scout);
    }
    let found: Vec<_> = scouts.iter().flat_map(|brief| of_brief(request, brief)).collect();
    if found.len() < scouts.len() {
        return Reply::text("waiting for the scouts");
    }
    if spawned.len() == scouts.len() {
        let findings: Vec<_> =
            found.iter().filter_map(|value| value["result"]["report"].as_str()).collect();
        let closing = close(request, Reply::default(), &scouts);
        return spawn(closing, "planner", "The plan", task("plan --greet", &findings));
    }
    let plans = of_brief(request, "The plan");
    let answered = !calls(request, "crew_respond").is_empty();
    match plans.last().map(|value| value["result"].clone()) {
        None => Reply::text("waiting for the planner"),
        Some(result) if result["outcome"] == "needs_input" && !answered => {
            if request.tail().contains("in French") {
                let id = plans[0]["subagent_id"].clone();
                let answer = json!({"subagent_id": id, "message": "in French"});
                return Reply::call("crew_respond", answer);
            }
            Reply::text(&format!("The planner asks: {}", result["needs"].as_str().unwrap()))
        }
        Some(result) if result["outcome"] == "needs_input" => Reply::text("waiting for the plan"),
        Some(_) if request.tail().contains("approved") => {
            close(request, Reply::default(), &["The plan"])
        }
        Some(_) if request.all_text().contains("approved") => Reply::text("The planner is closed."),
        Some(result) => Reply::text(&format!("PLAN: {}", result["report"].as_str().unwrap())),
    }
}

fn plan_child(request: &Request) -> Reply {
    let text = request.all_text();
    if !text.contains("plan --greet") {
        let is_entry = text.contains("Entry points");
        return Reply::report(if is_entry { "main.rs:1 starts" } else { "there are none" });
    }
    // The findings stand in its task, in the scouts' words.
    assert!(text.contains("main.rs:1 starts") && text.contains("there are none"), "{text}");
    if text.contains("in French") {
        return Reply::report("1. Write the option.");
    }
    let question = "In which language?";
    let arguments = json!({"outcome": "needs_input", "report": "clear but", "needs": question});
    Reply::call("crew_report", arguments)
}

#[test]
fn the_plan_prompt_leads_from_scouts_over_a_question_to_an_approved_plan() {
    let world = World::new(|request| match request.is_child() {
        true => plan_child(request),
        false => plan_owner(request),
    });
    let mut client = Client::start(&world, &[]);
    let said = |client: &mut Client, text: &str| {
        let text = text.to_owned();
        common::until(&text, || {
            client.ask("get_last_assistant_text", json!({}))["text"].as_str() == Some(&text)
        });
    };
    client.ask("prompt", json!({"message": "/pi-crew-plan add a --greet option"}));
    said(&mut client, "The planner asks: In which language?");
    client.prompt("in French");
    said(&mut client, "PLAN: 1. Write the option.");
    client.prompt("approved");
    said(&mut client, "The planner is closed.");
    let spawned = |line: &&Value| line["type"] == "crew_spawned";
    assert_eq!(client.lines(0).iter().filter(spawned).count(), 3);
    let closed = |line: &&Value| line["type"] == "crew_closed";
    assert_eq!(client.lines(0).iter().filter(closed).count(), 3);
    let children: Vec<_> = world.server.requests().into_iter().filter(Request::is_child).collect();
    for tool in ["edit", "write", "crew_spawn"] {
        assert!(children.iter().all(|child| !child.tools().contains(&tool.to_owned())), "{tool}");
    }
}

const REVIEWERS: [(&str, &str); 2] =
    [("code-reviewer", "Defects"), ("quality-reviewer", "Structure")];

fn review_owner(request: &Request) -> Reply {
    if calls(request, "crew_list").is_empty() {
        assert!(request.tail().contains("Scope and focus: main.rs"), "{}", request.tail());
        let status = json!({"command": "ls main.rs"});
        return Reply::call("bash", status).and_call("crew_list", json!({}));
    }
    if calls(request, "crew_spawn").is_empty() {
        assert!(REVIEWERS.iter().all(|(name, _)| listed(request, name)));
        return REVIEWERS.iter().fold(Reply::default(), |reply, (name, brief)| {
            spawn(reply, name, brief, task("review main.rs", &["It is new."]))
        });
    }
    let found = deliveries(request);
    if found.len() < REVIEWERS.len() {
        return Reply::text("not all reviewers have settled");
    }
    if calls(request, "crew_done").is_empty() {
        return close(request, Reply::default(), &["Defects", "Structure"]);
    }
    let reports: Vec<_> =
        found.iter().filter_map(|value| value["result"]["report"].as_str()).collect();
    Reply::text(&format!("Accepted: {}", reports.join("; ")))
}

#[test]
fn the_review_prompt_ends_in_one_report_of_both_reviewers() {
    let world = World::new(|request| match request.is_child() {
        true => Reply::report("a finding"),
        false => review_owner(request),
    });
    world.project_file("main.rs", "fn main() {}\n");
    let run = world.print(&["/pi-crew-review main.rs"]);
    run.is(0, "Accepted: a finding; a finding\n");
    let entries = world.session();
    let count = |kind: &str| entries.iter().filter(|entry| entry["customType"] == kind).count();
    assert_eq!((count("crew-result"), count("crew-abort")), (2, 0));
    assert_eq!(world.living(), Vec::<String>::new());
}
