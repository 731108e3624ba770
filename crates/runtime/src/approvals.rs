//! Questions to the person whether a tool may run (`task.md` OBS-3, DISP-3).
//!
//! Owns the questions that wait. Each is asked once, may be answered in any
//! order, and is withdrawn when what it is about ends first. Must never decide
//! by itself: a question that nobody answers waits as long as its run.

use std::collections::BTreeMap;

use crew_base::id::{RunId, SessionId};
use crew_base::message::ToolCall;
use crew_base::text::excerpt;
use crew_base::tool::ToolOutcome;
use crew_engine::Event;
use crew_engine::api::task::{Approval, Decision, Tier};

use crate::run::{Handle, Input, Loop, Notice, Role};

/// What a person is asked; untrusted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Names it.
    pub id: u64,
    /// The session that wants to run the tool.
    pub session: SessionId,
    /// The tool.
    pub tool: String,
    /// What it is to do, on several lines.
    pub view: String,
}

/// Questions without an answer, by number.
#[derive(Default)]
pub(crate) struct Approvals {
    last: u64,
    waiting: BTreeMap<u64, Pending>,
}

struct Pending {
    session: SessionId,
    run: RunId,
    asked: Asked,
}

/// Who acts on the answer.
pub(crate) enum Asked {
    /// The shell: this call runs once it is allowed.
    Shell(ToolCall),
    /// The engine, which answers the tool of that name itself.
    Engine(String),
}

/// Longest arguments that are shown.
const VIEW_CHARS_MAX: usize = 2_000;

impl Handle {
    /// Answers a question; one that does not wait any more is ignored.
    pub fn answer(&self, question: u64, is_allowed: bool) {
        self.input(Input::Allowed { question, is_allowed });
    }
}

impl Loop {
    /// Whether a call may run now; if not, its ending is on the way or the
    /// person is asked.
    pub(crate) fn is_approved(&mut self, session: &SessionId, run: RunId, call: &ToolCall) -> bool {
        let Some(live) = self.sessions.get(session) else { return false };
        // One that cannot run is not asked about.
        let Some(scope) = live.scope.as_ref().filter(|_| live.failed.is_none()) else {
            return true;
        };
        let approval = match live.role {
            Role::Owner => Approval::clone(&scope.approval),
            // What would need a dialogue is refused (`crew.md` OP-19).
            Role::Crew => Approval { can_ask: false, ..Approval::clone(&scope.approval) },
            // The approval of its call was the one for all it does (SESS-3).
            Role::Task(_) => scope.approval.for_child(),
        };
        match approval.decide(&call.name, tier(&call.name)) {
            Decision::Run => true,
            Decision::Ask => {
                let view = excerpt(call.arguments.text(), VIEW_CHARS_MAX);
                self.ask_person(session.clone(), run, Asked::Shell(call.clone()), view);
                false
            }
            Decision::Refuse(text) => {
                self.end_tool(session.clone(), run, ToolOutcome::error(text));
                false
            }
        }
    }

    pub(crate) fn ask_person(
        &mut self,
        session: SessionId,
        run: RunId,
        asked: Asked,
        view: String,
    ) {
        self.approvals.last += 1;
        let id = self.approvals.last;
        let tool = match &asked {
            Asked::Shell(call) => call.name.clone(),
            Asked::Engine(tool) => tool.clone(),
        };
        self.approvals.waiting.insert(id, Pending { session: session.clone(), run, asked });
        self.tell(Notice::Question(Question { id, session, tool, view }));
    }

    pub(crate) fn answered(&mut self, question: u64, is_allowed: bool) {
        let Some(Pending { session, run, asked }) = self.approvals.waiting.remove(&question) else {
            return;
        };
        match asked {
            Asked::Engine(_) => self.step(Event::TaskAnswered { run, is_allowed }),
            Asked::Shell(call) if is_allowed => self.start_tool(session, run, call),
            Asked::Shell(call) => {
                let text = format!("`{}` was refused by the person", call.name);
                self.end_tool(session, run, ToolOutcome::error(text));
            }
        }
    }

    /// Withdraws the question about a run; whether there was one.
    pub(crate) fn withdraw(&mut self, session: &SessionId, run: RunId) -> bool {
        let about = |pending: &Pending| pending.session == *session && pending.run == run;
        let ended = self.withdraw_if(about);
        let is_one = !ended.is_empty();
        // What the engine answers has its ending from there already.
        let tools = ended.into_iter().filter(|pending| matches!(pending.asked, Asked::Shell(_)));
        for Pending { session, run, .. } in tools {
            self.end_tool(session, run, ToolOutcome::error("the operation was aborted"));
        }
        is_one
    }

    /// Withdraws all questions of a session that does nothing any more.
    pub(crate) fn withdraw_all(&mut self, session: &SessionId) {
        drop(self.withdraw_if(|pending| pending.session == *session));
    }

    fn withdraw_if(&mut self, about: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let waiting = &mut self.approvals.waiting;
        let ids: Vec<u64> =
            waiting.iter().filter(|(_, pending)| about(pending)).map(|(id, _)| *id).collect();
        let ended = ids.iter().filter_map(|id| waiting.remove(id)).collect();
        for id in ids {
            self.tell(Notice::QuestionOver(id));
        }
        ended
    }

    fn end_tool(&mut self, session: SessionId, run: RunId, outcome: ToolOutcome) {
        self.urgent.push_back(Event::ToolEnded { session, run, outcome });
    }
}

/// What a tool can do; one that is not known can do anything (DISP-3).
fn tier(tool: &str) -> Tier {
    match tool {
        "read" | "grep" | "find" | "ls" => Tier::Read,
        "edit" | "write" => Tier::Write,
        _ => Tier::Exec,
    }
}
