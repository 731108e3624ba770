//! Starts one shell command and follows it to its end: time limit, abort,
//! output, background children (`host.md` 4.3.1 to 4.3.5).
//!
//! Must never return while the command still runs. Read `sweep` for how
//! processes are found and ended, `commands` for what is remembered of them,
//! `output` for what is kept, `user` for the person's own commands.

pub(crate) mod background;
pub(crate) mod commands;
mod environment;
pub(crate) mod output;
mod plain;
pub(crate) mod sweep;
pub(crate) mod user;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crew_base::id::SessionId;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::context::ShellConfig;
use crate::error::Error;
use crate::host::Host;

/// Silence after which background children no longer hold up the result.
const QUIET: Duration = Duration::from_millis(100);
/// How long output is still read and the shell waited for after a kill.
const AFTER_KILL_MAX: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 * 1024;
/// A wait that never ends in practice.
const FAR: Duration = Duration::from_secs(365 * 86_400);

/// What to run.
pub(crate) struct Spec {
    pub(crate) session: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) command: String,
    pub(crate) shell: ShellConfig,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) time_max: Option<Duration>,
    pub(crate) cancel: CancellationToken,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What ended it.
    pub(crate) cause: Cause,
    /// The shell's own exit code, and how long after the start it came;
    /// `None` when it was killed.
    pub(crate) exit: Option<(i64, Duration)>,
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It ended by itself.
    Exit,
    /// Its time was over.
    TimeOut,
    /// It was cancelled.
    Abort,
}

/// Takes the output of a running command.
pub(crate) trait Sink: Send {
    /// The next bytes, in arrival order.
    fn chunk<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
    /// When `tick` wants to be called, if at all.
    fn wake(&self) -> Option<Instant>;
    /// The moment of `wake` has come.
    fn tick(&mut self);
}

/// Runs a command to its end. When the returned future is dropped, every
/// process of the command is killed first.
pub(crate) async fn run(host: &Arc<Host>, spec: Spec, sink: &mut dyn Sink) -> Result<Ended, Error> {
    if spec.cancel.is_cancelled() {
        return Err(Error::Aborted);
    }
    if !spec.cwd.is_dir() {
        return Err(Error::NoWorkingDirectory { path: spec.cwd.display().to_string() });
    }
    let marker = host.commands.begin(&spec.session).ok_or(Error::Closed)?;
    let kill_on_drop = KillOnDrop { host: Arc::clone(host), marker: marker.clone(), armed: true };
    let (child, pipe) = start(&spec, &marker)?;
    let group = child.id().map_or(0, u32::cast_signed);
    if !host.commands.started(&marker, group) {
        let target = sweep::Target {
            group: Some(group),
            leader_held: true,
            ..sweep::Target::marked(marker)
        };
        let _ = tokio::task::spawn_blocking(move || sweep::kill_marked(&[target])).await;
        return Err(Error::Closed);
    }
    let mut running = Running {
        host,
        marker,
        group,
        child,
        pipe: Some(pipe),
        started: Instant::now(),
        exit: None,
        quiet_from: Instant::now(),
    };
    let cause = running.follow(&spec, sink).await;
    match cause {
        Cause::Exit => running.leave().await,
        Cause::TimeOut | Cause::Abort => running.kill(sink).await,
    }
    kill_on_drop.disarm();
    Ok(Ended { cause, exit: running.exit })
}

/// Ends the command when its future goes away, also by a panic.
struct KillOnDrop {
    host: Arc<Host>,
    marker: String,
    armed: bool,
}

impl KillOnDrop {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.host.commands.kill(&self.marker);
        }
    }
}

fn start(spec: &Spec, marker: &str) -> Result<(Child, Receiver), Error> {
    let mut missing = io::Error::from(io::ErrorKind::NotFound);
    for shell in environment::shells(&spec.shell)? {
        match start_with(shell, spec, marker) {
            Ok(started) => return Ok(started),
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing = error,
            Err(source) => return Err(Error::Start { source }),
        }
    }
    Err(Error::Start { source: missing })
}

fn start_with(shell: PathBuf, spec: &Spec, marker: &str) -> io::Result<(Child, Receiver)> {
    // One pipe for both streams keeps the order in which they were written.
    let (reader, writer) = io::pipe()?;
    let mut process = Command::new(shell);
    process
        .arg("-c")
        .arg(environment::script(&spec.shell, &spec.command))
        .current_dir(&spec.cwd)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    environment::apply(&mut process, &spec.shell, &spec.env, marker);
    let child = process.spawn()?;
    // Our copies of the writing end go with `process`, or the end would never
    // be seen.
    drop(process);
    Ok((child, Receiver::from_owned_fd(OwnedFd::from(reader))?))
}

