//! What must be known of a session before its page is written: sums, edits of
//! the context, spawned children and how they ended.
//!
//! One pass in file order. Keeps numbers, ids and the texts of assignments, not
//! the conversation.

use std::collections::{BTreeMap, HashMap};

use crew_base::entry::EntryBody;
use crew_base::id::EntryId;
use crew_base::json::{Raw, from_text};
use crew_base::message::{Message, ToolCall, Usage};
use crew_base::text::sanitise_inline;
use crew_base::time::Time;
use serde::Deserialize;
use serde_json::Value;

use super::view::View;
use crate::error::Result;
use crate::session::index::{Kind, Role};

/// What a pass over a session found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Own tokens and cost, of every branch (`host.md` 7.3.2).
    pub(super) own: Sum,
    /// Tokens and cost of the crew by subagent (`product.md` P-14i).
    pub(super) crew: BTreeMap<String, Sum>,
    pub(super) prompts: usize,
    pub(super) answers: usize,
    pub(super) tool_calls: usize,
    /// The first prompt.
    pub(super) first_prompt: Option<String>,
    /// Provider and model at the end of the active branch.
    pub(super) model: Option<(String, String)>,
    /// Thinking level at the end of the active branch.
    pub(super) thinking_level: Option<String>,
    /// What the last edit does to an entry's place in the context.
    pub(super) edits: HashMap<EntryId, Edit>,
    /// Successful and failed calls of `crew_spawn`, in file order.
    pub(super) spawns: Vec<Spawn>,
    /// The last status of each subagent that settled.
    pub(super) outcomes: HashMap<String, String>,
    /// Status of a child that ended without a result (`crew.md` LIFE-5).
    pub(super) ending: Option<String>,
}

/// Tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    /// In USD.
    pub(super) cost: f64,
}

/// An edit of the context (`host.md` 2.6.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Edit {
    /// The message is left out.
    Dropped,
    /// Its content is another one.
    Replaced,
}

/// A call of `crew_spawn`.
#[derive(Debug)]
pub(super) struct Spawn {
    /// Place of the answer that holds the call.
    pub(super) place: usize,
    /// Id of the call.
    pub(super) call: String,
    /// Name that the child's session gets (`crew.md` ISO-9).
    pub(super) title: String,
    pub(super) brief: String,
    /// The beginning of the child's first prompt (`crew.md` TASK-7).
    pub(super) opening: String,
    pub(super) time: Time,
    /// The subagent, once the result names it.
    pub(super) subagent: Option<String>,
}

impl Sum {
    pub(super) fn of(usage: &Usage) -> Sum {
        Sum {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            cost: usage.cost.total,
        }
    }

    /// Numbers come from files, so a sum may not overflow.
    pub(super) fn add(&mut self, other: &Sum) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cost += other.cost;
    }
}

impl Survey {
    /// Passes over a session; `on_path` tells which places are on the active
    /// branch.
    pub(super) fn of(view: &mut View<'_>, on_path: &[bool]) -> Result<Survey> {
        let mut survey = Survey::default();
        let index = view.index;
        for (place, entry) in index.entries().iter().enumerate() {
            match entry.kind {
                Kind::Message(Role::User) => {
                    survey.prompts += 1;
                    if survey.first_prompt.is_none() {
                        survey.first_prompt = first_prompt(view, place)?;
                    }
                }
                Kind::Message(Role::Assistant) => {
                    survey.answer(view, place, on_path[place])?;
                }
                Kind::Message(Role::ToolResult) => survey.result(&view.line(place)?),
                Kind::Compaction | Kind::BranchSummary | Kind::Usage => {
                    survey.spend(&view.line(place)?);
                }
                Kind::ModelChange
                | Kind::ThinkingLevelChange
                | Kind::ContextEdit
                | Kind::Custom
                | Kind::CustomMessage => survey.other(view, place, on_path)?,
                Kind::Message(_) | Kind::Label | Kind::SessionInfo | Kind::Unknown => {}
            }
        }
        Ok(survey)
    }

    /// Tokens and cost of all subagents together.
    pub(super) fn crew_sum(&self) -> Sum {
        let mut sum = Sum::default();
        for one in self.crew.values() {
            sum.add(one);
        }
        sum
    }

    fn answer(&mut self, view: &mut View<'_>, place: usize, on_path: bool) -> Result<()> {
        let Ok(entry) = view.entry(place)? else { return Ok(()) };
        let EntryBody::Message { message: Message::Assistant(answer) } = entry.body else {
            return Ok(());
        };
        self.answers += 1;
        self.own.add(&Sum::of(&answer.usage));
        for call in answer.tool_calls() {
            self.tool_calls += 1;
            if call.name == "crew_spawn" {
                let time = view.index.entries()[place].time;
                self.spawns.push(Spawn::of(place, call, time));
            }
        }
        if on_path {
            self.model = Some((answer.provider, answer.model));
        }
        Ok(())
    }

