//! Signals that end the program (`host.md` 6.1.8, `product.md` P-8): the first
//! ends it in order, the second at once, and so does an orderly end that takes
//! too long. No command survives in either case.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crew_base::limits::SHUTDOWN_GRACE_MS;
use crew_tools::Host;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Which signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The terminal is gone.
    HangUp,
}

impl Stop {
    /// The exit code.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Stop::Interrupt => 130,
            Stop::Terminate => 143,
            Stop::HangUp => 129,
        }
    }
}

/// An orderly end waits for tools and streams, then for processes; beyond that
/// something holds it up, such as a reader that does not read.
const ORDERLY_MAX: Duration = Duration::from_millis(3 * SHUTDOWN_GRACE_MS);

/// The first signal.
pub(crate) struct Signals {
    first: mpsc::Receiver<Stop>,
}

impl Signals {
    /// Listens from now on; must be called inside the runtime.
    pub(crate) fn listen(host: Arc<Host>) -> io::Result<Signals> {
        let mut sources = Sources {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        };
        let (sender, first) = mpsc::channel(1);
        // Whoever drops the host last waits for what ends with it, so not here.
        let host = Arc::downgrade(&host);
        tokio::spawn(async move {
            let stop = sources.next().await;
            // Without a receiver the run is over and the process about to exit.
            let _ = sender.try_send(stop);
            let last = tokio::time::timeout(ORDERLY_MAX, sources.next()).await;
            let code = last.unwrap_or(stop).exit_code();
            let kill = move || host.upgrade().iter().for_each(|host| host.kill_all());
            let _ = tokio::task::spawn_blocking(kill).await;
            std::process::exit(i32::from(code));
        });
        Ok(Signals { first })
    }

    /// The first signal; `None` when there will be none.
    pub(crate) async fn next(&mut self) -> Option<Stop> {
        self.first.recv().await
    }
}

struct Sources {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Sources {
    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.hang_up.recv() => Stop::HangUp,
        }
    }
}
