//! The trust question (sketch S-11).

use crate::cells::Row;
use crate::request::TrustFiles;
use crate::theme::{ACCENT, MUTED, TEXT, WARNING};

/// Files that are listed; the rest is counted.
const FILES_MAX: usize = 6;

pub(super) fn rows(files: &TrustFiles, at: usize, columns: usize) -> Vec<Row> {
    let mut rows =
        Row::of("This folder brings its own settings for crew:", WARNING).wrap(columns, 2);
    for (path, holds) in files.files.iter().take(FILES_MAX) {
        let mut row = Row::new();
        row.space(2);
        row.push(path, TEXT);
        let pad = 38usize.saturating_sub(row.width()).max(2);
        row.space(if columns >= 60 { pad } else { 2 });
        row.push(holds, MUTED);
        rows.push(row.cut(columns));
    }
    if files.files.len() > FILES_MAX {
        let text = format!("  … and {} more", files.files.len() - FILES_MAX);
        rows.push(Row::of(&text, MUTED));
    }
    let text = "They can choose models, commands and instructions. Use them?";
    let text = if columns >= 60 { text } else { "Use them?" };
    rows.push(Row::of(text, TEXT).cut(columns));
    let below = format!("Always below {}", files.parent);
    let choices = [
        ("Not this time", "go on without them, ask again"),
        ("Only this time", ""),
        ("Always in this folder", ""),
        (below.as_str(), ""),
        ("Never in this folder", ""),
    ];
    for (number, (choice, more)) in choices.iter().enumerate() {
        let chosen = number == at;
        let mut row = Row::of(if chosen { "› " } else { "  " }, ACCENT);
        row.push(&format!("{}  ", number + 1), MUTED);
        row.push(choice, if chosen { ACCENT.bold() } else { TEXT });
        if columns >= 60 && !more.is_empty() {
            row.space(30usize.saturating_sub(row.width()).max(2));
            row.push(more, MUTED);
        }
        rows.push(row.cut(columns));
    }
    let hint = if columns >= 60 {
        "1–5 or ↑↓ choose, Enter confirms · Esc: not this time"
    } else {
        "1–5 ↑↓, Enter · Esc: not now"
    };
    rows.push(Row::of(hint, MUTED).cut(columns));
    rows
}
