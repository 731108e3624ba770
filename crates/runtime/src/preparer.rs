//! Prepares sessions outside the loop, few at a time, so that a fan-out of
//! children neither fills the machine with threads nor delays the request of
//! their owner (`product.md` 5).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crew_base::limits::PREPARATIONS_MAX;
use tokio_util::task::TaskTracker;

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait, and how many threads work on them.
#[derive(Clone, Default)]
pub(crate) struct Preparer {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    workers: usize,
}

impl Preparer {
    /// Adds a job; it starts with the next [`Preparer::start`].
    pub(crate) fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
    }

    /// Adds a job before all that wait.
    pub(crate) fn push_first(&self, job: Job) {
        self.lock().jobs.push_front(job);
    }

    /// Puts as many threads to work as are useful and allowed.
    pub(crate) fn start(&self, tracker: &TaskTracker) {
        let missing = {
            let mut queue = self.lock();
            let wanted = (queue.workers + queue.jobs.len()).min(PREPARATIONS_MAX);
            let missing = wanted.saturating_sub(queue.workers);
            queue.workers += missing;
            missing
        };
        for _ in 0..missing {
            let preparer = self.clone();
            tracker.spawn_blocking(move || preparer.work());
        }
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // Every job sends its own ending, also when it panics.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// The next job; without one the calling thread counts no more.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.workers -= 1;
        }
        job
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_jobs_run_few_at_a_time_and_a_panic_stops_none() {
        let (preparer, tracker) = (Preparer::default(), TaskTracker::new());
        let (running, most, done): (Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>) =
            Default::default();
        for at in 0..50 {
            let (running, most, done) = (running.clone(), most.clone(), done.clone());
            preparer.push(Box::new(move || {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                assert_ne!(at, 7, "a job may fail");
            }));
            preparer.start(&tracker);
        }
        tracker.close();
        tracker.wait().await;
        assert_eq!(done.load(Ordering::SeqCst), 50);
        assert!(most.load(Ordering::SeqCst) <= PREPARATIONS_MAX);
        assert_eq!(preparer.lock().workers, 0);
    }
}
