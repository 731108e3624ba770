//! What one entry looks like, by its type (`host.md` 2.4).
//!
//! Messages are in `message`, calls in `call`, the crew's entries in `card`; the
//! small ones are here. Never fails on what an entry holds: what does not fit
//! is shown as its JSON.

use crew_base::entry::{Entry, EntryBody, Replacement};
use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_base::message::{Block, Content, CustomMessage, Message};
use serde_json::Value;

use super::Done;
use super::markup::{Html, Style, grouped};
use super::message::joined;
use super::page::spent;
use super::survey::{Sum, text};
use super::transcript::{Look, Transcript};
use crate::json_text::pretty;

impl Transcript<'_> {
    /// Writes the entry at a place; `following` are the places that come next.
    pub(super) fn entry(&mut self, html: &mut Html<'_>, place: usize, following: &[usize]) -> Done {
        let Entry { body, .. } = match self.view.entry(place)? {
            Ok(entry) => entry,
            Err(line) => return self.unknown(html, place, &line),
        };
        match body {
            EntryBody::Message { message } => self.message(html, place, message, following),
            EntryBody::Compaction {
                summary,
                first_kept_entry_id,
                tokens_before,
                details,
                system_message,
                ..
            } => {
                let kept = &first_kept_entry_id;
                self.compaction(html, place, &summary, (kept, tokens_before))?;
                self.files(html, details.as_ref())?;
                if let Some(Message::System(system)) = &system_message {
                    self.prompt_patch(html, system)?;
                }
                self.end(html)
            }
            EntryBody::BranchSummary { from_id, summary, details, .. } => {
                self.branch_summary(html, place, &from_id, &summary)?;
                self.files(html, details.as_ref())?;
                self.end(html)
            }
            EntryBody::Custom { custom_type, data } => {
                self.custom(html, place, &custom_type, data.as_ref())
            }
            EntryBody::CustomMessage { custom_type, content, display, details } => {
                let timestamp = self.view.index.entries()[place].time;
                let message = CustomMessage { custom_type, content, display, details, timestamp };
                self.custom_message(html, place, &message)
            }
            EntryBody::Unknown(raw) => self.unknown(html, place, raw.text()),
            EntryBody::ModelChange { .. }
            | EntryBody::ThinkingLevelChange { .. }
            | EntryBody::ContextEdit { .. }
            | EntryBody::Label { .. }
            | EntryBody::SessionInfo { .. }
            | EntryBody::Usage { .. } => self.small(html, place, &body),
        }
    }

    /// Entries of one line.
    fn small(&mut self, html: &mut Html<'_>, place: usize, body: &EntryBody) -> Done {
        self.begin_note(html, place)?;
        match body {
            EntryBody::ModelChange { provider, model_id } => {
                html.put("Model: ")?;
                html.inline(&format!("{provider}/{model_id}"))?;
            }
            EntryBody::ThinkingLevelChange { thinking_level } => {
                html.put("Thinking level: ")?;
                html.inline(thinking_level)?;
            }
            EntryBody::Label { target_id, label } => {
                match label.as_deref().filter(|label| !label.is_empty()) {
                    None => html.put("Label removed from ")?,
                    Some(label) => {
                        html.put("Label ")?;
                        html.inline(label)?;
                        html.put(" on ")?;
                    }
                }
                self.link(html, target_id)?;
            }
            EntryBody::SessionInfo { name } => match name.as_deref().filter(|n| !n.is_empty()) {
                None => html.put("Session name removed")?,
                Some(name) => {
                    html.put("Session name: ")?;
                    html.inline(name)?;
                }
            },
            EntryBody::Usage { kind, provider, model, usage, note } => {
                html.put("Spent on ")?;
                html.inline(&format!("{kind} ({provider}/{model}): {}", spent(&Sum::of(usage))))?;
                if let Some(note) = note {
                    html.put(" – ")?;
                    html.inline(note)?;
                }
            }
            EntryBody::ContextEdit { target_id, replacement } => {
                return self.context_edit(html, target_id, replacement.as_ref());
            }
            EntryBody::Message { .. }
            | EntryBody::Compaction { .. }
            | EntryBody::BranchSummary { .. }
            | EntryBody::Custom { .. }
            | EntryBody::CustomMessage { .. }
            | EntryBody::Unknown(_) => {}
        }
        html.put("</p>\n")
    }

    /// Ends the note that [`Transcript::small`] began.
    fn context_edit(
        &self,
        html: &mut Html<'_>,
        target: &EntryId,
        replacement: Option<&Replacement>,
    ) -> Done {
        html.put(match replacement {
            None => "From here on left out of the model’s context: ",
            Some(_) => "From here on changed in the model’s context: ",
        })?;
        self.link(html, target)?;
        html.put("</p>\n")?;
        match replacement {
            None => Ok(()),
            Some(new) => html.folded(
                "What the model sees instead",
                Style::Prose,
                &joined(&new.content.blocks()),
            ),
        }
    }

    fn compaction(
        &self,
        html: &mut Html<'_>,
        place: usize,
        summary: &str,
        (kept, tokens_before): (&EntryId, u64),
    ) -> Done {
        let look = Look { class: "summary", headline: "What came before, summarised" };
        self.begin(html, look, place)?;
        html.block(Style::Prose, summary)?;
        let before = grouped(tokens_before);
        html.between("<p class=\"meta\">The context held about ", &before, " tokens; ")?;
        if self.view.index.position(kept) == Some(place) {
            html.put("nothing of it is kept")?;
        } else {
            html.put("kept from ")?;
            self.link(html, kept)?;
            html.put(" on")?;
        }
        html.put(".</p>\n")
    }

    fn branch_summary(&self, html: &mut Html<'_>, place: usize, from: &str, summary: &str) -> Done {
        let look = Look { class: "summary", headline: "A branch that was left, summarised" };
        self.begin(html, look, place)?;
        html.block(Style::Prose, summary)?;
        html.put("<p class=\"meta\">It ended at ")?;
        self.link(html, &EntryId::new(from))?;
        html.put(".</p>\n")
    }

    /// The files that a summary lists.
    fn files(&self, html: &mut Html<'_>, details: Option<&Raw>) -> Done {
        let Some(details) = details.map(Raw::value) else { return Ok(()) };
        for (key, label) in [("readFiles", "Files read"), ("modifiedFiles", "Files modified")] {
            let list = details.get(key).and_then(Value::as_array);
            let names: Vec<&str> = list.into_iter().flatten().filter_map(Value::as_str).collect();
            if !names.is_empty() {
                html.folded(label, Style::Code, &names.join("\n"))?;
            }
        }
        Ok(())
    }

    fn custom(
        &mut self,
        html: &mut Html<'_>,
        place: usize,
        kind: &str,
        data: Option<&Raw>,
    ) -> Done {
        match (kind, data.map(Raw::value)) {
            ("crew-abort", Some(data)) if text(&data, "subagentId").is_some() => {
                self.settled(html, place, &data)
            }
            ("crew.ending", Some(data)) if text(&data, "status").is_some() => {
                self.ending(html, place, &data)
            }
            ("crew.usage", Some(data)) if text(&data, "subagentId").is_some() => {
                self.crew_usage(html, place, &data)
            }
            _ => {
                self.begin_note(html, place)?;
                html.put("Data of the host: ")?;
                html.inline(kind)?;
                html.put("</p>\n")?;
                match data {
                    None => Ok(()),
                    Some(data) => html.folded("Data", Style::Code, &pretty(data.text())),
                }
            }
        }
    }

    pub(super) fn custom_message(
        &mut self,
        html: &mut Html<'_>,
        place: usize,
        message: &CustomMessage,
    ) -> Done {
        let CustomMessage { custom_type, content, display, details, .. } = message;
        let card =
            details.as_ref().map(Raw::value).filter(|data| text(data, "subagentId").is_some());
        match (custom_type.as_str(), card) {
            ("crew-result", Some(card)) => return self.settled(html, place, &card),
            ("crew-result", None) => return self.neutral(html, place, content),
            ("crew-user", _) => return self.person(html, place, content),
            _ => {}
        }
        if *display {
            self.begin(html, Look { class: "custom", headline: "Note" }, place)?;
            html.put("<p class=\"meta\">")?;
            html.inline(custom_type)?;
            html.put("</p>\n")?;
            self.content(html, content)?;
            return self.end(html);
        }
        self.begin_note(html, place)?;
        html.put("For the model only: ")?;
        html.inline(custom_type)?;
        html.put("</p>\n")?;
        html.folded("Content", Style::Code, &content.text())
    }

    /// Text and images of a message.
    pub(super) fn content(&self, html: &mut Html<'_>, content: &Content) -> Done {
        match content {
            Content::Text(text) => html.block(Style::Prose, text),
            Content::Blocks(blocks) => self.blocks(html, blocks),
        }
    }

    /// Text and images in order; other blocks as their JSON.
    pub(super) fn blocks(&self, html: &mut Html<'_>, blocks: &[Block]) -> Done {
        for block in blocks {
            match block {
                Block::Text(block) => html.block(Style::Prose, &block.text)?,
                Block::Image(image) => html.image(image)?,
                Block::Thinking(block) => html.folded("Thinking", Style::Prose, &block.thinking)?,
                Block::ToolCall(call) => {
                    html.folded(call.name.as_str(), Style::Code, &pretty(call.arguments.text()))?;
                }
                Block::Other(raw) => {
                    html.folded("Other content", Style::Code, &pretty(raw.text()))?;
                }
            }
        }
        Ok(())
    }

    /// An entry of a type we do not know, or one whose fields do not fit
    /// (`host.md` 2.2.10, 8.19).
    fn unknown(&self, html: &mut Html<'_>, place: usize, line: &str) -> Done {
        let value: Value = crew_base::json::from_text(line).unwrap_or_default();
        self.begin_note(html, place)?;
        html.put("Entry of the type ")?;
        html.inline(text(&value, "type").unwrap_or("unknown"))?;
        html.put("</p>\n")?;
        html.folded("Data", Style::Code, &pretty(line))
    }

    /// Opens an entry of one line.
    pub(super) fn begin_note(&self, html: &mut Html<'_>, place: usize) -> Done {
        html.between("<p class=\"note\" id=\"", &self.anchor(place), "\">")
    }
}
