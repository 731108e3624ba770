//! The live region of the main screen, from top to bottom (TERM-8, TERM-10).

use crew_base::model::ThinkingLevel;
use crew_engine::api::CompactionReason;

use super::footer::{self, Place};
use crate::cells::{Row, clean_lines};
use crate::format;
use crate::keys::action::Action;
use crate::screen::Picture;
use crate::theme::{ACCENT, ERROR, MUTED, Role, Style, TEXT, WARNING};
use crate::transcript::live::Doing;
use crate::view::approvals;
use crate::view::questions::{Kind, quit_text};
use crate::view::{Receiver, View};

/// Rows of queued messages (TERM-61).
const QUEUE_ROWS_MAX: usize = 3;
/// Rows that a needed answer takes above the editor (TERM-41).
const NEEDS_ROWS_MAX: usize = 4;

/// Everything of the region at the present size.
pub(super) fn region(view: &View) -> Picture {
    let (columns, rows) = (view.size.columns, view.size.rows);
    let (editor, cursor) = editor(view);
    let room = rows.saturating_sub(1).max(1);
    if rows < 6 || columns < 8 {
        return only(editor, cursor, room);
    }
    let footer = footer_rows(view);
    let mut below = editor.len() + footer.len();
    let rule = rule(view);
    below += 1;
    let mut above = Vec::new();
    // From the bottom up, so that what matters most keeps its place.
    for part in [asked(view), queue(view), widget(view), status(view)] {
        let left = room.saturating_sub(below + above.len());
        let from = part.len().saturating_sub(left);
        let mut part: Vec<Row> = part.into_iter().skip(from).collect();
        part.append(&mut above);
        above = part;
    }
    let left = room.saturating_sub(below + above.len());
    let open = open(view, left);
    let mut all = open;
    all.append(&mut above);
    all.push(rule);
    let first = all.len();
    all.extend(editor);
    all.extend(footer);
    let over = all.len().saturating_sub(room);
    all.drain(..over);
    let cursor = (first + cursor.0 - over.min(first), cursor.1);
    let cursor = view.question.is_none().then_some(cursor);
    Picture { rows: all, cursor, is_full: false }
}

/// The editor's rows alone.
pub(super) fn editor_only(view: &View) -> Picture {
    let (editor, cursor) = editor(view);
    only(editor, cursor, view.size.rows.saturating_sub(1).max(1))
}

fn only(mut editor: Vec<Row>, cursor: (usize, usize), room: usize) -> Picture {
    // The row with the cursor stays.
    let from = (cursor.0 + 1).saturating_sub(room.min(1));
    editor = editor.into_iter().skip(from).take(1).collect();
    Picture { rows: editor, cursor: Some((0, cursor.1)), is_full: false }
}

/// Rows of the editor, at most a third of the screen, and the cursor.
fn editor(view: &View) -> (Vec<Row>, (usize, usize)) {
    let layout = view.editor.layout(view.size.columns);
    let height = (view.size.rows / 3).max(1).min(layout.rows());
    let (row, column) = layout.cursor;
    let top = (row + 1).saturating_sub(height).min(layout.rows() - height);
    let rows = (top..top + height).map(|at| layout.row(at).clone()).collect();
    (rows, (row - top, column.min(view.size.columns.saturating_sub(1))))
}

/// The open block and the running tools, the end of them.
fn open(view: &View, left: usize) -> Vec<Row> {
    let mut rows = view.live.rows(&view.look(), view.now);
    if let Some(shell) = &view.shell {
        let mut head = Row::of("! ", ACCENT.bold());
        head.push(&shell.command, Style::role(Role::Code));
        let ms = view.now.since(shell.since);
        head.push(&format!(" · {}{}", format::time(ms), stop(view, "stops it")), MUTED);
        rows.push(head.cut(view.size.columns));
        let lines = clean_lines(&shell.output);
        let lines: Vec<_> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(5)..] {
            let mut row = Row::new();
            row.space(4);
            row.push(line, MUTED);
            rows.push(row.cut(view.size.columns));
        }
    }
    let from = rows.len().saturating_sub(left);
    rows.drain(..from);
    rows
}

