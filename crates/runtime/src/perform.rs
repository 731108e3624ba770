//! One arm per effect (`style.md` 3, contract of the shell).
//!
//! Effects start in list order; an `Append` is done when its arm returns, all
//! else becomes a task that ends in one event. Must never wait. Read `tasks` for
//! how endings are made certain, `gate` for what slows a stream.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crew_base::entry::Entry;
use crew_base::id::{RunId, SessionId};
use crew_base::limits::{STREAM_END_MS_MAX, TOOL_CANCEL_MS_MAX};
use crew_base::message::ToolCall;
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crew_base::tool::ToolOutcome;
use crew_engine::api::Update;
use crew_engine::{Effect, Event, OpenPlan};
use crew_store::session::log::SessionLog;
use crew_tools::ToolContext;
use tokio_util::sync::CancellationToken;

use crate::causes::with_causes;
use crate::gate::Gated;
use crate::run::{Input, Live, Loop, Notice, Opening};
use crate::tasks::{DiscoverEnd, PrepareEnd, Stream, StreamEnd, ToolEnd};
use crate::workspace::{Parent, Prepared};

impl Loop {
    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::OpenSession(plan) => self.open_session(plan),
            Effect::Append { session, entry } => self.append(&session, &entry),
            Effect::StartModel { session, run, request } => self.start_model(session, run, request),
            Effect::RunTool { session, run, call } => self.run_tool(session, run, call),
            Effect::Discover { run, session } => self.discover(run, &session),
            Effect::Cancel { session, run } => self.cancel(&session, run),
            Effect::CloseSession { session } => self.close_session(&session),
            Effect::Update(update) => self.update(update),
            Effect::Exit => self.exit = true,
        }
    }

    fn open_session(&mut self, plan: OpenPlan) {
        let (session, parent) = match &plan {
            OpenPlan::Owner { session, .. } => (session.clone(), None),
            OpenPlan::Child(open) => (open.session.clone(), self.parent(&open.owner)),
        };
        if let Some(former) = self.sessions.remove(&session) {
            // Its lock on the file goes with it.
            former.cancel.cancel();
        }
        self.openings += 1;
        let (opening, cancel) = (Opening(self.openings), self.cancel.child_token());
        let live = Live {
            opening,
            log: None,
            scope: None,
            cancel: cancel.clone(),
            runs: HashMap::new(),
            command: None,
            failed: None,
        };
        self.sessions.insert(session.clone(), live);
        let is_owner = parent.is_none();
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
        let file = live.log.as_ref().and_then(|log| log.path()).map(PathBuf::from);
        Some(Parent { file, scope: Arc::clone(live.scope.as_ref()?) })
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
            self.urgent.push_back(Event::AppendFailed {
                session: session.clone(),
                entry: entry.id.clone(),
                error: with_causes(&error),
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
        let file = live.log.as_ref().and_then(|log| log.path()).map(PathBuf::from);
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
        let model = self
            .engine
            .agent(&session)
            .and_then(|agent| agent.model().map(|model| (Arc::clone(model), agent.thinking())));
        let context = ToolContext {
            cwd: scope.cwd.clone(),
            home: self.workspace.home(),
            session: session.clone(),
            env: scope.tool_env(&session, file.as_deref(), model.as_ref()),
            shell: self.workspace.shell(),
            images: model.as_ref().is_some_and(|(model, _)| model.images),
            cancel: cancel.clone(),
            progress,
            host: Arc::clone(&self.host),
        };
        let abandon = self.abandon.clone();
        let toolbox = self.workspace.toolbox().clone();
        self.tracker.spawn(async move {
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

    fn discover(&mut self, run: RunId, session: &SessionId) {
        let live = self.sessions.get(session).filter(|live| live.failed.is_none());
        let end = DiscoverEnd::new(run, self.inputs.clone());
        // Without a session nobody waits for more than the ending.
        let Some(scope) = live.and_then(|live| live.scope.clone()) else { return };
        let workspace = Arc::clone(&self.workspace);
        self.tracker.spawn_blocking(move || end.send(workspace.discover(&scope)));
    }

    fn cancel(&mut self, session: &SessionId, run: RunId) {
        if let Some(live) = self.sessions.get_mut(session)
            && let Some(cancel) = live.runs.remove(&run)
        {
            cancel.cancel();
        }
    }

    fn close_session(&mut self, session: &SessionId) {
        let Some(mut live) = self.sessions.remove(session) else { return };
        live.cancel.cancel();
        if live.scope.is_none() {
            return;
        }
        let log = live.log.take().filter(SessionLog::is_saved);
        if let Some(path) = log.as_ref().and_then(SessionLog::path).map(PathBuf::from) {
            // Any handle makes the file durable; this one's lock ends now, so
            // that the session can be opened again at once. What is lost on a
            // failure is only the certainty after a power cut.
            let sync = move || std::fs::File::open(path).and_then(|file| file.sync_data());
            self.tracker.spawn_blocking(sync);
        }
        drop(log);
        let (host, session) = (Arc::clone(&self.host), session.clone());
        self.tracker.spawn(async move { host.end_session(&session).await });
    }

    /// Nothing is announced that could not be stored (`host.md` 2.4.8).
    fn update(&mut self, update: Update) {
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
