//! The blocking `task` tool through the real binary (`task.md` 5 to 9).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::client::Client;
use common::server::{Gate, Reply, Request};
use common::{World, lines, until};
use serde_json::{Value, json};

/// A world whose owner calls `task` once, with these fields in the one item,
/// and whose child answers as the test says; its requests are counted from 0.
fn world(
    fields: &Value,
    child: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
) -> World {
    let mut item = json!({"name": "kid", "task": "the assignment"});
    item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    World::new(move |request| {
        if request.is_task_child() {
            child(request, request.answers())
        } else if request.has_results() {
            Reply::text("seen")
        } else {
            Reply::call("task", json!({"context": "the context", "tasks": [item]}))
        }
    })
}

fn done(data: &Value) -> Reply {
    Reply::call("yield", json!({"data": data}))
}

/// What the call came to.
struct Outcome {
    /// What the owner's model read.
    text: String,
    /// The one record of its details.
    record: Value,
    /// What the child's model was sent.
    requests: Vec<Request>,
}

impl Outcome {
    /// Exit, `structuredOutput.status` or nothing, and `stderr`.
    fn verdict(&self) -> (i64, &str, &str) {
        let status = self.record["structuredOutput"]["status"].as_str().unwrap_or_default();
        let exit = self.record["exitCode"].as_i64().unwrap();
        (exit, status, self.record["stderr"].as_str().unwrap())
    }

    fn output(&self) -> &str {
        self.record["output"].as_str().unwrap()
    }

    fn status(&self) -> &str {
        let from = self.text.find("status=\"").unwrap() + "status=\"".len();
        self.text[from..].split('"').next().unwrap()
    }
}

/// The owner's session file.
fn session_file(world: &World) -> PathBuf {
    world.session_files().remove(0)
}

fn run(world: &World) -> Outcome {
    world.print(&["go"]).is(0, "seen\n");
    assert_eq!(world.living(), Vec::<String>::new());
    outcome(world)
}

fn outcome(world: &World) -> Outcome {
    let entries = lines(&session_file(world));
    let result = entries.iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    let message = &result["message"];
    assert_eq!(message["toolName"], "task");
    let text = message["content"][0]["text"].as_str().unwrap().to_owned();
    let requests = world.server.requests();
    let requests = requests.into_iter().filter(Request::is_task_child).collect();
    Outcome { text, record: message["details"]["results"][0].clone(), requests }
}

/// A schema with one required whole number.
fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

#[test]
fn a_valid_result_is_delivered_and_its_files_lie_beside_the_session() {
    // M5, ART-2, ART-4, DELIV-1, SESS-2, OBS-4, OBS-5
    let world = world(&json!({"outputSchema": schema()}), |_, _| done(&json!({"n": 7})));
    let outcome = run(&world);
    assert_eq!(outcome.verdict(), (0, "valid", ""));
    assert_eq!((outcome.status(), outcome.output()), ("completed", "{\n  \"n\": 7\n}"));
    let file = session_file(&world);
    let folder = file.with_extension("");
    assert_eq!(fs::read_to_string(folder.join("kid.json")).unwrap(), "{\n  \"n\": 7\n}\n");
    assert_eq!(outcome.record["outputPath"], json!(folder.join("kid.md")));
    let transcript = lines(&folder.join("kid.jsonl"));
    assert_eq!(transcript[0]["parentSession"], json!(file));
    assert_eq!(transcript[1]["customType"], "task-child");
    assert_eq!(transcript[1]["data"]["model"], "local/m1");
    // product.md P-12: counted once, with the result.
    let entries = lines(&file);
    let called = entries.iter().find(|entry| entry["message"]["toolName"] == "task");
    let usage = &called.unwrap()["message"]["usage"];
    assert_eq!((&usage["input"], &outcome.record["tokens"]), (&json!(10), &json!(15)));
    // The newest session is that of the owner, whatever its children wrote.
    world.print(&["-c", "again"]).is(0, "seen\n");
    assert_eq!(session_file(&world), file);
    assert!(world.server.requests().last().unwrap().all_text().contains("again"));
}

#[test]
fn data_that_do_not_satisfy_the_schema_fail() {
    // M6, FINAL-12: sections are judged together in the end.
    let part = |_: &Request, nth: usize| match nth {
        0 => Reply::call("yield", json!({"type": ["other"], "data": "x"})),
        _ => Reply::text("that was all"),
    };
    let world = world(&json!({"outputSchema": schema()}), part);
    let outcome = run(&world);
    assert_eq!(outcome.verdict(), (1, "invalid", "schema_violation: missing required: n"));
    assert_eq!(outcome.status(), "failed (exit 1)");
    assert!(outcome.output().contains("\"error\": \"schema_violation\""), "{}", outcome.output());
}

