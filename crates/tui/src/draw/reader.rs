//! The transcript view (sketch S-6).

use crew_engine::api::Status;

use super::crew::still;
use super::{bound_hints, rule, waiting};
use crate::cells::Row;
use crate::format;
use crate::keys::Key;
use crate::keys::action::Action;
use crate::screen::Picture;
use crate::theme::{ACCENT, MUTED, TEXT};
use crate::view::View;
use crate::view::crew::Subagent;
use crate::view::full::reader::{Reader, Source};

pub(super) fn draw(view: &View, reader: &Reader) -> Picture {
    let (columns, height) = (view.size.columns, view.size.rows);
    let body = view.reader_height(&reader.source);
    let one = match &reader.source {
        Source::Owner | Source::Stored(_) => None,
        Source::Subagent(id) => view.crew.get(id),
    };
    let mut rows = vec![head(view, reader, one)];
    let mut foot = Vec::new();
    if let Source::Subagent(id) = &reader.source {
        rows.extend(facts(view, one));
        foot.push(talk(id, one, columns));
    }
    foot.push(hints_row(view, reader));
    if reader.waits {
        rows.push(Row::of("reading …", MUTED));
    } else if reader.rows.is_empty() {
        rows.push(Row::of("nothing was said yet", MUTED));
    }
    for row in reader.rows.iter().skip(reader.top).take(body) {
        rows.push(found(row, reader.find.as_deref()));
    }
    let notice = waiting(view).unwrap_or_default();
    foot.insert(0, Row::spread(&notice, &Row::of(&place(reader, body), MUTED), columns));
    while rows.len() + foot.len() < height {
        rows.push(Row::new());
    }
    rows.truncate(height.saturating_sub(foot.len()).max(1));
    rows.extend(foot);
    rows.truncate(height);
    Picture { rows, cursor: None, is_full: true }
}

fn head(view: &View, reader: &Reader, one: Option<&Subagent>) -> Row {
    let columns = view.size.columns;
    let (left, right) = match (&reader.source, one) {
        (Source::Owner, _) => {
            let name = view.name.clone().unwrap_or_else(|| "this session".to_owned());
            ("transcript".to_owned(), name)
        }
        (Source::Stored(name), _) => (name.clone(), "stored".to_owned()),
        (Source::Subagent(id), None) => (id.clone(), String::new()),
        (Source::Subagent(id), Some(one)) => {
            let icon = view.setup.theme.icon(one.status, view.now.0);
            let worked = format::time(still(view.setup.theme, one, view.now));
            let word =
                if columns >= 60 { format!("{} ", one.status.word()) } else { String::new() };
            let left = format!("{id} {icon} {word}{worked}");
            let all: Vec<_> = view.crew.open.iter().chain(view.crew.ended.iter().rev()).collect();
            let at = all.iter().position(|known| known.id == *id).unwrap_or(0) + 1;
            let is_live = columns >= 60 && one.status == Status::Running && reader.follows;
            let live = if is_live { " · live" } else { "" };
            (left, format!("{at} of {}{live}", all.len()))
        }
    };
    let right = Row::of(&right, TEXT).cut(columns.saturating_sub(left.chars().count() + 10));
    rule(&left, right.text(), columns, MUTED)
}

/// What it is for and what it cost, as many rows as are kept for it.
fn facts(view: &View, one: Option<&Subagent>) -> Vec<Row> {
    let (columns, height) = (view.size.columns, view.reader_facts_height());
    let mut rows = Vec::new();
    if let Some(one) = one {
        let model = one.model.as_deref().map_or("…", format::model_id);
        let thinking = one.thinking.map_or("…", |level| level.word());
        let cost = format::cost(one.usage.cost.total);
        let calls = usize::try_from(one.tool_calls).unwrap_or(usize::MAX);
        let calls = format::count(calls, "tool call");
        if columns < 60 {
            rows.push(Row::of(&one.brief, TEXT).cut(columns));
            let text = format!("{model} • {thinking} · {cost} · {calls}");
            rows.push(Row::of(&text, MUTED).cut(columns));
        } else {
            let mut row = Row::of(&one.brief, TEXT);
            let (input, output) = (one.usage.input, one.usage.output);
            let mut text = format!(
                " · {model} • {thinking} · ↑{} · ↓{} · {cost} · {calls}",
                format::tokens(input),
                format::tokens(output)
            );
            if one.failures > 0 {
                let failures = usize::try_from(one.failures).unwrap_or(usize::MAX);
                text.push_str(&format!(" · {}", format::count(failures, "failure")));
            }
            row.push(&text, MUTED);
            rows.push(row.cut(columns));
        }
    }
    rows.resize(height, Row::new());
    rows
}

