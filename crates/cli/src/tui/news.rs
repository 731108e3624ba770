//! What comes into the loop beside keys: notices of the host and ends of work
//! beside the loop. Says how soon a frame is wanted for each.

use crew_base::id::SessionId;
use crew_engine::api::{Command, CommandId, Refusal, SessionUpdate, Update, UpdateKind};
use crew_runtime::{Notice, Place, Question, Updates};
use crew_tui::request::{Approval, Reply};
use crew_tui::view;

use super::face::{Asking, CREW_FRAME, Done, End, Face, KEY_FRAME, Later, STREAM_FRAME, Waiting};
use super::start::now;
use crate::drive::signals::Signals;
use crate::error::Error;

/// Notices taken before a frame may be due again.
const NOTICES_MAX: usize = 512;

impl Face {
    pub(super) fn notices(&mut self, first: Option<Notice>) {
        let mut next = first;
        if next.is_none() {
            self.updates = None;
            self.end.get_or_insert(End { code: 1, at_once: false });
            return;
        }
        for _ in 0..NOTICES_MAX {
            let Some(notice) = next else { return };
            self.notice(notice);
            next = self.updates.as_mut().and_then(Updates::waiting);
        }
        if let Some(notice) = next {
            self.notice(notice);
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Update(update) => self.update(update),
            Notice::Warning(text) => {
                view::reply(&mut self.view, now(), Reply::Warning(text));
                self.want(STREAM_FRAME);
            }
            Notice::Question(Question { id, tool, view: what, .. }) => {
                let approval = Approval { id, tool, view: what };
                view::reply(&mut self.view, now(), Reply::Approval(approval));
                self.want(KEY_FRAME);
            }
            Notice::QuestionOver(id) => {
                view::reply(&mut self.view, now(), Reply::ApprovalOver(id));
                self.want(KEY_FRAME);
            }
            Notice::Opened { session, header, file, model, thinking } => {
                let model = model.as_deref().map(super::facts::model_facts);
                self.opened(session, &header, file, model, thinking);
            }
        }
    }

    fn update(&mut self, update: Update) {
        if let Update::Answered { command, result } = &update
            && let Some(waiting) = self.waiting.remove(command)
        {
            self.answered(*command, waiting, result.clone());
            return;
        }
        if let (Some(herdr), Update::Crew(crew)) = (&mut self.herdr, &update) {
            herdr.take(crew);
        }
        let update = match self.keep_for_later(update) {
            Some(update) => update,
            None => return,
        };
        let shown = self.view.session().cloned();
        match &update {
            Update::Session { session, update } if Some(session) == shown.as_ref() => {
                if let SessionUpdate::MessageEnd(_) | SessionUpdate::CompactionEnd { .. } = update {
                    self.totals.is_old = true;
                    self.facts_wanted = true;
                }
                self.want(STREAM_FRAME);
            }
            // Streams of sessions that are not shown cause no frame (TERM-29).
            Update::Session { .. } => {}
            Update::Crew(crew) => match &crew.kind {
                UpdateKind::Activity { .. } => self.want(CREW_FRAME),
                UpdateKind::Spawned
                | UpdateKind::Responded
                | UpdateKind::Settled { .. }
                | UpdateKind::Delivered
                | UpdateKind::Closed => {
                    self.totals.is_old = true;
                    self.facts_wanted = true;
                    self.want(KEY_FRAME);
                }
            },
            // What is shown of it comes as progress of the call.
            Update::Task(_) => {}
            Update::Answered { .. } | Update::RunFailed { .. } | Update::AtRest(_) => {
                self.want(KEY_FRAME);
            }
        }
        view::update(&mut self.view, now(), update);
        self.go_on_moving();
    }

    /// Keeps what happens in a session that is not shown yet; gives back all else.
    fn keep_for_later(&mut self, update: Update) -> Option<Update> {
        let (Some(coming), Some(updates)) = (&mut self.coming, &self.updates) else {
            return Some(update);
        };
        if let Update::Session { session, update } = update {
            if session != coming.session {
                return Some(Update::Session { session, update });
            }
            coming.keep(updates.reached(), update);
            return None;
        }
        Some(update)
    }

    /// The session is shown now, as of a place.
    fn catch_up(&mut self, session: &SessionId, place: Place) {
        let Some(coming) = self.coming.take_if(|coming| coming.session == *session) else { return };
        for update in coming.beyond(place) {
            self.update(Update::Session { session: session.clone(), update });
        }
    }

    fn answered(&mut self, command: CommandId, waiting: Waiting, result: Result<(), Refusal>) {
        self.want(KEY_FRAME);
        match waiting {
            Waiting::Settle => self.go_on_moving(),
            Waiting::Move => self.moved(result),
            Waiting::Nothing => {
                if self.opening.as_ref().is_some_and(|(opening, _)| *opening == command)
                    && let Err(refusal) = result
                {
                    let source = self.opening.take().map(|(_, source)| source);
                    if source.is_some_and(|source| self.ask_in_use(&source)) {
                        return;
                    }
                    let what = crate::error::refusal(&refusal);
                    view::reply(&mut self.view, now(), Reply::Failed(what, None));
                }
            }
        }
    }

    pub(super) fn finished(
        &mut self,
        done: Done,
        signals: &mut Option<Signals>,
    ) -> Result<(), Error> {
        // Colours belong to text that streams (TERM-28).
        let is_colour = matches!(done, Done::Reply(Reply::Highlighted(_)));
        self.want(if is_colour { STREAM_FRAME } else { KEY_FRAME });
        match done {
            Done::Reply(reply) => view::reply(&mut self.view, now(), reply),
            Done::Facts(facts, totals) => {
                let asked = std::mem::replace(&mut self.asking, Asking::Not);
                self.totals.took(*totals);
                view::reply(&mut self.view, now(), Reply::Facts(facts));
                if asked == Asking::Again {
                    self.ask_facts();
                }
            }
            Done::Shown(shown, place) => {
                let session = shown.session.clone();
                view::reply(&mut self.view, now(), Reply::Shown(shown));
                self.catch_up(&session, place);
                self.ask_facts();
                while let Some(message) = self.prompts.pop_front() {
                    if let Some(session) = self.view.session().cloned() {
                        self.send(Command::PromptOrFollowUp(session, message));
                    }
                }
            }
            Done::Loaded(loaded) => match *loaded {
                Ok(loaded) => *signals = Some(self.loaded(loaded)?),
                Err((error, options)) => self.not_loaded(error, options)?,
            },
            Done::Reloaded(reloaded) => self.later = Some(Later::Reloaded(reloaded)),
        }
        Ok(())
    }
}
