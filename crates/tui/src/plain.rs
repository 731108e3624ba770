//! Line mode (TERM-57): no region, no cursor addressing, no repaint; for
//! screen readers, logs and terminals that can do no more.
//!
//! Every line begins with who speaks, a state is said once when it changes.
//! Must never write a control character. The state is that of [`View`]; only
//! the form of what is shown and typed differs.

use std::collections::{BTreeMap, BTreeSet};

use crew_base::time::Time;
use crew_engine::api::{Command, Status};

use crate::cells::{clean_lines, clean_text};
use crate::format;
use crate::keys::{Code, Input, Key};
use crate::request::TrustChoice;
use crate::theme::Icons;
use crate::transcript::Look;
use crate::transcript::item::Item;
use crate::view::full::Full;
use crate::view::questions::{Kind, quit_text};
use crate::view::{self, Receiver, View};

/// Columns that text is made for; nothing is broken to fit.
const COLUMNS: usize = 10_000;

/// What was said so far.
#[derive(Debug, Default)]
pub struct Plain {
    /// Bytes of the line that is typed.
    typed: Vec<u8>,
    /// Whether the prompt stands on the line.
    prompted: bool,
    owner_runs: bool,
    statuses: BTreeMap<String, Status>,
    asked: Option<String>,
    retry: Option<u32>,
    told_approvals: BTreeSet<u64>,
}

