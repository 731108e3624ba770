//! What the engine tells.

use crew_base::id::SessionId;
use crew_base::message::{Message, StopReason};
use crew_base::time::Time;
use crew_engine::api::{
    CommandId, CrewRefusal, CrewUpdate, MoveEnd, Refusal, SessionUpdate, Status, Update, UpdateKind,
};

use super::{Receiver, Retry, Sent, View};
use crate::failure;
use crate::keys::action::Action;
use crate::request::{AttentionForm, Request};
use crate::theme::{MUTED, WARNING};
use crate::transcript::item::Item;

/// Signals of attention are at least this far apart (TERM-38).
const ATTENTION_MS: u64 = 3_000;

/// Takes an update. What follows from it waits in [`super::take_requests`].
pub fn update(view: &mut View, now: Time, update: Update) {
    view.now = now.max(view.now);
    match update {
        Update::Answered { command, result } => view.answered(command, result),
        Update::Session { session, update } => {
            if view.session.as_ref() == Some(&session) {
                view.session_update(&update);
            }
        }
        Update::Crew(update) => {
            if view.session.as_ref() == Some(&update.owner) {
                view.crew_update(&update);
            }
        }
        // What is shown of it comes as progress of the call.
        Update::Task(_) => {}
        Update::RunFailed { session, error } => view.run_failed(&session, error),
        Update::AtRest(session) => {
            if view.session.as_ref() == Some(&session) {
                view.call_attention("idle", "the owner is idle");
            }
        }
    }
    view.settle_level();
}

impl View {
    fn run_failed(&mut self, session: &SessionId, error: String) {
        if self.session.as_ref() != Some(session) {
            return;
        }
        self.live.add(Item::Failure {
            what: format!("crew: {error}"),
            next: Some("nothing behind it was stored; send the message again".to_owned()),
        });
        self.run.since = None;
    }

    fn crew_update(&mut self, update: &CrewUpdate) {
        let now = self.now;
        self.crew.update(now, update);
        if let UpdateKind::Settled { .. } = &update.kind {
            let (kind, what) = match update.status {
                Status::NeedsInput => ("needs_input", "needs you"),
                Status::Error => ("error", "failed"),
                Status::Completed => ("result", "is done"),
                Status::Running | Status::Aborted => return,
            };
            self.call_attention(kind, &format!("{} {what}", update.subagent));
        }
    }

    /// Rings if the person wants to hear of it, does not look at the terminal,
    /// and did not just cause it (TERM-38).
    pub(super) fn call_attention(&mut self, kind: &str, why: &str) {
        let wanted = self.setup.attention_form != AttentionForm::Off
            && self.setup.attention.iter().any(|known| known == kind);
        let recent = self.attention.is_some_and(|last| self.now.since(last) < ATTENTION_MS);
        let caused = self.now.since(self.last_key) < 300;
        if wanted && !recent && !caused && self.focused != Some(true) {
            self.attention = Some(self.now);
            self.ask(Request::Attention(crate::cells::clean_text(why)));
        }
    }

    fn session_update(&mut self, update: &SessionUpdate) {
        self.live.update(self.now, update);
        match update {
            SessionUpdate::AgentStart => {
                self.run.since.get_or_insert(self.now);
                self.run.retry = None;
            }
            SessionUpdate::MessageEnd(message) => self.message_end(message),
            SessionUpdate::AgentEnd { will_retry, .. } => {
                if *will_retry {
                    self.run.failure = None;
                    self.live.try_again();
                } else {
                    self.tell_failure();
                }
            }
            SessionUpdate::AgentSettled { .. } => {
                self.tell_failure();
                self.run.since = None;
                self.run.retry = None;
                self.live.settled();
                self.ask(Request::Facts);
            }
            SessionUpdate::QueueUpdate { steering, follow_up } => {
                self.queue.steering.clone_from(steering);
                self.queue.follow_up.clone_from(follow_up);
            }
            SessionUpdate::RetryStart { attempt, attempts_max, delay_ms, error } => {
                self.run.tries = *attempt;
                self.run.cause = Some(error.clone());
                self.run.retry = Some(Retry {
                    attempt: *attempt,
                    attempts_max: *attempts_max,
                    until: self.now + *delay_ms,
                    error: error.clone(),
                });
            }
            SessionUpdate::RetryEnd { success, attempt, .. } => self.retry_end(*success, *attempt),
            SessionUpdate::ThinkingLevelChanged(level) => self.facts.thinking = Some(*level),
            SessionUpdate::SessionInfoChanged(name) => self.name.clone_from(name),
            SessionUpdate::CompactionStart { reason } => {
                self.run.compacting = Some((self.now, *reason));
            }
            SessionUpdate::CompactionEnd { aborted, error, .. } => {
                self.compaction_end(*aborted, error.as_deref());
            }
            SessionUpdate::SummaryRetryScheduled { attempt, attempts_max, delay_ms, error } => {
                self.run.retry = Some(Retry {
                    attempt: *attempt,
                    attempts_max: *attempts_max,
                    until: self.now + *delay_ms,
                    error: error.clone(),
                });
            }
            SessionUpdate::SummaryRetryStart { .. } | SessionUpdate::SummaryRetryFinished => {
                self.run.retry = None;
            }
            SessionUpdate::BranchSummaryStart => self.run.leaving = Some(self.now),
            SessionUpdate::MoveEnd(end) => self.move_end(end),
            SessionUpdate::TurnStart
            | SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::ToolStart { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. }
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::EntryAppended(_) => {}
        }
    }

