//! The footer (`host.md` 8.14, `terminal.md` TERM-12).

use crew_base::message::Usage;

use crate::cells::Row;
use crate::format;
use crate::request::Facts;
use crate::theme::{ERROR, MUTED, Style, TEXT, WARNING};

/// Blanks between both sides of line 2.
const GAP: usize = 1;

/// What the footer needs beside figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Working directory with `~`.
    pub cwd: &'a str,
    /// Git branch.
    pub branch: Option<&'a str>,
    /// Name of the session.
    pub name: Option<&'a str>,
    /// Whether the provider is named too.
    pub with_provider: bool,
    /// Open subagents; `None` when there never was one.
    pub crew: Option<usize>,
}

/// Line 1: where we are; what does not fit is left out from the left.
pub(super) fn place_line(place: &Place<'_>, columns: usize) -> Row {
    let mut row = Row::of(place.cwd, MUTED);
    if let Some(branch) = place.branch {
        row.push(&format!(" ({branch})"), MUTED);
    }
    if let Some(name) = place.name {
        row.push(" • ", MUTED);
        row.push(name, MUTED);
    }
    row.cut_left(columns).restyled(|_| MUTED)
}

/// Line 2: figures left, model right. Parts go in turn until both fit.
pub(super) fn figures_line(facts: &Facts, place: &Place<'_>, columns: usize) -> Row {
    for richness in (0..=RICHNESS_MAX).rev() {
        let left = left(facts, place.crew, richness, columns);
        let right = right(facts, place.with_provider, richness);
        let gap = if left.is_empty() { 0 } else { GAP };
        if left.width() + gap + right.width() <= columns {
            let mut row = left.clone();
            row.space(columns - left.width() - right.width());
            row.append(&right);
            return row;
        }
    }
    left(facts, place.crew, 0, columns).cut(columns)
}

/// 6 all; 5 without the provider; 4 without cache parts; 3 without tokens;
/// 2 without window; 1 without thinking level; 0 without the model.
const RICHNESS_MAX: u8 = 6;

fn left(facts: &Facts, crew: Option<usize>, richness: u8, columns: usize) -> Row {
    let mut row = Row::new();
    let own = &facts.own;
    let mut part = |text: String, style: Style| {
        if !row.is_empty() {
            row.push(" ", MUTED);
        }
        row.push(&text, style);
    };
    if richness >= 3 {
        for (sign, number) in [("↑", own.input), ("↓", own.output)] {
            if number > 0 {
                part(format!("{sign}{}", format::tokens_short(number)), MUTED);
            }
        }
    }
    if richness >= 5 {
        for (sign, number) in [("R", own.cache_read), ("W", own.cache_write)] {
            if number > 0 {
                part(format!("{sign}{}", format::tokens_short(number)), MUTED);
            }
        }
        if let Some(percent) = cache_hits(own) {
            part(format!("CH{percent}%"), MUTED);
        }
    }
    if own.cost.total > 0.0 {
        part(format::cost(own.cost.total), MUTED);
    }
    if let Some(open) = crew {
        let count = if open > 0 { format!("{open} ") } else { String::new() };
        let lead = if row.is_empty() { "" } else { " · " };
        row.push(&format!("{lead}crew {count}{}", format::cost(facts.crew.cost.total)), TEXT);
        row.push(" · ", MUTED);
    } else if !row.is_empty() {
        row.push(" ", MUTED);
    }
    let Some((text, style)) = context(facts, richness >= 3, columns >= 60) else {
        return trimmed(&row);
    };
    row.push(&text, style);
    row
}

fn trimmed(row: &Row) -> Row {
    let text = row.text().trim_end_matches([' ', '·']);
    let cells = Row::of(text, TEXT).len();
    row.part(0, cells)
}

fn cache_hits(usage: &Usage) -> Option<u64> {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    (usage.cache_read > 0).then(|| usage.cache_read * 100 / prompt)
}