/// What the owner does, for how long, and what Esc does.
fn status(view: &View) -> Vec<Row> {
    if view.size.rows < 12 {
        return Vec::new();
    }
    let Some((text, style)) = status_text(view) else { return Vec::new() };
    let mut row = Row::of(view.setup.theme.spinner(view.now.0), WARNING);
    row.push(" ", TEXT);
    row.push(&text, style);
    vec![row.cut(view.size.columns)]
}

fn status_text(view: &View) -> Option<(String, Style)> {
    let narrow = view.size.columns < 60;
    if let Some(retry) = &view.run.retry {
        let seconds = retry.until.since(view.now).div_ceil(1000);
        let provider = view.facts.model.as_ref().map(|model| model.provider.as_str());
        let words = crate::failure::words(provider.unwrap_or_default(), &retry.error);
        let lead = format!("retry {} of {} in {seconds}s", retry.attempt, retry.attempts_max);
        let text = if narrow {
            format!("{lead} · {}", words.short)
        } else {
            let who = provider.map(|provider| format!("{provider}: ")).unwrap_or_default();
            format!("{lead} · {who}{}{}", words.short, stop(view, "cancels"))
        };
        return Some((text, WARNING));
    }
    if let Some((since, reason)) = &view.run.compacting {
        let why = match reason {
            CompactionReason::Manual => "compacting",
            CompactionReason::Threshold => "compacting, the context is nearly full",
            CompactionReason::Overflow => "compacting, the context was full",
        };
        let time = format::time(clock(view, view.now.since(*since)));
        return Some((format!("{why} · {time}{}", stop(view, "cancels")), TEXT));
    }
    if let Some(since) = view.run.leaving {
        let time = format::time(clock(view, view.now.since(since)));
        let cancels = stop(view, "cancels");
        return Some((format!("summarising the branch you leave · {time}{cancels}"), TEXT));
    }
    let since = view.run.since?;
    let doing = if !view.live.tools.is_empty() {
        let tools = view.live.tools.len();
        if tools == 1 { "runs a tool".to_owned() } else { format!("runs {tools} tools") }
    } else {
        match view.live.doing() {
            // A wait says for what and how long (TERM-7).
            Doing::Waiting => view.facts.waits.as_deref().unwrap_or("waits for the model"),
            Doing::Thinking => "thinking",
            Doing::Answering => "answering",
            Doing::Calling => "calling a tool",
        }
        .to_owned()
    };
    let time = format::time(clock(view, view.now.since(since)));
    let stops = match (view.crew.counts().running, narrow) {
        (0, _) => "stops it".to_owned(),
        (_, true) => "stops owner".to_owned(),
        (1, false) => "stops the owner only (1 subagent goes on)".to_owned(),
        (running, false) => format!("stops the owner only ({running} subagents go on)"),
    };
    Some((format!("{doing} · {time}{}", stop(view, &stops)), TEXT))
}

/// What the key that stops things does now, as the end of a line; nothing
/// without such a key.
fn stop(view: &View, what: &str) -> String {
    let hint = view.setup.keys.hint(Action::Interrupt, what);
    hint.map_or_else(String::new, |hint| format!(" · {hint}"))
}

/// Without motion clocks step by five seconds (TERM-56).
fn clock(view: &View, ms: u64) -> u64 {
    if view.setup.theme.motion { ms } else { ms / 5_000 * 5_000 }
}

fn widget(view: &View) -> Vec<Row> {
    view.widget().rows(&view.crew, view.level())
}

