//! What a client asks for: one line of JSON becomes a [`Command`], or a
//! refusal that says why not (`host.md` 7.2.2, 7.3).
//!
//! Pure. Must never fail on what a client may write.

use crew_base::id::SubagentId;
use crew_base::json::{Raw, from_text};
use crew_base::message::ImageBlock;
use crew_engine::api::QueueMode;
use serde_json::{Map, Value};

use super::response::Ticket;

/// A command and who is to be answered.
#[derive(Debug)]
pub(super) struct Request {
    /// For the response.
    pub(super) ticket: Ticket,
    /// What to do.
    pub(super) command: Command,
}

/// A line that is no command; the text is the answer's error.
#[derive(Debug)]
pub(super) struct Refused {
    /// For the response.
    pub(super) ticket: Ticket,
    /// Why.
    pub(super) error: String,
}

/// Text and images the person typed.
#[derive(Debug, PartialEq)]
pub(super) struct Typed {
    /// Not expanded yet.
    pub(super) text: String,
    /// In order.
    pub(super) images: Vec<ImageBlock>,
}

/// Where typed messages wait while a run is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// After the current tools.
    Steer,
    /// When the run would stop.
    FollowUp,
}

/// All commands (`host.md` 7.3; those of the crew 7.3.12).
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// Starts a run, or joins one as said.
    Prompt(Typed, Option<Queue>),
    /// Enters after the current tools, or with the next run.
    Queue(Typed, Queue),
    /// Stops the run; answered once it has settled.
    Abort,
    /// Summarises what came before.
    Compact { instructions: Option<String> },
    /// Runs a shell command of the person.
    Bash { command: String, exclude: bool },
    /// Stops it.
    AbortBash,
    /// Writes the session as a page.
    ExportHtml { path: Option<String> },
    /// Answered from what there is.
    Look(Look),
    /// Changes something of the session or its crew.
    Change(Change),
    /// Goes to another place in the tree of the session.
    Navigate(Place),
    /// Another session takes the place of this one.
    Move(Target),
    /// An answer to a dialog (`host.md` 7.5).
    UiResponse {
        /// The dialog; none that we asked without.
        id: Option<String>,
        confirmed: bool,
    },
}

/// What can be looked up.
#[derive(Debug, PartialEq)]
pub(super) enum Look {
    State,
    Messages,
    Models,
    Levels,
    Stats,
    ForkMessages,
    Entries {
        since: Option<String>,
    },
    Tree,
    LastText,
    Commands,
    Subagents,
    /// Takes what it shows out of the queue.
    ClearQueue,
}

/// What can be changed.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    Model { provider: String, model: String },
    NextModel,
    Level(String),
    NextLevel,
    Steering(QueueMode),
    FollowUp(QueueMode),
    AutoCompaction(bool),
    AutoRetry(bool),
    AbortRetry,
    Name(String),
    Label { entry: String, label: String },
    AbortSubagent(SubagentId),
    Respond(SubagentId, String),
    Done(SubagentId),
}

/// A place in the tree of the session, and how it is gone to.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    /// The entry.
    pub(super) entry: String,
    /// Whether what is left is summarised.
    pub(super) summary: bool,
    /// What the summary is to attend to; asks for one.
    pub(super) instructions: Option<String>,
    /// For the summary, else for the entry.
    pub(super) label: Option<String>,
}

/// Which session is wanted.
#[derive(Debug, PartialEq)]
pub(super) enum Target {
    New { parent: Option<String> },
    File { path: String },
    Fork { entry: String },
    Clone,
}

/// Reads one line.
pub(super) fn parse(line: &str) -> Result<Request, Refused> {
    let value: Value = from_text(line).map_err(|error| unreadable(None, &error.to_string()))?;
    let Value::Object(object) = value else {
        return Err(unreadable(None, "it is no JSON object"));
    };
    let id = object.get("id").filter(|id| !id.is_null()).map(Raw::of);
    let Some(kind) = object.get("type").and_then(Value::as_str) else {
        return Err(unreadable(id, "`type` must be a text"));
    };
    let ticket = Ticket { id, kind: kind.to_owned() };
    match command(kind, &Fields(&object)) {
        Ok(Some(command)) => Ok(Request { ticket, command }),
        Ok(None) => {
            let error = format!("Unknown command: {kind}");
            Err(Refused { ticket, error })
        }
        Err(error) => Err(Refused { ticket, error }),
    }
}

