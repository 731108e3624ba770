//! The crew board (sketch S-7).

use crew_engine::api::Status;

use super::crew::{activity_line, still};
use super::{bound_hints, rule, waiting};
use crate::cells::Row;
use crate::format;
use crate::keys::action::Action;
use crate::screen::Picture;
use crate::theme::{ACCENT, ERROR, MUTED, TEXT, WARNING};
use crate::view::View;
use crate::view::crew::Subagent;
use crate::view::full::board::{Board, Filter};

pub(super) fn draw(view: &View, board: &Board) -> Picture {
    let (columns, height) = (view.size.columns, view.size.rows);
    let wide = columns >= 70;
    let all = board.rows(view);
    let current = board.current(view);
    let longest = all.iter().map(|one| crate::cells::text_width(&one.id)).max();
    let names = longest.unwrap_or(0).clamp(NAMES_MIN, NAMES_MAX);
    let mut rows = vec![head(view, board)];
    if wide {
        rows.push(columns_row(columns, names));
    }
    let foot = foot(view, board, current);
    let room = height.saturating_sub(rows.len() + foot.len()).max(1);
    let selected = current.map(|one| one.id.as_str());
    let at = all.iter().position(|one| Some(one.id.as_str()) == selected).unwrap_or(0);
    let top = board.top.min(at).max((at + 1).saturating_sub(room));
    for one in all.iter().skip(top) {
        let chosen = Some(one.id.as_str()) == selected;
        rows.push(line(view, one, chosen, wide.then_some(names)));
        if !wide && chosen {
            let mut row = Row::new();
            row.space(4);
            row.push(&action(one, view), MUTED);
            rows.push(row.cut(columns));
        }
        if rows.len() + foot.len() >= height {
            break;
        }
    }
    if all.is_empty() {
        rows.push(Row::of("  no subagent yet: ask the owner, or mention @crew:", MUTED));
    }
    rows.truncate(height.saturating_sub(foot.len()));
    while rows.len() + foot.len() < height {
        rows.push(Row::new());
    }
    rows.extend(foot);
    rows.truncate(height);
    Picture { rows, cursor: None, is_full: true }
}

fn head(view: &View, board: &Board) -> Row {
    let name = view.name.as_deref().map(|name| format!("crew of \"{name}\""));
    let columns = view.size.columns;
    let counts = view.crew.counts();
    let mut parts = Vec::new();
    for (number, word) in [
        (counts.running, "running"),
        (counts.waiting, if counts.waiting == 1 { "needs you" } else { "need you" }),
        (counts.done, "done"),
        (view.crew.ended.len(), "ended"),
    ] {
        if number > 0 && (columns >= 60 || word.contains("run") || word.contains("need")) {
            parts.push(format!("{number} {word}"));
        }
    }
    let mut right = parts.join(" · ");
    if columns >= 60 {
        right = format!("{} open: {right}", view.crew.open.len());
    }
    if board.filter != Filter::All {
        right = format!("{right} · only {}", board.filter.word());
    }
    let left = if columns >= 60 { name.unwrap_or("crew".to_owned()) } else { "crew".to_owned() };
    rule(&left, &right, columns, MUTED)
}

/// Columns of the table, right ones from the right.
const NAMES_MIN: usize = 15;
const NAMES_MAX: usize = 30;
const WORKED: usize = 9;
const TOKENS: usize = 9;
const COST: usize = 9;

fn columns_row(columns: usize, names: usize) -> Row {
    let mut row = Row::new();
    row.space(5);
    row.push("subagent", MUTED);
    row.space(names + 2 - "subagent".len());
    row.push("last action", MUTED);
    let right = format!("{:>WORKED$}{:>TOKENS$}{:>COST$}", "worked", "tokens", "cost");
    Row::spread(&row, &Row::of(&right, MUTED), columns.saturating_sub(2))
}

fn line(view: &View, one: &Subagent, chosen: bool, names: Option<usize>) -> Row {
    let wide = names.is_some();
    let columns = view.size.columns;
    let theme = view.setup.theme;
    let gone = one.ended.is_some();
    let mut row = Row::of(if chosen { "› " } else { "  " }, ACCENT);
    let icon = theme.icon(one.status, view.now.0);
    row.push(icon, theme.status_style(one.status));
    row.space(3usize.saturating_sub(crate::cells::text_width(icon)));
    row.push(&one.id, if chosen { ACCENT.bold() } else { TEXT });
    let worked = format::time(still(theme, one, view.now));
    let cost = format::cost(one.usage.cost.total);
    let right = if wide {
        format!("{worked:>WORKED$}{:>TOKENS$}{cost:>COST$}", format::tokens(one.tokens()))
    } else {
        format!("{worked:>8}{cost:>8}")
    };
    let right = Row::of(&right, MUTED);
    let room = columns.saturating_sub(right.width() + 3);
    if let Some(names) = names {
        row.space((names + 7).saturating_sub(row.width()).max(2));
        row.push(&action(one, view), MUTED);
    }
    let left = row.cut(room);
    let row = Row::spread(&left, &right, columns.saturating_sub(usize::from(wide) * 2));
    if gone { row.restyled(|style| crate::theme::Style { role: MUTED.role, ..style }) } else { row }
}

