//! What the face asks for, request by request. Reading and writing of files
//! happens beside the loop.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::model::ModelSpec;
use crew_engine::Source;
use crew_engine::api::{Command, Control};
use crew_model::catalog::is_scripted;
use crew_model::select::{
    Query as Named, ThinkingInputs, cycle_model, resolve_model, switch_thinking,
};
use crew_runtime::{Answer, Query};
use crew_store::settings::file::{Scope, SettingsFiles, settings_path};
use crew_store::trust;
use crew_tui::request::{ModelOffer, Reply, Request};
use crew_tui::view;

use super::clipboard;
use super::face::{Done, End, Face, Later, Loaded, Ready};
use super::moves::{branch, walk};
use super::start::{self, now};
use super::{export, files, moves, paste, preview, sessions};
use crate::args::Options;
use crate::config;
use crate::drive::signals::Signals;
use crate::error::Error;
use crate::{input, wiring};

impl Face {
    /// Serves one request that needs no other program on the terminal.
    pub(super) fn request(&mut self, request: Request) {
        match request {
            Request::Send(command) => {
                view::sending(&mut self.view, &command);
                self.send(*command);
            }
            Request::Facts => self.ask_facts(),
            Request::Files { number, query, is_path } => self.files(number, query, is_path),
            Request::Models { all } => self.models(all),
            Request::UseModel { reference, save } => self.use_named(&reference, save),
            Request::CycleModel { backwards } => self.cycle(backwards),
            Request::Sessions { all } => self.sessions(all),
            Request::Read { id, session, path } => self.read(id, session, path),
            Request::New => self.move_to_new(),
            Request::Resume(path) => self.move_to_file(&path),
            Request::Rename(path, name) => self.beside(move || sessions::rename(&path, &name)),
            Request::Delete(path) => self.beside(move || sessions::delete(&path)),
            Request::ForkMessages => self.look(Query::ForkMessages, |answer| {
                let Answer::ForkMessages(messages) = answer else { return None };
                Some(Reply::ForkMessages(messages))
            }),
            Request::Fork(entry) => self.later = Some(Later::Copy(Some(entry))),
            Request::Clone => self.later = Some(Later::Copy(None)),
            Request::Tree => self.look(Query::Entries { since: None }, |answer| {
                let Answer::Entries { entries, leaf } = answer else { return None };
                let entries = moves::read(&entries);
                Some(Reply::Tree(crew_tui::view::full::tree::rows(&entries, leaf.as_ref())))
            }),
            Request::Branch(leaf) => self.look(Query::Entries { since: None }, move |answer| {
                let Answer::Entries { entries, .. } = answer else { return None };
                Some(Reply::Branch(walk(&entries, leaf.as_ref())))
            }),
            Request::TakeBack => self.take_back(),
            Request::Shell { command, exclude } => self.shell(command, exclude),
            Request::StopShell => self.stop_shell(),
            Request::Copy { what, text } => self.copy(&what, &text),
            Request::PasteOutside => self.paste_outside(),
            Request::Export { path, with_crew } => self.export(path, with_crew),
            Request::Session => self.session_facts(),
            Request::Trust => self.ask_trust(),
            Request::ShowTrust => self.show_trust(),
            Request::Login(provider) => self.login(&provider),
            Request::Logout(provider) => self.logout(&provider),
            Request::Trusted(choice) => self.trusted(choice),
            Request::Approve { id, is_allowed } => self.approve(id, is_allowed),
            Request::Reload => self.reload(),
            Request::Settings => self.settings(),
            Request::Set { key, value } => self.set_setting(&key, &value),
            // Line mode writes no control (TERM-57).
            Request::Attention(_) if self.terminal.is_plain => {}
            Request::Attention(why) => {
                self.output.write(clipboard::attention(self.view.setup.attention_form, &why));
            }
            // So does it without colours.
            Request::Highlight(_) if self.terminal.is_plain => {}
            Request::Highlight(asks) => self.colours.ask(asks, &self.done),
            Request::Chosen(at) => self.chosen(at),
            Request::Redraw => {
                self.screen.redraw();
                self.want(std::time::Duration::ZERO);
            }
            Request::Quit => self.end = Some(End { code: 0, at_once: false }),
            Request::ExitNow => self.end = Some(End { code: 131, at_once: true }),
            Request::EditOutside(text) => self.later = Some(Later::EditOutside(text)),
            Request::Suspend => self.later = Some(Later::Suspend),
        }
    }

    fn take_back(&self) {
        self.look(Query::ClearQueue, |answer| {
            let Answer::Cleared { mut steering, follow_up } = answer else { return None };
            steering.extend(follow_up);
            Some(Reply::TakenBack(steering))
        });
    }

