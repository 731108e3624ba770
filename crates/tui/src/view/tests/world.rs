//! A face in a world of updates and keys.

use std::sync::Arc;

use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{CallId, EntryId, SessionId, SubagentId};
use crew_base::json::Raw;
use crew_base::message::{Block, CustomMessage, Message, Usage};
use crew_base::model::{ModelEvent, ThinkingLevel};
use crew_base::time::Time;
use crew_base::tool::ToolOutcome;
use crew_engine::api::{
    Command, CommandId, CrewUpdate, Refusal, SessionUpdate, Status, Update, UpdateKind,
};

use crate::keys::{Code, Input, Key};
use crate::request::{
    Activity, ActivityState, DoubleEscape, Facts, ModelFacts, Reply, Request, Setup, Shown,
    SubagentFacts,
};
use crate::screen::Size;
use crate::theme::Theme;
use crate::view::{self, View};

pub(super) const OWNER: &str = "owner-session";

/// The face and what it printed and asked for.
pub(super) struct World {
    pub(super) view: View,
    pub(super) now: Time,
    pub(super) printed: Vec<String>,
    pub(super) sent: Vec<Command>,
    commands: u64,
}

impl World {
    /// A face of a session with a model.
    pub(super) fn new(columns: usize, rows: usize) -> World {
        let mut world = World::bare(columns, rows);
        world.show(Some(model()));
        world.facts(|_| {});
        world.settle();
        world.printed.clear();
        world
    }

    /// A face without a session.
    pub(super) fn bare(columns: usize, rows: usize) -> World {
        let setup = Setup {
            version: "0.1.0".into(),
            theme: Theme::default(),
            cwd: "~/src/parser".into(),
            branch: Some("main".into()),
            menu_rows: 5,
            widget_tools: true,
            thinking: true,
            double_escape: DoubleEscape::Tree,
            tree_filter: Default::default(),
            skip_summary: false,
            attention: vec!["needs_input".into(), "error".into(), "idle".into()],
            attention_form: crate::request::AttentionForm::Bell,
            several_providers: false,
            header: true,
            keys: Default::default(),
        };
        let now = Time(1_800_000_000_000);
        World {
            view: View::new(setup, Size { columns, rows }, now),
            now,
            printed: Vec::new(),
            sent: Vec::new(),
            commands: 0,
        }
    }

    pub(super) fn show(&mut self, model: Option<ModelFacts>) {
        let shown = Shown {
            session: SessionId::from(OWNER),
            name: None,
            items: Vec::new(),
            draft: None,
            cwd: "~/src/parser".into(),
            model,
            thinking: ThinkingLevel::Medium,
        };
        self.reply(Reply::Shown(Box::new(shown)));
    }

    /// Figures of the host, changed by a test.
    pub(super) fn facts(&mut self, change: impl Fn(&mut Facts)) {
        let mut facts = Facts {
            model: Some(model()),
            thinking: Some(ThinkingLevel::Medium),
            context_tokens: Some(18_000),
            auto_compaction: true,
            ..Facts::default()
        };
        facts.own = Usage { input: 12_400, output: 3_100, ..Usage::default() };
        facts.own.cost.total = 0.08;
        facts.crew.cost.total = 0.11;
        change(&mut facts);
        self.reply(Reply::Facts(Box::new(facts)));
    }

    pub(super) fn reply(&mut self, reply: Reply) {
        view::reply(&mut self.view, self.now, reply);
    }

    /// Time passes.
    pub(super) fn pass(&mut self, ms: u64) {
        self.now = self.now + ms;
        view::tick(&mut self.view, self.now);
    }

    pub(super) fn update(&mut self, update: Update) {
        view::update(&mut self.view, self.now, update);
    }

    pub(super) fn session(&mut self, update: SessionUpdate) {
        self.update(Update::Session { session: SessionId::from(OWNER), update });
    }

    /// Presses keys written as words: `C-x`, `Esc`, `Enter`, or text.
    pub(super) fn keys(&mut self, words: &str) {
        for word in words.split(' ') {
            for key in key(word) {
                self.press(key);
            }
        }
    }

    pub(super) fn press(&mut self, key: Key) {
        self.now = self.now + 10;
        if let Some(command) = view::key(&mut self.view, self.now, Input::Key(key)) {
            self.commands += 1;
            view::sent(&mut self.view, CommandId(self.commands));
            self.sent.push(command);
        }
    }

