//! `/reload`: settings, models, keys, skills, templates, agents and context
//! files are read again (`host.md` 8.23).
//!
//! The host gets what it works with from now on, then the shown session is left
//! and opened again, so that its prompt is made anew. Subagents go on and stay
//! its own (`crew.md` RUN-4, OWN-3).

use std::sync::Arc;

use crew_engine::Source;
use crew_runtime::{Answer, Query, Renewed};
use crew_tui::keys::Bindings;
use crew_tui::request::{Found, Reply};
use crew_tui::view;

use super::asks::Asked;
use super::face::{Done, Face};
use super::start::{self, now};
use crate::config::{self, Config};
use crate::error::Error;
use crate::wiring::{self, Person};

/// What was read.
pub(super) struct Reloaded {
    config: Config,
    renewed: Renewed,
    found: Found,
    widget_tools: bool,
    keys: Bindings,
}

/// What becomes of the shown session.
enum Reopen {
    /// It is opened again from its file.
    File(Source),
    /// It is empty: a new one takes its place.
    Fresh,
    /// It is kept nowhere and goes on as it is.
    Stays,
}

impl Face {
    /// Asks about the project first, when it brings what no decision covers
    /// (`product.md` P-14d).
    pub(super) fn reload(&mut self) {
        let Some(ready) = &self.ready else { return };
        if self.moving.is_some() {
            return self.failed("another session is being opened; try again");
        }
        let (options, config) = (Arc::clone(&ready.options), Arc::clone(&ready.config));
        let question = match self.said_trust {
            Some(_) => Ok(None),
            None => start::trust_question(&options, &config.place),
        };
        match question {
            Ok(None) => self.reload_now(),
            Ok(Some(files)) => {
                self.asked = Asked::TrustAtReload;
                self.view.ask_trust(files, true);
            }
            Err(error) => self.failed(&error.words().text),
        }
    }

    /// Reads everything beside the loop.
    pub(super) fn reload_now(&mut self) {
        let Some(ready) = &self.ready else { return };
        let (options, old) = (Arc::clone(&ready.options), Arc::clone(&ready.config));
        let (said, done) = (self.said_trust, self.done.clone());
        tokio::task::spawn_blocking(move || {
            let read = || -> Result<Reloaded, Error> {
                let mut config = config::reload(&options, &old, said)?;
                let found = start::found(&mut config, &options);
                let renewed = wiring::renewed(&config, &options, Person::Present)?;
                let widget_tools = start::widget_tools(&config);
                let keys = start::keys(&mut config);
                Ok(Reloaded { config, renewed, found, widget_tools, keys })
            };
            let _ = done.send(Done::Reloaded(Box::new(read())));
        });
    }

    /// What was read counts from here on.
    pub(super) async fn reloaded(&mut self, reloaded: Result<Reloaded, Error>) {
        let Reloaded { mut config, renewed, found, widget_tools, keys } = match reloaded {
            Ok(reloaded) => reloaded,
            Err(error) => return self.failed(&format!("not reloaded: {}", error.words().text)),
        };
        // The owner may have begun to run while files were read.
        if self.view.is_busy() || self.moving.is_some() {
            return self.failed("/reload has to wait until the owner is idle; nothing changed");
        }
        let reopen = self.how_to_reopen().await;
        let Some(ready) = &mut self.ready else { return };
        let warnings = std::mem::take(&mut config.warnings);
        ready.handle.renew(renewed);
        ready.scope = start::scope(&config, &ready.options);
        ready.config = Arc::new(config);
        let (config, options) = (Arc::clone(&ready.config), Arc::clone(&ready.options));
        // What a setting said before may be gone from it.
        self.view.setup.theme = start::theme(&config.place.environment);
        start::with_settings(&mut self.view.setup, &config, &options);
        self.view.setup.header &= !self.terminal.is_plain;
        self.view.setup.widget_tools = widget_tools;
        self.view.setup.keys = keys;
        self.view.untrusted = !config.trust.allows();
        self.screen.set_theme(self.view.setup.theme);
        self.say(Reply::Found(Box::new(found)));
        warnings.into_iter().for_each(|warning| self.say(Reply::Warning(warning)));
        let mut text = "read again: settings, models, keys, skills, templates, agents, context \
                        files"
            .to_owned();
        match reopen {
            Reopen::File(source) => {
                if let Some(session) = self.view.session().cloned() {
                    self.reopen(source, session);
                }
            }
            Reopen::Fresh => {
                if let Some(session) = self.fresh_id() {
                    self.reopen(Source::New { name: None }, session);
                }
            }
            Reopen::Stays => {
                text.push_str("; this session keeps its prompt, since no file holds it yet");
            }
        }
        view::reply(&mut self.view, now(), Reply::Done(text));
    }

    async fn how_to_reopen(&self) -> Reopen {
        let (Some(ready), Some(session)) = (&self.ready, self.view.session()) else {
            return Reopen::Stays;
        };
        let Ok(Answer::State(state)) = ready.handle.ask(session, Query::State).await else {
            return Reopen::Stays;
        };
        match state.file {
            Some(file) if state.is_saved => {
                let here = state.header.cwd.as_str() != self.cwd.to_string_lossy();
                let file = file.to_string_lossy().into_owned();
                Reopen::File(if here { Source::FileHere(file) } else { Source::File(file) })
            }
            Some(_) if state.messages == 0 => Reopen::Fresh,
            Some(_) | None => Reopen::Stays,
        }
    }
}
