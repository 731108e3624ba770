//! One arm per effect.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crew_base::entry::Entry;
use crew_base::id::{RunId, SessionId};
use crew_base::message::ToolCall;
use crew_base::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crew_base::tool::ToolOutcome;
use crew_engine::api::Update;
use crew_engine::{Effect, Event, OpenPlan};
use crew_tools::ToolContext;
use tokio_util::sync::CancellationToken;

use crate::run::{Input, Live, Loop, Notice};
use crate::tasks::{StreamEnd, ToolEnd};
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
        let live = Live {
            log: None,
            scope: None,
            cancel: CancellationToken::new(),
            runs: HashMap::new(),
            command: None,
            failed: None,
        };
        self.sessions.insert(session.clone(), live);
        let (workspace, inputs) = (Arc::clone(&self.workspace), self.inputs.clone());
        self.tracker.spawn_blocking(move || {
            let result = workspace.prepare(plan, parent, crate::clock::now());
            let _ = inputs.send(Input::Prepared { session, result: Box::new(result) });
        });
    }

    /// What a child takes over from its owner.
    fn parent(&self, owner: &SessionId) -> Option<Parent> {
        let live = self.sessions.get(owner)?;
        let file = live.log.as_ref().and_then(|log| log.path()).map(PathBuf::from);
        Some(Parent { file, scope: Arc::clone(live.scope.as_ref()?) })
    }

    pub(crate) fn prepared(&mut self, session: SessionId, result: Result<Prepared, String>) {
        // Closed while it was opening: nothing of it is kept (RUN-9).
        let Some(live) = self.sessions.get_mut(&session) else { return };
        let result = match result {
            Err(error) => Err(error),
            Ok(prepared) => {
                let header = prepared.log.header().clone();
                let file = prepared.log.path().map(PathBuf::from);
                live.log = Some(prepared.log);
                live.scope = Some(Arc::new(prepared.scope));
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
                error: error.to_string(),
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
        let (model, inputs) = (Arc::clone(&self.model), self.inputs.clone());
        self.tracker.spawn(async move {
            let mut end = StreamEnd::new(session.clone(), run, inputs.clone());
            let stream = model.stream(request, Box::new(move |events| end.send(events)));
            // Dropping the stream closes the socket; the engine asked for it
            // and knows the run no more.
            tokio::select! {
                () = cancel.cancelled() => {}
                () = stream => {}
            }
            let _ = inputs.send(Input::Over { session, run });
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
            Arc::new(move |progress| {
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
            cancel,
            progress,
            host: Arc::clone(&self.host),
        };
        let tool = self.workspace.toolbox().run(context, &call.name, &call.arguments);
        self.tracker.spawn(async move {
            let mut end = ToolEnd::new(session.clone(), run, inputs.clone());
            end.send(tool.await);
            let _ = inputs.send(Input::Over { session, run });
        });
    }

    fn discover(&mut self, run: RunId, session: &SessionId) {
        let scope = self.sessions.get(session).and_then(|live| live.scope.clone());
        let (workspace, inputs) = (Arc::clone(&self.workspace), self.inputs.clone());
        self.tracker.spawn_blocking(move || {
            let discovery = scope.map(|scope| workspace.discover(&scope)).unwrap_or_default();
            let event = Event::Discovered { run, discovery: Arc::new(discovery) };
            let _ = inputs.send(Input::Event(event));
        });
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
        let (host, session) = (Arc::clone(&self.host), session.clone());
        self.tracker.spawn(async move {
            host.end_session(&session).await;
            let sync = move || live.log.as_mut().map(|log| log.sync());
            // What is lost here is only the certainty after a power cut.
            let _ = tokio::task::spawn_blocking(sync).await;
        });
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
