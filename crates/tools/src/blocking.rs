//! Runs file work off the async threads, with a way to stop it.

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How long a cancelled piece of work may take to notice.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Pieces of work that start at once. A burst of short ones, such as a hundred
/// children that read a file, is done by few threads one after the other,
/// since each thread costs memory.
static FEW: Semaphore = Semaphore::const_new(8);
/// How long a piece waits for those before it: they may be held up for long by
/// what they read.
const PATIENCE: Duration = Duration::from_millis(10);

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
    let place = tokio::select! {
        place = tokio::time::timeout(PATIENCE, FEW.acquire()) => place.ok().and_then(Result::ok),
        () = cancel.cancelled() => return Err(Error::Aborted),
    };
    let mut task = tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&stop)
    });
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
    async fn long_pieces_of_work_hold_up_no_other() {
        // tools that read a silent pipe
        let (done, waits) = std::sync::mpsc::channel::<()>();
        let waits = std::sync::Arc::new(std::sync::Mutex::new(waits));
        let held: Vec<_> = (0..FEW.available_permits() + 2)
            .map(|_| {
                let waits = waits.clone();
                tokio::spawn(async move {
                    let work = move |_: &Stop| {
                        drop(waits.lock().map(|waits| waits.recv()));
                        Ok(())
                    };
                    run(&CancellationToken::new(), work).await.is_ok()
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(run(&CancellationToken::new(), |_| Ok(7)).await.ok(), Some(7));
        drop(done);
        for task in held {
            assert!(task.await.unwrap());
        }
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