/// Who would get a text, and which key begins one (TERM-4, TERM-46).
fn talk(id: &str, one: Option<&Subagent>, columns: usize) -> Row {
    let (left, right) = match one {
        Some(one) if one.awaits() => (format!("answer to {id}"), "a to type"),
        Some(one) if one.ended.is_none() => (format!("steer {id}"), "i to type"),
        Some(_) | None => (format!("{id} has ended"), "nothing can be said"),
    };
    rule(&left, right, columns, MUTED)
}

/// The row with the searched text marked.
fn found(row: &Row, find: Option<&str>) -> Row {
    let Some(find) = find.filter(|find| !find.is_empty()) else { return row.clone() };
    let text = row.text().to_lowercase();
    // Marking needs equal byte places; few letters change theirs.
    if text.len() != row.text().len() {
        return row.clone();
    }
    let find = find.to_lowercase();
    let mut marked = Row::new();
    let mut byte = 0;
    let hits: Vec<usize> = text.match_indices(&find).map(|(at, _)| at).collect();
    for glyph in row.glyphs() {
        let is_hit = hits.iter().any(|at| (*at..*at + find.len()).contains(&byte));
        let style = if is_hit { glyph.style.reverse() } else { glyph.style };
        marked.push(glyph.symbol, style);
        byte += glyph.symbol.len();
    }
    marked
}

fn place(reader: &Reader, body: usize) -> String {
    let total = reader.rows.len();
    let end = (reader.top + body).min(total);
    let hits = match &reader.find {
        Some(find) if !find.is_empty() => {
            format!("{} · ", format::count(reader.hits.len(), "match"))
        }
        Some(_) | None => String::new(),
    };
    if total <= body {
        hits.trim_end_matches(" · ").to_owned()
    } else {
        format!("{hits}{end}/{total}")
    }
}

fn hints_row(view: &View, reader: &Reader) -> Row {
    let (keys, columns) = (&view.setup.keys, view.size.columns);
    if reader.is_typing() {
        let mut row = Row::of("/ ", ACCENT);
        row.push(reader.find.as_deref().unwrap_or_default(), TEXT);
        row.push("▌", TEXT);
        return row.cut(columns);
    }
    let hint = |action, what: &str| keys.letter_hint(action, what);
    let fixed = |text: &str| Some(text.to_owned());
    let ends = (keys.key(Action::ReadFirst).and_then(Key::typed))
        .zip(keys.key(Action::ReadLast).and_then(Key::typed));
    let next = (keys.key(Action::ReadNextHit).and_then(Key::typed))
        .zip(keys.key(Action::ReadHitBefore).and_then(Key::typed));
    let (scroll, find) = (fixed("↑↓ PgUp PgDn scroll"), hint(Action::ReadFind, "find"));
    let (expand, copy) = (hint(Action::ReadExpand, "expand"), hint(Action::ReadCopy, "copy"));
    let (steer, back) = (hint(Action::ReadSteer, "steer"), keys.hint(Action::Cancel, "back"));
    match reader.source {
        Source::Owner | Source::Stored(_) => {
            let next = next.map(|(next, before)| format!("{next} {before}"));
            let ends = ends.map(|(first, last)| format!("{first} {last} ends"));
            bound_hints([scroll, find, next, expand, ends, copy, back], columns)
        }
        Source::Subagent(_) if columns < 60 => {
            bound_hints([find, fixed("←→ other"), steer, back], columns)
        }
        Source::Subagent(_) => {
            let answer = hint(Action::ReadAnswer, "answer");
            let (others, stop) = (fixed("←→ others"), hint(Action::ReadStop, "stop"));
            bound_hints([scroll, find, expand, others, steer, answer, stop, copy, back], columns)
        }
    }
}
