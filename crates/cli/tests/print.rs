//! Print mode, one prompt after the other (`host.md` 6.1).

mod common;

use std::process::Stdio;

use common::server::Reply;
use common::{World, is_child, piped};
use serde_json::json;

#[test]
fn the_answer_and_nothing_else_is_on_stdout() {
    // host.md 6.1.2, 6.1.3
    let world = World::new(|_| Reply::text("plain answer"));
    let run = world.print(&["say it"]);
    run.is(0, "plain answer\n");
    assert_eq!(run.err, "");
    assert_eq!(world.living(), Vec::<String>::new());
}

#[test]
fn several_messages_are_several_prompts_and_the_last_answer_counts() {
    // host.md 6.1.6
    let world = World::new(|request| Reply::text(&format!("answer to {}", request.tail())));
    world.print(&["one", "two"]).is(0, "answer to two\n");
    let tails: Vec<_> = world.server.requests().iter().map(|request| request.tail()).collect();
    assert_eq!(tails, ["one", "two"]);
}

#[test]
fn piped_text_comes_first_and_makes_it_print_mode() {
    // host.md 6.1.1, 6.1.5, 6.1.6
    let world = World::new(|request| Reply::text(&request.tail()));
    let mut command = world.command(&["--model", "local/m1", "MESSAGE"]);
    piped(&mut command, b"  from stdin\n\n");
    world.finish(&mut command).is(0, "from stdinMESSAGE\n");
}

#[test]
fn files_come_wrapped_with_their_absolute_path_and_empty_ones_not_at_all() {
    // host.md 6.1.7
    let world = World::new(|request| Reply::text(&request.tail()));
    let path = world.project_file("n.txt", "line\n");
    world.project_file("empty.txt", "");
    let expected = format!("<file name=\"{}\">\nline\n\n</file>\ngo\n", path.display());
    world.print(&["@n.txt", "@empty.txt", "go"]).is(0, &expected);
}

#[test]
fn an_image_is_attached_and_known_by_its_content() {
    // host.md 6.1.7
    let world = World::new(|_| Reply::text("seen"));
    let png: [u8; 12] = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0];
    let path = world.project_file("pic.dat", png);
    world.print(&["@pic.dat", "look"]).is(0, "seen\n");
    let request = &world.server.requests()[0];
    let message = request.body["messages"][0].to_string();
    assert!(message.contains("\"image/png\""), "{message}");
    assert!(request.tail().contains(&format!("<file name=\"{}\"></file>\nlook", path.display())));
}

#[test]
fn a_missing_file_ends_the_run_before_any_request() {
    // host.md 6.1.7
    let world = World::new(|_| Reply::text("never"));
    let run = world.print(&["@not-there.txt", "go"]);
    run.is(1, "");
    run.tells(&["not-there.txt"]);
    assert_eq!(world.server.requests().len(), 0);
}

#[test]
fn without_a_prompt_nothing_starts() {
    let world = World::new(|_| Reply::text("never"));
    let run = world.print(&[]);
    run.is(1, "");
    run.tells(&["no prompt", "crew -p"]);
}

#[test]
fn a_cut_answer_is_printed_with_a_warning_and_exit_code_one() {
    // host.md 6.1.3
    let world = World::new(|_| Reply::text("cut te").stop("max_tokens"));
    let run = world.print(&["x"]);
    run.is(1, "cut te\n");
    run.tells(&["cut off"]);
}

#[test]
fn thoughts_alone_are_no_answer() {
    // C094
    let world = World::new(|_| Reply::thinking("hm"));
    let run = world.print(&["x"]);
    run.is(1, "");
    run.tells(&["thoughts only", "local/m1"]);
}

