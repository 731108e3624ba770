//! One queue per file for `edit` and `write`, shared by all sessions of the
//! process (`host.md` 3.3.11). Invariant: whoever holds a [`Slot`] holds it
//! until its file work has really finished, so the slot moves into the
//! blocking task and not beside it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The right to change one file.
pub(crate) type Slot = OwnedMutexGuard<()>;

/// All queues, by real path.
#[derive(Default)]
pub(crate) struct Slots {
    queues: Mutex<HashMap<PathBuf, Weak<AsyncMutex<()>>>>,
}

impl Slots {
    /// Waits for the turn at a file, first come first served.
    pub(crate) async fn take(&self, real: &Path) -> Slot {
        let queue = self.queue(real);
        queue.lock_owned().await
    }

    fn queue(&self, real: &Path) -> Arc<AsyncMutex<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(real).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(AsyncMutex::new(()));
        queues.insert(real.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_file_has_one_holder_and_other_files_are_free() {
        let slots = Slots::default();
        let held = slots.take(Path::new("/a")).await;
        let _other = slots.take(Path::new("/b")).await;
        let mut waiting = Box::pin(slots.take(Path::new("/a")));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("two holders"),
            () = tokio::task::yield_now() => {}
        }
        drop(held);
        waiting.await;
        assert!(slots.queues.lock().unwrap().len() <= 2);
    }
}
