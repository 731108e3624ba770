//! Runs file work off the async threads, with a way to stop it.

use std::time::Duration;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How long a cancelled piece of work may take to notice.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Told to work on a blocking thread: whether it should end.
pub(crate) struct Stop(CancellationToken);

impl Stop {
    /// Fails once the call was cancelled.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.is_cancelled() { Err(Error::Aborted) } else { Ok(()) }
    }

    #[cfg(test)]
    pub(crate) fn never() -> Stop {
        Stop(CancellationToken::new())
    }
}

/// Runs `work` on a blocking thread. When `cancel` fires, or the returned
/// future is dropped, `work` is told to stop; what it finished all the same
/// within a short grace is returned as it is, because it did happen.
pub(crate) async fn run<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    if cancel.is_cancelled() {
        return Err(Error::Aborted);
    }
    let token = cancel.child_token();
    let stop = Stop(token.clone());
    let _ends_with_this_future = token.clone().drop_guard();
    let mut task = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        done = &mut task => flatten(done),
        () = cancel.cancelled() => match tokio::time::timeout(STOP_GRACE, &mut task).await {
            Ok(done) => flatten(done),
            Err(_) => Err(Error::Aborted),
        },
    }
}

fn flatten<T>(done: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    done.unwrap_or(Err(Error::Internal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_the_work_is_an_error() {
        let work = |_: &Stop| -> Result<(), Error> { panic!("on purpose") };
        let result = run(&CancellationToken::new(), work).await;
        assert!(matches!(result, Err(Error::Internal)));
    }

    #[tokio::test]
    async fn cancelling_stops_the_work_soon() {
        // host.md 4.1.8
        let cancel = CancellationToken::new();
        let canceller = cancel.clone();
        let work = move |stop: &Stop| -> Result<(), Error> {
            canceller.cancel();
            loop {
                stop.check()?;
                std::thread::yield_now();
            }
        };
        assert!(matches!(run(&cancel, work).await, Err(Error::Aborted)));
    }
}
