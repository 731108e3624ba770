//! Commands that a person runs (`!`, RPC `bash`; `host.md` 4.3.9). The same
//! process core as the tool, plain text out, no model involved.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use crew_base::id::SessionId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::output::Output;
use super::plain::Plain;
use super::{Cause, Sink, Spec, run};
use crate::context::ShellConfig;
use crate::error::Error;
use crate::host::Host;

/// Takes plain output as it comes.
pub type ChunkSink = Arc<dyn Fn(&str) + Send + Sync>;

/// What to run.
#[derive(Clone)]
pub struct UserCommand {
    /// The session it belongs to; what it leaves behind ends with it.
    pub session: SessionId,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// As typed.
    pub command: String,
    /// How it is started.
    pub shell: ShellConfig,
    /// Ends it.
    pub cancel: CancellationToken,
}

/// How it went (`host.md` 2.7.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommandOutcome {
    /// Plain output, cut at the tail limits.
    pub output: String,
    /// `None` when it was cancelled.
    pub exit_code: Option<i64>,
    /// The person stopped it.
    pub cancelled: bool,
    /// Whether `output` is not all.
    pub truncated: bool,
    /// Where all of it stands.
    pub full_output_path: Option<String>,
}

impl Host {
    /// Runs a person's command (`host.md` 4.3.9). A cancelled one is an outcome
    /// with what it had written; an error means that it did not start.
    pub async fn run_user_command(
        self: &Arc<Self>,
        command: UserCommand,
        on_chunk: ChunkSink,
    ) -> Result<UserCommandOutcome, Error> {
        let mut sink =
            PlainSink { plain: Plain::default(), output: Output::new(&self.tmp), on_chunk };
        let spec = Spec {
            session: command.session.clone(),
            cwd: command.cwd,
            command: command.command,
            shell: command.shell,
            env: Vec::new(),
            time_max: None,
            cancel: command.cancel,
        };
        let span = self.command_started(&command.session).await;
        let ended = run(self, spec, &mut sink).await;
        span.end().await;
        let exit = match ended {
            Ok(ended) => ended,
            Err(Error::Aborted) => return Ok(cancelled_before_the_start()),
            Err(error) => return Err(error),
        };
        let rest = sink.plain.finish();
        sink.put(&rest).await;
        let view = sink.output.finish().await;
        let cancelled = exit.cause == Cause::Abort;
        Ok(UserCommandOutcome {
            truncated: view.is_cut(),
            output: view.content,
            exit_code: exit.exit.map(|(code, _)| code).filter(|_| !cancelled),
            cancelled,
            full_output_path: sink.output.full_path(),
        })
    }
}

fn cancelled_before_the_start() -> UserCommandOutcome {
    UserCommandOutcome {
        output: String::new(),
        exit_code: None,
        cancelled: true,
        truncated: false,
        full_output_path: None,
    }
}

struct PlainSink {
    plain: Plain,
    output: Output,
    on_chunk: ChunkSink,
}

impl PlainSink {
    async fn put(&mut self, text: &str) {
        if !text.is_empty() {
            (self.on_chunk)(text);
            self.output.push(text.as_bytes()).await;
        }
    }
}

impl Sink for PlainSink {
    fn chunk<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let text = self.plain.push(bytes);
        Box::pin(async move { self.put(&text).await })
    }

    fn wake(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::testing::World;

    async fn run_in(world: &World, command: &str) -> (UserCommandOutcome, String) {
        let chunks = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&chunks);
        let command = UserCommand {
            session: "s".into(),
            cwd: world.cwd(),
            command: command.to_owned(),
            shell: ShellConfig::default(),
            cancel: world.cancel.clone(),
        };
        let on_chunk: ChunkSink = Arc::new(move |text| seen.lock().unwrap().push_str(text));
        let outcome = world.host.run_user_command(command, on_chunk).await.unwrap();
        let chunks = chunks.lock().unwrap().clone();
        (outcome, chunks)
    }

    #[tokio::test]
    async fn output_is_plain_text_and_the_code_is_kept() {
        // host.md 4.3.9
        let world = World::new();
        let command = r"printf '\033[31mred\033[0m\r\n'; echo e >&2; exit 3";
        let (outcome, chunks) = run_in(&world, command).await;
        assert_eq!(outcome.output, "red\ne\n");
        assert_eq!((outcome.exit_code, outcome.cancelled), (Some(3), false));
        assert_eq!(chunks, outcome.output);
    }

    #[tokio::test]
    async fn session_variables_are_not_set() {
        // host.md 1.2.6
        let world = World::new();
        let (outcome, _) = run_in(&world, "echo \"[$PI_SESSION_ID$CREW_SESSION_ID]\"").await;
        assert_eq!(outcome.output, "[]\n");
    }

    #[tokio::test]
    async fn a_cancelled_command_gives_its_output_and_no_code() {
        let world = World::new();
        let cancel = world.cancel.clone();
        let command = UserCommand {
            session: "s".into(),
            cwd: world.cwd(),
            command: "echo early; sleep 61.7".to_owned(),
            shell: ShellConfig::default(),
            cancel: cancel.clone(),
        };
        let on_chunk: ChunkSink = Arc::new(move |_| cancel.cancel());
        let outcome = world.host.run_user_command(command, on_chunk).await.unwrap();
        assert_eq!(outcome.output, "early\n");
        assert_eq!((outcome.exit_code, outcome.cancelled), (None, true));
        let (outcome, _) = run_in(&world, "echo never").await;
        assert!(outcome.cancelled && outcome.output.is_empty());
    }

    #[tokio::test]
    async fn long_output_is_cut_and_kept_in_full() {
        let world = World::new();
        let (outcome, _) = run_in(&world, "seq 1 3000").await;
        assert!(outcome.truncated && outcome.output.starts_with("1001\n"));
        let path = outcome.full_output_path.unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 3000);
    }
}
