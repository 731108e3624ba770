//! The tree of the session (sketch S-10).

use super::{hints, rule, waiting};
use crate::cells::{Row, text_width};
use crate::keys::action::Action;
use crate::request::{RowKind, TreeRow};
use crate::screen::Picture;
use crate::theme::{ACCENT, MUTED, SUCCESS, Style, TEXT, WARNING};
use crate::view::View;
use crate::view::full::tree::shape::Seen;
use crate::view::full::tree::{Asking, Tree};

/// From so many columns on there is room for words.
const WIDE: usize = 60;

pub(super) fn draw(view: &View, tree: &Tree) -> Picture {
    let (columns, height) = (view.size.columns, view.size.rows);
    let mut rows = vec![head(view, tree), search(tree, columns)];
    if tree.waits {
        rows.push(Row::of("  reading …", MUTED));
    } else if tree.seen().next().is_none() {
        rows.push(Row::of("  nothing here fits", MUTED));
    }
    let body = view.picker_height();
    let at = tree.at();
    let selected = at.unwrap_or(0);
    let top = tree.top.min(selected).max((selected + 1).saturating_sub(body));
    for (number, (seen, row)) in tree.seen().enumerate().skip(top).take(body) {
        rows.push(line(view, tree, seen, row, at == Some(number)));
    }
    while rows.len() + 2 < height {
        rows.push(Row::new());
    }
    rows.truncate(height.saturating_sub(2).max(1));
    let (asking, typed_to) = asking(view, tree);
    let cursor = match typed_to {
        Some(column) => Some((rows.len(), column)),
        None => Some((1, 6 + text_width(&tree.query))),
    };
    rows.push(asking);
    rows.push(foot(view));
    rows.truncate(height);
    let cursor = cursor.filter(|(row, column)| *row < height && *column < columns);
    Picture { rows, cursor, is_full: true }
}

fn head(view: &View, tree: &Tree) -> Row {
    let columns = view.size.columns;
    let filter = tree.filter.word();
    if columns < WIDE {
        return rule("tree", filter, columns, MUTED);
    }
    let name = view.name.as_deref().map(crew_base::text::sanitise_inline);
    let name = name.map(|name| Row::of(&name, TEXT).cut(columns / 3).text().to_owned());
    let left = name.map_or_else(|| "tree".to_owned(), |name| format!("tree of \"{name}\""));
    let next = view.setup.keys.hint(Action::FilterNext, "next");
    let next = next.map_or_else(String::new, |next| format!(" · {next}"));
    rule(&left, &format!("filter: {filter}{next}"), columns, MUTED)
}

fn search(tree: &Tree, columns: usize) -> Row {
    let mut row = Row::of("find: ", MUTED);
    row.push(&tree.query, TEXT);
    row.cut(columns)
}

fn line(view: &View, tree: &Tree, seen: &Seen, row: &TreeRow, chosen: bool) -> Row {
    let columns = view.size.columns;
    let mut left = Row::of(if chosen { "› " } else { "  " }, ACCENT);
    left.push(&seen.lead, MUTED);
    let (who, style) = who(view, row.kind);
    let style = if seen.is_active { style } else { MUTED };
    let style = if chosen { style.bold() } else { style };
    left.push(&who, style);
    left.push(&row.text, style);
    let right = notes(tree, seen, row, columns >= WIDE).cut(columns / 2);
    let left = left.cut(columns.saturating_sub(right.width() + 2).max(1));
    Row::spread(&left, &right, columns)
}

fn who(view: &View, kind: RowKind) -> (String, Style) {
    match kind {
        RowKind::User => ("● you: ".to_owned(), TEXT),
        RowKind::Answer => ("owner: ".to_owned(), TEXT),
        RowKind::Calls => ("owner ".to_owned(), MUTED),
        RowKind::Result => (String::new(), MUTED),
        RowKind::Shell | RowKind::Notice | RowKind::Summary => (String::new(), TEXT),
        RowKind::Card(status) => {
            let icon = view.setup.theme.icon(status, 0);
            (format!("{icon} "), view.setup.theme.status_style(status))
        }
        RowKind::Setting | RowKind::Unknown => (String::new(), MUTED),
    }
}

/// Label, what is folded away, and where the session stands.
fn notes(tree: &Tree, seen: &Seen, row: &TreeRow, wide: bool) -> Row {
    let mut notes = Row::new();
    let space = |notes: &mut Row| {
        if notes.width() > 0 {
            notes.space(2);
        }
    };
    if seen.folded > 0 {
        notes.push(&format!("+{}", seen.folded), MUTED);
    }
    if let Some(label) = &row.label {
        space(&mut notes);
        let time = row.labelled.as_deref().filter(|_| tree.times);
        let time = time.map(|time| format!(" · {time}")).unwrap_or_default();
        let word = if wide { "label: " } else { "" };
        notes.push(&format!("[{word}{label}{time}]"), WARNING);
    }
    if seen.is_here {
        space(&mut notes);
        notes.push(if wide { "← you are here" } else { "← here" }, SUCCESS);
    }
    notes
}

/// The row above the hints, and the column of what is typed there.
fn asking(view: &View, tree: &Tree) -> (Row, Option<usize>) {
    let columns = view.size.columns;
    let typed = |word: &str, text: &str| {
        let mut row = Row::of(word, WARNING);
        row.push(text, TEXT);
        let column = row.width();
        (row.cut(columns), Some(column))
    };
    match &tree.asking {
        Some(Asking::Label(text)) => typed("label: ", text),
        Some(Asking::Instructions(text)) => typed("the summary attends to: ", text),
        Some(Asking::Summary) => {
            let text = if columns >= WIDE {
                "summarise the branch you leave? Enter no · s yes · i yes, attending to … · Esc back"
            } else {
                "summarise? Enter no · s yes · i how"
            };
            (Row::of(text, WARNING).cut(columns), Some(0))
        }
        None => (waiting(view).unwrap_or_default(), None),
    }
}

fn foot(view: &View) -> Row {
    let (keys, columns) = (&view.setup.keys, view.size.columns);
    let is_wide = columns >= 100;
    let go = match is_wide {
        true => "continue from here (a user message goes back into the editor)",
        false => "continue",
    };
    let shown = [
        keys.hint(Action::Confirm, go),
        Some("←→ fold".to_owned()),
        keys.hint(Action::Label, "label"),
        keys.hint(Action::FilterNext, "filter").filter(|_| !is_wide),
        keys.hint(Action::LabelTimes, "label times"),
        keys.key(Action::Cancel).map(|key| key.to_string()),
    ];
    let shown: Vec<String> = shown.into_iter().flatten().collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    hints(&shown, columns)
}