/// The refusal of a line that cannot be read at all.
pub(super) fn unreadable(id: Option<Raw>, reason: &str) -> Refused {
    let ticket = Ticket { id, kind: "parse".to_owned() };
    Refused { ticket, error: format!("Failed to parse command: {reason}") }
}

fn command(kind: &str, fields: &Fields<'_>) -> Result<Option<Command>, String> {
    let known = match kind {
        "prompt" => Command::Prompt(fields.typed()?, fields.queue()?),
        "steer" => Command::Queue(fields.typed()?, Queue::Steer),
        "follow_up" => Command::Queue(fields.typed()?, Queue::FollowUp),
        "abort" => Command::Abort,
        "compact" => Command::Compact { instructions: fields.optional_text("customInstructions")? },
        "bash" => Command::Bash {
            command: fields.text("command")?,
            exclude: fields.optional_flag("excludeFromContext")?,
        },
        "abort_bash" => Command::AbortBash,
        "crew_navigate" => Command::Navigate(Place {
            entry: fields.text("entryId")?,
            summary: fields.optional_flag("summary")?,
            instructions: fields.optional_text("instructions")?,
            label: fields.optional_text("label")?,
        }),
        "export_html" => Command::ExportHtml { path: fields.optional_text("outputPath")? },
        "extension_ui_response" => fields.answer(),
        _ => {
            let look = look(kind, fields)?.map(Command::Look);
            let other = match look {
                None => change(kind, fields)?.map(Command::Change),
                found => found,
            };
            return match other {
                None => Ok(target(kind, fields)?.map(Command::Move)),
                found => Ok(found),
            };
        }
    };
    Ok(Some(known))
}

fn look(kind: &str, fields: &Fields<'_>) -> Result<Option<Look>, String> {
    Ok(Some(match kind {
        "get_state" => Look::State,
        "get_messages" => Look::Messages,
        "get_available_models" => Look::Models,
        "get_available_thinking_levels" => Look::Levels,
        "get_session_stats" => Look::Stats,
        "get_fork_messages" => Look::ForkMessages,
        "get_entries" => Look::Entries { since: fields.optional_text("since")? },
        "get_tree" => Look::Tree,
        "get_last_assistant_text" => Look::LastText,
        "get_commands" => Look::Commands,
        "crew_list_open" => Look::Subagents,
        "clear_queue" => Look::ClearQueue,
        _ => return Ok(None),
    }))
}

fn change(kind: &str, fields: &Fields<'_>) -> Result<Option<Change>, String> {
    Ok(Some(match kind {
        "set_model" => {
            Change::Model { provider: fields.text("provider")?, model: fields.text("modelId")? }
        }
        "cycle_model" => Change::NextModel,
        "set_thinking_level" => Change::Level(fields.text("level")?),
        "cycle_thinking_level" => Change::NextLevel,
        "set_steering_mode" => Change::Steering(fields.mode()?),
        "set_follow_up_mode" => Change::FollowUp(fields.mode()?),
        "set_auto_compaction" => Change::AutoCompaction(fields.flag("enabled")?),
        "set_auto_retry" => Change::AutoRetry(fields.flag("enabled")?),
        "abort_retry" => Change::AbortRetry,
        "set_session_name" => Change::Name(fields.text("name")?),
        "crew_set_label" => Change::Label {
            entry: fields.text("entryId")?,
            label: fields.optional_text("label")?.unwrap_or_default(),
        },
        "crew_abort" => Change::AbortSubagent(fields.subagent()?),
        "crew_respond" => Change::Respond(fields.subagent()?, fields.filled_text("message")?),
        "crew_done" => Change::Done(fields.subagent()?),
        _ => return Ok(None),
    }))
}