    fn result(&mut self, line: &str) {
        let Ok(ResultLine { message }) = from_text(line) else { return };
        if let Some(usage) = &message.usage {
            self.own.add(&Sum::of(usage));
        }
        if message.tool_name.as_deref() == Some("crew_spawn") {
            let value = message.details.map(|details| details.value());
            let id = value.as_ref().and_then(|value| text(value, "subagentId"));
            let call = message.tool_call_id.unwrap_or_default();
            let spawn = self.spawns.iter_mut().rev().find(|spawn| spawn.call == call);
            if let (Some(spawn), Some(id)) = (spawn, id) {
                spawn.subagent = Some(id.to_owned());
            }
        }
    }

    fn spend(&mut self, line: &str) {
        let Ok(UsageLine { usage: Some(usage) }) = from_text(line) else { return };
        self.own.add(&Sum::of(&usage));
    }

    fn other(&mut self, view: &mut View<'_>, place: usize, on_path: &[bool]) -> Result<()> {
        let Ok(entry) = view.entry(place)? else { return Ok(()) };
        match entry.body {
            EntryBody::ModelChange { provider, model_id } if on_path[place] => {
                self.model = Some((provider, model_id));
            }
            EntryBody::ThinkingLevelChange { thinking_level } if on_path[place] => {
                self.thinking_level = Some(thinking_level);
            }
            EntryBody::ContextEdit { target_id, replacement } => {
                let target = view.index.position(&target_id);
                // An edit on another branch says nothing of what both share.
                if on_path[place] || target.is_some_and(|target| !on_path[target]) {
                    let edit = replacement.map_or(Edit::Dropped, |_| Edit::Replaced);
                    self.edits.insert(target_id, edit);
                }
            }
            EntryBody::Custom { custom_type, data: Some(data) } => {
                self.custom(&custom_type, &data);
            }
            EntryBody::CustomMessage { custom_type, details: Some(details), .. }
                if custom_type == "crew-result" =>
            {
                self.settled(&details.value());
            }
            EntryBody::Message { .. }
            | EntryBody::ModelChange { .. }
            | EntryBody::ThinkingLevelChange { .. }
            | EntryBody::Compaction { .. }
            | EntryBody::BranchSummary { .. }
            | EntryBody::Custom { .. }
            | EntryBody::CustomMessage { .. }
            | EntryBody::Label { .. }
            | EntryBody::SessionInfo { .. }
            | EntryBody::Usage { .. }
            | EntryBody::Unknown(_) => {}
        }
        Ok(())
    }

    fn custom(&mut self, custom_type: &str, data: &Raw) {
        match custom_type {
            "crew.usage" => {
                let Ok(CrewUsage { subagent_id, usage }) = from_text(data.text()) else { return };
                // Cumulative, so the last one counts.
                self.crew.insert(subagent_id, Sum::of(&usage));
            }
            "crew.ending" => self.ending = text(&data.value(), "status").map(str::to_owned),
            "crew-abort" => self.settled(&data.value()),
            _ => {}
        }
    }

    fn settled(&mut self, details: &Value) {
        if let (Some(id), Some(status)) = (text(details, "subagentId"), text(details, "status")) {
            self.outcomes.insert(id.to_owned(), status.to_owned());
        }
    }
}

impl Spawn {
    fn of(place: usize, call: &ToolCall, time: Time) -> Spawn {
        let arguments = call.arguments.value();
        let argument = |key| text(&arguments, key).unwrap_or_default();
        let brief = sanitise_inline(argument("brief"));
        let goal = arguments.get("task").and_then(|task| text(task, "goal")).unwrap_or_default();
        Spawn {
            place,
            call: call.id.as_str().to_owned(),
            title: format!("crew: {} · {brief}", sanitise_inline(argument("subagent"))),
            brief,
            opening: format!("## Goal\n\n{goal}\n"),
            time,
            subagent: None,
        }
    }
}

/// The text of a member, if it is text.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn first_prompt(view: &mut View<'_>, place: usize) -> Result<Option<String>> {
    let Ok(entry) = view.entry(place)? else { return Ok(None) };
    if let EntryBody::Message { message: Message::User(prompt) } = entry.body {
        return Ok(Some(prompt.content.text()));
    }
    Ok(None)
}

#[derive(Deserialize)]
struct UsageLine {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct ResultLine {
    message: ResultFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultFields {
    tool_name: Option<String>,
    tool_call_id: Option<String>,
    details: Option<Raw>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CrewUsage {
    subagent_id: String,
    usage: Usage,
}