    /// Types a text, letter by letter.
    pub(super) fn type_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(Key::char(c)));
    }

    pub(super) fn paste(&mut self, text: &str) {
        let command = view::key(&mut self.view, self.now, Input::Paste(text.to_owned()));
        assert!(command.is_none());
    }

    /// The newest command was answered.
    pub(super) fn answer(&mut self, result: Result<(), Refusal>) {
        let command = CommandId(self.commands);
        self.update(Update::Answered { command, result });
    }

    pub(super) fn requests(&mut self) -> Vec<Request> {
        view::take_requests(&mut self.view)
    }

    /// Prints what is final.
    pub(super) fn settle(&mut self) {
        view::tick(&mut self.view, self.now);
        self.view.refresh_reader();
        let lines = view::take_final(&mut self.view);
        self.printed.extend(lines.iter().map(|line| line.row.text().to_owned()));
    }

    /// The rows that are drawn.
    pub(super) fn rows(&mut self) -> Vec<String> {
        view::tick(&mut self.view, self.now);
        self.view.refresh_reader();
        let picture = crate::draw::draw(&self.view);
        for row in &picture.rows {
            let (columns, width) = (self.view.size.columns, row.width());
            assert!(width <= columns, "{width} of {columns}: {}", row.text());
        }
        let room = self.view.size.rows - usize::from(!picture.is_full);
        assert!(picture.rows.len() <= room.max(1), "{} rows", picture.rows.len());
        picture.rows.iter().map(|row| row.text().to_owned()).collect()
    }

    pub(super) fn draft(&self) -> String {
        self.view.editor.text()
    }

    /// The row that holds a text.
    pub(super) fn row_with(&mut self, text: &str) -> Option<String> {
        self.rows().into_iter().find(|row| row.contains(text))
    }

    /// The rule above the editor.
    pub(super) fn rule(&mut self) -> String {
        self.rows().into_iter().find(|row| row.contains("─ ")).unwrap_or_default()
    }
}

fn key(word: &str) -> Vec<Key> {
    let plain = |code| vec![Key::plain(code)];
    match word {
        "" => Vec::new(),
        "Enter" => plain(Code::Enter),
        "Esc" => plain(Code::Esc),
        "Tab" => plain(Code::Tab),
        "Up" => plain(Code::Up),
        "Down" => plain(Code::Down),
        "Left" => plain(Code::Left),
        "Right" => plain(Code::Right),
        "Space" => vec![Key::char(' ')],
        "Backspace" => plain(Code::Backspace),
        "S-Tab" => vec![Key::plain(Code::Tab).with_shift()],
        "A-Enter" => vec![Key::plain(Code::Enter).with_alt()],
        _ => match word.strip_prefix("C-").and_then(|rest| rest.chars().next()) {
            Some(c) => vec![Key::ctrl(c)],
            None => word.chars().map(Key::char).collect(),
        },
    }
}

pub(super) fn model() -> ModelFacts {
    ModelFacts {
        provider: "anthropic".into(),
        id: "claude-opus-5".into(),
        window: 200_000,
        levels: vec![ThinkingLevel::Off, ThinkingLevel::Medium, ThinkingLevel::High],
        is_scripted: false,
    }
}

// What happens to the owner.
impl World {
    pub(super) fn run_starts(&mut self) {
        self.session(SessionUpdate::AgentStart);
        let text = r#"{"role":"assistant","content":[],"stopReason":"pending"}"#;
        let message: Message = crew_base::json::from_text(text).unwrap();
        self.session(SessionUpdate::MessageStart(Arc::new(message)));
        self.event(ModelEvent::BlockStart { index: 0, block: Block::text("") });
    }

    pub(super) fn event(&mut self, event: ModelEvent) {
        self.session(SessionUpdate::MessageUpdate { event, usage: Usage::default() });
    }

    pub(super) fn delta(&mut self, text: &str) {
        self.event(ModelEvent::BlockDelta { index: 0, delta: text.to_owned() });
    }

    /// The answer ends with a text, a stop reason and maybe an error.
    pub(super) fn answer_ends(&mut self, text: &str, stop: &str, error: Option<&str>) {
        let json = serde_json::json!({"role": "assistant", "provider": "anthropic",
            "content": [{"type": "text", "text": text}], "stopReason": stop,
            "errorMessage": error});
        let message: Message = crew_base::json::from_text(&json.to_string()).unwrap();
        self.session(SessionUpdate::MessageEnd(Arc::new(message)));
    }

    pub(super) fn run_ends(&mut self, aborted: bool) {
        self.session(SessionUpdate::AgentEnd { messages: Vec::new(), will_retry: false });
        self.session(SessionUpdate::AgentSettled { aborted });
    }

