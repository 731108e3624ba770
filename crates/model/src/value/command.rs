//! Runs the command of a value: its own process group, a time limit, nothing
//! but standard output.
//!
//! Must never leave a process behind, nor hold output beyond its limit.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crew_base::limits::{VALUE_COMMAND_MS_MAX, VALUE_OUTPUT_BYTES_MAX};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::ValueError;

/// The trimmed output of a shell command (`host.md` 1.6.1). `variables` are
/// added to the inherited environment.
pub(super) async fn run(
    command: &str,
    variables: &BTreeMap<String, String>,
) -> Result<String, ValueError> {
    run_within(command, variables, VALUE_COMMAND_MS_MAX).await
}

async fn run_within(
    command: &str,
    variables: &BTreeMap<String, String>,
    limit_ms: u64,
) -> Result<String, ValueError> {
    let io =
        |source| ValueError::CommandIo { command: command.to_owned(), source: Arc::new(source) };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).envs(variables);
    shell.stdin(Stdio::null()).stderr(Stdio::null());
    shell.stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = shell.spawn().map_err(io)?;
    let _group = Group::of(&child);
    let limit = Duration::from_millis(limit_ms);
    let (code, output) = timeout(limit, collect(&mut child))
        .await
        .map_err(|_| ValueError::CommandTimeout { command: command.to_owned(), limit_ms })?
        .map_err(io)?;
    judge(command, code, output)
}

fn judge(command: &str, code: Option<i32>, output: Vec<u8>) -> Result<String, ValueError> {
    let command = command.to_owned();
    let bytes_max = VALUE_OUTPUT_BYTES_MAX;
    // Before the status: a command that writes on is ended by the closed pipe.
    if output.len() > bytes_max {
        return Err(ValueError::CommandUnusable { command, bytes_max });
    }
    if code != Some(0) {
        return Err(ValueError::CommandFailed { command, code });
    }
    let Ok(text) = String::from_utf8(output) else {
        return Err(ValueError::CommandUnusable { command, bytes_max });
    };
    match text.trim() {
        "" => Err(ValueError::CommandSilent { command }),
        value => Ok(value.to_owned()),
    }
}

/// Exit code and output. The end of the shell counts, not that of the pipe: a
/// background child may hold the pipe open for ever.
async fn collect(child: &mut Child) -> std::io::Result<(Option<i32>, Vec<u8>)> {
    const DRAIN_MS: u64 = 100;
    let mut pipe = child.stdout.take();
    let mut output = Vec::new();
    let status = tokio::select! {
        status = child.wait() => status?,
        () = drain(&mut pipe, &mut output) => child.wait().await?,
    };
    // What the shell wrote before it ended is in the pipe now.
    let deadline = Instant::now() + Duration::from_millis(DRAIN_MS);
    tokio::select! {
        () = drain(&mut pipe, &mut output) => {}
        () = sleep_until(deadline) => {}
    }
    Ok((status.code(), output))
}

/// Reads to the end of the pipe, or to one byte more than a value may hold;
/// the pipe is gone then. Keeps what it read when it is cancelled.
async fn drain(pipe: &mut Option<impl AsyncRead + Unpin>, output: &mut Vec<u8>) {
    while let Some(open) = pipe.as_mut() {
        let read = open.read_buf(output).await;
        if !matches!(read, Ok(1..)) || output.len() > VALUE_OUTPUT_BYTES_MAX {
            *pipe = None;
        }
    }
}

/// Kills what is left of the command's process group when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group(id.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It fails when nobody is left, which is the usual case.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn outcome(command: &str) -> Result<String, ValueError> {
        run(command, &BTreeMap::new()).await
    }

    #[tokio::test]
    async fn the_trimmed_output_is_the_value() {
        // host.md 1.6.1.
        assert_eq!(outcome("printf '  k1\\n'; echo noise >&2").await.unwrap(), "k1");
        assert_eq!(
            outcome("cat").await.unwrap_err().to_string(),
            "the command `cat` printed nothing"
        );
        let variables = BTreeMap::from([("MINE".to_owned(), "v".to_owned())]);
        assert_eq!(run("printf \"$MINE\"", &variables).await.unwrap(), "v");
    }

    #[tokio::test]
    async fn a_failure_names_the_command_and_hides_its_output() {
        let check = async |command: &str, expected: &str| {
            let message = outcome(command).await.unwrap_err().to_string();
            assert!(message.contains(command) && message.contains(expected), "{message}");
        };
        check("printf s$((1+1))cret; exit 3", "status 3").await;
        check("kill -9 $$", "a signal").await;
        check("true", "printed nothing").await;
        check("head -c 70000 /dev/zero | tr '\\0' x", "no usable text").await;
        check("printf '\\377'", "no usable text").await;
        let message = outcome("printf s$((1+1))cret; exit 3").await.unwrap_err();
        assert!(!format!("{message} {message:?}").contains("s2cret"));
    }

    #[tokio::test]
    async fn a_background_child_holding_the_pipe_does_not_hang_the_value() {
        let started = std::time::Instant::now();
        assert_eq!(outcome("sleep 30 & printf k2").await.unwrap(), "k2");
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_slow_command_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = sleeper(&file);
        let error = run_within(&command, &BTreeMap::new(), 700).await;
        let error = error.unwrap_err();
        assert!(matches!(error, ValueError::CommandTimeout { limit_ms: 700, .. }), "{error}");
        wait_until_dead(&file).await;
    }

    #[tokio::test]
    async fn dropping_the_future_kills_the_command_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = sleeper(&file);
        let started = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            outcome = outcome(&command) => panic!("it ended by itself: {outcome:?}"),
            () = started => {}
        }
        wait_until_dead(&file).await;
    }

    /// A command whose child writes its process id to a file and sleeps.
    fn sleeper(file: &std::path::Path) -> String {
        let file = file.display();
        format!("sh -c 'echo $$ > {file}.new && mv {file}.new {file}; exec sleep 30' & wait")
    }

    async fn wait_until_dead(file: &std::path::Path) {
        let id: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let id = Pid::from_raw(id).unwrap();
        let gone = async {
            while !is_dead(id) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let gone = timeout(Duration::from_secs(5), gone).await;
        gone.expect("the child of the command dies");
    }

    /// A killed orphan stays visible until its new parent reaps it.
    fn is_dead(id: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero()));
        let zombie = stat.is_ok_and(|stat| stat.contains(") Z"));
        zombie || rustix::process::test_kill_process(id).is_err()
    }
}