    fn message_end(&mut self, message: &Message) {
        let Message::Assistant(answer) = message else { return };
        self.run.retry = None;
        match answer.stop_reason {
            StopReason::Error => {
                let error = answer.error_message.clone().unwrap_or_default();
                self.run.failure = Some((answer.provider.clone(), error));
            }
            StopReason::Aborted => {
                let note = match self.crew.counts().running {
                    0 => "stopped".to_owned(),
                    1 => "stopped the owner · 1 subagent goes on".to_owned(),
                    running => format!("stopped the owner · {running} subagents go on"),
                };
                self.live.add(Item::Notice(note));
            }
            StopReason::Length => {
                let note = "the answer hit its output limit".to_owned();
                self.live.add(Item::Notice(note));
            }
            StopReason::Stop | StopReason::ToolUse | StopReason::Pending | StopReason::Deferred => {
            }
        }
    }

    /// The end of a chain is told once, with the number of tries (TERM-24).
    fn tell_failure(&mut self) {
        let Some((provider, error)) = self.run.failure.take() else { return };
        let words = failure::words(&provider, &error);
        let tries = self.run.tries;
        let what = match tries {
            0 => words.what,
            tries => format!("{} Tried {} times.", ended(&words.what), tries + 1),
        };
        self.run.tries = 0;
        self.live.add(Item::Failure { what, next: words.next });
        self.call_attention("error", "the owner's run failed");
    }

    fn retry_end(&mut self, success: bool, attempt: u32) {
        self.run.retry = None;
        let error = self.run.cause.take();
        if success {
            self.run.tries = 0;
            let provider = self.facts.model.as_ref().map(|model| model.provider.clone());
            let words = failure::words(&provider.unwrap_or_default(), &error.unwrap_or_default());
            let cause = if words.short.starts_with("failed without") { "" } else { &words.short };
            let cause = if cause.is_empty() { String::new() } else { format!(": {cause}") };
            let note = format!("answered at try {}{cause}", attempt + 1);
            self.live.print(&note, MUTED);
        } else {
            self.run.tries = attempt;
        }
    }

    /// The session stands elsewhere in its tree; why it does not is told by the
    /// answer to the command.
    fn move_end(&mut self, end: &MoveEnd) {
        self.run.leaving = None;
        self.run.retry = None;
        if let MoveEnd::Moved(moved) = end {
            self.live.forget();
            self.ask(Request::Branch(moved.leaf.clone()));
            self.ask(Request::Facts);
            if let Some(draft) = &moved.draft {
                self.give_back(draft);
            }
        }
        self.submit_early();
    }

    fn compaction_end(&mut self, aborted: bool, error: Option<&str>) {
        self.run.compacting = None;
        if aborted {
            self.live.print("compaction was stopped; nothing changed", MUTED);
        } else if let Some(error) = error {
            let what = format!("compaction: {error}");
            self.live.add(Item::Failure { what, next: None });
        }
        self.submit_early();
        self.ask(Request::Facts);
    }

