//! From what was typed and piped to the messages that are sent: standard
//! input, `@files`, images, skills and templates (`host.md` 6.1.5 to 6.1.7,
//! 5.3.6, 5.4).
//!
//! Reads files; must never send anything.

mod attachment;

use std::io::{self, Read};
use std::path::Path;

use crew_base::limits::ATTACHMENT_BYTES_MAX;
use crew_base::message::{Block, Content, Message, UserMessage};
use crew_store::paths::project_dir;
use crew_store::prompts::{self, Template};
use crew_store::resources::Sources;
use crew_store::skills::{self, Skill};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::args::{Options, UsageError};
use crate::config::Config;
use crate::error::Error;
use crate::output;
use crate::wiring::Wired;

/// How long a silent input is waited for when there is a prompt without it.
const SILENCE_SECONDS_MAX: i64 = 5;

/// The whole of a piped standard input, trimmed; `None` when it is a terminal
/// or holds nothing (`host.md` 6.1.5). An input that was left open by whoever
/// started the program, and stays silent, holds up no prompt that was given.
pub(crate) fn piped(is_terminal: bool, has_prompt: bool) -> Result<Option<String>, Error> {
    if is_terminal {
        return Ok(None);
    }
    if has_prompt && is_silent() {
        output::warning(&format!(
            "standard input was silent for {SILENCE_SECONDS_MAX} s and is not read; close it, or \
             take it from /dev/null, to start at once"
        ));
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock().take(ATTACHMENT_BYTES_MAX + 1);
    input.read_to_end(&mut bytes).map_err(Error::Input)?;
    if bytes.len() as u64 > ATTACHMENT_BYTES_MAX {
        let text = format!("more than {} MB were piped in", ATTACHMENT_BYTES_MAX >> 20);
        return Err(Error::Input(io::Error::new(io::ErrorKind::FileTooLarge, text)));
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Whether nothing comes and no end either; an input that cannot be watched is
/// read.
fn is_silent() -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec { tv_sec: SILENCE_SECONDS_MAX, tv_nsec: 0 };
    loop {
        match rustix::event::poll(&mut watched, Some(&patience)) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready == Ok(0),
        }
    }
}

/// All prompts of the run in order (`host.md` 6.1.6).
pub(crate) async fn messages(
    options: &Options,
    config: &Config,
    piped: Option<String>,
    wired: &Wired,
) -> Result<Vec<Message>, Error> {
    let mut text = piped.unwrap_or_default();
    let mut images = Vec::new();
    for word in &options.files {
        let attached = attachment::read(word, config, wired).await?;
        text.push_str(&attached.text);
        images.extend(attached.image);
    }
    let mut words = options.messages.iter();
    text.extend(words.next().map(String::as_str));
    if text.is_empty() && images.is_empty() {
        return Err(UsageError::NoPrompt.into());
    }
    let expansion = Expansion { options, config, cwd: &config.place.cwd };
    let texts = std::iter::once(text.as_str()).chain(words.clone().map(String::as_str));
    expansion.warnings(texts).iter().for_each(|warning| output::warning(warning));
    let mut messages = vec![message(expansion.expand(text)?, images)];
    for word in words {
        messages.push(message(expansion.expand(word.clone())?, Vec::new()));
    }
    Ok(messages)
}

/// One text block, then the images (`host.md` 2.7.1).
fn message(text: String, images: Vec<Block>) -> Message {
    let mut blocks = vec![Block::text(text)];
    blocks.extend(images);
    let timestamp = crew_runtime::clock::now();
    Message::User(UserMessage { content: Content::Blocks(blocks), timestamp })
}

/// Skill commands, then templates (`host.md` 5.4.5); looked for only when a
/// text could be one.
pub(crate) struct Expansion<'a> {
    /// What was typed at the start.
    pub(crate) options: &'a Options,
    /// Settings and trust.
    pub(crate) config: &'a Config,
    /// Where the session works.
    pub(crate) cwd: &'a Path,
}

impl Expansion<'_> {
    /// The text that is sent; unknown commands stay as they are. An error
    /// means that the file of a known skill cannot be read.
    pub(crate) fn expand(&self, text: String) -> Result<String, Error> {
        if !text.starts_with('/') {
            return Ok(text);
        }
        if text.starts_with("/skill:") {
            let skills = self.skills();
            let path = || {
                let named = skills.iter().find(|skill| text[7..].starts_with(&skill.name));
                named.map(|skill| skill.file.clone()).unwrap_or_default()
            };
            let expanded = skills::expand(&skills, &text);
            let expanded = expanded.map_err(|source| Error::File { path: path(), source })?;
            return Ok(expanded.unwrap_or(text));
        }
        Ok(prompts::expand(&self.templates(), &text).unwrap_or(text))
    }

    /// The skills of this moment.
    pub(crate) fn skills(&self) -> Vec<Skill> {
        let wish = &self.options.prompt;
        let lists = &self.config.settings.skills;
        let found = skills::discover(&Sources {
            discover: !wish.no_skills,
            user_list: lists.user.clone(),
            project_list: lists.project.clone(),
            paths: wish.skills.clone(),
            ..self.sources()
        });
        found.skills
    }

    /// The prompt templates of this moment.
    pub(crate) fn templates(&self) -> Vec<Template> {
        self.found().templates
    }

    /// What is wrong with the files of templates, with their paths, when one of
    /// these texts could mean a template; else nothing is looked for.
    pub(crate) fn warnings<'t>(&self, mut texts: impl Iterator<Item = &'t str>) -> Vec<String> {
        if !texts.any(|text| text.starts_with('/') && !text.starts_with("/skill:")) {
            return Vec::new();
        }
        let warnings = self.found().warnings.into_iter();
        warnings.map(|warning| format!("{}: {}", warning.path, warning.message)).collect()
    }

    fn found(&self) -> prompts::Found {
        let lists = &self.config.settings.prompts;
        prompts::discover(&Sources {
            discover: !self.options.no_templates,
            user_list: lists.user.clone(),
            project_list: lists.project.clone(),
            paths: self.options.templates.clone(),
            ..self.sources()
        })
    }

    /// Trust was decided for the directory of the start only.
    fn sources(&self) -> Sources {
        let place = &self.config.place;
        Sources {
            cwd: self.cwd.to_owned(),
            project_dir: project_dir(self.cwd),
            agent_dir: place.agent_dir.clone(),
            home: place.home.clone(),
            trusted: self.config.trust.allows() && self.cwd == place.cwd,
            ..Sources::default()
        }
    }
}