/// Queued messages, each with its kind (TERM-61).
fn queue(view: &View) -> Vec<Row> {
    let limit = match view.size.rows {
        12.. => QUEUE_ROWS_MAX,
        6..12 => 1,
        _ => 0,
    };
    let steering = view.queue.steering.iter().map(|text| ("steer".to_owned(), text));
    let follow_up = view.queue.follow_up.iter().map(|text| ("follow-up".to_owned(), text));
    let until = match (&view.session, &view.run.compacting) {
        (None, _) => "until the session is open",
        (Some(_), Some(_)) => "after compaction",
        (Some(_), None) => "after the summary",
    };
    let early = view.early.iter().map(|(text, _)| (until.to_owned(), text));
    let owner: Vec<_> = early.chain(steering).chain(follow_up).collect();
    let taken_back = if view.session.is_some() { owner.len() } else { 0 };
    let theirs = view.steers().map(|(id, text)| (format!("steer to {id}"), text));
    let all: Vec<_> = owner.into_iter().chain(theirs).collect();
    let mut rows = Vec::new();
    let shown = if all.len() > limit { limit.saturating_sub(1) } else { all.len() };
    for (number, (kind, text)) in all.iter().take(shown).enumerate() {
        let mut row = Row::of(&format!("queued {kind}: "), MUTED);
        row.push(&crew_base::text::sanitise_inline(text), TEXT);
        let hint = " · Ctrl+X u takes it back";
        if number == 0 && taken_back > 0 && row.width() + hint.len() <= view.size.columns {
            row.push(hint, MUTED);
        }
        rows.push(row.cut(view.size.columns));
    }
    if all.len() > shown && limit > 0 {
        rows.push(Row::of(&format!("+{} queued", all.len() - shown), MUTED));
    }
    let waiting = view.facts.results_waiting;
    if waiting > 0 && view.size.rows >= 12 {
        let verb = if waiting == 1 { "waits" } else { "wait" };
        let text = format!("{} {verb} for the next request", format::count(waiting, "result"));
        rows.push(Row::of(&text, MUTED).cut(view.size.columns));
    }
    rows
}

/// What is asked: a question, a menu, or the needs of the one that is answered.
fn asked(view: &View) -> Vec<Row> {
    let columns = view.size.columns;
    if let Some(question) = &view.question {
        return match &question.kind {
            Kind::Quit => {
                let row = Row::of(&quit_text(view), WARNING);
                row.wrap(columns, 2)
            }
            Kind::Stop { ids, at, armed } => stop_rows(view, ids, *at, *armed),
            Kind::Trust { files, at, .. } => super::trust::rows(files, *at, columns),
            Kind::Choose { choice, at } => super::trust::choice_rows(choice, *at, columns),
        };
    }
    // A menu is what the person looks for right now.
    if view.menu.is_none() && !view.approvals.is_empty() {
        return approvals::rows(view, columns);
    }
    if let Some(menu) = &view.menu {
        let mut rows = Vec::new();
        let shown = menu.offers.iter().enumerate().skip(menu.top).take(view.setup.menu_rows);
        for (number, offer) in shown {
            let chosen = number == menu.at;
            let mut row = Row::of(if chosen { "› " } else { "  " }, ACCENT);
            row.push(&offer.label, if chosen { ACCENT.bold() } else { TEXT });
            if !offer.hint.is_empty() {
                let pad = 24usize.saturating_sub(row.width()).max(2);
                row.space(if columns >= 60 { pad } else { 2 });
                row.push(&offer.hint, MUTED);
            }
            rows.push(row.cut(columns));
        }
        return rows;
    }
    if let Some(search) = &view.history_search {
        let mut row = Row::of("history: ", MUTED);
        row.push(search, TEXT);
        let older = view.setup.keys.hint(Action::HistorySearch, "older · ").unwrap_or_default();
        row.push(&format!("▌ · {older}Enter takes it · Ctrl+G back"), MUTED);
        return vec![row.cut(columns)];
    }
    view.receiver.subagent().map_or_else(Vec::new, |id| needs(view, id))
}

/// What the one asks that is answered; it stays visible (TERM-41).
fn needs(view: &View, id: &str) -> Vec<Row> {
    let Some(one) = view.crew.get(id) else { return Vec::new() };
    let columns = view.size.columns;
    let (text, style) = match (&one.needs, one.ended) {
        (Some(needs), None) => (format!("asks: {needs}"), TEXT),
        (_, Some(_)) => (format!("is gone ({})", one.status.word()), ERROR),
        (None, None) if matches!(view.receiver, Receiver::Steer(_)) => {
            (format!("- {}", one.brief), MUTED)
        }
        (None, None) => (format!("is {} now", one.status.word()), WARNING),
    };
    let mut row = Row::of(view.setup.theme.icon(one.status, view.now.0), WARNING);
    row.push(" ", TEXT);
    row.push(&one.id, TEXT.bold());
    row.push(" ", TEXT);
    row.push(&text, style);
    let mut rows = row.wrap(columns, 2);
    if rows.len() > NEEDS_ROWS_MAX {
        rows.truncate(NEEDS_ROWS_MAX);
        if let Some(last) = rows.last_mut() {
            last.push("…", MUTED);
            *last = last.cut(columns);
        }
    }
    rows
}