#[test]
fn a_session_is_private_has_its_entries_in_order_and_goes_on_with_c() {
    // host.md 2.1.1, 2.2.2, 2.4.2; product.md P-14a
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(|request| {
        let texts = request.all_text();
        Reply::text(if texts.contains("one") && texts.contains("two") { "both" } else { "first" })
    });
    world.print(&["one"]).is(0, "first\n");
    let path = world.session_files().remove(0);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let entries = world.session();
    assert_eq!(entries[0]["cwd"], json!(world.project()));
    let kind = |entry: &serde_json::Value| {
        let role = entry["message"]["role"].as_str().map(str::to_owned);
        role.unwrap_or_else(|| entry["type"].as_str().unwrap().to_owned())
    };
    let kinds: Vec<_> = entries.iter().map(kind).collect();
    let expected =
        ["session", "model_change", "thinking_level_change", "system", "user", "assistant"];
    assert_eq!(kinds, expected);
    let before = std::fs::read(&path).unwrap();
    world.print(&["-c", "two"]).is(0, "both\n");
    let after = std::fs::read(&path).unwrap();
    assert!(after.starts_with(&before), "earlier lines stay as they are");
    assert_eq!(world.session().len(), entries.len() + 2);
}

#[test]
fn a_named_session_is_named_and_no_session_leaves_no_file() {
    let world = World::new(|_| Reply::text("ok"));
    world.print(&["--no-session", "x"]).is(0, "ok\n");
    assert_eq!(world.session_files().len(), 0);
    world.print(&["--name", "  my work ", "x"]).is(0, "ok\n");
    let named = world.session().into_iter().find(|entry| entry["type"] == "session_info");
    assert_eq!(named.unwrap()["name"], "my work");
}

#[test]
fn a_session_id_names_a_new_session_and_finds_it_again() {
    // host.md 6.3.3
    let world = World::new(|_| Reply::text("ok"));
    let first = world.print(&["--session-id", "fix-1", "x"]);
    first.is(0, "ok\n");
    first.tells(&["fix-1"]);
    let again = world.print(&["--session-id", "fix-1", "y"]);
    again.is(0, "ok\n");
    assert_eq!(again.err, "");
    assert_eq!(world.session()[0]["id"], "fix-1");
    let users = |entry: &&serde_json::Value| entry["message"]["role"] == "user";
    assert_eq!(world.session().iter().filter(users).count(), 2);
}

#[test]
fn a_fork_goes_on_with_a_copy_and_leaves_the_source_alone() {
    // host.md 2.8.7, 6.3.3
    let world = World::new(|request| Reply::text(&format!("to {}", request.tail())));
    world.print(&["--session-id", "first", "one"]).is(0, "to one\n");
    let source = world.session_files().remove(0);
    let before = std::fs::read(&source).unwrap();
    world.print(&["--fork", "first", "--session-id", "second", "two"]).is(0, "to two\n");
    assert_eq!(std::fs::read(&source).unwrap(), before);
    let copy = world.session_files().into_iter().find(|path| *path != source).unwrap();
    let entries = common::lines(&copy);
    assert_eq!(entries[0]["id"], "second");
    assert_eq!(entries[0]["parentSession"], json!(source));
    assert!(world.server.requests()[1].all_text().contains("to one"));
    let again = world.print(&["--fork", "first", "--session-id", "second", "x"]);
    again.is(1, "");
    again.tells(&["already exists"]);
}