    fn stop_shell(&self) {
        if let (Some(ready), Some(session)) = (&self.ready, self.view.session()) {
            ready.handle.abort_command(session);
        }
    }

    fn files(&self, number: u64, query: String, is_path: bool) {
        let (cwd, home) = (self.cwd.clone(), self.home());
        self.beside(move || {
            let paths = files::find(&cwd, home.as_deref(), &query, is_path);
            Some(Reply::Files { number, paths })
        });
    }

    fn approve(&self, question: u64, is_allowed: bool) {
        if let Some(ready) = &self.ready {
            ready.handle.answer(question, is_allowed);
        }
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.ready.as_ref().and_then(|ready| ready.config.place.home.clone())
    }

    /// Work that blocks, beside the loop.
    pub(super) fn beside(&self, work: impl FnOnce() -> Option<Reply> + Send + 'static) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            if let Some(reply) = work() {
                let _ = done.send(Done::Reply(reply));
            }
        });
    }

    /// A question to the host.
    fn look(&self, query: Query, reply: impl FnOnce(Answer) -> Option<Reply> + Send + 'static) {
        let (Some(ready), Some(session)) = (&self.ready, self.view.session().cloned()) else {
            return;
        };
        let (handle, done) = (ready.handle.clone(), self.done.clone());
        tokio::spawn(async move {
            let reply = match handle.ask(&session, query).await {
                // Reading a long session takes a while.
                Ok(answer) => {
                    let made = tokio::task::spawn_blocking(move || reply(answer));
                    made.await.ok().flatten()
                }
                Err(error) => Some(Reply::Failed(error.to_string(), None)),
            };
            if let Some(reply) = reply {
                let _ = done.send(Done::Reply(reply));
            }
        });
    }

    pub(super) fn say(&mut self, reply: Reply) {
        view::reply(&mut self.view, now(), reply);
    }

    fn models(&mut self, all: bool) {
        let Some(ready) = &self.ready else { return };
        let config = &ready.config;
        let settings = &config.settings;
        let default = match (&settings.default_provider, &settings.default_model) {
            (Some(provider), Some(model)) => Some(format!("{provider}/{model}")),
            _ => None,
        };
        let current = self.view.model_reference();
        let offer = |model: &Arc<ModelSpec>| {
            let usable = config.credentials.is_configured(&model.provider);
            let reference = model.reference();
            ModelOffer {
                facts: model_line(model),
                name: model.name.clone(),
                lacks: (!usable).then(|| "no key".to_owned()),
                is_current: current.as_deref() == Some(reference.as_str()),
                is_default: default.as_deref() == Some(reference.as_str()),
                reference,
            }
        };
        let mut offers: Vec<ModelOffer> = config.catalog.models().iter().map(offer).collect();
        offers.retain(|offer| all || offer.lacks.is_none());
        offers.sort_by_key(|offer| !offer.is_current);
        self.say(Reply::Models(offers));
    }

    fn use_named(&mut self, reference: &str, save: bool) {
        let Some(ready) = &self.ready else { return };
        let config = Arc::clone(&ready.config);
        let usable = |provider: &str| config.credentials.is_configured(provider);
        let named = Named { text: reference, ..Named::default() };
        match resolve_model(named, &config.catalog, &usable) {
            Err(error) => {
                self.say(Reply::Failed(error.to_string(), Some("/model lists them".to_owned())))
            }
            Ok(selected) => {
                for warning in &selected.warnings {
                    self.say(Reply::Warning(warning.to_string()));
                }
                if !usable(&selected.model.provider) {
                    let what = format!("there is no key for {}", selected.model.provider);
                    let next = format!("/login {} stores one", selected.model.provider);
                    self.say(Reply::Failed(what, Some(next)));
                    return;
                }
                self.use_model(selected.model, selected.thinking, save);
            }
        }
    }

    fn cycle(&mut self, backwards: bool) {
        let Some(ready) = &self.ready else { return };
        let config = Arc::clone(&ready.config);
        let usable = |provider: &str| config.credentials.is_configured(provider);
        let current = self.view.model_reference().and_then(|reference| {
            let (provider, id) = reference.split_once('/')?;
            config.catalog.get(provider, id)
        });
        let next =
            cycle_model(current.as_deref(), &ready.scope, &config.catalog, &usable, !backwards);
        match next {
            Some(next) => self.use_model(next.model, next.thinking, false),
            None => self.say(Reply::Warning("there is no other model with a key".to_owned())),
        }
    }

    fn use_model(
        &mut self,
        model: Arc<ModelSpec>,
        pattern: Option<crew_base::model::ThinkingLevel>,
        save: bool,
    ) {
        let (Some(ready), Some(session)) = (&self.ready, self.view.session().cloned()) else {
            return;
        };
        let config = Arc::clone(&ready.config);
        let inputs = ThinkingInputs {
            flag: None,
            pattern,
            session: self.view.thinking(),
            per_model: Some(&config.settings.model_thinking_levels),
            saved: config.settings.default_thinking_level,
        };
        let level = switch_thinking(&model, inputs);
        let with_level = config.catalog.for_level(&model, level);
        let control = Control::Model(with_level, level);
        ready.handle.send(Command::Control(session, control));
        let scripted = if is_scripted(&model) { " (scripted)" } else { "" };
        let mut text = format!("model: {}{scripted}", model.reference());
        if save {
            match self.save_default(&model) {
                Ok(()) => text.push_str(", also the default"),
                Err(error) => text.push_str(&format!("; not kept as default: {error}")),
            }
        }
        self.say(Reply::Done(text));
        self.ask_facts();
    }

    fn save_default(&self, model: &ModelSpec) -> Result<(), crew_store::error::Error> {
        let Some(ready) = &self.ready else { return Ok(()) };
        let file = settings_path(&ready.config.place.agent_dir);
        let (mut files, _) = SettingsFiles::load(&file, None);
        let value = |text: &str| serde_json::Value::from(text);
        files.update(Scope::User, &["defaultProvider"], Some(&value(&model.provider)))?;
        files.update(Scope::User, &["defaultModel"], Some(&value(&model.id)))
    }

    fn sessions(&mut self, all: bool) {
        let Some(ready) = &self.ready else { return };
        let config = Arc::clone(&ready.config);
        let (cwd, shown) = (self.cwd.clone(), self.file.clone());
        self.beside(move || {
            Some(Reply::Sessions(sessions::list(&config, &cwd, all, shown.as_deref())))
        });
    }

    /// The transcript of a subagent: of an open one from the host, else from
    /// its file.
    fn read(
        &mut self,
        id: String,
        session: Option<crew_base::id::SessionId>,
        path: Option<PathBuf>,
    ) {
        let Some(ready) = &self.ready else { return };
        let (handle, done) = (ready.handle.clone(), self.done.clone());
        let children = self.file.as_ref().and_then(|file| file.parent()).map(|f| f.join("crew"));
        tokio::spawn(async move {
            let mut entries = Vec::new();
            if let Some(session) = &session {
                entries = branch(&handle, session).await;
            }
            if entries.is_empty() {
                let read = move || {
                    let path = path.or_else(|| sessions::file_of(&children?, &session?))?;
                    let (lines, leaf) = sessions::lines(&path);
                    Some(walk(&lines, leaf.as_ref()))
                };
                entries =
                    tokio::task::spawn_blocking(read).await.ok().flatten().unwrap_or_default();
            }
            let _ = done.send(Done::Reply(Reply::Transcript { id, entries }));
        });
    }

    fn shell(&mut self, command: String, exclude: bool) {
        let (Some(ready), Some(session)) = (&self.ready, self.view.session().cloned()) else {
            return;
        };
        let (handle, done) = (ready.handle.clone(), self.done.clone());
        let chunks = self.done.clone();
        tokio::spawn(async move {
            let sink = Arc::new(move |text: &str| {
                let _ = chunks.send(Done::Reply(Reply::ShellOutput(text.to_owned())));
            });
            let result = handle.run_command(&session, command, exclude, sink).await;
            let _ = done.send(Done::Reply(Reply::ShellEnded));
            if let Err(error) = result {
                let _ = done.send(Done::Reply(Reply::Failed(error.to_string(), None)));
            }
        });
    }

    fn copy(&mut self, what: &str, text: &str) {
        let size = crew_tui::format::count(text.chars().count(), "character");
        if text.len() <= clipboard::BYTES_MAX && !self.terminal.is_plain {
            self.output.write(clipboard::sequence(text));
            self.say(Reply::Done(format!("copied {what}: {size}")));
            return;
        }
        let path = std::env::temp_dir().join(format!("crew-copy-{}.md", now().0));
        let reply = match crew_store::files::replace(&path, text.as_bytes()) {
            Ok(()) => Reply::Done(format!("{what} ({size}) is in {}", path.display())),
            Err(error) => Reply::Failed(error.to_string(), None),
        };
        self.say(reply);
    }

    fn export(&mut self, path: Option<String>, with_crew: bool) {
        let file = self.file.clone().filter(|file| file.exists());
        let Some(file) = file else {
            return self.failed("the session has not been saved yet");
        };
        let (cwd, home) = (self.cwd.clone(), self.home());
        let path = path.map(|path| given(&path, &cwd, home.as_deref()));
        self.look(Query::State, move |answer| {
            let Answer::State(state) = answer else { return None };
            Some(export::export(&file, state.leaf.as_ref(), path, &cwd, with_crew))
        });
    }

    /// The clipboard's image or files, by a program that can read it.
    fn paste_outside(&mut self) {
        let Some(ready) = &self.ready else { return };
        let environment = ready.config.place.environment.clone();
        self.beside(move || Some(paste::from_clipboard(&environment)));
    }

    fn session_facts(&mut self) {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        self.look(Query::Totals, move |answer| {
            let Answer::Totals(totals) = answer else { return None };
            Some(Reply::Done(sessions::facts(&totals, file.as_deref())))
        });
    }

    fn ask_trust(&mut self) {
        let Some(ready) = &self.ready else { return };
        let place = &ready.config.place;
        let gated = trust::gated(&place.cwd, place.home.as_deref());
        if gated.is_empty() {
            return self.say(Reply::Done("this folder brings no settings of its own".to_owned()));
        }
        let files = start::trust_files(&gated, place);
        self.say(Reply::Trust(files));
    }

    /// Reads configuration beside the loop.
    pub(super) fn load_now(&mut self, options: Options) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            let loaded = match config::load(&options) {
                Ok(mut config) => {
                    let found = start::found(&mut config, &options);
                    let widget_tools = start::widget_tools(&config);
                    let keys = start::keys(&mut config);
                    Ok(Loaded { config, options, found, widget_tools, keys })
                }
                Err(error) => Err((error, options)),
            };
            let _ = done.send(Done::Loaded(Box::new(loaded)));
        });
    }

    /// The second half of the start: the host runs from here on.
    pub(super) fn loaded(&mut self, loaded: Loaded) -> Result<Signals, Error> {
        let Loaded { mut config, options, found, widget_tools, keys } = loaded;
        let mut warnings = std::mem::take(&mut config.warnings);
        start::with_settings(&mut self.view.setup, &config, &options);
        self.view.setup.header &= !self.terminal.is_plain;
        self.view.setup.widget_tools = widget_tools;
        self.view.setup.keys = keys;
        self.view.untrusted = !config.trust.allows();
        self.screen.set_theme(self.view.setup.theme);
        let wired = match wiring::wire(&config, &options, wiring::Person::Present, &mut warnings) {
            Ok(wired) => wired,
            Err(error) => {
                self.restore();
                return Err(error);
            }
        };
        let signals = Signals::listen(Arc::clone(&wired.host)).map_err(Error::Runtime)?;
        let scope = start::scope(&config, &options);
        let (session, source) = (wired.session.clone(), wired.source.clone());
        let (host, first) =
            (Arc::clone(&wired.host), self.first_prompts(&options, &config, &wired));
        let (handle, updates) = wired.start();
        self.cwd.clone_from(&config.place.cwd);
        self.updates = Some(updates.slowing_nothing());
        self.ready = Some(Ready {
            handle,
            host,
            config: Arc::new(config),
            options: Arc::new(options),
            scope,
            ids: crew_base::id::Ids::new(wiring::seed()),
        });
        self.prompts.extend(first);
        self.say(Reply::Found(Box::new(found)));
        warnings.into_iter().for_each(|warning| self.say(Reply::Warning(warning)));
        if self.ready.as_ref().is_some_and(|ready| ready.options.resume) {
            self.view.pick_session();
        } else {
            if let Source::File(path) | Source::FileHere(path) = &source {
                let path = PathBuf::from(path);
                self.beside(move || preview::of(&path));
            }
            self.open(session, source);
        }
        Ok(signals)
    }

    /// Prompts of the command line; what cannot be read is told.
    fn first_prompts(
        &mut self,
        options: &Options,
        config: &config::Config,
        wired: &wiring::Wired,
    ) -> Vec<crew_base::message::Message> {
        if options.messages.is_empty() && options.files.is_empty() {
            return Vec::new();
        }
        let read = input::messages(options, config, None, wired);
        let read = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(read));
        match read {
            Ok(messages) => messages,
            Err(error) => {
                self.failed(&error.words().text);
                Vec::new()
            }
        }
    }
}

fn model_line(model: &ModelSpec) -> String {
    if is_scripted(model) {
        return "scripted, no real answers".to_owned();
    }
    let window = crew_tui::format::tokens_short(model.context_window);
    let price = |dollars: f64| {
        let text = format!("{dollars:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let rates = &model.rates;
    if rates.input == 0.0 && rates.output == 0.0 {
        return format!("{window}   no price");
    }
    format!("{window}   ${}/${} per M", price(rates.input), price(rates.output))
}

/// A path as a person gave it.
pub(super) fn given(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    crew_store::paths::expand(path, home, cwd)
}