/// How full the context is; a warning above 70 %, an error above 90 %.
fn context(facts: &Facts, with_window: bool, with_auto: bool) -> Option<(String, Style)> {
    let window = facts.model.as_ref()?.window.max(1);
    let percent = facts.context_tokens.map(|tokens| tokens.saturating_mul(100) / window);
    let style = match percent {
        Some(91..) => ERROR,
        Some(71..) => WARNING,
        Some(_) | None => MUTED,
    };
    let mut text = percent.map_or("?".to_owned(), |percent| format!("{percent}%"));
    if with_window {
        text.push_str(&format!("/{}", format::tokens_short(window)));
        if facts.auto_compaction && with_auto {
            text.push_str(" (auto)");
        }
    }
    Some((text, style))
}

fn right(facts: &Facts, with_provider: bool, richness: u8) -> Row {
    if richness == 0 {
        return Row::new();
    }
    let Some(model) = &facts.model else { return Row::of("no model", WARNING) };
    let mut row = Row::of(&model.id, MUTED);
    if model.is_scripted {
        row.push(" (scripted)", WARNING);
    }
    if let Some(level) = facts.thinking
        && model.levels.len() > 1
        && richness >= 2
    {
        row.push(&format!(" • {}", level.word()), MUTED);
    }
    if with_provider && richness >= 6 {
        row.push(&format!(" ({})", model.provider), MUTED);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ModelFacts;
    use crew_base::model::ThinkingLevel;

    fn facts() -> Facts {
        let mut own = Usage { input: 12_400, output: 3_100, ..Usage::default() };
        own.cost.total = 0.08;
        let mut crew = Usage::default();
        crew.cost.total = 0.11;
        Facts {
            model: Some(ModelFacts {
                provider: "anthropic".into(),
                id: "claude-opus-5".into(),
                window: 200_000,
                levels: vec![ThinkingLevel::Off, ThinkingLevel::Medium],
                is_scripted: false,
            }),
            thinking: Some(ThinkingLevel::Medium),
            context_tokens: Some(18_000),
            own,
            crew,
            auto_compaction: true,
            ..Facts::default()
        }
    }

    fn place(crew: Option<usize>) -> Place<'static> {
        Place { cwd: "~/src/parser", branch: Some("main"), name: None, with_provider: false, crew }
    }

    // Sketches S-1, S-2, S-5.
    #[test]
    fn the_footer_is_that_of_the_sketches() {
        let check = |facts: &Facts, crew, columns, expected: &str| {
            assert_eq!(figures_line(facts, &place(crew), columns).text(), expected);
        };
        let wide = "↑12.4k ↓3.1k $0.08 · crew 3 $0.11 · 9%/200k (auto)                            claude-opus-5 • medium";
        check(&facts(), Some(3), 100, wide);
        check(&facts(), Some(3), 40, "$0.08 · crew 3 $0.11 · 9%  claude-opus-5");
        check(&facts(), Some(0), 40, "$0.08 · crew $0.11 · 9%    claude-opus-5");
        let empty = Facts { own: Usage::default(), context_tokens: Some(0), ..facts() };
        check(&empty, None, 40, "0%/200k           claude-opus-5 • medium");
        let none = Facts { model: None, own: Usage::default(), ..facts() };
        check(&none, None, 20, "            no model");
        assert_eq!(place_line(&place(None), 100).text(), "~/src/parser (main)");
        assert_eq!(place_line(&place(None), 10).text(), "…er (main)");
    }

    // host.md 8.14.
    #[test]
    fn a_full_context_warns() {
        let style = |tokens| {
            let facts = Facts { context_tokens: Some(tokens), ..facts() };
            context(&facts, true, true).unwrap().1
        };
        assert_eq!((style(140_000), style(142_000), style(184_000)), (MUTED, WARNING, ERROR));
        let unknown = Facts { context_tokens: None, ..facts() };
        assert_eq!(context(&unknown, true, true).unwrap().0, "?/200k (auto)");
    }

    // TERM-10: never wider than the terminal.
    #[test]
    fn the_footer_fits_any_width() {
        for columns in 0..120 {
            assert!(figures_line(&facts(), &place(Some(15)), columns).width() <= columns);
            assert!(place_line(&place(Some(15)), columns).width() <= columns);
        }
    }
}
