//! Every bad input gets one clear message, a way on, and exit code 1
//! (`host.md` 6.1.8; `style.md` 6), and no secret is told (C113).

mod common;

use std::net::TcpListener;

use common::server::Reply;
use common::{Run, SECRET, World, collect};

fn silent() -> World {
    World::new(|_| Reply::text("ok"))
}

/// One message, then hints; nothing on standard output.
#[track_caller]
fn check(run: &Run, words: &[&str]) {
    run.is(1, "");
    run.tells(words);
    let mut lines = run.err.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("crew: ")), "{}", run.err);
    assert!(lines.all(|line| line.starts_with("  ")), "one message only: {}", run.err);
    assert!(!run.err.contains(SECRET), "C113: {}", run.err);
}

#[test]
fn options_that_make_no_sense_are_told() {
    let world = silent();
    check(&world.print(&["--no-such-option", "x"]), &["--no-such-option", "--help"]);
    check(&world.print(&["-Z", "x"]), &["-Z"]);
    check(&world.print(&["--mode", "yaml", "x"]), &["yaml", "text, json or rpc"]);
    check(&world.print(&["--crew-wait", "soon", "x"]), &["soon", "seconds"]);
    check(&world.print(&["x", "--name"]), &["--name"]);
    assert_eq!(world.server.requests().len(), 0);
}

#[test]
fn what_is_not_built_says_so() {
    let world = silent();
    check(&world.print(&["--resume", "y"]), &["--resume needs a terminal"]);
}

#[test]
fn an_unknown_model_lists_those_close_to_it() {
    let world = silent();
    let run = world.finish(&mut world.command(&["--model", "lokal/m1", "-p", "x"]));
    check(&run, &["lokal/m1", "local/m1", "--list-models"]);
    let run = world.finish(&mut world.command(&["--model", "m1", "--provider", "nope", "-p", "x"]));
    check(&run, &["unknown provider", "nope"]);
}

#[test]
fn without_a_model_the_ways_on_are_told() {
    // host.md 6.1.9, product.md P-4
    let world = silent();
    world.agent_file("models.json", "{\"providers\":{}}");
    let run = world.finish(&mut world.command(&["-p", "x"]));
    check(&run, &["no model", "ANTHROPIC_API_KEY", "models.json", "demo/crew"]);
}

#[test]
fn a_missing_key_names_the_variable_and_the_file() {
    let world = silent();
    let args = ["--model", "anthropic/claude-unheard-of", "-p", "x"];
    let run = world.finish(&mut world.command(&args));
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    run.tells(&["ANTHROPIC_API_KEY", "auth.json"]);
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_tries() {
    // C106
    let world = silent();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    world.write_models(&format!("http://127.0.0.1:{port}"));
    let run = world.print(&["x"]);
    check(&run, &["local/m1", "after 3 tries", "connect", "kept in", "crew -c -p"]);
}

#[test]
fn refusals_of_the_provider_are_told_with_their_cause() {
    let body =
        format!("{{\"type\":\"error\",\"error\":{{\"type\":\"t\",\"message\":\"no: {SECRET}\"}}}}");
    let refused = |code: u16, tries: usize, words: &[&str]| {
        let body = body.clone();
        let world = World::new(move |_| Reply::status(code, "", &body));
        check(&world.print(&["x"]), words);
        assert_eq!(world.server.requests().len(), tries, "{code}");
        // C113: not in the session either.
        for path in world.session_files() {
            assert!(!std::fs::read_to_string(path).unwrap().contains(SECRET));
        }
    };
    refused(401, 1, &["401", "check the key"]);
    refused(400, 1, &["400"]);
    refused(429, 3, &["429", "after 3 tries"]);
    refused(500, 3, &["500", "after 3 tries"]);
}

#[test]
fn a_stream_that_breaks_is_told_and_its_text_is_printed_once() {
    // C091, C106
    let world = World::new(|_| Reply::text("half an ans").cut());
    let run = world.print(&["x"]);
    check(&run, &["after 3 tries", "ended without", "a part of the answer", "crew -c -p"]);
    let tried = std::sync::atomic::AtomicUsize::new(0);
    let world =
        World::new(move |_| match tried.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::text("half an ans").cut(),
            _ => Reply::text("half an answer and the rest"),
        });
    world.print(&["x"]).is(0, "half an answer and the rest\n");
    assert!(!world.server.requests()[1].all_text().contains("half"), "the failed try is not sent");
}

#[test]
fn sessions_that_cannot_be_used_are_told() {
    let world = silent();
    let path = world.project_file("x.jsonl", "this is no session\n");
    check(&world.print(&["--session", "./x.jsonl", "y"]), &["x.jsonl", "not a session", "left"]);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "this is no session\n");
    check(&world.print(&["--session", "abcdef", "y"]), &["abcdef", "--continue"]);
    check(&world.print(&["--session", "/", "y"]), &["/"]);
    check(&world.print(&["--fork", "abcdef", "y"]), &["abcdef"]);
    check(&world.print(&["--fork", "./x.jsonl", "y"]), &["x.jsonl", "not a session"]);
    let gone = format!(
        "{}\n",
        serde_json::json!({"type": "session", "version": 3, "id": "a", "timestamp": "", "cwd": "/no/such/dir"})
    );
    world.project_file("gone.jsonl", gone);
    let run = world.print(&["--session", "./gone.jsonl", "y"]);
    check(&run, &["/no/such/dir", world.project().to_str().unwrap()]);
    assert_eq!(world.server.requests().len(), 0);
}

