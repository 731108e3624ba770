//! The crew widget in the levels of `terminal.md` TERM-11, with the line
//! formats of `crew.md` WID.

use crew_base::time::Time;
use crew_engine::api::Status;

use crate::cells::Row;
use crate::format;
use crate::request::{Activity, ActivityState};
use crate::theme::{ERROR, MUTED, SUCCESS, TEXT, Theme};
use crate::view::crew::{Crew, Subagent};

/// How much is shown of each subagent; poorer ones are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The whole layout.
    #[default]
    Whole,
    /// Without blank lines and rule, newest row only.
    Facts,
    /// First line and newest row.
    Newest,
    /// First line.
    First,
    /// As many first lines as there is room, and counts.
    Some,
}

const LEVELS: [Level; 5] = [Level::Whole, Level::Facts, Level::Newest, Level::First, Level::Some];

/// How the widget is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Widget {
    /// Icons and colours.
    pub theme: Theme,
    /// Columns there are.
    pub columns: usize,
    /// Rows there may be.
    pub budget: usize,
    /// The latest ten rows instead of three (`crew.md` WID-6).
    pub long: bool,
    /// Whether tool rows are shown (`crew.md` WID-14).
    pub tools: bool,
    /// Now.
    pub now: Time,
}

impl Widget {
    /// Activity rows of one subagent.
    fn limit(&self) -> usize {
        if self.long { 10 } else { 3 }
    }

    /// The richest level that fits into the budget.
    pub fn level(&self, crew: &Crew) -> Level {
        let fits = |level: &Level| self.height(crew, *level) <= self.budget;
        LEVELS.into_iter().find(fits).unwrap_or(Level::Some)
    }

    fn height(&self, crew: &Crew, level: Level) -> usize {
        let rows = |subagent: &Subagent| if self.tools { subagent.rows.len() } else { 0 };
        let each = |subagent: &Subagent| match level {
            Level::Whole => {
                let shown = rows(subagent).min(self.limit());
                3 + shown + usize::from(shown > 0)
            }
            Level::Facts => 3 + rows(subagent).min(1),
            Level::Newest => 1 + rows(subagent).min(1),
            Level::First | Level::Some => 1,
        };
        let sum: usize = crew.open.iter().map(each).sum();
        match level {
            Level::Whole => sum + crew.open.len().saturating_sub(1),
            Level::Some => sum.min(self.budget),
            Level::Facts | Level::Newest | Level::First => sum,
        }
    }

    /// The widget's rows at a level; none is wider than the terminal.
    pub fn rows(&self, crew: &Crew, level: Level) -> Vec<Row> {
        if self.budget == 0 || crew.open.is_empty() || self.columns == 0 {
            return Vec::new();
        }
        if level == Level::Some {
            return self.some(crew);
        }
        let mut rows = Vec::new();
        for (number, subagent) in crew.open.iter().enumerate() {
            if number > 0 && level == Level::Whole {
                rows.push(Row::new());
            }
            rows.extend(self.subagent(subagent, level, number == 0));
        }
        rows.into_iter().map(|row| row.cut(self.columns)).collect()
    }

    fn subagent(&self, subagent: &Subagent, level: Level, is_first: bool) -> Vec<Row> {
        let mut rows = vec![self.first(subagent, is_first)];
        if level <= Level::Facts {
            rows.push(model_line(subagent));
            rows.push(self.counts_line(subagent, level == Level::Whole));
        }
        let shown = match level {
            Level::Whole => self.limit(),
            Level::Facts | Level::Newest => 1,
            Level::First | Level::Some => 0,
        };
        if !self.tools || subagent.rows.is_empty() || shown == 0 {
            return rows;
        }
        if level == Level::Whole {
            rows.push(Row::of("  ---", MUTED));
        }
        let from = subagent.rows.len().saturating_sub(shown);
        rows.extend(subagent.rows[from..].iter().map(activity_line));
        rows
    }

