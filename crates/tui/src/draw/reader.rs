//! The transcript view (sketch S-6).

use crew_engine::api::Status;

use super::crew::still;
use super::{hints, rule, waiting};
use crate::cells::Row;
use crate::format;
use crate::screen::Picture;
use crate::theme::{ACCENT, MUTED, TEXT};
use crate::view::View;
use crate::view::full::reader::{Reader, Source};

pub(super) fn draw(view: &View, reader: &Reader) -> Picture {
    let (columns, height) = (view.size.columns, view.size.rows);
    let body = view.reader_height();
    let mut rows = vec![head(view, reader)];
    if reader.waits {
        rows.push(Row::of("reading …", MUTED));
    } else if reader.rows.is_empty() {
        rows.push(Row::of("nothing was said yet", MUTED));
    }
    for row in reader.rows.iter().skip(reader.top).take(body) {
        rows.push(found(row, reader.find.as_deref()));
    }
    while rows.len() + 2 < height {
        rows.push(Row::new());
    }
    rows.truncate(height.saturating_sub(2).max(1));
    let place = place(reader, body);
    let notice = waiting(view).unwrap_or_default();
    rows.push(Row::spread(&notice, &Row::of(&place, MUTED), columns));
    rows.push(foot(reader, columns));
    rows.truncate(height);
    Picture { rows, cursor: None, is_full: true }
}

fn head(view: &View, reader: &Reader) -> Row {
    let columns = view.size.columns;
    let (left, right) = match &reader.source {
        Source::Owner => {
            let name = view.name.clone().unwrap_or_else(|| "this session".to_owned());
            ("transcript".to_owned(), name)
        }
        Source::Stored(name) => (name.clone(), "stored".to_owned()),
        Source::Subagent(id) => match view.crew.get(id) {
            None => (id.clone(), String::new()),
            Some(one) => {
                let icon = view.setup.theme.icon(one.status, view.now.0);
                let worked = format::time(still(view.setup.theme, one, view.now));
                let word = if columns >= 60 { one.status.word() } else { "" };
                let left = format!("{id} {icon} {word} {worked}");
                let mut right = one.brief.clone();
                if let (true, Some(model)) = (columns >= 80, &one.model) {
                    right.push_str(&format!(" · {}", format::model_id(model)));
                }
                if one.status == Status::Running && reader.follows {
                    right.push_str(" · live");
                }
                (left, right)
            }
        },
    };
    let right = Row::of(&right, TEXT).cut(columns.saturating_sub(left.chars().count() + 10));
    rule(&left, right.text(), columns, MUTED)
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

fn foot(reader: &Reader, columns: usize) -> Row {
    if reader.is_typing() {
        let mut row = Row::of("/ ", ACCENT);
        row.push(reader.find.as_deref().unwrap_or_default(), TEXT);
        row.push("▌", TEXT);
        return row.cut(columns);
    }
    let own =
        ["↑↓ PgUp PgDn scroll", "/ find", "n N", "e expand", "g G ends", "y copy", "Esc back"];
    let child = [
        "↑↓ PgUp PgDn scroll",
        "/ find",
        "←→ others",
        "a answer",
        "x stop",
        "e expand",
        "y copy",
        "Esc back",
    ];
    match reader.source {
        Source::Owner | Source::Stored(_) => hints(&own, columns),
        Source::Subagent(_) => hints(&child, columns),
    }
}