#[test]
fn the_fourth_bad_submission_overrides_or_fails_by_mode() {
    // YIELD-12, M7, M8; task.md 12 rows 46, 47
    let override_text = "child warning: accepted although the output schema is not satisfied; \
        correction attempts were used up";
    for (mode, exit) in [("permissive", 0), ("strict", 1)] {
        let fields = json!({"outputSchema": schema(), "schemaMode": mode});
        let world = world(&fields, |_, _| done(&json!({"n": "many"})));
        let outcome = run(&world);
        let (got, status, stderr) = outcome.verdict();
        assert_eq!((got, status, outcome.requests.len()), (exit, "invalid", 4), "{mode}");
        assert_eq!(stderr == override_text, exit == 0, "{stderr}");
        assert_eq!(outcome.output().contains("schema_violation"), exit == 1);
    }
}

#[test]
fn without_a_yield_three_reminders_are_sent_and_the_text_counts() {
    // EXEC-6, EXEC-8, M12, M13; task.md 12 rows 29, 58, 59
    let missing = "child warning: ended without an accepted yield (3 reminders sent)";
    for (fields, expected) in
        [(json!({}), (0, "", "")), (json!({"outputSchema": schema()}), (1, "unavailable", missing))]
    {
        let world = world(&fields, |_, nth| Reply::text(&format!("words {nth} ")));
        let outcome = run(&world);
        assert_eq!(outcome.verdict(), expected);
        assert!(outcome.output().ends_with("words 0 words 1 words 2 words 3 "));
        let forced: Vec<_> =
            outcome.requests.iter().map(|request| request.body["tool_choice"].clone()).collect();
        let yields = json!({"type": "tool", "name": "yield"});
        assert_eq!(forced[3], yields);
        assert!(!forced[..3].contains(&yields), "{forced:?}");
    }
}

#[test]
fn text_that_is_json_satisfies_a_schema() {
    // FINAL-1, FINAL-13, M11; task.md 12 row 57: the text of all turns together
    let world = world(&json!({"outputSchema": schema()}), |_, nth| {
        Reply::text(["{\"data\":", " {\"n\"", ": 3", "}}"][nth])
    });
    let outcome = run(&world);
    assert_eq!(outcome.verdict(), (0, "valid", ""));
    assert_eq!(outcome.output(), "{\n  \"n\": 3\n}");
}

#[test]
fn the_budget_gives_a_notice_then_one_forced_yield() {
    // EXEC-14 to EXEC-17; task.md 12 row 34
    let work = |request: &Request, _: usize| {
        if request.body["tool_choice"]["name"] == "yield" {
            done(&json!({"late": true}))
        } else {
            Reply::call("bash", json!({"command": "true"}))
        }
    };
    let world = world(&json!({}), work);
    world.settings(&json!({"crew": {"task": {"softRequestBudget": 2}}}));
    let outcome = run(&world);
    assert_eq!((outcome.verdict(), outcome.requests.len()), ((0, "", ""), 4));
    let notice = outcome.requests[2].all_text();
    assert!(notice.contains('2') && notice.contains('3') && notice.contains("budget"), "{notice}");
}

#[test]
fn the_runtime_limit_ends_a_child() {
    // EXEC-22, FINAL-15, FINAL-16; task.md 12 row 36
    let gate = Gate::default();
    let held = gate.clone();
    let world = world(&json!({}), move |_, _| done(&json!({"x": 1})).behind(&held));
    world.settings(&json!({"crew": {"task": {"maxRuntimeMs": 300}}}));
    let outcome = run(&world);
    gate.open();
    assert_eq!((outcome.verdict().0, outcome.status()), (1, "cancelled"));
    assert!(outcome.text.contains("runtime limit reached (task.maxRuntimeMs=300)"));
}

#[test]
fn a_background_command_that_ended_before_the_yield_holds_nothing_up() {
    // BARRIER-9, OBS-8
    let world = world(&json!({}), |_, nth| match nth {
        0 => Reply::call("bash", json!({"command": "echo EARLY; exit 3", "background": true})),
        1 => Reply::call("wait", json!({})),
        _ => done(&json!({"n": 1})),
    });
    let outcome = run(&world);
    assert_eq!((outcome.verdict(), outcome.requests.len()), ((0, "", ""), 3));
    let waited = outcome.requests[2].tail();
    assert!(waited.contains("EARLY") && waited.contains("\"exit_code\":3"), "{waited}");
}

