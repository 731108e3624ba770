//! Background commands of a `task` child (`task.md` OBS-8): the same process
//! core as the tool `bash`, with an exit code instead of words.
//!
//! Must never outlive its session: it ends with the session's commands.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use crew_base::id::SessionId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::output::Output;
use super::{Cause, Sink, Spec, run};
use crate::context::ShellConfig;
use crate::host::Host;

/// What to run.
#[derive(Clone)]
pub struct Background {
    /// The session it belongs to and ends with.
    pub session: SessionId,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// The command line.
    pub command: String,
    /// How it is started.
    pub shell: ShellConfig,
    /// Variables of `host.md` 1.2.6.
    pub env: Vec<(String, String)>,
    /// Ends it.
    pub cancel: CancellationToken,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundOutcome {
    /// `None` when it was killed or could not be started.
    pub exit_code: Option<i64>,
    /// What it printed, cut as `host.md` 4.3.6 says; the reason when it could
    /// not be started.
    pub output: String,
}

impl Host {
    /// Runs a background command to its end.
    pub async fn run_background(self: &Arc<Self>, command: Background) -> BackgroundOutcome {
        let mut kept = Kept(Output::new(&self.tmp));
        let spec = Spec {
            session: command.session.clone(),
            cwd: command.cwd,
            command: command.command,
            shell: command.shell,
            env: command.env,
            time_max: None,
            cancel: command.cancel,
        };
        let span = self.command_started(&command.session).await;
        let ended = run(self, spec, &mut kept).await;
        span.end().await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                return BackgroundOutcome { exit_code: None, output: error.to_string() };
            }
        };
        let view = kept.0.finish().await;
        let mut output = view.content.clone();
        if let Some(note) = kept.0.note(&view) {
            output.push_str(if output.ends_with('\n') { "\n" } else { "\n\n" });
            output.push_str(&note);
        }
        let code = ended.exit.map(|(code, _)| code).filter(|_| ended.cause == Cause::Exit);
        BackgroundOutcome { exit_code: code, output }
    }
}

/// Shows nothing while the command runs.
struct Kept(Output);

impl Sink for Kept {
    fn chunk<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.0.push(bytes))
    }

    fn wake(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn background(world: &World, command: &str) -> Background {
        Background {
            session: "s".into(),
            cwd: world.cwd(),
            command: command.to_owned(),
            shell: ShellConfig::default(),
            env: vec![("NAME_OF_TEST".to_owned(), "value".to_owned())],
            cancel: world.cancel.clone(),
        }
    }

    // OBS-8.
    #[tokio::test]
    async fn the_code_and_the_output_are_kept_apart() {
        let world = World::new();
        let check = async |command: &str, code: i64, output: &str| {
            let outcome = world.host.run_background(background(&world, command)).await;
            let expected = BackgroundOutcome { exit_code: Some(code), output: output.to_owned() };
            assert_eq!(outcome, expected, "{command}");
        };
        check("echo out; echo err >&2; exit 3", 3, "out\nerr\n").await;
        check("echo $NAME_OF_TEST", 0, "value\n").await;
        check("true", 0, "").await;
    }

    // OBS-8, host.md 4.3.6.
    #[tokio::test]
    async fn long_output_is_cut_and_the_rest_is_named() {
        let world = World::new();
        let outcome = world.host.run_background(background(&world, "seq 1 3000")).await;
        assert!(outcome.output.starts_with("1001\n"), "{}", &outcome.output[..40]);
        assert!(outcome.output.contains("crew-bash-"), "{outcome:?}");
    }

    // SESS-11, product.md P-14f.
    #[tokio::test]
    async fn it_ends_with_its_session() {
        let world = World::new();
        let host = Arc::clone(&world.host);
        let job = background(&world, "touch started; sleep 61.73");
        let running = tokio::spawn(async move { host.run_background(job).await });
        let started = world.cwd().join("started");
        while !started.exists() {
            tokio::task::yield_now().await;
        }
        world.host.end_session(&"s".into()).await;
        assert_ne!(running.await.unwrap().exit_code, Some(0));
    }
}
