//! Shell commands of the person (`host.md` 7.3.8): their output as it comes,
//! and what they ended with.
//!
//! Output that the client does not read slows the command, never the loop.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crew_base::limits::RPC_SHELL_BYTES_MAX;
use crew_runtime::QueryError;
use crew_tools::UserCommandOutcome;
use serde::Serialize;
use tokio::sync::Notify;

use super::face::{Done, Face};
use super::response::{Reply, Ticket, json};

/// A command that runs.
pub(super) struct Shell {
    ticket: Ticket,
    chunks: Arc<Chunks>,
}

/// A command that ran.
pub(super) struct ShellEnd {
    chunks: Arc<Chunks>,
    result: Result<UserCommandOutcome, QueryError>,
}

impl Shell {
    /// Stops waiting for the client; what comes now is kept.
    pub(super) fn release(&self) {
        self.chunks.release();
    }

    /// Who waits for its end.
    pub(super) fn into_ticket(self) -> Ticket {
        self.ticket
    }
}

/// Output on its way from the command to the client.
struct Chunks {
    state: Mutex<State>,
    room: Condvar,
    news: Arc<Notify>,
}

#[derive(Default)]
struct State {
    text: String,
    released: bool,
}

impl Chunks {
    /// Called by the command's task; waits while too much is held.
    fn push(&self, text: &str) {
        let mut state = self.lock();
        if state.is_full() {
            // The other tasks of this thread go on elsewhere meanwhile.
            state = tokio::task::block_in_place(|| {
                let full = |state: &mut State| state.is_full();
                self.room.wait_while(state, full).unwrap_or_else(PoisonError::into_inner)
            });
        }
        state.text.push_str(text);
        self.news.notify_one();
    }

    fn take(&self) -> String {
        let text = std::mem::take(&mut self.lock().text);
        self.room.notify_all();
        text
    }

    fn release(&self) {
        self.lock().released = true;
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_full(&self) -> bool {
        !self.released && self.text.len() >= RPC_SHELL_BYTES_MAX
    }
}

impl Face {
    /// Runs a command beside everything else.
    pub(super) fn run_shell(&mut self, ticket: Ticket, command: String, exclude: bool) {
        let chunks = Arc::new(Chunks {
            state: Mutex::default(),
            room: Condvar::new(),
            news: Arc::clone(&self.shell_news),
        });
        self.shells.push(Shell { ticket, chunks: Arc::clone(&chunks) });
        let (handle, session) = (self.handle.clone(), self.session.clone());
        let done = self.done.clone();
        tokio::spawn(async move {
            let sink = Arc::clone(&chunks);
            let sink = Arc::new(move |text: &str| sink.push(text));
            let result = handle.run_command(&session, command, exclude, sink).await;
            // Without a receiver the program is ending.
            let _ = done.send(Done::Shell(ShellEnd { chunks, result }));
        });
    }

    /// Stops the command of the session, if one runs.
    pub(super) fn abort_shell(&mut self) {
        self.shells.iter().for_each(Shell::release);
        self.handle.abort_command(&self.session);
    }

    /// Shows what has come.
    pub(super) fn show_shells(&mut self) {
        for at in 0..self.shells.len() {
            let text = self.shells[at].chunks.take();
            if !text.is_empty() {
                self.out.put(update(&self.shells[at].ticket, &text));
            }
        }
    }

    /// Shows the rest and answers.
    pub(super) fn shell_ended(&mut self, end: ShellEnd) {
        self.show_shells();
        let is_it = |shell: &Shell| Arc::ptr_eq(&shell.chunks, &end.chunks);
        let Some(at) = self.shells.iter().position(is_it) else { return };
        let shell = self.shells.remove(at);
        self.reply(&shell.ticket, outcome(end.result));
    }
}

fn outcome(result: Result<UserCommandOutcome, QueryError>) -> Reply {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Outcome {
        output: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        cancelled: bool,
        truncated: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        full_output_path: Option<String>,
    }
    let outcome = result.map_err(|error| error.to_string())?;
    Ok(Some(json(&Outcome {
        output: outcome.output,
        exit_code: outcome.exit_code,
        cancelled: outcome.cancelled,
        truncated: outcome.truncated,
        full_output_path: outcome.full_output_path,
    })))
}

fn update(ticket: &Ticket, delta: &str) -> String {
    #[derive(Serialize)]
    struct Update<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a crew_base::json::Raw>,
        delta: &'a str,
    }
    let mut line = json(&Update { kind: "bash_execution_update", id: ticket.id.as_ref(), delta });
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::json::Raw;

    #[test]
    fn a_chunk_carries_the_id_of_its_command() {
        // host.md 7.3.8
        let ticket = Ticket { id: Raw::parse("\"7\""), kind: "bash".to_owned() };
        let expected = r#"{"type":"bash_execution_update","id":"7","delta":"a\nb"}"#;
        assert_eq!(update(&ticket, "a\nb"), format!("{expected}\n"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn output_that_nobody_takes_stops_its_command_until_it_is_taken_or_released() {
        // host.md 7.1.5
        let chunks = Arc::new(Chunks {
            state: Mutex::default(),
            room: Condvar::new(),
            news: Arc::default(),
        });
        let block = "x".repeat(RPC_SHELL_BYTES_MAX);
        let (sink, text) = (Arc::clone(&chunks), block.clone());
        let command = tokio::spawn(async move {
            sink.push(&text);
            sink.push("second");
            sink.push(&text);
            sink.push("third");
        });
        chunks.news.notified().await;
        assert_eq!(chunks.take().len(), block.len());
        chunks.release();
        command.await.unwrap();
        assert_eq!(chunks.take(), format!("second{block}third"));
    }
}