    fn answered(&mut self, command: CommandId, result: Result<(), Refusal>) {
        let Some(sent) = self.sent.remove(&command) else { return };
        let Err(refusal) = result else {
            match sent {
                Sent::Answer { subagent, .. } => {
                    if self.receiver == Receiver::Answer(subagent) {
                        self.receive_as_owner();
                    }
                }
                Sent::Steer { subagent, .. } => {
                    self.live.print(&format!("{subagent} has taken it"), MUTED);
                }
                Sent::Text(_) | Sent::Other(_) => {}
            }
            return;
        };
        match sent {
            Sent::Text(text) => {
                self.give_back(&text);
                let (what, next) = self.refused(&refusal);
                self.live.add(Item::Failure { what, next });
            }
            Sent::Answer { subagent, text } => {
                self.give_back(&text);
                let ago = self.crew.get(&subagent).and_then(|known| known.answered);
                let line = match ago {
                    Some(at) => format!(
                        "{subagent} already runs again: the owner answered {} ago",
                        crate::format::ago(self.now.since(at))
                    ),
                    None => self.refused(&refusal).0,
                };
                self.live.print(&line, WARNING);
            }
            Sent::Steer { subagent, text } => self.not_taken(&subagent, &text, &refusal),
            Sent::Other(_) if refusal == Refusal::MoveCancelled => {
                self.live.print("the move in the tree was stopped; nothing changed", MUTED);
            }
            Sent::Other(what) => {
                let (why, next) = match self.refused(&refusal) {
                    (why, Some(_)) if refusal == Refusal::Busy => {
                        let stop = self.setup.keys.hint(Action::Interrupt, "stops it");
                        (why, stop.map(|stop| format!("{stop}; then try again")))
                    }
                    told => told,
                };
                self.live.add(Item::Failure { what: format!("{what}: {why}"), next });
            }
        }
    }

    /// Words that a subagent did not take stand in the editor again only while
    /// they are typed for it: they must not end up with the owner (TERM-4).
    fn not_taken(&mut self, subagent: &str, text: &str, refusal: &Refusal) {
        let why = match refusal {
            Refusal::Subagent(CrewRefusal::WrongPhase(..)) => "it had ended".to_owned(),
            Refusal::Busy => "it is only starting; try again".to_owned(),
            Refusal::UnknownSession
            | Refusal::NotAttached
            | Refusal::NoModel
            | Refusal::OpenFailed(_)
            | Refusal::MoveCancelled
            | Refusal::MoveFailed(_)
            | Refusal::Subagent(_)
            | Refusal::Ending => self.refused(refusal).0,
        };
        let is_receiver = self.receiver == Receiver::Steer(subagent.to_owned());
        if is_receiver {
            self.give_back(text);
        }
        let hint = if is_receiver { "the text is back" } else { "Up brings the text back" };
        self.live.print(&format!("{subagent}: not taken: {why} · {hint}"), WARNING);
    }

    /// A text that was not taken stands in the editor again, before what was
    /// typed since.
    pub(super) fn give_back(&mut self, text: &str) {
        let typed = self.editor.text();
        if typed.trim().is_empty() {
            self.editor.set(text);
        } else if typed != text {
            self.editor.set(&format!("{text}\n{typed}"));
        }
    }

    fn refused(&self, refusal: &Refusal) -> (String, Option<String>) {
        let next = |text: &str| Some(text.to_owned());
        match refusal {
            Refusal::UnknownSession => ("the session is not open".to_owned(), None),
            Refusal::NotAttached => ("the session is not the one shown".to_owned(), None),
            Refusal::Busy => ("the owner is busy".to_owned(), next("the text stays; try again")),
            Refusal::NoModel => {
                ("no model is chosen".to_owned(), next("/model chooses one · /model demo/crew"))
            }
            Refusal::OpenFailed(error) => (format!("the session did not open: {error}"), None),
            Refusal::MoveCancelled => ("it was stopped; nothing changed".to_owned(), None),
            Refusal::MoveFailed(error) => (error.clone(), None),
            Refusal::Subagent(refusal) => (refusal.to_string(), None),
            Refusal::Ending => ("the program is ending".to_owned(), None),
        }
    }
}

fn ended(sentence: &str) -> String {
    if sentence.ends_with(['.', '!', '?']) { sentence.to_owned() } else { format!("{sentence}.") }
}