#[test]
fn the_credential_file_is_made_private_at_the_first_start() {
    // host.md 1.4.2
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(|_| Reply::text("ok"));
    world.print(&["x"]).is(0, "ok\n");
    let path = world.agent().join("auth.json");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn templates_and_skills_are_expanded() {
    // host.md 5.3.6, 5.4
    let world = World::new(|request| Reply::text(&request.tail()));
    std::fs::create_dir_all(world.agent().join("prompts")).unwrap();
    world.agent_file("prompts/greet.md", "Say hello to $1 and $2.");
    world.print(&["/greet ann \"bob b\""]).is(0, "Say hello to ann and bob b.\n");
    world.print(&["/unknown x"]).is(0, "/unknown x\n");
    std::fs::create_dir_all(world.agent().join("skills/dance")).unwrap();
    world.agent_file("skills/dance/SKILL.md", "---\nname: dance\ndescription: d\n---\nTurn.");
    let run = world.print(&["/skill:dance now"]);
    assert!(run.out.contains("<skill name=\"dance\"") && run.out.contains("Turn."), "{}", run.out);
}

#[test]
fn tool_options_choose_what_is_offered() {
    // host.md 6.2.2, task.md DISP-1
    let check = |args: &[&str], expected: &[&str]| {
        let world = World::new(|_| Reply::text("ok"));
        world.print(&[args, &["x"]].concat()).is(0, "ok\n");
        let mut tools = world.server.requests()[0].tools();
        tools.retain(|tool| !tool.starts_with("crew_"));
        assert_eq!(tools, expected, "{args:?}");
    };
    check(&[], &["read", "bash", "edit", "write", "task"]);
    check(&["-t", "read,ls"], &["read", "ls"]);
    check(&["-t", "ta*"], &["task"]);
    check(&["-t", "-bash"], &["read", "edit", "write", "task"]);
    check(&["-xt", "bash,edit,task"], &["read", "write"]);
    check(&["-nbt"], &["task"]);
}

#[test]
fn commands_carry_the_markers_of_the_process() {
    // host.md 1.2.2, 1.2.5
    let world = World::new(|request| {
        if request.has_results() {
            Reply::text(&request.tail())
        } else {
            Reply::call("bash", json!({"command": "echo $AI_AGENT $CREW_CODING_AGENT $PI_OFFLINE"}))
        }
    });
    let run = world.print(&["--offline", "x"]);
    assert_eq!((run.code, run.out.trim()), (Some(0), "crew true 1"), "{}", run.err);
}

#[test]
fn a_reader_that_goes_away_ends_the_run_without_a_panic() {
    // host.md 11.92
    let world = World::new(|_| Reply::text(&"word ".repeat(40_000)));
    for mode in [&["-p"][..], &["--mode", "json"]] {
        let args = [&["--model", "local/m1"], mode, &["x"]].concat();
        let mut command = world.command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(1), ""), "{mode:?}");
    }
}

#[test]
fn the_scripted_model_answers_offline_and_is_marked() {
    // product.md P-3
    let world = World::new(|_| Reply::text("never"));
    let mut command = world.command(&["--model", "demo/crew", "--verbose", "-nt", "-p", "hello"]);
    let run = world.finish(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.err);
    run.tells(&["demo/crew (scripted)"]);
    assert_eq!(world.server.requests().len(), 0);
    assert!(!world.session_files().iter().any(|path| is_child(path)));
}

#[test]
fn version_and_help_need_nothing() {
    let world = World::new(|_| Reply::text("never"));
    for (flag, word) in
        [("--version", "crew "), ("-v", "crew "), ("--help", "demo"), ("-h", "-nbt")]
    {
        let mut command = world.command(&[flag]);
        let run = world.finish(command.env_clear());
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        assert!(run.out.contains(word), "{}", run.out);
    }
}

#[test]
fn a_session_is_written_as_a_page_and_a_missing_one_is_named() {
    // host.md 2.8.10
    let world = World::new(|_| Reply::text("a <b>bold</b> answer"));
    world.print(&["say it"]).is(0, "a <b>bold</b> answer\n");
    let file = world.session_files()[0].to_string_lossy().into_owned();
    let run = world.finish(&mut world.command(&["--export", &file, "page.html"]));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let page = std::fs::read_to_string(run.out.trim_end()).unwrap();
    assert!(page.contains("a &lt;b&gt;bold&lt;/b&gt; answer"), "{page}");
    let run = world.finish(&mut world.command(&["--export", "./nothing.jsonl"]));
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("nothing.jsonl"), "{}", run.err);
}

#[test]
fn an_input_that_is_left_open_and_silent_holds_up_no_prompt() {
    // host.md 6.1.5, of whoever starts the program without closing it
    let world = World::new(|request| Reply::text(&request.tail()));
    let mut command = world.command(&["--model", "local/m1", "-p", "MESSAGE"]);
    command.stdin(Stdio::piped());
    let run = world.finish(&mut command);
    run.is(0, "MESSAGE\n");
    run.tells(&["standard input was silent"]);
}