    /// Icon, id, brief, and on the first one the hint (`crew.md` WID-5).
    fn first(&self, subagent: &Subagent, is_first: bool) -> Row {
        let icon = self.theme.icon(subagent.status, self.now.0);
        let mut row = Row::of(icon, self.theme.status_style(subagent.status));
        row.push(" ", TEXT);
        row.push(&subagent.id, TEXT);
        row.push(" - ", MUTED);
        row.push(&subagent.brief, TEXT);
        if is_first && self.tools {
            let deed = if self.long { "collapse" } else { "details" };
            row.push(&format!(" | ctrl+x d to {deed}"), MUTED);
        }
        row
    }

    fn counts_line(&self, subagent: &Subagent, with_latest: bool) -> Row {
        let worked = format::time(still(self.theme, subagent, self.now));
        let calls = usize::try_from(subagent.tool_calls).unwrap_or(usize::MAX);
        let mut text = format!("  {worked} · {}", format::count(calls, "tool call"));
        if subagent.failures > 0 {
            let failures = usize::try_from(subagent.failures).unwrap_or(usize::MAX);
            text.push_str(&format!(" · {}", format::count(failures, "failure")));
        }
        if with_latest && self.tools && calls > self.limit() {
            text.push_str(&format!(" · showing latest {}", self.limit()));
        }
        Row::of(&text, MUTED)
    }

    /// First lines of those that matter most, in creation order, and counts of
    /// the rest.
    fn some(&self, crew: &Crew) -> Vec<Row> {
        let places = if crew.open.len() <= self.budget { self.budget } else { self.budget - 1 };
        let rank = |subagent: &Subagent| match subagent.status {
            Status::NeedsInput => 0,
            Status::Running => 1,
            Status::Completed | Status::Error | Status::Aborted => 2,
        };
        let mut order: Vec<usize> = (0..crew.open.len()).collect();
        order.sort_by_key(|at| rank(&crew.open[*at]));
        let mut shown: Vec<usize> = order.iter().copied().take(places).collect();
        shown.sort_unstable();
        let mut rows: Vec<Row> = shown
            .iter()
            .enumerate()
            .map(|(number, at)| self.first(&crew.open[*at], number == 0))
            .collect();
        let rest: Vec<&Subagent> = order.iter().skip(places).map(|at| &crew.open[*at]).collect();
        if !rest.is_empty() {
            let mut left = Crew::default();
            left.open.extend(rest.iter().map(|subagent| (*subagent).clone()));
            let counts = left.counts();
            let parts =
                [(counts.running, "running"), (counts.waiting, "need you"), (counts.done, "done")];
            let parts: Vec<_> = parts
                .iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, word)| format!("{number} {word}"))
                .collect();
            rows.push(Row::of(&format!("+{} more: {}", rest.len(), parts.join(" · ")), MUTED));
        }
        rows.into_iter().map(|row| row.cut(self.columns)).collect()
    }
}

/// Working time; without motion it steps by five seconds (TERM-56).
pub fn still(theme: Theme, subagent: &Subagent, now: Time) -> u64 {
    let ms = subagent.worked_ms(now);
    if theme.motion || subagent.status != Status::Running { ms } else { ms / 5_000 * 5_000 }
}

fn model_line(subagent: &Subagent) -> Row {
    let model = subagent.model.as_deref().map_or("…", format::model_id);
    let thinking = subagent.thinking.map_or("…", |level| level.word());
    let usage = &subagent.usage;
    let text = format!(
        "  {model} · {thinking} | ↑ {} · ↓ {} · {}",
        format::tokens(usage.input),
        format::tokens(usage.output),
        format::cost(usage.cost.total)
    );
    Row::of(&text, MUTED)
}

/// One activity row (`crew.md` WID-2, WID-16).
pub fn activity_line(activity: &Activity) -> Row {
    let style = match activity.state {
        ActivityState::Running => MUTED,
        ActivityState::Done => SUCCESS,
        ActivityState::Failed => ERROR,
    };
    let mut row = Row::new();
    row.space(2);
    row.push(&activity.name, style);
    row.push("  ", TEXT);
    row.push(&activity.target, style);
    if let Some(summary) = &activity.summary {
        row.push(&format!(" · {summary}"), MUTED);
    }
    row
}
