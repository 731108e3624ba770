//! Pickers (sketches S-8 and S-9).

use super::{hints, rule, waiting};
use crate::cells::Row;
use crate::keys::action::Action;
use crate::request::SettingOrigin;
use crate::screen::Picture;
use crate::theme::{ACCENT, ERROR, MUTED, SUCCESS, TEXT, WARNING};
use crate::view::View;
use crate::view::full::list::Item;
use crate::view::full::picker::{Kind, Picker};

/// Columns before and behind the longest name of a model.
const MODEL_MARGIN: usize = 8;

pub(super) fn draw(view: &View, picker: &Picker) -> Picture {
    let (columns, height) = (view.size.columns, view.size.rows);
    let mut rows = vec![head(picker, columns), search(picker, columns)];
    let body = view.picker_height();
    if picker.waits {
        rows.push(Row::of("  reading …", MUTED));
    } else if picker.list.is_empty() {
        rows.push(Row::of("  nothing here fits", MUTED));
    }
    let selected = picker.list.selected().map(|item| item.id.clone());
    let at = picker.list.at().unwrap_or(0);
    let top = picker.list.top.min(at).max((at + 1).saturating_sub(body));
    for item in picker.list.rows().skip(top).take(body) {
        rows.push(line(picker, item, selected.as_deref() == Some(item.id.as_str()), columns));
    }
    while rows.len() + 2 < height {
        rows.push(Row::new());
    }
    rows.truncate(height.saturating_sub(2).max(1));
    rows.push(second_last(view, picker));
    rows.push(foot(view, picker));
    rows.truncate(height);
    let cursor =
        picker.typed.is_none().then(|| (1, 6 + crate::cells::text_width(&picker.list.query)));
    let cursor = cursor.filter(|(_, column)| *column < columns);
    Picture { rows, cursor, is_full: true }
}

fn head(picker: &Picker, columns: usize) -> Row {
    let (left, right) = match &picker.kind {
        Kind::Models { all } => {
            let usable = picker.list.items().iter().filter(|item| item.is_usable).count();
            let right = if *all {
                format!("{usable} usable of {} · Tab usable", picker.list.items().len())
            } else {
                format!("{usable} usable · Tab all")
            };
            ("model for the owner", right)
        }
        Kind::Sessions { all, named } => {
            let place = if *all {
                "all folders · Tab this folder"
            } else {
                "this folder · Tab all folders"
            };
            let right = if *named { format!("{place} · named only") } else { place.to_owned() };
            ("resume", right)
        }
        Kind::Forks => ("fork from", "newest last".to_owned()),
        Kind::Settings => ("settings", "value and who set it".to_owned()),
    };
    rule(left, if columns >= 60 { &right } else { "" }, columns, MUTED)
}

fn search(picker: &Picker, columns: usize) -> Row {
    let mut row = Row::of("find: ", MUTED);
    row.push(&picker.list.query, TEXT);
    row.cut(columns)
}

fn line(picker: &Picker, item: &Item, chosen: bool, columns: usize) -> Row {
    let mut row = Row::of(if chosen { "› " } else { "  " }, ACCENT);
    match picker.kind {
        Kind::Sessions { .. } => {
            let fold = match (picker.list.has_children(&item.id), picker.list.is_unfolded(&item.id))
            {
                (false, _) if item.parent.is_some() => "  ",
                (false, _) => "  ",
                (true, true) => "▾ ",
                (true, false) => "▸ ",
            };
            row.push(fold, MUTED);
            if item.parent.is_some() {
                row.space(2);
            }
        }
        Kind::Models { .. } => {
            row.push(if item.is_current { "✓ " } else { "  " }, SUCCESS);
        }
        Kind::Forks | Kind::Settings => {}
    }
    let style = if item.is_usable { TEXT } else { MUTED };
    row.push(&item.left, if chosen { style.bold() } else { style });
    if columns >= 60 && matches!(picker.kind, Kind::Models { .. }) {
        let names = picker.list.items().iter().map(|item| crate::cells::text_width(&item.left));
        let names = names.max().unwrap_or(0).min(columns / 2);
        row.space((names + MODEL_MARGIN).saturating_sub(row.width()).max(2));
        row.push(&item.right, MUTED);
        return row.cut(columns);
    }
    let right = if columns >= 60 { &item.right } else { &item.short };
    let right = Row::of(right, MUTED).cut(columns / 2);
    let left = row.cut(columns.saturating_sub(right.width() + 2).max(1));
    Row::spread(&left, &right, columns)
}

fn second_last(view: &View, picker: &Picker) -> Row {
    let columns = view.size.columns;
    if picker.deleting {
        let title = picker.list.selected().map(|item| item.left.clone()).unwrap_or_default();
        return Row::of(&format!("delete \"{title}\"? y deletes, any other key keeps"), ERROR)
            .cut(columns);
    }
    if let Some(typed) = &picker.typed {
        let mut row = Row::of("new name: ", WARNING);
        row.push(typed, TEXT);
        row.push("▌", TEXT);
        return row.cut(columns);
    }
    if let Some(waiting) = waiting(view) {
        return waiting;
    }
    match picker.kind {
        Kind::Models { all: false } if columns >= 60 => Row::of(
            "Subagents keep their model. The list of all models (Tab) says what each lacks.",
            MUTED,
        )
        .cut(columns),
        Kind::Models { .. } => Row::of("Subagents keep their model.", MUTED).cut(columns),
        Kind::Settings => about_setting(picker).cut(columns),
        Kind::Sessions { .. } | Kind::Forks => Row::new(),
    }
}

/// What the selected setting decides, or why it was not changed.
fn about_setting(picker: &Picker) -> Row {
    if let Some(problem) = picker.problem() {
        return Row::of(&crew_base::text::sanitise_inline(problem), ERROR);
    }
    match picker.setting() {
        Some(offer) if offer.origin == SettingOrigin::Project => {
            let text = format!("{}; this project's .pi/settings.json sets it", offer.what);
            Row::of(&text, WARNING)
        }
        Some(offer) => Row::of(&offer.what, MUTED),
        None => Row::new(),
    }
}

fn foot(view: &View, picker: &Picker) -> Row {
    let (keys, columns) = (&view.setup.keys, view.size.columns);
    let hint = |action, what: &str| keys.hint(action, what);
    let shown = match picker.kind {
        Kind::Models { .. } => {
            let save =
                keys.key(Action::SaveModel).map_or_else(String::new, |key| format!("{key} or "));
            let save = Some(format!("{save}Ctrl+X s also the default"));
            vec![hint(Action::Confirm, "this session"), save]
        }
        Kind::Sessions { .. } => vec![
            hint(Action::Confirm, "resume (subagent: read)"),
            Some("←→ fold".to_owned()),
            Some("Ctrl+X n named only".to_owned()),
            hint(Action::Rename, "rename"),
            hint(Action::DeleteSession, "delete"),
        ],
        Kind::Settings => {
            vec![
                hint(Action::Confirm, "next value, kept for all projects"),
                Some("←→ values".to_owned()),
            ]
        }
        Kind::Forks => vec![hint(Action::Confirm, "go on from before it in a new session")],
    };
    let leave = keys.key(Action::Cancel).map(|key| key.to_string());
    let shown: Vec<String> = shown.into_iter().chain([leave]).flatten().collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    hints(&shown, columns)
}
