//! Questions about the session shown, answered as JSON (`host.md` 7.3).
//!
//! Changes nothing but the queue that `clear_queue` empties. Entries and
//! messages keep their text.

use std::sync::{Mutex, PoisonError};

use crew_base::id::EntryId;
use crew_base::json::Raw;
use crew_base::message::{SharedMessage, StopReason, Usage};
use crew_engine::api::SubagentView;
use crew_runtime::{Answer, Place, Query, QueryError, SessionTotals, State};
use serde::Serialize;
use serde_json::{Value, json as value};

use super::act::{OTHER_ANSWER, mode_word};
use super::face::Face;
use super::request::Look;
use super::response::{Reply, json};

/// A place among the notices that only moves on.
#[derive(Default)]
pub(super) struct Seen(Mutex<Place>);

impl Seen {
    pub(super) fn fetch_max(&self, place: Place) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = place.max(*seen);
    }

    pub(super) fn get(&self) -> Place {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Face {
    /// Answers a question.
    pub(super) async fn look(&mut self, look: Look) -> Reply {
        Ok(Some(match look {
            Look::State => self.state_json().await?,
            Look::Stats => self.stats().await?,
            Look::Models => self.models(),
            Look::Levels => {
                let state = self.state().await?;
                let levels = state.model.map(|model| model.supported_levels()).unwrap_or_default();
                let words: Vec<&str> = levels.into_iter().map(|level| level.word()).collect();
                value!({"levels": words}).to_string()
            }
            Look::Commands => self.commands(),
            Look::Messages => self.found(Query::Messages).await?,
            Look::ForkMessages => self.found(Query::ForkMessages).await?,
            Look::Tree => self.found(Query::Tree).await?,
            Look::Subagents => self.found(Query::Subagents).await?,
            Look::ClearQueue => self.found(Query::ClearQueue).await?,
            Look::Entries { since } => {
                let since = since.map(EntryId::new);
                self.found(Query::Entries { since }).await?
            }
            Look::LastText => {
                let answer = self.ask(Query::Messages).await.map_err(worded)?;
                let Answer::Messages(messages) = answer else {
                    return Err(OTHER_ANSWER.to_owned());
                };
                value!({"text": last_text(&messages)}).to_string()
            }
        }))
    }

    async fn found(&self, query: Query) -> Result<String, String> {
        self.ask(query).await.map_err(worded).and_then(answer_json)
    }

    async fn state_json(&self) -> Result<String, String> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Json<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            model: Option<Value>,
            thinking_level: &'a str,
            is_streaming: bool,
            is_compacting: bool,
            steering_mode: &'a str,
            follow_up_mode: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_file: Option<String>,
            session_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_name: Option<&'a str>,
            auto_compaction_enabled: bool,
            message_count: usize,
            pending_message_count: usize,
        }
        let state = self.state().await?;
        Ok(json(&Json {
            model: state.model.as_ref().map(|model| self.config.catalog.model_json(model)),
            thinking_level: state.thinking.word(),
            is_streaming: state.is_running,
            is_compacting: state.is_compacting,
            steering_mode: mode_word(state.steering),
            follow_up_mode: mode_word(state.follow_up),
            session_file: file_of(&state),
            session_id: state.header.id.as_str(),
            session_name: state.name.as_deref(),
            auto_compaction_enabled: self.modes.auto_compaction,
            message_count: state.messages,
            pending_message_count: state.pending,
        }))
    }

    /// All models whose provider has a credential.
    fn models(&self) -> String {
        let (catalog, credentials) = (&self.config.catalog, &self.config.credentials);
        let usable = catalog.models().iter();
        let usable = usable.filter(|model| credentials.is_configured(&model.provider));
        let models: Vec<Value> = usable.map(|model| catalog.model_json(model)).collect();
        value!({"models": models}).to_string()
    }

    async fn stats(&self) -> Result<String, String> {
        let state = self.state().await?;
        let answer = self.ask(Query::Totals).await.map_err(worded)?;
        let Answer::Totals(totals) = answer else { return Err(OTHER_ANSWER.to_owned()) };
        Ok(stats_json(&state, &totals))
    }

    /// Templates, then skills (`host.md` 7.3.11); those of extensions do not
    /// exist.
    fn commands(&self) -> String {
        let expansion = self.expansion();
        let mut commands: Vec<Value> = Vec::new();
        let info = |path: &str, origin: crew_store::resources::Origin| {
            value!({
                "path": path,
                "source": origin.kind(),
                "scope": origin.scope(),
                "origin": "top-level",
            })
        };
        for template in expansion.templates() {
            commands.push(value!({
                "name": template.name,
                "description": template.description,
                "source": "prompt",
                "sourceInfo": info(&template.path, template.origin),
            }));
        }
        if self.config.settings.enable_skill_commands {
            for skill in expansion.skills() {
                let mut source = info(&skill.file.to_string_lossy(), skill.origin);
                source["baseDir"] = value!(skill.folder().to_string_lossy());
                commands.push(value!({
                    "name": format!("skill:{}", skill.name),
                    "description": skill.description,
                    "source": "skill",
                    "sourceInfo": source,
                }));
            }
        }
        value!({"commands": commands}).to_string()
    }
}

/// The planned or existing file of a session.
pub(super) fn file_of(state: &State) -> Option<String> {
    state.file.as_ref().map(|file| file.to_string_lossy().into_owned())
}

/// A failed question in the words of the protocol (`host.md` 7.3.6).
pub(super) fn worded(error: QueryError) -> String {
    match error {
        QueryError::UnknownEntry(id) => format!("Entry not found: {id}"),
        QueryError::UnknownSession
        | QueryError::Busy
        | QueryError::Tool(_)
        | QueryError::Store(_)
        | QueryError::Ended => error.to_string(),
    }
}

