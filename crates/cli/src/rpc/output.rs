//! The one way to standard output: lines in the order they were put, written
//! by a thread of its own, so that a client that does not read slows what is
//! written and nothing else (`host.md` 7.1.5).

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crew_base::limits::{RPC_BYTES_OUT_MAX, RPC_LINES_OUT_MAX, RPC_RESPONSES_OUT_MAX};
use tokio::sync::{mpsc, oneshot};

use crate::output::Product;

/// Lines handed to the thread ahead of the one being written.
const LINES_HANDED_MAX: usize = 16;

/// Lines that wait for the writer.
#[derive(Default)]
pub(super) struct Outbox {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Outbox {
    /// Puts a line with its line feed behind all others.
    pub(super) fn put(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
    }

    /// Takes the oldest line.
    pub(super) fn take(&mut self) -> Option<String> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether the session is to be slowed.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= RPC_LINES_OUT_MAX || self.bytes >= RPC_BYTES_OUT_MAX
    }

    /// Whether no more commands are taken: a client that writes and never
    /// reads fills no memory.
    pub(super) fn is_overfull(&self) -> bool {
        self.lines.len() >= RPC_RESPONSES_OUT_MAX
    }
}

/// The writing thread.
pub(super) struct Writer {
    lines: mpsc::Sender<String>,
    ended: oneshot::Receiver<()>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Writer> {
        let (lines, receiver) = mpsc::channel(LINES_HANDED_MAX);
        let (end, ended) = oneshot::channel();
        let failure: Arc<Mutex<Option<io::Error>>> = Arc::default();
        let told = Arc::clone(&failure);
        std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            if let Err(error) = write(receiver) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            // Nobody waits for it when the program ends without.
            let _ = end.send(());
        })?;
        Ok(Writer { lines, ended, failure })
    }

    /// Room for one line; `None` once nothing can be written any more.
    pub(super) async fn room(&self) -> Option<mpsc::Permit<'_, String>> {
        self.lines.reserve().await.ok()
    }

    /// Waits until all that was handed over is written.
    pub(super) async fn finish(self) -> io::Result<()> {
        drop(self.lines);
        // The thread tells of its end in every case but a panic.
        let _ = self.ended.await;
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

fn write(mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    let mut product = Product::new();
    while let Some(line) = lines.blocking_recv() {
        product.write(&line)?;
        while let Ok(line) = lines.try_recv() {
            product.write(&line)?;
        }
        product.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outbox_keeps_order_and_counts_what_waits() {
        let mut outbox = Outbox::default();
        outbox.put("a\n".to_owned());
        outbox.put("x".repeat(RPC_BYTES_OUT_MAX));
        assert!(outbox.is_full() && !outbox.is_overfull());
        assert_eq!(outbox.take().as_deref(), Some("a\n"));
        assert!(outbox.take().is_some());
        assert!(outbox.is_empty() && !outbox.is_full());
        (0..RPC_LINES_OUT_MAX).for_each(|_| outbox.put("y".to_owned()));
        assert!(outbox.is_full() && !outbox.is_overfull());
        (0..RPC_RESPONSES_OUT_MAX).for_each(|_| outbox.put("y".to_owned()));
        assert!(outbox.is_overfull());
    }
}
