//! What commands do (`host.md` 7.3): prompts, aborts, changes of a session.
//!
//! Sends commands to the engine in the order they came. Must never decide what
//! the engine decides: whether a prompt starts, whether a subagent may be
//! closed. Questions are in `rpc::look`, other sessions in `rpc::moves`.

use std::path::Path;
use std::sync::Arc;

use crew_base::id::EntryId;
use crew_base::message::{Block, Content, Message, UserMessage};
use crew_base::model::{ModelSpec, ThinkingLevel};
use crew_engine::api::{
    BranchWish, Command as EngineCommand, CompactionResult, Control, QueueMode,
};
use crew_model::select::{ThinkingInputs, cycle_level, cycle_model, switch_thinking};
use crew_runtime::{Answer, Query, QueryError, State};
use crew_store::export::{self, ExportOptions};
use crew_store::paths::expand;
use crew_store::session::index;
use crew_store::settings::file::{Scope, SettingsFiles, settings_path};
use crew_store::settings::typed::{QueueMode as StoredMode, Settings};
use serde_json::{Value, json as value};

use super::face::{Done, Face, Waiting};
use super::look;
use super::request::{Change, Command, Place, Queue, Request, Typed};
use super::response::{Reply, Ticket, json};
use super::wire::CompactionWire;
use crate::error::Error;
use crate::input::Expansion;
use crate::output;

/// What the person set and every further session of the process takes over
/// (`host.md` 1.3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) steering: QueueMode,
    pub(super) follow_up: QueueMode,
    pub(super) auto_retry: bool,
    pub(super) auto_compaction: bool,
}

impl Modes {
    /// Those of the settings.
    pub(super) fn of(settings: &Settings) -> Modes {
        let mode = |mode: StoredMode| match mode {
            StoredMode::All => QueueMode::All,
            StoredMode::OneAtATime => QueueMode::OneAtATime,
        };
        Modes {
            steering: mode(settings.steering_mode),
            follow_up: mode(settings.follow_up_mode),
            auto_retry: settings.retry.enabled,
            auto_compaction: settings.compaction.enabled,
        }
    }

    /// As a session is told.
    pub(super) fn controls(self) -> [Control; 4] {
        [
            Control::Steering(self.steering),
            Control::FollowUp(self.follow_up),
            Control::Retry(self.auto_retry),
            Control::Compaction(self.auto_compaction),
        ]
    }
}

/// The word of a mode on the wire.
pub(super) fn mode_word(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::All => StoredMode::All.word(),
        QueueMode::OneAtATime => StoredMode::OneAtATime.word(),
    }
}

impl Face {
    /// Does what a client asks for.
    pub(super) async fn act(&mut self, request: Request) {
        let Request { ticket, command } = request;
        match command {
            Command::Prompt(typed, queue) => self.prompt(ticket, typed, queue),
            Command::Queue(typed, queue) => self.queue(ticket, typed, queue),
            Command::Abort => {
                let waiting = Waiting::Abort(ticket, self.run.aborted);
                self.send(EngineCommand::Abort(self.session.clone()), waiting);
            }
            Command::Compact { instructions } => {
                self.compactions.push_back(ticket.clone());
                let compact = EngineCommand::Compact(self.session.clone(), instructions);
                self.send(compact, Waiting::Compaction(ticket));
            }
            Command::Bash { command, exclude } => self.run_shell(ticket, command, exclude),
            Command::AbortBash => {
                self.abort_shell();
                self.reply(&ticket, Ok(None));
            }
            Command::ExportHtml { path } => self.export(ticket, path).await,
            Command::Look(look) => {
                let reply = self.look(look).await;
                self.catch_up();
                self.reply(&ticket, reply);
            }
            Command::Change(change) => self.change(ticket, change).await,
            Command::Navigate(place) => self.navigate(ticket, place).await,
            Command::Move(target) => self.start_moving(ticket, target).await,
            Command::UiResponse { id, confirmed } => self.dialog_answered(id.as_deref(), confirmed),
        }
    }