struct Running<'a> {
    host: &'a Arc<Host>,
    marker: String,
    group: i32,
    child: Child,
    /// `None` after its end.
    pipe: Option<Receiver>,
    started: Instant,
    exit: Option<(i64, Duration)>,
    quiet_from: Instant,
}

enum Happened {
    Data(io::Result<usize>),
    Exited(io::Result<ExitStatus>),
    Quiet,
    Tick,
}

impl Running<'_> {
    async fn follow(&mut self, spec: &Spec, sink: &mut dyn Sink) -> Cause {
        let deadline = self.started + spec.time_max.unwrap_or(FAR);
        let mut buffer = vec![0; CHUNK_BYTES];
        while self.exit.is_none() || self.pipe.is_some() {
            let happened = tokio::select! {
                biased;
                () = spec.cancel.cancelled() => return Cause::Abort,
                () = sleep_until(deadline) => return Cause::TimeOut,
                happened = self.next(&mut buffer, sink.wake()) => happened,
            };
            match happened {
                Happened::Quiet => return Cause::Exit,
                Happened::Tick => sink.tick(),
                Happened::Data(_) | Happened::Exited(_) => {
                    self.take(happened, &buffer, sink).await;
                }
            }
        }
        Cause::Exit
    }

    async fn next(&mut self, buffer: &mut [u8], wake: Option<Instant>) -> Happened {
        let exited = self.exit.is_some();
        let has_pipe = self.pipe.is_some();
        let pipe = &mut self.pipe;
        tokio::select! {
            biased;
            status = self.child.wait(), if !exited => Happened::Exited(status),
            data = read(pipe, buffer), if has_pipe => Happened::Data(data),
            () = sleep_until(self.quiet_from + QUIET), if exited => Happened::Quiet,
            () = sleep_until(wake.unwrap_or(self.started + FAR)), if wake.is_some() => Happened::Tick,
        }
    }

    async fn take(&mut self, happened: Happened, buffer: &[u8], sink: &mut dyn Sink) {
        match happened {
            Happened::Data(Ok(bytes)) if bytes > 0 => sink.chunk(&buffer[..bytes]).await,
            Happened::Data(_) => self.pipe = None,
            Happened::Exited(status) => {
                let code = status.map_or(-1, code_of);
                self.exit = Some((code, self.started.elapsed()));
                self.note_end().await;
            }
            Happened::Quiet | Happened::Tick => {}
        }
        self.quiet_from = Instant::now();
    }

    async fn note_end(&self) {
        let (host, marker) = (Arc::clone(self.host), self.marker.clone());
        let group = self.group;
        if sweep::group_lives(group) {
            let work = move || host.commands.ended(&marker, group);
            // Looking cannot fail in a way that matters here.
            let _ = tokio::task::spawn_blocking(work).await;
        } else {
            host.commands.ended(&marker, group);
        }
    }

    /// The command is over; what it left in the background may live on.
    async fn leave(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.host.drain(pipe);
        }
        if self.host.commands.check_is_due() {
            let host = Arc::clone(self.host);
            let _ = tokio::task::spawn_blocking(move || host.commands.check()).await;
        }
    }

    /// Ends all processes and takes what they had still written.
    async fn kill(&mut self, sink: &mut dyn Sink) {
        let (host, marker) = (Arc::clone(self.host), self.marker.clone());
        let _ = tokio::task::spawn_blocking(move || host.commands.kill(&marker)).await;
        let deadline = Instant::now() + AFTER_KILL_MAX;
        self.quiet_from = Instant::now();
        if self.exit.is_none() {
            let _ = timeout_at(deadline, self.child.wait()).await;
        }
        let mut buffer = vec![0; CHUNK_BYTES];
        while self.pipe.is_some() {
            let end = deadline.min(self.quiet_from + QUIET);
            let Ok(data) = timeout_at(end, read(&mut self.pipe, &mut buffer)).await else {
                return;
            };
            self.take(Happened::Data(data), &buffer, sink).await;
        }
    }
}

async fn read(pipe: &mut Option<Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => Ok(0),
    }
}

/// 128 + signal for an exit by signal (`host.md` 4.3.5).
fn code_of(status: ExitStatus) -> i64 {
    let signal = status.signal().map(|signal| 128 + i64::from(signal));
    signal.or(status.code().map(i64::from)).unwrap_or(-1)
}
