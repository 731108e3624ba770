//! Texts of our own: the header, the ways on without a model, the keys.

use super::View;
use crate::cells::Row;
use crate::markdown::{Line, plain};
use crate::request::Setup;
use crate::theme::{ACCENT, MUTED, TEXT, WARNING};

/// The header of a start (`host.md` 8.21, sketch S-1).
pub(super) fn header(view: &View) -> Vec<Line> {
    let columns = view.size.columns;
    let setup = &view.setup;
    if !setup.header {
        return Vec::new();
    }
    let mut first = format!("crew {}", setup.version);
    if let Some(model) = &view.facts.model {
        first.push_str(&format!(" · {}", model.id));
        if model.is_scripted {
            first.push_str(" (scripted)");
        }
    }
    let names: Vec<_> = view.found.agents.iter().map(|(name, _)| name.as_str()).collect();
    let mut lines = Vec::new();
    if columns >= 60 && !names.is_empty() {
        first.push_str(&format!(" · {} agents: {}", names.len(), names.join(" ")));
    }
    lines.push(Line::prose(Row::of(&first, TEXT).cut(columns)));
    let mut second = Vec::new();
    if columns >= 60 {
        let mut loaded = view.found.context_files.clone();
        if view.found.skills > 0 {
            loaded.push(crate::format::count(view.found.skills, "skill"));
        }
        if !loaded.is_empty() {
            second.push(format!("Loaded {}", loaded.join(", ")));
        }
    }
    second.push("Ctrl+X ? keys".to_owned());
    second.push("/ commands".to_owned());
    if columns >= 60 {
        second.push("@ files".to_owned());
        second.push("@crew: agents".to_owned());
    }
    lines.extend(plain(&second.join(" · "), columns, MUTED));
    lines.push(Line::prose(Row::new()));
    lines
}

/// What to do without a model (sketch S-12).
pub(super) fn no_model(looked_for: &str, setup: &Setup, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let head = format!("crew {} · no model yet. Looked for: {looked_for}.", setup.version);
    lines.extend(plain(&head, columns, WARNING));
    let ways = [
        ("a key", "in auth.json, then /reload · or export ANTHROPIC_API_KEY=… and start again"),
        ("local", "name a server on your machine in models.json, then /reload"),
        ("demo", "/model demo/crew · scripted, offline, shows how a crew works"),
    ];
    for (word, text) in ways {
        let mut row = Row::new();
        row.space(2);
        row.push(&format!("{word:<7}"), ACCENT);
        row.push(text, TEXT);
        lines.extend(row.wrap(columns, 9).into_iter().map(Line::prose));
    }
    lines
}

/// The keys that work here and now (`/hotkeys`).
pub(super) fn keys(view: &View) -> Vec<(&'static str, &'static str)> {
    let newline = if view.enhanced { "Shift+Enter, Ctrl+J" } else { "Ctrl+J, \\ Enter" };
    vec![
        ("Enter", "send; while the owner runs: steer"),
        ("Alt+Enter, Ctrl+X Enter", "queue as follow-up"),
        (newline, "new line"),
        ("Esc", "close a menu, leave an answer, stop the owner's run"),
        ("Ctrl+C", "clear the editor; twice on an empty one: quit"),
        ("Ctrl+D", "quit on an empty editor, else delete right"),
        ("Ctrl+Z", "suspend"),
        ("Ctrl+L", "draw the screen anew"),
        ("Up Down, Ctrl+P Ctrl+N", "history"),
        ("Ctrl+R", "search the history"),
        ("Shift+Tab", "thinking level"),
        ("Ctrl+T", "show or hide thoughts"),
        ("Ctrl+O", "transcript, everything expanded"),
        ("Ctrl+X b, Left on an empty editor", "crew board"),
        ("Ctrl+X a", "answer the oldest subagent that needs input"),
        ("Ctrl+X d, Ctrl+Shift+E", "crew widget long or short"),
        ("Ctrl+X b s, /crew steer ID TEXT", "talk to a subagent that runs"),
        ("Ctrl+X o r", "run, refuse the tool that waits for your word"),
        ("Ctrl+X x", "stop a subagent"),
        ("Ctrl+X m, Alt+M", "model picker"),
        ("Ctrl+X p P, Alt+P Alt+Shift+P", "next, previous model"),
        ("Ctrl+X u, Alt+Up", "take queued messages back"),
        ("Ctrl+X e, Ctrl+G", "external editor"),
        ("Ctrl+X v, Ctrl+V", "paste image or files"),
        ("Ctrl+X y", "copy the last reply"),
        ("Ctrl+X 1…9", "copy a code block of it"),
        ("Ctrl+X t", "session tree"),
        ("Ctrl+X ?, F1", "this list"),
    ]
}

/// The choices behind Ctrl+X, for the footer (TERM-15).
pub(crate) const LEADER: &str = "Ctrl+X then: a answer · b board · d widget · e editor · m model · \
     p model+ · u take back · x stop · y copy · ? keys · Esc";