fn answer_json(answer: Answer) -> Result<String, String> {
    #[derive(Serialize)]
    struct Messages {
        messages: Vec<SharedMessage>,
    }
    #[derive(Serialize)]
    struct Entries {
        entries: Vec<Raw>,
        #[serde(rename = "leafId")]
        leaf: Option<EntryId>,
    }
    #[derive(Serialize)]
    struct Tree {
        tree: Raw,
        #[serde(rename = "leafId")]
        leaf: Option<EntryId>,
    }
    Ok(match answer {
        Answer::Messages(messages) => json(&Messages { messages }),
        Answer::Entries { entries, leaf } => json(&Entries { entries, leaf }),
        Answer::Tree { tree, leaf } => json(&Tree { tree, leaf }),
        Answer::ForkMessages(messages) => {
            let item = |(id, text): &(EntryId, String)| value!({"entryId": id, "text": text});
            let messages: Vec<Value> = messages.iter().map(item).collect();
            value!({"messages": messages}).to_string()
        }
        Answer::Subagents(views) => {
            let subagents: Vec<Value> = views.iter().map(subagent_json).collect();
            value!({"subagents": subagents}).to_string()
        }
        Answer::Cleared { steering, follow_up } => {
            value!({"steering": steering, "followUp": follow_up}).to_string()
        }
        Answer::State(_) | Answer::Totals(_) | Answer::ForkPoint { .. } | Answer::Known => {
            return Err(OTHER_ANSWER.to_owned());
        }
    })
}

fn subagent_json(view: &SubagentView) -> Value {
    let mut object = value!({
        "subagentId": view.subagent,
        "subagent": view.definition,
        "brief": view.brief,
        "status": view.status.word(),
        "workedMs": view.worked_ms,
        "toolCalls": view.tool_calls,
    });
    if let Some(model) = &view.model {
        object["model"] = value!(model);
    }
    object
}

/// Text of the newest answer; ones without text are passed over unless the
/// model meant to say nothing (`host.md` 7.3.9).
fn last_text(messages: &[SharedMessage]) -> Option<String> {
    let answers = messages.iter().rev().filter_map(|message| message.as_assistant());
    let mut texts = answers.map(|answer| (answer.stop_reason, answer.text()));
    let newest = texts.find(|(reason, text)| *reason == StopReason::Stop || !text.is_empty());
    let text = newest.map(|(_, text)| text.trim().to_owned());
    text.filter(|text| !text.is_empty())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    total: u64,
}

impl Tokens {
    fn of(usage: &Usage) -> Tokens {
        Tokens {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            total: usage.sum(),
        }
    }
}

/// Counts of the file; tokens and cost of session and crew together, those of
/// the crew once more (`host.md` 7.3.2).
fn stats_json(state: &State, totals: &SessionTotals) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Stats<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        session_file: Option<String>,
        session_id: &'a str,
        user_messages: usize,
        assistant_messages: usize,
        tool_calls: usize,
        tool_results: usize,
        total_messages: usize,
        tokens: Tokens,
        #[serde(serialize_with = "crew_base::json::number")]
        cost: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        crew: Option<Part>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context_usage: Option<ContextUsage>,
    }
    #[derive(Serialize)]
    struct Part {
        tokens: Tokens,
        #[serde(serialize_with = "crew_base::json::number")]
        cost: f64,
    }
    let (own, crew) = (&totals.own, &totals.crew);
    let mut sum = own.usage.clone();
    sum.add(crew);
    let has_crew = *crew != Usage::default();
    json(&Stats {
        session_file: file_of(state),
        session_id: state.header.id.as_str(),
        user_messages: own.user_messages,
        assistant_messages: own.assistant_messages,
        tool_calls: own.tool_calls,
        tool_results: own.tool_results,
        total_messages: own.messages,
        tokens: Tokens::of(&sum),
        cost: sum.cost.total,
        crew: has_crew.then(|| Part { tokens: Tokens::of(crew), cost: crew.cost.total }),
        context_usage: context_usage(state),
    })
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextUsage {
    tokens: Option<u64>,
    context_window: u64,
    percent: Option<f64>,
}

/// How full the model's window is; unknown after a compaction until an answer
/// tells.
fn context_usage(state: &State) -> Option<ContextUsage> {
    let context_window = state.model.as_ref()?.context_window;
    let tokens = state.context_tokens;
    let percent = |tokens: u64| tokens as f64 * 100.0 / context_window as f64;
    let percent = tokens.filter(|_| context_window > 0).map(percent);
    Some(ContextUsage { tokens, context_window, percent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_base::message::Message;
    use std::sync::Arc;

    fn answer(text: &str, reason: &str) -> SharedMessage {
        let text = serde_json::to_string(text).unwrap();
        let line = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}}],"stopReason":"{reason}"}}"#
        );
        Arc::new(crew_base::json::from_text::<Message>(&line).unwrap())
    }

    #[test]
    fn the_last_text_passes_over_answers_that_say_nothing() {
        // host.md 7.3.9
        let check = |messages: &[SharedMessage], expected: Option<&str>| {
            assert_eq!(last_text(messages).as_deref(), expected);
        };
        check(&[], None);
        check(&[answer(" a ", "stop"), answer("", "toolUse")], Some("a"));
        check(&[answer("a", "stop"), answer("", "stop")], None);
        check(&[answer("a", "stop"), answer("b", "aborted")], Some("b"));
    }

    #[test]
    fn a_failed_question_has_its_fixed_text() {
        // host.md 7.3.6
        let error = QueryError::UnknownEntry("ffffffff".into());
        assert_eq!(worded(error), "Entry not found: ffffffff");
    }
}
