//! From the state to rows: drawing changes nothing (`style.md` 8).
//!
//! Read `draw::region` for the main screen, `draw::board`, `draw::reader`,
//! `draw::picker` and `draw::tree` for full views.

mod board;
pub mod crew;
mod footer;
mod picker;
mod reader;
mod region;
mod tree;
mod trust;

use crate::cells::Row;
use crate::screen::Picture;
use crate::theme::{ACCENT, MUTED, Style, TEXT};
use crate::view::View;
use crate::view::full::Full;

/// What is to be seen now.
pub fn draw(view: &View) -> Picture {
    let mut picture = match view.full.as_deref() {
        None => region::region(view),
        Some(Full::Board(board)) => board::draw(view, board),
        Some(Full::Reader(reader, _)) => reader::draw(view, reader),
        Some(Full::Picker(picker)) => picker::draw(view, picker),
        Some(Full::Tree(tree)) => tree::draw(view, tree),
        Some(Full::Keys { top }) => keys(view, *top),
    };
    let columns = view.size.columns;
    for row in &mut picture.rows {
        if row.width() > columns {
            *row = row.cut(columns);
        }
    }
    picture
}

/// Only the editor's rows, while the size keeps changing (TERM-25).
pub fn draw_editor(view: &View) -> Picture {
    if view.full.is_some() {
        return draw(view);
    }
    region::editor_only(view)
}

/// Rows of the live region.
pub fn region_height(view: &View) -> usize {
    if view.full.is_some() { 0 } else { region::region(view).rows.len() }
}

/// A rule with a text at its left and one at its right; as wide as the screen
/// only in full views.
fn rule(left: &str, right: &str, columns: usize, style: Style) -> Row {
    let mut row = Row::of("─ ", style);
    row.push(left, TEXT.bold());
    row.push(" ", style);
    let mut end = Row::new();
    if !right.is_empty() {
        end.push(" ", style);
        end.push(right, TEXT);
        end.push(" ─", style);
    }
    let room = columns.saturating_sub(end.width());
    if row.width() > room {
        return row.cut(columns);
    }
    let line = "─".repeat(room - row.width());
    row.push(&line, style);
    row.append(&end);
    row
}

/// Hints at the bottom of a full view.
fn hints(texts: &[&str], columns: usize) -> Row {
    // The first ones matter most, the last one leads out.
    let Some((last, rest)) = texts.split_last() else { return Row::new() };
    for shown in (0..=rest.len()).rev() {
        let mut parts: Vec<&str> = rest[..shown].to_vec();
        parts.push(last);
        let row = Row::of(&parts.join(" · "), MUTED);
        if row.width() <= columns {
            return row;
        }
    }
    Row::of(last, MUTED).cut(columns)
}

/// Hints of which some may have no key.
fn bound_hints<const N: usize>(texts: [Option<String>; N], columns: usize) -> Row {
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    hints(&texts.iter().map(String::as_str).collect::<Vec<_>>(), columns)
}

/// `owner: ❓ 1 needs you`, shown in every full view (TERM-37).
fn waiting(view: &View) -> Option<Row> {
    let waiting = view.crew.counts().waiting;
    if waiting == 0 {
        return None;
    }
    let icon = view.setup.theme.icon(crew_engine::api::Status::NeedsInput, 0);
    let word = if waiting == 1 { "needs you" } else { "need you" };
    let mut row = Row::of("owner: ", MUTED);
    row.push(&format!("{icon} {waiting} {word}"), crate::theme::WARNING);
    Some(row)
}

fn keys(view: &View, top: usize) -> Picture {
    let columns = view.size.columns;
    let height = view.size.rows.saturating_sub(3).max(1);
    let mut rows = vec![rule("keys", "", columns, MUTED)];
    let keys = view.key_help();
    for (key, what) in keys.iter().skip(top).take(height) {
        let mut row = Row::new();
        row.space(2);
        row.push(key, ACCENT);
        let pad = 34usize.saturating_sub(row.width()).max(2);
        row.space(if columns >= 60 { pad } else { 2 });
        row.push(what, TEXT);
        rows.push(row);
    }
    while rows.len() + 2 < view.size.rows {
        rows.push(Row::new());
    }
    rows.push(waiting(view).unwrap_or_default());
    rows.push(hints(&["↑↓ PgUp PgDn scroll", "any other key: back"], columns));
    rows.truncate(view.size.rows);
    Picture { rows, cursor: None, is_full: true }
}