    pub(super) fn tool_starts(&mut self, call: &str, name: &str, arguments: &str) {
        self.session(SessionUpdate::ToolStart {
            call: CallId::from(call),
            name: name.to_owned(),
            arguments: Raw::parse(arguments).unwrap(),
        });
    }

    pub(super) fn tool_ends(&mut self, call: &str, name: &str, text: &str) {
        self.session(SessionUpdate::ToolEnd {
            call: CallId::from(call),
            name: name.to_owned(),
            outcome: ToolOutcome::text(text),
            duration_ms: Some(100),
        });
    }

    pub(super) fn queued(&mut self, steering: &[&str], follow_up: &[&str]) {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        self.session(SessionUpdate::QueueUpdate {
            steering: texts(steering),
            follow_up: texts(follow_up),
        });
    }
}

// What happens to subagents.
impl World {
    pub(super) fn crew(&mut self, id: &str, brief: &str, status: Status, kind: UpdateKind) {
        let definition = id.rsplit_once('-').map_or(id, |(name, _)| name);
        self.update(Update::Crew(CrewUpdate {
            owner: SessionId::from(OWNER),
            session: SessionId::new(format!("session-of-{id}")),
            subagent: SubagentId::new(id),
            definition: definition.to_owned(),
            brief: brief.to_owned(),
            model: Some("anthropic/haiku-5".into()),
            status,
            kind,
        }));
    }

    pub(super) fn spawn(&mut self, id: &str, brief: &str) {
        self.crew(id, brief, Status::Running, UpdateKind::Spawned);
    }

    pub(super) fn spawn_many(&mut self, count: usize) {
        for number in 0..count {
            self.spawn(&format!("scout-{number:08x}"), &format!("Part {number}"));
        }
    }

    pub(super) fn settles(&mut self, id: &str, status: Status, text: &str) {
        let usage = Usage { input: 41_200, output: 2_900, ..Usage::default() };
        self.crew(id, "", status, UpdateKind::Settled { text: text.to_owned(), usage });
    }

    pub(super) fn closes(&mut self, id: &str, status: Status) {
        self.crew(id, "", status, UpdateKind::Closed);
    }

    /// A result enters the owner's record.
    pub(super) fn card(&mut self, id: &str, report: &str) {
        let details = serde_json::json!({"subagentId": id, "brief": "Commas in the JSON reader",
            "status": "completed", "result": {"outcome": "completed", "report": report}});
        let message = Message::Custom(CustomMessage {
            custom_type: "crew-result".into(),
            content: crew_base::message::Content::Text("{}".into()),
            display: true,
            details: Some(Raw::of(&details)),
            timestamp: self.now,
        });
        self.session(SessionUpdate::MessageEnd(Arc::new(message)));
    }

    /// An abort entry of a subagent.
    pub(super) fn abort_entry(&mut self, id: &str) {
        let data = serde_json::json!({"subagentId": id, "brief": "B", "status": "aborted",
            "reason": "aborted by the user"});
        self.session(SessionUpdate::EntryAppended(Entry {
            id: EntryId::from("e1"),
            parent_id: None,
            timestamp: String::new(),
            body: EntryBody::Custom {
                custom_type: "crew-abort".into(),
                data: Some(Raw::of(&data)),
            },
        }));
    }

    /// A subagent with figures, as the host tells them.
    pub(super) fn figures(&mut self, facts: Vec<SubagentFacts>) {
        self.facts(|all| all.subagents.clone_from(&facts));
    }
}

/// Figures of one running subagent with rows of activity.
pub(super) fn figures(id: &str, brief: &str, rows: &[(&str, &str)]) -> SubagentFacts {
    let row = |(name, target): &(&str, &str)| Activity {
        name: (*name).to_owned(),
        target: (*target).to_owned(),
        state: ActivityState::Done,
        summary: None,
    };
    SubagentFacts {
        id: id.to_owned(),
        session: None,
        definition: "scout".into(),
        brief: brief.to_owned(),
        model: Some("anthropic/haiku-5".into()),
        thinking: Some(ThinkingLevel::Low),
        status: Status::Running,
        worked_ms: 41_000,
        tool_calls: 7,
        failures: 1,
        usage: Some(Usage { input: 31_000, output: 1_200, ..Usage::default() }),
        rows: Some(rows.iter().map(row).collect()),
        waits: None,
        settled: None,
        last_text: None,
    }
}