fn target(kind: &str, fields: &Fields<'_>) -> Result<Option<Target>, String> {
    Ok(Some(match kind {
        "new_session" => Target::New { parent: fields.optional_text("parentSession")? },
        "switch_session" => Target::File { path: fields.filled_text("sessionPath")? },
        "fork" => Target::Fork { entry: fields.text("entryId")? },
        "clone" => Target::Clone,
        _ => return Ok(None),
    }))
}

/// The fields of a command; `null` counts as absent.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| format!("`{name}` must be a text"))?;
        Ok(Some(text.to_owned()))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    fn filled_text(&self, name: &str) -> Result<String, String> {
        let text = self.text(name)?;
        if text.trim().is_empty() { Err(format!("`{name}` is empty")) } else { Ok(text) }
    }

    fn optional_flag(&self, name: &str) -> Result<bool, String> {
        let Some(value) = self.get(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| format!("`{name}` must be true or false"))
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        if self.get(name).is_none() {
            return Err(format!("`{name}` is missing"));
        }
        self.optional_flag(name)
    }

    fn typed(&self) -> Result<Typed, String> {
        let typed = Typed { text: self.text("message")?, images: self.images()? };
        if typed.text.trim().is_empty() && typed.images.is_empty() {
            return Err("`message` is empty".to_owned());
        }
        Ok(typed)
    }

    fn images(&self) -> Result<Vec<ImageBlock>, String> {
        let Some(value) = self.get("images") else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or("`images` must be a list")?;
        let image = |(at, item): (usize, &Value)| {
            let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
            let is_image = text("type").is_none_or(|kind| kind == "image");
            match (text("data"), text("mimeType")) {
                (Some(data), Some(mime_type))
                    if is_image && is_base64(&data) && mime_type.starts_with("image/") =>
                {
                    Ok(ImageBlock { data, mime_type })
                }
                _ => Err(format!("`images[{at}]` must have base64 `data` and a `mimeType`")),
            }
        };
        items.iter().enumerate().map(image).collect()
    }

    /// Anything but a clear yes is a no (`host.md` 7.5.2).
    fn answer(&self) -> Command {
        let id = self.get("id").and_then(Value::as_str).map(str::to_owned);
        let confirmed = self.get("confirmed").and_then(Value::as_bool) == Some(true);
        Command::UiResponse { id, confirmed }
    }

    fn queue(&self) -> Result<Option<Queue>, String> {
        match self.optional_text("streamingBehavior")?.as_deref() {
            None => Ok(None),
            Some("steer") => Ok(Some(Queue::Steer)),
            Some("followUp") => Ok(Some(Queue::FollowUp)),
            Some(_) => Err("`streamingBehavior` must be `steer` or `followUp`".to_owned()),
        }
    }

    fn mode(&self) -> Result<QueueMode, String> {
        match self.text("mode")?.as_str() {
            "all" => Ok(QueueMode::All),
            "one-at-a-time" => Ok(QueueMode::OneAtATime),
            _ => Err("`mode` must be `all` or `one-at-a-time`".to_owned()),
        }
    }

    fn subagent(&self) -> Result<SubagentId, String> {
        Ok(SubagentId::new(self.filled_text("subagentId")?.trim()))
    }
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !body.is_empty() && text.len() - body.len() <= 2 && body.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Option<String>, String, String) {
        let refused = parse(line).unwrap_err();
        let id = refused.ticket.id.map(|id| id.text().to_owned());
        (id, refused.ticket.kind, refused.error)
    }

    #[test]
    fn what_is_no_command_is_refused_with_a_reason() {
        // host.md 7.2.2, 11.86, C130
        let check = |line: &str, kind: &str, error: &str| {
            let got = refused(line);
            assert_eq!(got.1, kind, "{line}");
            assert!(got.2.contains(error), "{line}: {}", got.2);
        };
        let parse = "Failed to parse command: ";
        for line in ["", "ls", "42", "[]", "null", "\"text\"", "{", r#"{"id":"1"}"#] {
            check(line, "parse", parse);
        }
        check(r#"{"type":7}"#, "parse", "`type`");
        check(r#"{"type":"zzz"}"#, "zzz", "Unknown command: zzz");
        check(r#"{"type":"prompt"}"#, "prompt", "`message` is missing");
        check(r#"{"type":"prompt","message":5}"#, "prompt", "`message` must be a text");
        check(r#"{"type":"prompt","message":" \n"}"#, "prompt", "`message` is empty");
        check(r#"{"type":"prompt","message":"x","streamingBehavior":"now"}"#, "prompt", "followUp");
        check(r#"{"type":"prompt","message":"x","images":[{"data":"?"}]}"#, "prompt", "images[0]");
        check(r#"{"type":"prompt","message":"x","images":{}}"#, "prompt", "list");
        check(r#"{"type":"set_auto_retry"}"#, "set_auto_retry", "missing");
        check(r#"{"type":"set_auto_retry","enabled":"yes"}"#, "set_auto_retry", "true or false");
        check(r#"{"type":"set_steering_mode","mode":"some"}"#, "set_steering_mode", "mode");
        check(r#"{"type":"switch_session","sessionPath":""}"#, "switch_session", "empty");
        check(r#"{"type":"crew_abort","subagentId":" "}"#, "crew_abort", "empty");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&deep, "parse", parse);
    }

    #[test]
    fn an_id_comes_back_as_it_was() {
        // host.md 7.1.3
        let check = |line: &str, id: Option<&str>| assert_eq!(refused(line).0.as_deref(), id);
        check(r#"{"id":"a\u00e9","type":"zzz"}"#, Some("\"aé\""));
        check(r#"{"id":7,"type":"zzz"}"#, Some("7"));
        check(r#"{"id":null,"type":"zzz"}"#, None);
        check(r#"{"type":"zzz"}"#, None);
    }

    #[test]
    fn commands_are_read_with_their_fields() {
        let check = |line: &str, expected: Command| {
            assert_eq!(parse(line).unwrap().command, expected, "{line}");
        };
        let typed = |text: &str| Typed { text: text.to_owned(), images: Vec::new() };
        check(
            r#"{"type":"prompt","message":"x","streamingBehavior":"steer","images":null}"#,
            Command::Prompt(typed("x"), Some(Queue::Steer)),
        );
        let image = ImageBlock { data: "QUI=".to_owned(), mime_type: "image/png".to_owned() };
        check(
            r#"{"type":"steer","message":"","images":[{"type":"image","data":"QUI=","mimeType":"image/png"}]}"#,
            Command::Queue(Typed { text: String::new(), images: vec![image] }, Queue::Steer),
        );
        check(r#"{"type":"new_session"}"#, Command::Move(Target::New { parent: None }));
        check(
            r#"{"type":"set_follow_up_mode","mode":"all"}"#,
            Command::Change(Change::FollowUp(QueueMode::All)),
        );
        check(r#"{"type":"get_tree","extra":[1]}"#, Command::Look(Look::Tree));
        check(
            r#"{"type":"bash","command":"ls"}"#,
            Command::Bash { command: "ls".to_owned(), exclude: false },
        );
        check(
            r#"{"type":"crew_respond","subagentId":" scout-1 ","message":"yes"}"#,
            Command::Change(Change::Respond("scout-1".into(), "yes".to_owned())),
        );
        let answer = |id: Option<&str>, confirmed| Command::UiResponse {
            id: id.map(str::to_owned),
            confirmed,
        };
        check(
            r#"{"type":"extension_ui_response","id":"x","cancelled":true}"#,
            answer(Some("x"), false),
        );
        check(
            r#"{"type":"extension_ui_response","id":"x","confirmed":true}"#,
            answer(Some("x"), true),
        );
        check(r#"{"type":"extension_ui_response","id":7,"confirmed":"yes"}"#, answer(None, false));
    }

    #[test]
    fn lone_surrogates_do_not_end_a_line() {
        // host.md 0.2
        let request = parse(r#"{"type":"steer","message":"a\ud83d"}"#).unwrap();
        let typed = Typed { text: "a\u{fffd}".to_owned(), images: Vec::new() };
        assert_eq!(request.command, Command::Queue(typed, Queue::Steer));
    }
}