fn stop_rows(view: &View, ids: &[String], at: usize, armed: bool) -> Vec<Row> {
    let columns = view.size.columns;
    let mut rows = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        // Around the chosen one, when there are many.
        if number + 4 < at || number > at + 4 {
            continue;
        }
        let chosen = number == at;
        let mut row = Row::of(if chosen { "› " } else { "  " }, ACCENT);
        row.push(&format!("{} ", number + 1), MUTED);
        row.push(id, if chosen { ACCENT.bold() } else { TEXT });
        if let Some(one) = view.crew.get(id) {
            row.push(" - ", MUTED);
            row.push(&one.brief, TEXT);
        }
        rows.push(row.cut(columns));
    }
    let text = match (armed, ids.get(at)) {
        (true, Some(id)) => format!("Enter again stops {id}, any other key does not"),
        (false, _) | (true, None) => "stop which? ↑↓ Enter · Esc none".to_owned(),
    };
    rows.push(Row::of(&text, if armed { WARNING } else { MUTED }).cut(columns));
    rows
}

/// The rule above the editor: the receiver left, one notice right (TERM-13).
fn rule(view: &View) -> Row {
    let level = view.facts.thinking.unwrap_or(ThinkingLevel::Off);
    let is_shell = view.editor.buffer().starts_with('!') && view.receiver == Receiver::Owner;
    let style = if is_shell { WARNING } else { Style::role(Role::Rule(level)) };
    let receiver = match &view.receiver {
        Receiver::Owner if is_shell => "shell".to_owned(),
        Receiver::Owner => "owner".to_owned(),
        Receiver::Answer(id) => format!("answer to {id}"),
        Receiver::Steer(id) => format!("steer {id}"),
    };
    let mut row = Row::new();
    if view.size.rows < 12 && view.is_moving() {
        row.push(view.setup.theme.spinner(view.now.0), WARNING);
    }
    row.push("─ ", style);
    row.push(&receiver, TEXT.bold());
    row.push(" ─", style);
    for notice in notices(view) {
        let mut with = row.clone();
        with.push("─ ", style);
        with.push(&notice.0, notice.1);
        with.push(" ─", style);
        if with.width() <= view.size.columns {
            return with;
        }
    }
    row.cut(view.size.columns)
}

/// The notice, in its long and its short form; the first that fits is shown.
fn notices(view: &View) -> Vec<(String, Style)> {
    let waiting = view.crew.counts().waiting;
    let answering = matches!(view.receiver, Receiver::Answer(_));
    let talking = view.receiver != Receiver::Owner;
    if waiting > usize::from(answering) || waiting > 0 && !answering {
        let word = if waiting == 1 { "needs you" } else { "need you" };
        let long = format!("{waiting} {word}: Ctrl+X a");
        let short = format!("{waiting} {word}");
        let forms = if view.size.columns < 60 { vec![short] } else { vec![long, short] };
        return forms.into_iter().map(|text| (text, WARNING)).collect();
    }
    if talking {
        let back = view.setup.keys.hint(Action::Interrupt, "back to owner, text kept");
        return back.map(|back| (back, MUTED)).into_iter().collect();
    }
    if view.facts_known && view.facts.model.is_none() {
        return vec![("no model".to_owned(), WARNING)];
    }
    if view.untrusted {
        return vec![("not trusted".to_owned(), MUTED)];
    }
    Vec::new()
}

fn footer_rows(view: &View) -> Vec<Row> {
    let columns = view.size.columns;
    // A question needs the room more.
    if view.question.is_some() && view.size.rows < 20 {
        return Vec::new();
    }
    let place = Place {
        cwd: &view.setup.cwd,
        branch: view.setup.branch.as_deref(),
        name: view.name.as_deref(),
        with_provider: view.setup.several_providers,
        crew: view.crew.had_any.then_some(view.crew.open.len()),
    };
    let leader = view.leader.is_some_and(|since| view.now.since(since) >= crate::view::LEADER_MS);
    let mut rows = Vec::new();
    if leader {
        rows.push(Row::of(crate::view::LEADER, ACCENT).cut(columns));
    } else if view.size.rows >= 20 {
        rows.push(footer::place_line(&place, columns));
    }
    if view.size.rows >= 20 || !leader {
        if view.facts_known {
            rows.push(footer::figures_line(&view.facts, &place, columns));
        } else {
            rows.push(Row::new());
        }
    }
    rows
}