impl Plain {
    /// Takes what was typed; commands it leads to are to be sent in order.
    pub fn feed(&mut self, view: &mut View, now: Time, bytes: &[u8]) -> Vec<Command> {
        let mut commands = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.typed)).into_owned();
                self.prompted = false;
                commands.extend(self.line(view, now, &line));
            } else {
                self.typed.push(*byte);
            }
        }
        commands
    }

    fn line(&mut self, view: &mut View, now: Time, line: &str) -> Option<Command> {
        let line = clean_text(line);
        let press = |view: &mut View, key: Key| view::key(view, now, Input::Key(key));
        if let Some(question) = view.question.clone() {
            self.asked = None;
            return answer(view, now, &question.kind, line.trim());
        }
        if line.trim() == "/back" && view.receiver != Receiver::Owner {
            return press(view, Key::plain(Code::Esc));
        }
        if line.trim() == "/stop" {
            return press(view, Key::plain(Code::Esc));
        }
        view.editor.set(&line);
        view.menu = None;
        press(view, Key::plain(Code::Enter))
    }

    /// What is to be written now, whole lines but for the prompt at the end.
    pub fn take(&mut self, view: &mut View) -> String {
        let mut lines = Vec::new();
        self.full(view, &mut lines);
        for item in view.live.take_items() {
            lines.extend(spoken(&item));
        }
        self.states(view, &mut lines);
        self.question(view, &mut lines);
        self.approvals(view, &mut lines);
        let mut text = String::new();
        if !lines.is_empty() {
            if std::mem::take(&mut self.prompted) {
                text.push('\n');
            }
            for line in &lines {
                text.push_str(line);
                text.push('\n');
            }
        }
        let waits = !self.prompted && !view.is_busy() && view.question.is_none();
        if waits && view.session().is_some() {
            self.prompted = true;
            text.push_str(&prompt(&view.receiver));
        }
        text
    }

    /// A view of the full screen becomes sentences, or says what to type.
    fn full(&mut self, view: &mut View, lines: &mut Vec<String>) {
        let Some(full) = view.full.take() else { return };
        match *full {
            Full::Board(_) => lines.extend(board(view)),
            Full::Keys { .. } => {
                lines.push("help: a line is sent with Enter; / begins a command".to_owned());
                let commands = [
                    "/crew says what the subagents do",
                    "/crew answer ID TEXT answers one",
                    "/crew steer ID TEXT talks to one that works",
                    "/crew stop ID stops one",
                    "/stop stops the owner's run",
                    "/back leaves an answer",
                    "/quit leaves",
                ];
                lines.extend(commands.map(|text| format!("help: {text}")));
            }
            Full::Reader(..) => {
                lines.push("help: everything was written above; /export writes a page".to_owned());
            }
            Full::Tree(_) => {
                lines.push("help: the tree needs the full screen".to_owned());
            }
            Full::Picker(_) => {
                let text = "help: lists need the full screen; name what you mean, for example \
                            /model PROVIDER/ID";
                lines.push(text.to_owned());
            }
        }
    }

    fn states(&mut self, view: &View, lines: &mut Vec<String>) {
        let retry = view.run.retry.as_ref().map(|retry| retry.attempt);
        if let (Some(retry), true) = (&view.run.retry, retry != self.retry) {
            let words = crate::failure::words("", &retry.error);
            lines.push(format!(
                "owner: waits to try again, {} of {}: {}",
                retry.attempt, retry.attempts_max, words.short
            ));
        }
        self.retry = retry;
        let runs = view.run.since.is_some();
        if runs != self.owner_runs {
            self.owner_runs = runs;
            lines.push(format!("owner: {}", if runs { "works" } else { "is idle" }));
        }
        for one in &view.crew.open {
            if self.statuses.get(&one.id) == Some(&one.status) {
                continue;
            }
            self.statuses.insert(one.id.clone(), one.status);
            let id = clean_text(&one.id);
            lines.push(match one.status {
                Status::Running => format!("{id}: works on {}", clean_text(&one.brief)),
                Status::NeedsInput => {
                    let needs = clean_text(one.needs.as_deref().unwrap_or_default());
                    format!("{id}: needs you: {needs}")
                }
                Status::Completed => format!("{id}: is done"),
                Status::Error => format!("{id}: failed"),
                Status::Aborted => format!("{id}: was stopped"),
            });
        }
        let open: Vec<&String> = view.crew.open.iter().map(|one| &one.id).collect();
        let gone = |id: &String| !open.contains(&id);
        for id in self.statuses.keys().filter(|id| gone(id)) {
            lines.push(format!("{}: is closed", clean_text(id)));
        }
        self.statuses.retain(|id, _| open.contains(&id));
    }

    /// Each tool that waits is told once; `/allow` and `/refuse` answer.
    fn approvals(&mut self, view: &View, lines: &mut Vec<String>) {
        for approval in &view.approvals {
            if self.told_approvals.insert(approval.id) {
                lines.push(format!("question: run {}?", clean_text(&approval.tool)));
                let about = clean_lines(&approval.view);
                lines.extend(about.iter().map(|line| format!("question: {line}")));
                lines.push("question: type /allow to run it, /refuse not to".to_owned());
            }
        }
        self.told_approvals.retain(|id| view.approvals.iter().any(|known| known.id == *id));
    }

    fn question(&mut self, view: &View, lines: &mut Vec<String>) {
        let Some(question) = &view.question else {
            self.asked = None;
            return;
        };
        let asked = match &question.kind {
            Kind::Quit => {
                let text = quit_text(view);
                let text = text.split('?').next().unwrap_or_default();
                vec![format!("question: {text}? Type yes to quit.")]
            }
            Kind::Stop { ids, .. } => {
                let mut asked = vec!["question: which subagent is to be stopped?".to_owned()];
                asked.extend(ids.iter().map(|id| format!("question: type {}", clean_text(id))));
                asked
            }
            Kind::Trust { files, .. } => trust(files),
            Kind::Choose { choice, .. } => {
                let mut asked = vec![format!("question: {}", clean_text(&choice.text))];
                let lines = choice.answers.iter().enumerate().map(|(at, (answer, more))| {
                    let default = if at == 0 { " (default)" } else { "" };
                    let more = if more.is_empty() { "" } else { ", " }.to_owned() + more;
                    let text = clean_text(&format!("{answer}{more}"));
                    format!("question: type {} {text}{default}", at + 1)
                });
                asked.extend(lines);
                asked
            }
        };
        let text = asked.join("\n");
        if self.asked.as_ref() != Some(&text) {
            lines.extend(asked);
            self.asked = Some(text);
        }
    }
}

/// The prompt, which names the receiver.
fn prompt(receiver: &Receiver) -> String {
    match receiver {
        Receiver::Owner => "owner> ".to_owned(),
        Receiver::Answer(id) => format!("answer {}> ", clean_text(id)),
        Receiver::Steer(id) => format!("steer {}> ", clean_text(id)),
    }
}