#[test]
fn a_session_of_another_directory_is_named_and_not_run() {
    // host.md 6.3.2
    let world = silent();
    world.print(&["--session-id", "there-1", "x"]).is(0, "ok\n");
    let mut command = world.command(&["--model", "local/m1", "-p", "--session", "there-1", "y"]);
    let run = world.finish(command.current_dir(world.at("home")));
    run.is(0, "");
    run.tells(&["there-1", world.project().to_str().unwrap(), "nothing was run"]);
    assert_eq!(world.server.requests().len(), 1);
}

#[test]
fn a_session_that_cannot_be_written_stops_the_run() {
    // A file where the folder should be: refused to any user.
    let world = silent();
    world.agent_file("sessions", "in the way");
    let run = world.print(&["x"]);
    check(&run, &["sessions"]);
    assert_eq!(world.server.requests().len(), 0);
}

#[test]
fn broken_files_are_warned_of_and_the_run_goes_on() {
    // host.md 1.3.2, 1.4.3, 1.5.2
    let world = silent();
    let models = std::fs::read_to_string(world.agent().join("models.json")).unwrap();
    let warned = |file: &str, text: &str, words: &[&str]| {
        world.agent_file(file, text);
        let run = world.print(&["x"]);
        run.is(0, "ok\n");
        run.tells(words);
        assert_eq!(std::fs::read_to_string(world.agent().join(file)).unwrap(), text);
        world.agent_file(file, "{}");
    };
    warned("settings.json", "{ broken", &["warning", "settings.json"]);
    warned("auth.json", "[1]", &["warning", "auth.json"]);
    world.agent_file("models.json", &models.replace("\"api\":", "\"api\":7,\"x\":"));
    let run = world.print(&["x"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    run.tells(&["models.json", "api"]);
}

#[test]
fn models_json_is_reported_by_the_list_too() {
    // host.md 1.5.2
    let world = silent();
    let run = world.finish(&mut world.command(&["--list-models"]));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.contains("local") && run.out.contains("m2"), "{}", run.out);
    assert!(run.out.contains("crew (scripted)"), "{}", run.out);
    let found = world.finish(&mut world.command(&["--list-models", "m2"])).out;
    assert_eq!(found.lines().count(), 2, "{found}");
    world.agent_file("models.json", "{\"providers\":{\"local\":{\"baseUrl\":\"\"}}}");
    let run = world.finish(&mut world.command(&["--list-models"]));
    assert_eq!(run.code, Some(0));
    run.tells(&["warning", "models.json", "baseUrl"]);
}

#[test]
fn an_untrusted_project_is_said_to_be_one_and_its_files_are_not_used() {
    // host.md 5.6.5
    let world = World::new(|request| Reply::text(&request.body["system"].to_string()));
    world.project_file(".pi/APPEND_SYSTEM.md", "SECRET-RULE");
    let run = world.print(&["x"]);
    assert_eq!((run.code, run.out.contains("SECRET-RULE")), (Some(0), false));
    run.tells(&["not trusted", "--approve"]);
    let run = world.print(&["-a", "x"]);
    assert_eq!((run.code, run.out.contains("SECRET-RULE")), (Some(0), true));
    assert_eq!(run.err, "");
}

#[test]
fn without_a_home_nothing_is_written_into_the_project() {
    let world = silent();
    let mut command = world.command(&["-p", "x"]);
    command.env_remove("HOME").env_remove("CREW_CODING_AGENT_DIR");
    check(&world.finish(&mut command), &["HOME", "--no-session"]);
    assert!(!world.project().join(".pi").exists());
}

#[test]
fn a_directory_that_is_gone_is_told() {
    // host.md 6.1.10
    let world = silent();
    let gone = world.at("gone");
    std::fs::create_dir(&gone).unwrap();
    let script =
        format!("cd {0} && rmdir {0} && exec {1} -p x", gone.display(), env!("CARGO_BIN_EXE_crew"));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).stdin(std::process::Stdio::null());
    command.env("CREW_CODING_AGENT_DIR", world.agent());
    check(&world.finish(&mut command), &["current directory"]);
}

#[test]
fn the_key_of_the_command_line_is_used_and_kept_nowhere() {
    // host.md 1.4.7, C113
    let world = silent();
    let key = "sk-of-the-command-line";
    world.print(&["--api-key", key, "x"]).is(0, "ok\n");
    assert!(world.server.requests()[0].headers.contains(key));
    let mut files = Vec::new();
    collect(&world.agent(), &mut files);
    for path in files {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(key), "{}", path.display());
    }
}
