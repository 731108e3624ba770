//! One arm per effect (`style.md` 3, contract of the shell).
//!
//! Effects start in list order; an `Append` is done when its arm returns, all
//! else becomes a task that ends in one event. Must never wait. Read `tasks` for
//! how endings are made certain, `gate` for what slows a stream.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crew_base::entry::Entry;
use crew_base::id::{RunId, SessionId};
use crew_base::limits::{STREAM_END_MS_MAX, TOOL_CANCEL_MS_MAX};
use crew_base::message::ToolCall;
use crew_base::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelSpec, ThinkingLevel,
};
use crew_base::tool::ToolOutcome;
use crew_engine::api::{SessionUpdate, Update};
use crew_engine::{Effect, Event, OpenPlan};
use crew_store::session::log::SessionLog;
use crew_tools::ToolContext;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::causes::with_causes;
use crate::gate::Gated;
use crate::run::{Input, Live, Loop, Notice, Opening, Role};
use crate::tasks::{DiscoverEnd, PrepareEnd, Stream, StreamEnd, ToolEnd};
use crate::workspace::{DEPTH_VARIABLE, Parent, Prepared, Scope};

impl Loop {
    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::OpenSession(plan) => self.open_session(plan),
            Effect::Append { session, entry } => self.append(&session, &entry),
            Effect::StartModel { session, run, request } => self.start_model(session, run, request),
            Effect::RunTool { session, run, call } => self.run_tool(session, run, call),
            Effect::Discover { run, session } => self.discover(run, &session),
            Effect::ReadBranch { session, run, from, to } => {
                self.read_branch(session, run, from, to);
            }
            Effect::Cancel { session, run } => self.cancel(&session, run),
            Effect::Task(work) => self.task_work(work),
            Effect::CloseSession { session } => self.close_session(&session),
            Effect::Update(update) => self.update(update),
            Effect::Exit => self.exit = true,
        }
    }

    fn open_session(&mut self, plan: OpenPlan) {
        let (session, role, parent) = match &plan {
            OpenPlan::Owner { session, .. } => (session.clone(), Role::Owner, None),
            OpenPlan::Child(open) => (open.session.clone(), Role::Crew, self.parent(&open.owner)),
            OpenPlan::Task(open) => {
                let role = Role::Task(open.parent.clone());
                (open.session.clone(), role, self.parent(&open.parent))
            }
        };
        if let Some(former) = self.sessions.remove(&session) {
            // Its lock on the file goes with it.
            former.cancel.cancel();
        }
        self.openings += 1;
        let (opening, cancel) = (Opening(self.openings), self.cancel.child_token());
        let is_owner = role == Role::Owner;
        let live = Live {
            opening,
            role,
            log: None,
            scope: None,
            cancel: cancel.clone(),
            work: TaskTracker::new(),
            runs: HashMap::new(),
            command: None,
            failed: None,
        };
        self.sessions.insert(session.clone(), live);
        let workspace = Arc::clone(&self.workspace);
        let end = PrepareEnd::new(session, opening, self.inputs.clone());
        let job = Box::new(move || {
            let result = if cancel.is_cancelled() {
                Err("the session was closed before it was prepared".to_owned())
            } else {
                workspace.prepare(plan, parent, crate::clock::now())
            };
            end.send(result);
        });
        if is_owner {
            self.preparer.push_first(job);
        } else {
            self.preparer.push(job);
        }
    }

    /// What a child takes over from its owner.
    fn parent(&self, owner: &SessionId) -> Option<Parent> {
        let live = self.sessions.get(owner)?;
        Some(Parent { file: live.file(), scope: Arc::clone(live.scope.as_ref()?) })
    }

    pub(crate) fn prepared(
        &mut self,
        session: SessionId,
        opening: Opening,
        result: Result<Prepared, String>,
    ) {
        // Closed while it was opening: nothing of it is kept (RUN-9).
        let Some(live) = self.sessions.get_mut(&session).filter(|live| live.opening == opening)
        else {
            return;
        };
        let result = match result {
            Err(error) => Err(error),
            Ok(prepared) => {
                let header = prepared.log.header().clone();
                let file = prepared.log.path().map(PathBuf::from);
                live.log = Some(prepared.log);
                live.scope = Some(prepared.scope);
                for warning in prepared.warnings {
                    self.tell(Notice::Warning(warning));
                }
                if prepared.is_owner {
                    self.tell(Notice::Opened {
                        session: session.clone(),
                        header,
                        file,
                        model: prepared.opened.model.clone(),
                        thinking: prepared.opened.thinking,
                    });
                }
                Ok(Box::new(prepared.opened))
            }
        };
        self.step(Event::SessionOpened { session, result });
    }

    fn append(&mut self, session: &SessionId, entry: &Entry) {
        let Some(live) = self.sessions.get_mut(session) else { return };
        if live.failed.is_some() {
            return;
        }
        let Some(log) = &mut live.log else { return };
        if let Err(error) = log.append(entry) {
            live.failed = Some(entry.id.clone());
            let is_task = matches!(live.role, Role::Task(_));
            let error = with_causes(&error);
            if is_task {
                // Its caller may never hear of it (`task.md` EXEC-15).
                self.tell(Notice::Warning(format!("the record of a child is incomplete: {error}")));
            }
            self.urgent.push_back(Event::AppendFailed {
                session: session.clone(),
                entry: entry.id.clone(),
                error,
            });
        }
    }

    fn start_model(&mut self, session: SessionId, run: RunId, request: ModelRequest) {
        let Some(live) = self.sessions.get_mut(&session) else { return };
        if live.failed.is_some() {
            let error = ModelError::new(
                ModelErrorKind::Configuration,
                "the request was not sent because the session could not be written",
            );
            let events = vec![ModelEvent::Failed(error)];
            self.urgent.push_back(Event::Model { session, run, events });
            return;
        }
        let cancel = live.cancel.child_token();
        live.runs.insert(run, cancel.clone());
        self.has_fresh_request = true;
        let (model, gate) = (Arc::clone(&self.model), Arc::clone(&self.gate));
        let stream = Arc::new(Stream::new(session.clone(), run, self.inputs.clone()));
        self.tracker.spawn(async move {
            let _end = StreamEnd(Arc::clone(&stream));
            let (over, lane) = (stream.over.clone(), Arc::clone(&stream.lane));
            let answer = model.stream(request, Box::new(move |events| stream.send(events)));
            let gated = Gated { stream: answer, session, gate, lane };
            // Dropping the stream closes the socket; the engine asked for it
            // and knows the run no more.
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = gated => {}
                () = some_time_after(over) => {}
            }
        });
    }

    fn run_tool(&mut self, session: SessionId, run: RunId, call: ToolCall) {
        if self.is_approved(&session, run, &call) {
            self.start_tool(session, run, call);
        }
    }

    /// Starts a tool that may run.
    pub(crate) fn start_tool(&mut self, session: SessionId, run: RunId, call: ToolCall) {
        let results = self.results(&session, &call);
        let Some(live) = self.sessions.get_mut(&session) else { return };
        let scope = live.scope.clone().filter(|_| live.failed.is_none());
        let Some(scope) = scope else {
            let outcome =
                ToolOutcome::error("the tool did not run: the session could not be written");
            self.urgent.push_back(Event::ToolEnded { session, run, outcome });
            return;
        };
        let cancel = live.cancel.child_token();
        live.runs.insert(run, cancel.clone());
        let (file, working) = (live.file(), live.work.token());
        let inputs = self.inputs.clone();
        let progress = {
            let (inputs, session) = (inputs.clone(), session.clone());
            let gate = Arc::clone(&self.gate);
            Arc::new(move |progress| {
                // Each shows all there is so far, so the next one makes up.
                if gate.stops(&session) {
                    return;
                }
                let session = session.clone();
                let _ = inputs.send(Input::Event(Event::ToolProgress { session, run, progress }));
            })
        };
        let model = self.model_of(&session);
        let context = ToolContext {
            cwd: scope.cwd.clone(),
            home: self.workspace.home(),
            session: session.clone(),
            env: self.command_env(&scope, &session, file.as_deref()),
            shell: self.workspace.shell(),
            results,
            images: model.is_some_and(|(model, _)| model.images),
            cancel: cancel.clone(),
            progress,
            host: Arc::clone(&self.host),
        };
        let abandon = self.abandon.clone();
        let toolbox = self.workspace.toolbox().clone();
        self.tracker.spawn(async move {
            let _working = working;
            let end = ToolEnd::new(session, run, inputs);
            let tool = toolbox.run(context, &call.name, &call.arguments);
            tokio::select! {
                biased;
                outcome = tool => end.send(outcome),
                () = given_up(cancel, abandon) => {
                    end.send(ToolOutcome::error("the operation was aborted, but did not stop in time"));
                }
            }
        });
    }

    fn model_of(&self, session: &SessionId) -> Option<(Arc<ModelSpec>, ThinkingLevel)> {
        let agent = self.engine.agent(session)?;
        agent.model().map(|model| (Arc::clone(model), agent.thinking()))
    }

    /// Variables of a command: those of the process, then those of the session.
    pub(crate) fn command_env(
        &self,
        scope: &Scope,
        session: &SessionId,
        file: Option<&Path>,
    ) -> Vec<(String, String)> {
        let own = scope.tool_env(session, file, self.model_of(session).as_ref());
        let depth = (DEPTH_VARIABLE.to_owned(), (self.engine.depth(session) + 1).to_string());
        [own, vec![depth], self.workspace.command_env().to_vec()].concat()
    }

    fn discover(&mut self, run: RunId, session: &SessionId) {
        let live = self.sessions.get(session).filter(|live| live.failed.is_none());
        let end = DiscoverEnd::new(run, self.inputs.clone());
        // Without a session nobody waits for more than the ending.
        let Some(scope) = live.and_then(|live| live.scope.clone()) else { return };
        let workspace = Arc::clone(&self.workspace);
        self.tracker.spawn_blocking(move || end.send(workspace.discover(&scope)));
    }

    fn cancel(&mut self, session: &SessionId, run: RunId) {
        if self.withdraw(session, run) {
            return;
        }
        if let Some(live) = self.sessions.get_mut(session)
            && let Some(cancel) = live.runs.remove(&run)
        {
            cancel.cancel();
        }
    }

    fn close_session(&mut self, session: &SessionId) {
        self.withdraw_all(session);
        let closed = Event::SessionClosed { session: session.clone() };
        let Some(mut live) = self.sessions.remove(session).filter(|live| {
            live.cancel.cancel();
            live.scope.is_some()
        }) else {
            self.urgent.push_back(closed);
            return;
        };
        let log = live.log.take().filter(SessionLog::is_saved);
        if let Some(path) = log.as_ref().and_then(|log| log.path()).map(PathBuf::from) {
            // Any handle makes the file durable; this one's lock ends now, so
            // that the session can be opened again at once. What is lost on a
            // failure is only the certainty after a power cut.
            let sync = move || std::fs::File::open(path).and_then(|file| file.sync_data());
            self.tracker.spawn_blocking(sync);
        }
        drop(log);
        let (host, session) = (Arc::clone(&self.host), session.clone());
        let inputs = self.inputs.clone();
        live.work.close();
        self.tracker.spawn(async move {
            host.end_session(&session).await;
            // What was cancelled ends by itself or is given up.
            live.work.wait().await;
            let _ = inputs.send(Input::Event(closed));
        });
    }

    /// Nothing is announced that could not be stored (`host.md` 2.4.8).
    fn update(&mut self, update: Update) {
        if let Update::Session { session, update: SessionUpdate::AgentSettled { .. } } = &update {
            let session = session.clone();
            self.withdraw_all(&session);
        }
        if let Update::Session { session, .. } = &update
            && self.sessions.get(session).is_some_and(|live| live.failed.is_some())
        {
            return;
        }
        self.tell(Notice::Update(update));
    }
}

/// A stream that said its last word has a moment to end by itself.
async fn some_time_after(over: CancellationToken) {
    over.cancelled().await;
    tokio::time::sleep(Duration::from_millis(STREAM_END_MS_MAX)).await;
}

/// A tool that was cancelled has a moment to end by itself.
async fn given_up(cancel: CancellationToken, abandon: CancellationToken) {
    let patience = async {
        cancel.cancelled().await;
        tokio::time::sleep(Duration::from_millis(TOOL_CANCEL_MS_MAX)).await;
    };
    tokio::select! {
        () = patience => {}
        () = abandon.cancelled() => {}
    }
}