fn trust(files: &crate::request::TrustFiles) -> Vec<String> {
    let mut asked = vec!["question: this folder brings its own settings. Use them?".to_owned()];
    for (path, holds) in &files.files {
        asked.push(format!("question: {} holds {}", clean_text(path), clean_text(holds)));
    }
    let below = format!("4 always below {}", clean_text(&files.parent));
    let choices = [
        "1 not this time (default)",
        "2 only this time",
        "3 always in this folder",
        &below,
        "5 never in this folder",
    ];
    asked.extend(choices.iter().map(|choice| format!("question: type {choice}")));
    asked
}

fn answer(view: &mut View, now: Time, kind: &Kind, line: &str) -> Option<Command> {
    match kind {
        Kind::Quit => {
            if line.eq_ignore_ascii_case("yes") {
                return view::key(view, now, Input::Key(Key::ctrl('c')));
            }
            view.question = None;
            None
        }
        Kind::Stop { ids, .. } => {
            view.question = None;
            let id = ids.iter().find(|id| id.as_str() == line)?.clone();
            view.stop_subagent(&id)
        }
        Kind::Trust { .. } => {
            view.question = None;
            let number = line.parse::<usize>().unwrap_or(1).saturating_sub(1);
            let choice = TrustChoice::ALL.get(number).copied().unwrap_or(TrustChoice::NotNow);
            view.ask(crate::request::Request::Trusted(choice));
            None
        }
        Kind::Choose { choice, .. } => {
            view.question = None;
            let number = line.parse::<usize>().unwrap_or(1).saturating_sub(1);
            let number = if number < choice.answers.len() { number } else { 0 };
            view.ask(crate::request::Request::Chosen(number));
            None
        }
    }
}

/// The board as sentences.
fn board(view: &View) -> Vec<String> {
    let counts = view.crew.counts();
    let mut lines = vec![format!(
        "crew: {} open: {} running, {} need you, {} done",
        view.crew.open.len(),
        counts.running,
        counts.waiting,
        counts.done
    )];
    for one in &view.crew.open {
        let state = match one.status {
            Status::Running => "works".to_owned(),
            Status::NeedsInput => {
                format!("needs you: {}", clean_text(one.needs.as_deref().unwrap_or_default()))
            }
            Status::Completed => "is done and waits for its owner".to_owned(),
            Status::Error => "failed".to_owned(),
            Status::Aborted => "was stopped".to_owned(),
        };
        lines.push(format!(
            "crew: {}, {}, {}, worked {}, {}",
            clean_text(&one.id),
            clean_text(&one.brief),
            state,
            format::time(one.worked_ms(view.now)),
            format::cost(one.usage.cost.total)
        ));
    }
    lines
}

/// An item as lines that begin with who speaks.
fn spoken(item: &Item) -> Vec<String> {
    let (who, lines): (String, Vec<String>) = match item {
        // What the person typed stands on the screen already.
        Item::User(_) => return Vec::new(),
        Item::Asked(text) | Item::Answer(text) => ("owner".to_owned(), clean_lines(text)),
        Item::Thought(text) => ("owner thinks".to_owned(), clean_lines(text)),
        Item::Shell(shell) => ("shell".to_owned(), clean_lines(&shell.output)),
        Item::Card(card) => {
            let mut lines = vec![format!("{} of {}", card.status.word(), clean_text(&card.brief))];
            lines.extend(card.needs.iter().flat_map(|needs| clean_lines(needs)));
            lines.extend(clean_lines(&card.text));
            (clean_text(&card.subagent), lines)
        }
        Item::Told { deed, subagent, text } => {
            ("you".to_owned(), vec![clean_text(&format!("{deed} {subagent}: {text}"))])
        }
        Item::Failure { what, next } => {
            let mut lines = vec![clean_text(what)];
            lines.extend(next.iter().map(|next| clean_text(next)));
            ("error".to_owned(), lines)
        }
        Item::Notice(text) => ("crew".to_owned(), clean_lines(text)),
        Item::Summary { .. } | Item::Tool(_) => {
            let theme = crate::theme::Theme { colours: false, icons: Icons::Ascii, motion: false };
            let look =
                Look { theme, columns: COLUMNS, expanded: false, thinking: false, reader: None };
            let lines = item.lines(&look);
            let lines = lines.iter().map(|line| line.row.text().trim().to_owned()).collect();
            (if matches!(item, Item::Tool(_)) { "tool" } else { "crew" }.to_owned(), lines)
        }
    };
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    filled.map(|line| format!("{who}: {line}")).collect()
}
