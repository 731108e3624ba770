//! Where the owner's tour stands, folded anew from each request: one round
//! lasts from the person's words until everybody is closed and the summary is
//! given. Decides nothing; read `demo::owner` for that.

use std::collections::BTreeMap;

use crew_base::id::CallId;
use serde_json::Value;

use super::errand::Errand;
use super::view::{Call, Item, Outcome, View};

/// Answers of one round after which the script only says that it stops.
pub(super) const ANSWERS_MAX: usize = 24;

/// State of the tour.
#[derive(Default)]
pub(super) struct Round {
    /// Answers given in it.
    answers: usize,
    /// The person said something since the last answer.
    pub(super) is_addressed: bool,
    /// The three were handed out.
    pub(super) is_spawned: bool,
    pub(super) members: Vec<Member>,
    pub(super) folder: Folder,
    /// Ids of results that are none of ours, since the last answer.
    pub(super) strays: Vec<String>,
    /// The summary was given.
    pub(super) is_finished: bool,
    calls: BTreeMap<CallId, Call>,
}

/// One subagent of the tour.
pub(super) struct Member {
    pub(super) errand: Errand,
    /// Empty when it could not be started.
    pub(super) id: String,
    pub(super) state: State,
    pub(super) reports: Vec<Report>,
    /// Follow-ups that were accepted.
    pub(super) responses: Vec<String>,
}

/// What is known of a subagent.
pub(super) enum State {
    Running,
    Reported,
    Closed,
    /// It gave no result, for this reason.
    Failed(String),
}

/// A result as delivered.
pub(super) struct Report {
    pub(super) text: String,
    /// The question, with `needs_input`.
    pub(super) needs: Option<String>,
}

/// The owner's own look at the top folder.
#[derive(Default)]
pub(super) enum Folder {
    #[default]
    NotAsked,
    Asked,
    Seen {
        text: String,
        is_error: bool,
        /// It was not spoken about yet.
        is_new: bool,
    },
}

impl Round {
    /// Folds the messages of a request.
    pub(super) fn of(view: &View) -> Round {
        let mut round = Round::default();
        for item in &view.items {
            match item {
                Item::User(_) => round.addressed(),
                Item::Answer(calls) => round.answered(calls),
                Item::Result(outcome) => round.returned(outcome),
                Item::Crew(content) => round.told(content),
            }
        }
        round
    }

    /// Members that still work.
    pub(super) fn running(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| matches!(member.state, State::Running))
    }

    /// Members whose newest result was not dealt with.
    pub(super) fn reported(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| matches!(member.state, State::Reported))
    }

    /// Whether the bound of answers is reached.
    pub(super) fn is_exhausted(&self) -> bool {
        self.answers >= ANSWERS_MAX
    }

    fn addressed(&mut self) {
        // A round that never began, or has ended, gives way to a new one.
        if !self.is_spawned || self.is_finished || self.is_exhausted() {
            *self = Round::default();
        }
        self.is_addressed = true;
    }

    fn answered(&mut self, calls: &[Call]) {
        self.answers += 1;
        self.is_addressed = false;
        self.strays.clear();
        if let Folder::Seen { is_new, .. } = &mut self.folder {
            *is_new = false;
        }
        let is_idle = self.running().count() + self.reported().count() == 0;
        self.is_finished |= self.is_spawned && is_idle && calls.is_empty();
        for call in calls {
            self.is_spawned |=
                call.name == "crew_spawn" && Errand::of_spawn(&call.arguments).is_some();
            if is_look(call) {
                self.folder = Folder::Asked;
            }
            self.calls.insert(call.id.clone(), call.clone());
        }
    }

    fn returned(&mut self, outcome: &Outcome) {
        let Some(call) = self.calls.get(&outcome.call).cloned() else { return };
        match call.name.as_str() {
            "crew_spawn" => {
                if let Some(errand) = Errand::of_spawn(&call.arguments) {
                    self.members.push(Member::of_spawn(errand, outcome));
                }
            }
            "crew_respond" => {
                let Some(member) = self.member(&call.arguments) else { return };
                if outcome.is_error {
                    member.state = State::Failed(outcome.text.clone());
                } else {
                    member.state = State::Running;
                    let message = call.arguments["message"].as_str().unwrap_or_default();
                    member.responses.push(message.to_owned());
                }
            }
            // An error says that it is gone or works for the person: either
            // way it is no longer ours to close.
            "crew_done" => {
                if let Some(member) = self.member(&call.arguments) {
                    member.state = State::Closed;
                }
            }
            _ if is_look(&call) => {
                let (text, is_error) = (outcome.text.clone(), outcome.is_error);
                self.folder = Folder::Seen { text, is_error, is_new: true };
            }
            _ => {}
        }
    }

    fn told(&mut self, content: &Value) {
        if let Some(open) = content["crew_status"].as_array() {
            self.snapshot(open);
            return;
        }
        let Some(id) = content["subagent_id"].as_str() else { return };
        let is_delivery = content.get("result").is_some() || content.get("error").is_some();
        let Some(member) = self.member(content) else {
            if is_delivery {
                self.strays.push(id.to_owned());
            }
            return;
        };
        if let Some(error) = content["error"].as_str() {
            member.state = State::Failed(error.to_owned());
        } else if let Some(text) = content["result"]["report"].as_str() {
            let needs = content["result"]["needs"].as_str().map(str::to_owned);
            member.reports.push(Report { text: text.to_owned(), needs });
            member.state = State::Reported;
        } else if content.get("user_answered").is_some() {
            member.state = State::Running;
        } else if content.get("user_closed").is_some() {
            member.state = State::Closed;
        }
    }

    /// Whoever is missing from the list of open ones has ended without a word
    /// to us: aborts are never told to a model (`crew.md` DEL-6).
    fn snapshot(&mut self, open: &[Value]) {
        for member in &mut self.members {
            let is_open = open.iter().any(|item| item["subagent_id"] == member.id.as_str());
            match member.state {
                State::Running if !is_open => {
                    member.state = State::Failed("it was stopped before it reported".to_owned());
                }
                State::Reported if !is_open => member.state = State::Closed,
                State::Running | State::Reported | State::Closed | State::Failed(_) => {}
            }
        }
    }

    fn member(&mut self, named: &Value) -> Option<&mut Member> {
        let id = named["subagent_id"].as_str().filter(|id| !id.is_empty())?;
        self.members.iter_mut().find(|member| member.id == id)
    }
}

impl Member {
    fn of_spawn(errand: Errand, outcome: &Outcome) -> Member {
        let answer: Value = serde_json::from_str(&outcome.text).unwrap_or_default();
        let id = answer["subagent_id"].as_str().unwrap_or_default().to_owned();
        let state = if outcome.is_error || id.is_empty() {
            let error = answer["error"].as_str().unwrap_or(&outcome.text);
            State::Failed(error.to_owned())
        } else {
            State::Running
        };
        Member { errand, id, state, reports: Vec::new(), responses: Vec::new() }
    }
}

/// Whether a call is the owner's look at the top folder.
fn is_look(call: &Call) -> bool {
    let command = call.arguments["command"].as_str();
    call.name == "ls" || call.name == "bash" && command == Some(&super::command::top_folder())
}
