//! Texts of our own: the header, the ways on without a model, the keys.

use super::View;
use crate::cells::Row;
use crate::keys::action::Action;
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
pub(super) fn keys(view: &View) -> Vec<(String, &'static str)> {
    let keys = |fixed: &str, actions: &[Action]| keys_of(view, fixed, actions);
    // Where Shift+Enter arrives as Enter it would send.
    let newline = keys("", &[Action::Newline]);
    let newline = newline.split(", ").filter(|key| view.enhanced || *key != "Shift+Enter");
    let newline = newline.chain(["\\ Enter"]).filter(|key| !key.is_empty());
    let on_board = view.setup.keys.all(Action::BoardSteer).next();
    let on_board = on_board.map_or_else(String::new, |key| format!("Ctrl+X b {key}, "));
    let steer = format!("{on_board}/crew steer ID TEXT");
    let all = vec![
        (keys("", &[Action::Submit]), "send; while the owner runs: steer"),
        (keys("Ctrl+X Enter", &[Action::Later]), "queue as follow-up"),
        (newline.collect::<Vec<_>>().join(", "), "new line"),
        (keys("", &[Action::Interrupt]), "close a menu, leave an answer, stop the owner's run"),
        (keys("", &[Action::Clear]), "clear the editor; twice on an empty one: quit"),
        (keys("", &[Action::Exit]), "quit on an empty editor"),
        (keys("", &[Action::Delete]), "delete right"),
        (keys("", &[Action::Suspend]), "suspend"),
        (keys("", &[Action::Redraw]), "draw the screen anew"),
        (keys("", &[Action::HistoryOlder, Action::HistoryNewer]), "history; also from the edge"),
        (keys("", &[Action::HistorySearch]), "search the history"),
        (keys("", &[Action::Thinking]), "thinking level"),
        (keys("", &[Action::Thoughts]), "show or hide thoughts"),
        (keys("", &[Action::Transcript]), "transcript, everything expanded"),
        (keys("Ctrl+X b, Left when empty", &[Action::Board]), "crew board"),
        (keys("Ctrl+X a", &[Action::Answer]), "answer the oldest subagent that needs input"),
        (keys("Ctrl+X d", &[Action::Widget]), "crew widget long or short"),
        (steer, "talk to a subagent that runs"),
        ("Ctrl+X o r".to_owned(), "run, refuse the tool that waits for your word"),
        (keys("Ctrl+X x", &[Action::Stop]), "stop a subagent"),
        (keys("Ctrl+X m", &[Action::ModelPicker]), "model picker"),
        (keys("Ctrl+X p", &[Action::NextModel]), "next model"),
        (keys("Ctrl+X P", &[Action::PreviousModel]), "previous model"),
        (keys("Ctrl+X u", &[Action::TakeBack]), "take queued messages back"),
        (keys("Ctrl+X e", &[Action::EditOutside]), "external editor"),
        (keys("Ctrl+X v", &[Action::Paste]), "paste image or files"),
        (keys("Ctrl+X y", &[Action::Copy]), "copy the last reply"),
        ("Ctrl+X 1…9".to_owned(), "copy a code block of it"),
        (keys("Ctrl+X t", &[Action::Tree]), "session tree"),
        (keys("", &[Action::NewSession]), "new session"),
        (keys("", &[Action::Resume]), "open another session"),
        (keys("", &[Action::Fork]), "fork from an earlier message"),
        (keys("Ctrl+X ?", &[Action::Help]), "this list"),
    ];
    all.into_iter().filter(|(keys, _)| !keys.is_empty()).collect()
}

/// Keys that always work and those that are bound, for one line.
fn keys_of(view: &View, fixed: &str, actions: &[Action]) -> String {
    let bound = actions.iter().flat_map(|action| view.setup.keys.all(*action));
    let fixed = (!fixed.is_empty()).then(|| fixed.to_owned());
    fixed.into_iter().chain(bound).collect::<Vec<_>>().join(", ")
}

/// The choices behind Ctrl+X, for the footer (TERM-15).
pub(crate) const LEADER: &str = "Ctrl+X then: a answer · b board · d widget · e editor · m model · \
     p model+ · u take back · x stop · y copy · ? keys · Esc";