    fn prompt(&mut self, ticket: Ticket, typed: Typed, queue: Option<Queue>) {
        let message = match self.message(typed) {
            Ok(message) => message,
            Err(error) => return self.reply(&ticket, Err(error)),
        };
        let session = self.session.clone();
        // Whether a run goes on is decided by the engine in one step.
        let command = match queue {
            None => EngineCommand::Prompt(session, message),
            Some(Queue::Steer) => EngineCommand::PromptOrSteer(session, message),
            Some(Queue::FollowUp) => EngineCommand::PromptOrFollowUp(session, message),
        };
        self.send(command, Waiting::Prompt(ticket));
    }

    /// Only queues, also while nothing runs (`host.md` 7.3.4).
    fn queue(&mut self, ticket: Ticket, typed: Typed, queue: Queue) {
        let message = match self.message(typed) {
            Ok(message) => message,
            Err(error) => return self.reply(&ticket, Err(error)),
        };
        let session = self.session.clone();
        let command = match queue {
            Queue::Steer => EngineCommand::Steer(session, message),
            Queue::FollowUp => EngineCommand::FollowUp(session, message),
        };
        self.send(command, Waiting::Queued(ticket));
    }

    /// Expands skills and templates (`host.md` 7.3.5); one text block, then the
    /// images.
    fn message(&self, typed: Typed) -> Result<Message, String> {
        let warnings = self.expansion().warnings(std::iter::once(typed.text.as_str()));
        warnings.iter().for_each(|warning| crate::output::warning(warning));
        let text = self.expansion().expand(typed.text).map_err(|error| error.words().text)?;
        let images = typed.images.into_iter().map(Block::Image);
        let blocks = std::iter::once(Block::text(text)).chain(images).collect();
        let timestamp = crew_runtime::clock::now();
        Ok(Message::User(UserMessage { content: Content::Blocks(blocks), timestamp }))
    }

