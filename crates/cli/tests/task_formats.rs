//! How a child of `task` can end, once in each wire format: what its model says
//! comes in that format, the owner speaks the first one (`task.md` 5 to 8).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;

use common::server::{Gate, Reply, Request};
use common::wire::Wire;
use common::{World, lines};
use serde_json::{Value, json};

/// One way to end.
struct Case {
    name: &'static str,
    /// Fields of the item beside its name, agent and assignment.
    fields: Value,
    /// Settings of `task`.
    settings: Value,
    child: fn(&Request, usize) -> Reply,
    /// Exit, `structuredOutput.status`, requests of the child.
    expected: (i64, &'static str, usize),
    /// Part of the record's output or reason.
    part: &'static str,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            name: "",
            fields: json!({}),
            settings: json!({}),
            child: |_, _| done(&json!({"n": 7})),
            expected: (0, "", 1),
            part: "",
        }
    }
}

fn done(data: &Value) -> Reply {
    Reply::call("yield", json!({"data": data}))
}

fn with_schema() -> Value {
    let number = json!({"type": "integer"});
    let schema = json!({"type": "object", "properties": {"n": number}, "required": ["n"]});
    json!({"outputSchema": schema})
}

fn section(nth: usize) -> Reply {
    // Parts are judged together in the end (FINAL-12).
    match nth {
        0 => Reply::call("yield", json!({"type": ["other"], "data": "x"})),
        _ => Reply::text("that was all"),
    }
}

fn works_until_forced(request: &Request) -> Reply {
    match request.forced() {
        Some("yield") => done(&json!({"late": true})),
        _ => Reply::call("bash", json!({"command": "true"})),
    }
}

fn job_then(nth: usize, command: &str, next: fn(usize) -> Reply) -> Reply {
    match nth {
        0 => Reply::call("bash", json!({"command": command, "background": true})),
        _ => next(nth),
    }
}

fn cases() -> Vec<Case> {
    let case = |name| Case { name, ..Case::default() };
    vec![
        Case { fields: with_schema(), expected: (0, "valid", 1), part: "7", ..case("valid") },
        Case {
            fields: with_schema(),
            child: |_, nth| section(nth),
            expected: (1, "invalid", 5),
            part: "schema_violation: missing required: n",
            ..case("invalid")
        },
        Case {
            fields: with_schema(),
            child: |_, _| done(&json!({"n": "many"})),
            expected: (0, "invalid", 4),
            part: "correction attempts were used up",
            ..case("overridden")
        },
        Case {
            child: |_, nth| Reply::text(&format!("words {nth} ")),
            expected: (0, "", 4),
            part: "words 0 words 1 words 2 words 3",
            ..case("no yield")
        },
        Case {
            fields: with_schema(),
            child: |_, nth| Reply::text(["{\"data\":", " {\"n\"", ": 3", "}}"][nth.min(3)]),
            expected: (0, "valid", 4),
            part: "\"n\": 3",
            ..case("JSON fallback")
        },
        Case {
            child: |request, _| match request.forced() {
                Some("yield") => done(&json!({"n": 1})),
                _ => Reply::text("words"),
            },
            expected: (0, "", 4),
            part: "\"n\": 1",
            ..case("forced last call")
        },
        Case {
            settings: json!({"softRequestBudget": 2}),
            child: |request, _| works_until_forced(request),
            expected: (0, "", 4),
            part: "late",
            ..case("budget stop")
        },
        Case {
            settings: json!({"maxRuntimeMs": 200}),
            child: |_, _| done(&json!({"n": 1})).behind(&Gate::default()),
            expected: (1, "", 1),
            part: "runtime limit reached (task.maxRuntimeMs=200)",
            ..case("runtime limit")
        },
        Case {
            child: |_, nth| {
                let next = |nth| match nth {
                    1 => Reply::call("wait", json!({})),
                    _ => done(&json!({"n": 2})),
                };
                job_then(nth, "echo EARLY", next)
            },
            expected: (0, "", 3),
            part: "\"n\": 2",
            ..case("job that ends before the yield")
        },
        Case {
            child: |_, nth| {
                let next = |nth| match nth {
                    1 => done(&json!({"v": "first"})),
                    2 => Reply::text("I wait").after(std::time::Duration::from_millis(10)),
                    _ => done(&json!({"v": "second"})),
                };
                job_then(nth, "sleep 0.5; echo LATE", next)
            },
            expected: (0, "", 4),
            part: "second",
            ..case("job that ends after the yield")
        },
    ]
}

fn check(wire: Wire, case: Case) {
    let place = format!("{} in {wire:?}", case.name);
    let mut item = json!({"name": "kid", "agent": "other", "task": "the assignment"});
    item.as_object_mut().unwrap().extend(case.fields.as_object().unwrap().clone());
    let child = case.child;
    let world = World::new(move |request| {
        if request.is_task_child() {
            child(request, request.answers())
        } else if request.has_results() {
            Reply::text("seen")
        } else {
            Reply::call("task", json!({"context": "c", "tasks": [item]}))
        }
    });
    let url = world.server.url();
    let provider = |api: &str| {
        let model = json!({"id": "m1", "maxTokens": 8192});
        json!({"baseUrl": url, "api": api, "apiKey": "k", "models": [model]})
    };
    let providers = json!({"local": provider("anthropic-messages"), "other": provider(wire.api())});
    world.agent_file("models.json", &json!({"providers": providers}).to_string());
    fs::create_dir(world.agent().join("agents")).unwrap();
    let agent = "---\nname: other\ndescription: d\nmodel: other/m1\n---\nROLE\n";
    world.agent_file("agents/other.md", agent);
    world.settings(&json!({"crew": {"task": case.settings}}));
    world.print(&["go"]).is(0, "seen\n");
    assert_eq!(world.living(), Vec::<String>::new(), "{place}");
    let entries = lines(&world.session_files()[0]);
    let result = entries.iter().find(|entry| entry["message"]["toolName"] == "task").unwrap();
    let record = &result["message"]["details"]["results"][0];
    let requests = world.server.requests();
    let asked: Vec<_> = requests.iter().filter(|request| request.is_task_child()).collect();
    assert!(asked.iter().all(|request| request.wire() == wire), "{place}");
    let status = record["structuredOutput"]["status"].as_str().unwrap_or_default();
    let got = (record["exitCode"].as_i64().unwrap(), status, asked.len());
    assert_eq!(got, case.expected, "{place}: {}", record["stderr"]);
    let told = format!("{} {}", record["output"].as_str().unwrap(), record["stderr"]);
    assert!(told.contains(case.part), "{place}: {told}");
    // OBS-9, EXEC-8: only the last of three reminders, and the stop, name the tool.
    let last = asked.len() - 1;
    let forces = ["invalid", "no yield", "JSON fallback", "forced last call", "budget stop"];
    for (nth, request) in asked.iter().enumerate() {
        let is_forced = nth == last && forces.contains(&case.name);
        assert_eq!(request.forced() == Some("yield"), is_forced, "{place}: request {nth}");
    }
}

fn check_all(wire: Wire) {
    cases().into_iter().for_each(|case| check(wire, case));
}

#[test]
fn every_end_is_told_in_anthropic_messages() {
    check_all(Wire::Messages);
}

#[test]
fn every_end_is_told_in_openai_completions() {
    check_all(Wire::Chat);
}

#[test]
fn every_end_is_told_in_openai_responses() {
    check_all(Wire::Responses);
}

#[test]
fn every_end_is_told_in_google_generative_ai() {
    check_all(Wire::Gemini);
}