/// The last action, which says what it waits for (TERM-40).
fn action(one: &Subagent, view: &View) -> String {
    let text = one.text.clone().unwrap_or_default();
    let text = if one.status == Status::Error { crate::failure::in_words(&text) } else { text };
    let first = crew_base::text::sanitise_inline(text.lines().next().unwrap_or_default());
    if let Some(ended) = one.ended {
        let ago = format::ago(view.now.since(ended));
        return match one.status {
            Status::Error => format!("failed {ago} ago: {first}"),
            Status::Aborted => format!("stopped {ago} ago: {first}"),
            Status::Completed | Status::NeedsInput | Status::Running => format!("closed {ago} ago"),
        };
    }
    match one.status {
        Status::NeedsInput => {
            let needs = one.needs.as_deref().unwrap_or_default();
            format!("asks: {}", crew_base::text::sanitise_inline(needs))
        }
        Status::Completed => {
            let lines = format::count(text.lines().count(), "line");
            format!("report of {lines}, waits for its owner")
        }
        Status::Running => match (&one.waits, one.rows.last()) {
            (Some(waits), _) => waits.clone(),
            (None, Some(row)) => activity_line(row).text().trim_start().to_owned(),
            (None, None) => "waits for the model".to_owned(),
        },
        Status::Error | Status::Aborted => first,
    }
}

fn foot(view: &View, board: &Board, current: Option<&Subagent>) -> Vec<Row> {
    let columns = view.size.columns;
    let mut rows = Vec::new();
    if let Some(one) = current
        && view.size.rows >= 12
    {
        rows.push(rule(&one.id, "", columns, MUTED));
        let model = one.model.as_deref().map_or("…", format::model_id);
        let thinking = one.thinking.map(|level| format!(" • {}", level.word()));
        let calls = usize::try_from(one.tool_calls).unwrap_or(usize::MAX);
        let mut text = format!(
            "{} · {model}{} · {}",
            one.brief,
            thinking.unwrap_or_default(),
            format::count(calls, "tool call")
        );
        let words = one.needs.as_ref().map(|needs| format!("needs: {needs}"));
        let words = words.or_else(|| one.last_text.clone()).or_else(|| one.text.clone());
        if let Some(words) = words {
            let words = crew_base::text::sanitise_inline(&words);
            text.push_str(&format!(" · {words}"));
        }
        let mut lines = Row::of(&text, TEXT).wrap(columns, 0);
        lines.truncate(if view.size.rows >= 24 { 3 } else { 1 });
        rows.extend(lines);
    }
    if let Some(waiting) = waiting(view)
        && view.size.rows < 12
    {
        rows.push(waiting);
    }
    rows.push(sum(view));
    rows.push(last(view, board));
    rows
}

fn sum(view: &View) -> Row {
    let columns = view.size.columns;
    let (own, crew) = (&view.facts.own, &view.facts.crew);
    let cost = format::cost(own.cost.total + crew.cost.total);
    let left = if columns >= 60 {
        format!(
            "all  ↑{} ↓{} {cost} (own {})",
            format::tokens(own.input + crew.input),
            format::tokens(own.output + crew.output),
            format::cost(own.cost.total)
        )
    } else {
        format!("all {cost} (own {})", format::cost(own.cost.total))
    };
    let right = format!("{} open, {} ended", view.crew.open.len(), view.crew.ended.len());
    Row::spread(&Row::of(&left, MUTED), &Row::of(&right, MUTED), columns)
}

fn last(view: &View, board: &Board) -> Row {
    let (keys, columns) = (&view.setup.keys, view.size.columns);
    if board.is_typing() {
        let mut row = Row::of("find: ", MUTED);
        row.push(board.find.as_deref().unwrap_or_default(), TEXT);
        row.push("▌", TEXT);
        return row.cut(columns);
    }
    let hint = |action, what: &str| keys.letter_hint(action, what);
    match &board.armed {
        Some((Some(id), _)) => {
            let text = hint(Action::BoardStop, &format!("again stops {id}"));
            return Row::of(&text.unwrap_or_default(), WARNING).cut(columns);
        }
        Some((None, _)) => {
            let text = hint(Action::BoardStopAll, "again stops all open subagents");
            return Row::of(&text.unwrap_or_default(), ERROR).cut(columns);
        }
        None => {}
    }
    if let Some(told) = &board.told {
        return Row::of(told, WARNING).cut(columns);
    }
    let open = hint(Action::Confirm, "open");
    let (answer, stop) = (hint(Action::BoardAnswer, "answer"), hint(Action::BoardStop, "stop"));
    if columns < 60 {
        return bound_hints([open, answer, stop, hint(Action::BoardKeys, "more")], columns);
    }
    let texts = [
        open,
        answer,
        hint(Action::BoardSteer, "steer"),
        stop,
        hint(Action::BoardClose, "close"),
        hint(Action::BoardStopAll, "stop all"),
        hint(Action::BoardFilter, "filter"),
        hint(Action::BoardFind, "find"),
        hint(Action::BoardCopy, "copy"),
        hint(Action::BoardKeys, "keys"),
        keys.key(Action::Cancel).map(|key| key.to_string()),
    ];
    bound_hints(texts, columns)
}
