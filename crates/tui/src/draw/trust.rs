//! Questions with numbered answers: about the project (sketch S-11) and at the
//! start (TERM-36).

use crate::cells::Row;
use crate::request::{Choice, TrustFiles};
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
    rows.extend(answers(&choices, at, columns));
    let hint = if columns >= 60 {
        "1–5 or ↑↓ choose, Enter confirms · v shows the files · Esc: not this time"
    } else {
        "1–5 ↑↓, Enter · v files · Esc: not now"
    };
    rows.push(Row::of(hint, MUTED).cut(columns));
    rows
}

/// A question with its answers, of which the first changes nothing.
pub(super) fn choice_rows(choice: &Choice, at: usize, columns: usize) -> Vec<Row> {
    let mut rows = Row::of(&choice.text, WARNING).wrap(columns, 2);
    let all: Vec<(&str, &str)> =
        choice.answers.iter().map(|(what, more)| (what.as_str(), more.as_str())).collect();
    rows.extend(answers(&all, at, columns));
    let last = all.len();
    let hint = if columns >= 60 {
        format!("1–{last} or ↑↓ choose, Enter confirms · Esc: 1")
    } else {
        format!("1–{last} ↑↓, Enter · Esc: 1")
    };
    rows.push(Row::of(&hint, MUTED).cut(columns));
    rows
}

fn answers(answers: &[(&str, &str)], at: usize, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, (answer, more)) in answers.iter().enumerate() {
        let chosen = number == at;
        let mut row = Row::of(if chosen { "› " } else { "  " }, ACCENT);
        row.push(&format!("{}  ", number + 1), MUTED);
        row.push(answer, if chosen { ACCENT.bold() } else { TEXT });
        if columns >= 60 && !more.is_empty() {
            row.space(30usize.saturating_sub(row.width()).max(2));
            row.push(more, MUTED);
        }
        rows.push(row.cut(columns));
    }
    rows
}
