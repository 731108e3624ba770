//! The thread that gives code its colours (`terminal.md` TERM-53).
//!
//! It starts with the first line of code and ends with the face. Must never be
//! waited for, neither by a frame nor at the end: a line whose colours do not
//! come in time is printed plain.

use std::sync::mpsc::{Receiver, Sender, channel};

use crew_tui::highlight::{Ask, Coloured, Highlighter};
use crew_tui::request::Reply;
use tokio::sync::mpsc::UnboundedSender;

use super::face::Done;

/// Bytes of code after which the colours so far are told: some 5 ms of work.
const TOLD_BYTES: usize = 2 * 1024;

/// The way to the thread.
#[derive(Default)]
pub(super) struct Colours {
    asks: Option<Sender<Vec<Ask>>>,
}

impl Colours {
    /// Asks for colours; they come as work that has ended.
    pub(super) fn ask(&mut self, asks: Vec<Ask>, done: &UnboundedSender<Done>) {
        let queue = self.asks.get_or_insert_with(|| start(done.clone()));
        // Without the thread the lines stay plain.
        let _ = queue.send(asks);
    }
}

fn start(done: UnboundedSender<Done>) -> Sender<Vec<Ask>> {
    let (asks, queue) = channel();
    let work = move || colour(&queue, &|answers| done.send(told(answers)).is_ok());
    let _ = std::thread::Builder::new().name("colours".to_owned()).spawn(work);
    asks
}

fn told(answers: Vec<Coloured>) -> Done {
    Done::Reply(Reply::Highlighted(answers))
}

/// Answers everything that is asked, in order, until nobody asks or listens.
fn colour(queue: &Receiver<Vec<Ask>>, tell: &dyn Fn(Vec<Coloured>) -> bool) {
    let mut highlighter = Highlighter::default();
    for asks in queue {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        for ask in &asks {
            bytes += ask.text.len();
            answers.push(highlighter.colour(ask));
            if bytes >= TOLD_BYTES {
                bytes = 0;
                if !tell(std::mem::take(&mut answers)) {
                    return;
                }
            }
        }
        if !answers.is_empty() && !tell(answers) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(lines: usize) -> Vec<Ask> {
        let ask = |line| {
            let text = format!("let name_{line} = \"a string that is {line} long\";");
            Ask { fence: 1, language: "rust".to_owned(), line, text }
        };
        (0..lines).map(ask).collect()
    }

    // The caller gets the thread's work as an event and is never held: `ask`
    // returns before a single colour is there, and all of them come.
    #[tokio::test]
    async fn colours_come_from_another_thread_in_order_and_in_small_parts() {
        let (done, mut all_done) = tokio::sync::mpsc::unbounded_channel();
        let mut colours = Colours::default();
        colours.ask(asks(200), &done);
        let mut lines = Vec::new();
        while lines.len() < 200 {
            let Some(Done::Reply(Reply::Highlighted(answers))) = all_done.recv().await else {
                panic!("something else came")
            };
            let bytes: usize = answers.iter().map(|answer| answer.bytes).sum();
            assert!(bytes < TOLD_BYTES + 100, "{bytes}");
            assert!(answers.iter().all(|answer| answer.spans.is_some()));
            lines.extend(answers.iter().map(|answer| answer.line));
        }
        assert!(lines.iter().copied().eq(0..200));
    }

    #[test]
    fn the_thread_ends_when_nobody_listens() {
        let (sender, queue) = channel();
        sender.send(asks(200)).unwrap();
        let told = std::cell::Cell::new(0);
        // The sender is still there: only the answer can end it.
        colour(&queue, &|_| {
            told.set(told.get() + 1);
            false
        });
        assert_eq!(told.get(), 1);
        drop(sender);
    }
}
