//! Real commands through the tool. Commands carry odd sleep times, by which
//! their processes are found in the process table.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::World;

async fn run(world: &World, command: &str) -> ToolOutcome {
    world.call("bash", json!({"command": command})).await
}

/// Processes whose command line contains a text.
fn living(text: &str) -> usize {
    let own = std::process::id().to_string();
    let folder = std::fs::read_dir("/proc").unwrap();
    folder
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && *name != own)
        .filter_map(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok())
        .filter(|line| {
            let line = String::from_utf8_lossy(line).replace('\0', " ");
            line.contains(text)
        })
        .count()
}

/// Waits until a condition holds, for at most two seconds.
fn soon(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::yield_now();
    }
    condition()
}

#[tokio::test]
async fn both_streams_are_merged_in_the_order_of_writing() {
    // host.md 4.3.2
    let world = World::new();
    let script = "for i in 1 2 3; do echo o$i; echo e$i >&2; done";
    let outcome = run(&world, script).await;
    assert_eq!(outcome, ToolOutcome::text("o1\ne1\no2\ne2\no3\ne3\n"));
}

#[tokio::test]
async fn exit_codes_and_signals_are_errors_with_output() {
    // host.md 4.3.5, 11.67
    let world = World::new();
    let check = async |command: &str, code: &str| {
        let outcome = run(&world, command).await;
        let text = outcome.joined_text();
        assert!(outcome.is_error && text.contains(code), "{text}");
    };
    check("echo out; exit 7", "out\n\n[The command ended with exit code 7.]").await;
    check("kill -9 $$", "137").await;
    check("no-such-program-here", "127").await;
}

#[tokio::test]
async fn silence_and_blank_output_have_a_placeholder() {
    // host.md 4.3.6, 11.70
    let world = World::new();
    assert_eq!(run(&world, "true").await.joined_text(), "(no output)");
    let blank = run(&world, r"printf '\r\n\r\n'").await;
    assert_eq!(blank.joined_text(), "(only blank output)");
}

#[tokio::test]
async fn input_is_empty_and_the_environment_is_set() {
    // host.md 4.3.1, 1.2.6
    let world = World::new();
    let mut context = world.context();
    context.shell.prefix = Some("shout() { echo \"$@!\"; }".to_owned());
    let bin = world.cwd().join("bin");
    world.script("bin/mytool", "#!/bin/sh\necho mine\n");
    context.shell.bin_dir = Some(bin);
    let command = "cat; echo $PI_SESSION_ID; shout a; mytool; pwd; test -n \"$CREW_COMMAND\"";
    let arguments = json!({"command": command});
    let outcome = world.call_in(context, "bash", arguments).await;
    let expected = format!("s\na!\nmine\n{}\n", world.cwd().display());
    assert_eq!(outcome, ToolOutcome::text(expected));
}

#[tokio::test]
async fn a_wrong_shell_folder_or_limit_is_an_error() {
    let world = World::new();
    let mut context = world.context();
    context.shell.path = Some("/no/such/shell".into());
    let arguments = json!({"command": "true"});
    let outcome = world.call_in(context, "bash", arguments.clone()).await;
    assert!(outcome.joined_text().contains("/no/such/shell"));
    let mut context = world.context();
    context.cwd = world.cwd().join("gone");
    let outcome = world.call_in(context, "bash", arguments).await;
    assert!(outcome.is_error && outcome.joined_text().contains("gone"));
    for timeout in [0.0, -1.0, 2_147_483.648] {
        let arguments = json!({"command": "true", "timeout": timeout});
        let outcome = world.call("bash", arguments).await;
        assert!(outcome.is_error, "{timeout}");
    }
    assert!(run(&world, "a\0b").await.is_error);
}