    /// Skills and templates of the session's directory.
    pub(super) fn expansion(&self) -> Expansion<'_> {
        Expansion { options: &self.options, config: &self.config, cwd: &self.cwd }
    }

    /// Goes to another place in the tree (`host.md` 2.8.2); the response is the
    /// end of the move.
    async fn navigate(&mut self, ticket: Ticket, place: Place) {
        let to = EntryId::new(place.entry);
        if let Err(error) = self.ask(Query::Known(to.clone())).await {
            return self.reply(&ticket, Err(look::worded(error)));
        }
        let wants = place.summary || place.instructions.is_some();
        let wish = BranchWish { instructions: place.instructions };
        let navigate = EngineCommand::Navigate {
            session: self.session.clone(),
            to,
            summary: wants.then_some(wish),
            label: place.label.map(|label| index::clean_name(&label)),
        };
        self.send(navigate, Waiting::Navigate(ticket));
    }

    async fn change(&mut self, ticket: Ticket, change: Change) {
        let session = self.session.clone();
        match change {
            Change::Model { provider, model } => {
                let reply = self.set_model(&ticket, &provider, &model).await;
                self.refuse(&ticket, reply);
            }
            Change::NextModel => {
                let reply = self.next_model(&ticket).await;
                self.refuse(&ticket, reply);
            }
            Change::Level(word) => {
                let reply = self.set_level(&ticket, &word).await;
                self.refuse(&ticket, reply);
            }
            Change::NextLevel => {
                let reply = self.next_level(&ticket).await;
                self.refuse(&ticket, reply);
            }
            Change::Steering(mode) => {
                self.modes.steering = mode;
                self.persist(&["steeringMode"], value!(mode_word(mode)));
                self.control(ticket, Control::Steering(mode), None);
            }
            Change::FollowUp(mode) => {
                self.modes.follow_up = mode;
                self.persist(&["followUpMode"], value!(mode_word(mode)));
                self.control(ticket, Control::FollowUp(mode), None);
            }
            Change::AutoCompaction(enabled) => {
                self.modes.auto_compaction = enabled;
                self.persist(&["compaction", "enabled"], value!(enabled));
                self.control(ticket, Control::Compaction(enabled), None);
            }
            Change::AutoRetry(enabled) => {
                self.modes.auto_retry = enabled;
                self.persist(&["retry", "enabled"], value!(enabled));
                self.control(ticket, Control::Retry(enabled), None);
            }
            Change::AbortRetry => self.control(ticket, Control::AbortRetry, None),
            Change::Name(name) => match clean_name(&name) {
                None => self.reply(&ticket, Err("Session name cannot be empty".to_owned())),
                name => self.control(ticket, Control::Name(name), None),
            },
            Change::Label { entry, label } => {
                let entry = EntryId::new(entry);
                match self.ask(Query::Known(entry.clone())).await {
                    Ok(_) => {
                        let label = Control::Label(entry, index::clean_name(&label));
                        self.control(ticket, label, None);
                    }
                    Err(error) => self.reply(&ticket, Err(look::worded(error))),
                }
            }
            Change::AbortSubagent(id) => {
                self.send(EngineCommand::AbortSubagent(session, id), Waiting::Data(ticket, None));
            }
            Change::Respond(id, message) => {
                let respond = EngineCommand::Respond(session, id, message);
                self.send(respond, Waiting::Data(ticket, None));
            }
            Change::Done(id) => {
                self.send(EngineCommand::Done(session, id), Waiting::Data(ticket, None));
            }
        }
    }

    /// Changes the session; the response is this data once it took effect.
    fn control(&mut self, ticket: Ticket, control: Control, data: Option<String>) {
        let command = EngineCommand::Control(self.session.clone(), control);
        self.send(command, Waiting::Data(ticket, data));
    }

    /// Answers what led to no command.
    fn refuse(&mut self, ticket: &Ticket, sent: Result<Sent, String>) {
        match sent {
            Ok(Sent::Command) => {}
            Ok(Sent::Nothing) => self.reply(ticket, Ok(Some("null".to_owned()))),
            Err(error) => self.reply(ticket, Err(error)),
        }
    }

    async fn set_model(
        &mut self,
        ticket: &Ticket,
        provider: &str,
        id: &str,
    ) -> Result<Sent, String> {
        let model = self.config.catalog.get(provider, id);
        let model = model.ok_or_else(|| format!("Model not found: {provider}/{id}"))?;
        if !self.config.credentials.is_configured(provider) {
            return Err(format!("No API key for {provider}/{id}"));
        }
        let state = self.state().await?;
        let data = self.config.catalog.model_json(&model).to_string();
        self.use_model(ticket, &state, model, None, |_| data);
        Ok(Sent::Command)
    }

    async fn next_model(&mut self, ticket: &Ticket) -> Result<Sent, String> {
        let state = self.state().await?;
        let (catalog, credentials) = (&self.config.catalog, &self.config.credentials);
        let usable = |provider: &str| credentials.is_configured(provider);
        let next = cycle_model(state.model.as_deref(), &self.scope, catalog, &usable, true);
        let Some(next) = next else { return Ok(Sent::Nothing) };
        let (shown, is_scoped) = (catalog.model_json(&next.model), next.is_scoped);
        self.use_model(ticket, &state, next.model, next.thinking, |level| {
            value!({"model": shown, "thinkingLevel": level.word(), "isScoped": is_scoped})
                .to_string()
        });
        Ok(Sent::Command)
    }

    /// Takes another model with the level that goes with it (`host.md` 3.9.3).
    fn use_model(
        &mut self,
        ticket: &Ticket,
        state: &State,
        model: Arc<ModelSpec>,
        pattern: Option<ThinkingLevel>,
        data: impl FnOnce(ThinkingLevel) -> String,
    ) {
        let settings = &self.config.settings;
        let inputs = ThinkingInputs {
            flag: None,
            pattern,
            session: Some(state.thinking),
            per_model: Some(&settings.model_thinking_levels),
            saved: settings.default_thinking_level,
        };
        let level = switch_thinking(&model, inputs);
        let model = self.config.catalog.for_level(&model, level);
        self.control(ticket.clone(), Control::Model(model, level), Some(data(level)));
    }

    /// An unknown word means the first level there is (`host.md` 3.9.3).
    async fn set_level(&mut self, ticket: &Ticket, word: &str) -> Result<Sent, String> {
        let state = self.state().await?;
        let first = || state.model.as_ref().and_then(|m| m.supported_levels().first().copied());
        let level = ThinkingLevel::parse(word).or_else(first).unwrap_or(ThinkingLevel::Off);
        self.control(ticket.clone(), Control::Thinking(level), None);
        Ok(Sent::Command)
    }

    async fn next_level(&mut self, ticket: &Ticket) -> Result<Sent, String> {
        let state = self.state().await?;
        let next = state.model.as_ref().and_then(|model| cycle_level(model, state.thinking));
        let Some(level) = next else { return Ok(Sent::Nothing) };
        let data = value!({"level": level.word()}).to_string();
        self.control(ticket.clone(), Control::Thinking(level), Some(data));
        Ok(Sent::Command)
    }

    /// Keeps a choice for future starts (`host.md` 1.3.9). What cannot be
    /// written counts for this process.
    fn persist(&self, path: &[&str], value: Value) {
        let file = settings_path(&self.config.place.agent_dir);
        let (mut files, _) = SettingsFiles::load(&file, None);
        if let Err(error) = files.update(Scope::User, path, Some(&value)) {
            output::warning(&format!("the setting {} is not kept: {error}", path.join(".")));
        }
    }

    /// Asks about the session shown.
    pub(super) async fn ask(&self, query: Query) -> Result<Answer, QueryError> {
        let (answer, place) = self.handle.ask_in_place(&self.session, query).await;
        self.seen.fetch_max(place);
        answer
    }

    /// What the session is and does.
    pub(super) async fn state(&self) -> Result<Box<State>, String> {
        let answer = self.ask(Query::State).await.map_err(|error| error.to_string())?;
        if let Answer::State(state) = answer { Ok(state) } else { Err(OTHER_ANSWER.to_owned()) }
    }

    /// Writes the session as a page, by default into its directory
    /// (`host.md` 2.8.10).
    async fn export(&mut self, ticket: Ticket, path: Option<String>) {
        let file = self.state().await.and_then(|state| match state.file {
            None => Err("the session is kept in memory only and cannot be exported".to_owned()),
            Some(_) if !state.is_saved => Err("the session has not been saved yet".to_owned()),
            Some(file) => Ok((file, state.leaf)),
        });
        let (file, leaf) = match file {
            Ok(found) => found,
            Err(error) => return self.reply(&ticket, Err(error)),
        };
        let path = path.unwrap_or_else(|| export::default_name(&file));
        let path = expand(&path, self.config.place.home.as_deref(), &self.cwd);
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            let reply = page(&file, leaf, &path).map_err(|error| Error::Store(error).words().text);
            // Without a receiver the program is ending.
            let _ = done.send(Done::Reply(ticket, reply));
        });
    }
}