#[test]
fn a_background_command_that_ends_after_the_yield_makes_it_stale() {
    // BARRIER-3, BARRIER-4, BARRIER-7; task.md 12 rows 40, 41
    let world = world(&json!({}), |_, nth| match nth {
        0 => {
            let command = "until [ -e go ]; do sleep 0.02; done; echo LATE";
            Reply::call("bash", json!({"command": command, "background": true}))
        }
        1 => done(&json!({"v": "first"})),
        2 => Reply::text("I wait"),
        _ => done(&json!({"v": "second"})),
    });
    let running = world.spawn(&["-p", "go"]);
    let asked = || {
        let requests = world.server.requests();
        requests.iter().filter(|request| request.is_task_child()).count()
    };
    until("the turn on the notice", || asked() == 3);
    world.project_file("go", "");
    running.wait().is(0, "seen\n");
    let outcome = outcome(&world);
    assert_eq!(outcome.verdict(), (0, "", ""));
    assert_eq!(outcome.output(), "{\n  \"v\": \"second\"\n}");
    assert!(outcome.requests[3].tail().contains("LATE"));
    assert_eq!(world.living(), Vec::<String>::new());
}

#[test]
fn the_client_is_asked_and_its_answer_counts() {
    // OBS-3, DISP-4, host.md 7.5; OBS-6: events of the child
    for (answer, runs) in [
        (json!({"confirmed": true}), true),
        (json!({"confirmed": false}), false),
        (json!({"cancelled": true}), false),
    ] {
        let world = world(&json!({}), |_, _| done(&json!({"x": 1})));
        world.settings(&json!({"crew": {"approval": {"tools": {"task": "prompt"}}}}));
        let mut client = Client::start(&world, &[]);
        client.ask("prompt", json!({"message": "go"}));
        let asked = client.event(0, "extension_ui_request");
        assert_eq!((&asked["method"], &asked["title"]), (&json!("confirm"), &json!("Run task?")));
        assert!(asked["message"].as_str().unwrap().contains("the assignment"), "{asked}");
        let mut line = json!({"type": "extension_ui_response", "id": asked["id"]});
        line.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        client.raw(format!("{line}\n").as_bytes());
        client.event(0, "agent_settled");
        let lines = client.lines(0);
        let phases: Vec<_> = lines.iter().filter(|line| line["type"] == "crew_task").collect();
        assert_eq!(phases.len(), if runs { 2 } else { 0 }, "{phases:?}");
        let result = lines.iter().find(|line| line["type"] == "tool_execution_end").unwrap();
        assert_eq!(result["isError"], json!(!runs), "{result}");
        assert_eq!(client.close(), Some(0));
    }
}

#[test]
fn where_nobody_answers_a_question_is_a_refusal() {
    // OBS-3, DISP-2: no lease, no child
    let world = world(&json!({}), |_, _| done(&json!({"x": 1})));
    world.settings(&json!({"crew": {"approval": {"tools": {"task": "prompt"}}}}));
    world.print(&["go"]).is(0, "seen\n");
    let requests = world.server.requests();
    assert!(!requests.iter().any(Request::is_task_child));
    assert!(requests.last().unwrap().tail().contains("approval.tools.task: prompt"));
    assert!(!session_file(&world).with_extension("").exists());
}

#[test]
fn print_mode_says_what_children_do_when_it_is_asked_to() {
    let world = world(&json!({}), |_, _| done(&json!({"x": 1})));
    let run = world.print(&["--verbose", "go"]);
    run.is(0, "seen\n");
    run.tells(&["kid (task) started", "kid (task) completed"]);
}

#[test]
fn quitting_in_the_middle_of_a_call_leaves_no_temporary_files() {
    // OBS-12, ART-10, ART-12, SESS-14
    let gate = Gate::default();
    let held = gate.clone();
    let mut world = world(&json!({}), move |_, _| done(&json!({"x": 1})).behind(&held));
    let tmp = world.at("tmp");
    fs::create_dir(&tmp).unwrap();
    world.variables.push(("TMPDIR".to_owned(), tmp.to_string_lossy().into_owned()));
    let mut client = Client::start(&world, &["--no-session"]);
    client.ask("prompt", json!({"message": "go"}));
    until("the child's request", || world.server.requests().iter().any(Request::is_task_child));
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 1);
    assert_eq!(client.close(), Some(0));
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    gate.open();
}