#[tokio::test]
async fn a_timeout_kills_the_whole_tree_and_those_who_left_it() {
    // host.md 4.3.3, C059, C061
    let world = World::new();
    let command = "echo early; (sleep 98.71 & setsid sleep 98.71 & env -i /bin/sleep 98.71 &) & \
        setsid sh -c 'sleep 98.71 & sleep 98.71' & sleep 98.71";
    let started = Instant::now();
    let arguments = json!({"command": command, "timeout": 0.5});
    let outcome = world.call("bash", arguments).await;
    let text = outcome.joined_text();
    assert!(outcome.is_error && text.starts_with("early\n"), "{text}");
    assert!(text.contains("time limit of 0.5 s"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(soon(|| living("sleep 98.71") == 0), "processes are left");
    assert_eq!(world.host.commands.listed(), 0);
}

#[tokio::test]
async fn a_background_child_holding_the_pipe_does_not_hang_the_call() {
    // host.md 4.3.4, 11.64, C061
    let world = World::new();
    for command in
        ["sleep 97.31 & echo ok", "setsid sleep 97.31 & echo ok", "yes >/dev/null & echo ok"]
    {
        let started = Instant::now();
        let outcome = run(&world, command).await;
        assert_eq!(outcome, ToolOutcome::text("ok\n"), "{command}");
        assert!(started.elapsed() < Duration::from_secs(1), "{command}");
    }
    assert_eq!(living("sleep 97.31"), 2, "they may live on");
    world.host.end_session(&"other".into()).await;
    assert_eq!(living("sleep 97.31"), 2, "not those of another session");
    world.host.end_session(&"s".into()).await;
    assert!(soon(|| living("sleep 97.31") == 0), "P-14f");
    assert_eq!(world.host.commands.listed(), 0);
}

#[tokio::test]
async fn a_background_child_that_goes_on_writing_runs_into_the_timeout() {
    // host.md 4.3.5, 11.65
    let world = World::new();
    let command = "while :; do echo tick; sleep 0.02; done & exit 3";
    let arguments = json!({"command": command, "timeout": 0.6});
    let outcome = world.call("bash", arguments).await;
    let text = outcome.joined_text();
    assert!(text.contains("time limit of 0.6 s"), "{text}");
    assert!(text.contains("exit code 3 after 0."), "{text}");
}

#[tokio::test]
async fn a_server_left_behind_survives_its_own_output() {
    let world = World::new();
    let server = "(sleep 0.3; echo one; sleep 0.1; echo two; touch done) & echo started";
    let outcome = run(&world, server).await;
    assert_eq!(outcome, ToolOutcome::text("started\n"));
    let file = world.cwd().join("done");
    let waiting = tokio::task::spawn_blocking(move || soon(|| file.exists()));
    assert!(waiting.await.unwrap(), "it was ended by a broken pipe");
}

#[tokio::test]
async fn an_abort_ends_the_command_and_keeps_its_output() {
    // host.md 4.1.8, 11.68
    let world = World::new();
    let cancel = world.cancel.clone();
    let mut context = world.context();
    context.progress = std::sync::Arc::new(move |update| {
        if !update.content.is_empty() {
            cancel.cancel();
        }
    });
    let arguments = json!({"command": "echo early; sleep 96.21; touch later"});
    let outcome = world.call_in(context, "bash", arguments).await;
    let text = outcome.joined_text();
    assert!(outcome.is_error && text.starts_with("early\n\n["), "{text}");
    assert!(text.contains("aborted"));
    assert!(soon(|| living("sleep 96.21") == 0));
    assert!(!world.cwd().join("later").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_around_the_start_leaves_nothing() {
    // C055
    let world = World::new();
    for delay_us in (0..60).map(|n| n * 300) {
        let mut context = world.context();
        context.cancel = CancellationToken::new();
        let cancel = context.cancel.clone();
        let arguments = json!({"command": "sleep 95.11 & setsid sleep 95.11"});
        let abort = async {
            tokio::time::sleep(Duration::from_micros(delay_us)).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(world.call_in(context, "bash", arguments), abort);
        assert!(outcome.is_error && outcome.joined_text().contains("aborted"));
    }
    assert!(soon(|| living("sleep 95.11") == 0));
}

#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let world = World::new();
    let call = run(&world, "sleep 94.51");
    let _ = tokio::time::timeout(Duration::from_millis(150), call).await;
    assert!(soon(|| living("sleep 94.51") == 0));
    assert_eq!(world.host.commands.listed(), 0);
}

#[tokio::test]
async fn the_end_of_the_host_ends_everything_for_good() {
    // host.md 4.3.8
    let world = World::new();
    run(&world, "setsid sleep 93.41 & sleep 93.41 & true").await;
    let running = run(&world, "sleep 93.41");
    let host = std::sync::Arc::clone(&world.host);
    let end = async {
        let work = move || {
            assert!(soon(|| living("sleep 93.41") >= 3), "all have started");
            host.kill_all();
        };
        tokio::task::spawn_blocking(work).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(running, end);
    assert!(outcome.is_error);
    assert!(soon(|| living("sleep 93.41") == 0));
    let outcome = run(&world, "echo never").await;
    assert!(outcome.is_error && outcome.joined_text().contains("ending"));
}

#[tokio::test]
async fn updates_start_empty_and_carry_the_tail() {
    // host.md 4.3.7
    let world = World::new();
    let command = "for i in $(seq 1 40); do echo $i; sleep 0.01; done";
    run(&world, command).await;
    let updates = world.updates.lock().unwrap().clone();
    assert!(updates[0].content.is_empty() && updates[0].details.is_none());
    assert!((2..=9).contains(&updates.len()), "{}", updates.len());
    let last = updates.last().unwrap().content[0].as_text().unwrap();
    assert!(last.starts_with("1\n2\n"));
}

#[tokio::test]
async fn long_output_shows_its_end_and_names_the_file() {
    // host.md 4.3.6
    let world = World::new();
    let outcome = run(&world, "seq 1 5000").await;
    let text = outcome.joined_text();
    assert!(text.starts_with("3001\n") && text.contains("\n5000\n\n[Lines 3001-5000 of 5000"));
    let details = outcome.details.unwrap().value();
    let path = details["fullOutputPath"].as_str().unwrap();
    assert!(text.contains(path));
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 5000);
    assert_eq!(details["truncation"]["truncatedBy"], "lines");
}

#[tokio::test]
async fn many_commands_do_not_pile_up_in_the_list() {
    // C085
    let world = World::new();
    for _ in 0..100 {
        run(&world, "true").await;
    }
    assert!(world.host.commands.listed() < 100);
}

#[derive(Default)]
struct Told(std::sync::Mutex<Vec<(bool, i32, String)>>);

impl crate::host::GroupGuard for Told {
    fn started(&self, group: i32, marker: &str) {
        let mut told = self.0.lock().unwrap();
        told.push((true, group, marker.to_owned()));
    }

    fn ended(&self, group: i32, marker: &str) {
        let mut told = self.0.lock().unwrap();
        told.push((false, group, marker.to_owned()));
    }

    fn finish(&self) {
        self.0.lock().unwrap().push((false, 0, "finished".to_owned()));
    }
}

#[tokio::test]
async fn a_guard_knows_every_command_until_nothing_of_it_is_left() {
    // product.md P-14b
    let guard = std::sync::Arc::new(Told::default());
    let world = World::guarded(guard.clone());
    run(&world, "setsid sleep 92.81 & true").await;
    let told = guard.0.lock().unwrap().clone();
    assert_eq!(told.len(), 1, "something is left: {told:?}");
    let (_, group, marker) = told[0].clone();
    assert!(marker.starts_with(world.host.marker()) && group > 1);
    world.host.end_session(&"s".into()).await;
    assert_eq!(guard.0.lock().unwrap()[1..], [(false, group, marker)]);
    // Whoever still holds the host, its helper is gone when all was ended.
    let host = std::sync::Arc::clone(&world.host);
    tokio::task::spawn_blocking(move || host.kill_all()).await.unwrap();
    let told = guard.0.lock().unwrap().clone();
    assert_eq!(told[2..], [(false, 0, "finished".to_owned())]);
}

#[tokio::test]
async fn all_commands_of_a_host_can_be_ended_by_its_marker_alone() {
    // product.md P-14b: what a guard does after the death of the host
    let world = World::new();
    run(&world, "setsid sleep 91.17 & sleep 91.17 & true").await;
    let target = crate::Target::marked(world.host.marker());
    let work = move || crate::kill_marked(&[target]);
    tokio::task::spawn_blocking(work).await.unwrap();
    assert!(soon(|| living("sleep 91.17") == 0));
}