fn page(
    file: &Path,
    leaf: Option<EntryId>,
    path: &Path,
) -> Result<Option<String>, crew_store::error::Error> {
    let options = ExportOptions { leaf, ..ExportOptions::default() };
    export::file_to_html(file, &options, path)?;
    Ok(Some(value!({"path": path.to_string_lossy()}).to_string()))
}

/// The response to `compact` (`host.md` 3.8.15).
pub(super) fn compacted(
    result: Option<&CompactionResult>,
    aborted: bool,
    error: Option<&str>,
) -> Reply {
    match (result, error) {
        (Some(result), _) => Ok(Some(json(&CompactionWire::from(result)))),
        (None, Some(error)) => Err(error.to_owned()),
        (None, None) if aborted => Err("Compaction cancelled".to_owned()),
        (None, None) => Err("the compaction gave no result".to_owned()),
    }
}

/// The runtime answers every question in kind; said should that ever change.
pub(super) const OTHER_ANSWER: &str = "the question was answered in another kind";

/// Whether a change became a command.
enum Sent {
    /// Its answer is the response.
    Command,
    /// There is nothing to change to.
    Nothing,
}

/// A session's name on one line; `None` when nothing is left of it
/// (`host.md` 2.4.4).
fn clean_name(name: &str) -> Option<String> {
    let lines = name.split(['\r', '\n']).filter(|line| !line.is_empty());
    let name = lines.collect::<Vec<_>>().join(" ");
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line() {
        // host.md 2.4.4
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(clean_name(name).as_deref(), expected, "{name:?}");
        };
        check("  two\r\n\r\n lines ", Some("two  lines"));
        check("\na\rb\n", Some("a b"));
        check(" \r\n ", None);
        check("", None);
    }
}
