//! Keys of providers: stored and forgotten without leaving the program.
//!
//! A key is typed on the bare terminal with its echo off, so it stands in no
//! frame, no history and no scrollback. Must never show or log one. Read
//! `crew_store::auth_file` for the file.

use std::fs::File;
use std::io::{BufReader, Read, Write};

use crew_store::auth_file;
use crew_tui::request::Reply;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use super::face::{Face, Later};

/// Longer lines are no keys.
const KEY_BYTES_MAX: usize = 16 * 1024;
const CTRL_C: u8 = 0x03;

impl Face {
    /// `/login`: with a provider its key is asked for, without one they are told.
    pub(super) fn login(&mut self, provider: &str) {
        match self.checked(provider) {
            Ok(()) if self.terminal.is_plain => {
                let next = format!("put the key of {provider} into auth.json, then /reload");
                self.say(Reply::Failed("line mode shows what is typed".to_owned(), Some(next)));
            }
            Ok(()) => self.later = Some(Later::Login(provider.to_owned())),
            Err(reply) => self.say(reply),
        }
    }

    /// `/logout`: what is stored for a provider is removed.
    pub(super) fn logout(&mut self, provider: &str) {
        match self.checked(provider) {
            Ok(()) => self.store_key(provider, None),
            Err(reply) => self.say(reply),
        }
    }

    /// Whether a provider is known; if not, what is said.
    fn checked(&self, provider: &str) -> Result<(), Reply> {
        let Some(ready) = &self.ready else {
            return Err(Reply::Failed("the models are still being read".to_owned(), None));
        };
        let all = ready.config.catalog.providers();
        if all.iter().any(|known| known.id == provider && provider != "demo") {
            return Ok(());
        }
        let credentials = &ready.config.credentials;
        let ids = all.iter().map(|known| known.id.as_str()).filter(|id| *id != "demo");
        let (with, without): (Vec<_>, Vec<_>) = ids.partition(|id| credentials.is_configured(id));
        let shown = |ids: &[&str]| if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        let what = match provider {
            "" => "name the provider, for instance /login anthropic".to_owned(),
            _ => format!("no provider is called {provider}"),
        };
        let next = format!("with a key: {} · without: {}", shown(&with), shown(&without));
        Err(Reply::Failed(what, Some(next)))
    }

    /// Asks for a key and stores it; an empty line changes nothing.
    pub(super) async fn ask_key(&mut self, provider: &str) {
        self.give_terminal(&[]).await;
        let name = provider.to_owned();
        let typed = tokio::task::spawn_blocking(move || read_key(&name)).await;
        self.take_terminal();
        match typed {
            Ok(Ok(Some(key))) => self.store_key(provider, Some(&key)),
            Ok(Ok(None)) => self.failed("no key was typed; nothing has changed"),
            Ok(Err(error)) => self.failed(&format!("the key cannot be read: {error}")),
            Err(_) => self.failed("the key cannot be read"),
        }
    }

    fn store_key(&mut self, provider: &str, key: Option<&str>) {
        let Some(ready) = &self.ready else { return };
        let path = ready.config.place.agent_dir.join("auth.json");
        match auth_file::set(&path, provider, key) {
            Ok(()) => self.reload(),
            Err(error) => {
                let what = format!("auth.json was not changed: {error}");
                self.say(Reply::Failed(what, None));
            }
        }
    }
}

/// One line from the terminal, unseen; `None` when it is blank.
fn read_key(provider: &str) -> std::io::Result<Option<String>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    let mut unseen = before.clone();
    // Ctrl+C ends the line, not the program behind it, which has the crew.
    unseen.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    unseen.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    tcsetattr(&terminal, OptionalActions::Flush, &unseen)?;
    let asked = ask(&terminal, provider);
    tcsetattr(&terminal, OptionalActions::Flush, &before)?;
    asked
}

fn ask(mut terminal: &File, provider: &str) -> std::io::Result<Option<String>> {
    let text = format!(
        "Key for {provider} (not shown; $NAME takes it from the environment; Enter alone keeps \
         all as it is): "
    );
    terminal.write_all(text.as_bytes())?;
    let mut line = Vec::new();
    let reader = BufReader::new(terminal);
    for byte in reader.bytes() {
        line.push(byte?);
        if line.ends_with(b"\n") || line.ends_with(&[CTRL_C]) || line.len() > KEY_BYTES_MAX {
            break;
        }
    }
    terminal.write_all(b"\n")?;
    let key = String::from_utf8_lossy(&line).trim().to_owned();
    let is_key = !key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.contains(char::is_control);
    Ok(is_key.then_some(key))
}