fn git(world: &World, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=U", "-c", "user.email=u@x"]).args(args);
    command.current_dir(world.project()).env("HOME", world.at("home"));
    let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_isolated_child_brings_its_changes_back_or_leaves_the_tree_alone() {
    // ISO-5, ISO-7, ISO-14, ISO-19, OBS-13; task.md 12 rows 78, 81
    for conflicts in [false, true] {
        let child = move |request: &Request, nth: usize| match nth {
            0 if conflicts => {
                // The person changes the same line meanwhile.
                let project = request.all_text();
                let from = project.find("PROJECT=").unwrap() + "PROJECT=".len();
                let project = project[from..].split_whitespace().next().unwrap().to_owned();
                fs::write(format!("{project}/a.txt"), "by the person\n").unwrap();
                Reply::call("bash", json!({"command": "echo by the child > a.txt; pwd"}))
            }
            0 => Reply::call("bash", json!({"command": "echo by the child > a.txt; pwd"})),
            _ => done(&json!({"at": request.tail().trim()})),
        };
        let world = World::new(move |request| {
            if request.is_task_child() {
                child(request, request.answers())
            } else if request.has_results() {
                Reply::text("seen")
            } else {
                let task = format!("change it PROJECT={}", request.tail());
                let item = json!({"name": "kid", "task": task, "isolated": true});
                Reply::call("task", json!({"context": "c", "tasks": [item]}))
            }
        });
        world.settings(&json!({"crew": {"task": {"isolation": {"enabled": true}}}}));
        git(&world, &["init", "-q", "-b", "main"]);
        world.project_file("a.txt", "base\n");
        world.project_file("mine.txt", "mine\n");
        git(&world, &["add", "a.txt"]);
        git(&world, &["commit", "-qm", "base"]);
        world.print(&[world.project().to_str().unwrap()]).is(0, "seen\n");
        let outcome = outcome(&world);
        let at = outcome.record["structuredOutput"]["data"]["at"].clone();
        let at = at.as_str().map_or_else(|| outcome.output().to_owned(), str::to_owned);
        assert!(at.contains("worktrees") && !at.contains("project"), "{at}");
        let a = fs::read_to_string(world.project().join("a.txt")).unwrap();
        let patch = fs::read_to_string(session_file(&world).with_extension("").join("kid.patch"));
        assert!(patch.unwrap().contains("+by the child"));
        if conflicts {
            assert_eq!((outcome.status(), a.as_str()), ("merge failed", "by the person\n"));
            assert!(outcome.text.contains("kid.patch"));
        } else {
            assert_eq!((outcome.status(), a.as_str()), ("completed", "by the child\n"));
            assert_eq!(git(&world, &["status", "--porcelain"]), " M a.txt\n?? mine.txt\n");
        }
        assert_eq!(git(&world, &["worktree", "list"]).lines().count(), 1);
        assert_eq!(git(&world, &["log", "--format=%s"]), "base\n");
        assert_eq!(world.living(), Vec::<String>::new());
    }
}

#[test]
fn the_next_model_of_the_list_takes_over_from_one_that_fails() {
    // TASK-SPAWN-13
    let world = world(&json!({"agent": "pair"}), |request, _| {
        if request.body["model"] == "m2" {
            done(&json!({"x": 1}))
        } else {
            Reply::status(400, "", r#"{"error": {"message": "m1 is not for you"}}"#)
        }
    });
    fs::create_dir(world.agent().join("agents")).unwrap();
    let text = "---\nname: pair\ndescription: d\nmodel: [local/m1, local/m2]\n---\nROLE\n";
    world.agent_file("agents/pair.md", text);
    let outcome = run(&world);
    assert_eq!((outcome.verdict(), outcome.status()), ((0, "", ""), "completed"));
    let models: Vec<_> =
        outcome.requests.iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["m1", "m2"]);
}

#[test]
fn the_message_of_a_commit_is_written_by_the_model_where_that_is_wanted() {
    // ISO-9, `task.isolation.commits`
    let world = World::new(|request| {
        if request.tools().is_empty() {
            assert!(request.all_text().contains("+by the child"), "{}", request.all_text());
            Reply::text("Say who wrote the line")
        } else if request.is_task_child() {
            match request.answers() {
                0 => Reply::call("bash", json!({"command": "echo by the child > a.txt"})),
                _ => done(&json!({"x": 1})),
            }
        } else if request.has_results() {
            Reply::text("seen")
        } else {
            let item = json!({"name": "kid", "task": "change it", "isolated": true});
            Reply::call("task", json!({"context": "c", "tasks": [item]}))
        }
    });
    let isolation = json!({"enabled": true, "merge": "branch", "commits": "ai"});
    world.settings(&json!({"crew": {"task": {"isolation": isolation}}}));
    git(&world, &["init", "-q", "-b", "main"]);
    world.project_file("a.txt", "base\n");
    git(&world, &["add", "a.txt"]);
    git(&world, &["commit", "-qm", "base"]);
    world.print(&["go"]).is(0, "seen\n");
    assert_eq!(git(&world, &["log", "--format=%s"]), "Say who wrote the line\nbase\n");
    assert_eq!(outcome(&world).status(), "completed");
}
