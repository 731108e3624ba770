//! The page as a whole: head, facts, the transcript, the children.
//!
//! Owns the frame; what stands inside comes from `transcript`. Must never load
//! anything from elsewhere nor carry a script.

use std::path::Path;

use crew_base::text::{excerpt, is_blank, sanitise_inline};

use super::children::{Child, Children};
use super::markup::{Html, count, dollars, grouped};
use super::survey::{Sum, Survey};
use super::transcript::Transcript;
use super::view::{Scanned, View};
use super::{Done, ExportOptions};
use crate::session::scan::time_of;

/// Writes the page of a session.
pub(super) fn write(
    mut view: View<'_>,
    file: Option<&Path>,
    options: &ExportOptions,
    out: &mut dyn std::io::Write,
) -> Done {
    let last = view.index.entries().last().map(|entry| &entry.id);
    let leaf = options.leaf.as_ref().or(last);
    let path = leaf.map_or_else(Vec::new, |leaf| view.index.path(leaf));
    let on_path = on_path(&view, &path);
    let survey = Survey::of(&mut view, &on_path)?;
    let children =
        if options.children { Children::find(file, &survey)? } else { Children::default() };
    let html = &mut Html::new(out);
    head(html, &view, &survey)?;
    contents(html, &children)?;
    html.put("<main>\n")?;
    Transcript::new(view, &survey, &children, String::new()).write(html, &path)?;
    html.put("</main>\n")?;
    for (number, child) in children.list.iter().enumerate() {
        section(html, number, child)?;
    }
    html.put("<footer class=\"meta\">Exported by crew. Times are UTC.</footer>\n</body>\n</html>\n")
}

/// Anchor of a child's section.
pub(super) fn child_anchor(number: usize) -> String {
    format!("crew-{}", number + 1)
}

fn on_path(view: &View<'_>, path: &[usize]) -> Vec<bool> {
    let mut on_path = vec![false; view.index.entries().len()];
    for place in path {
        on_path[*place] = true;
    }
    on_path
}

fn head(html: &mut Html<'_>, view: &View<'_>, survey: &Survey) -> Done {
    let title = title(view, survey);
    html.put(concat!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        // Whatever a viewer makes of the page, nothing is fetched and nothing runs.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
        "img-src data:; style-src 'unsafe-inline'\">\n",
        "<meta name=\"referrer\" content=\"no-referrer\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    ))?;
    html.between("<title>", &title, "</title>\n<style>\n")?;
    html.put(include_str!("page.css"))?;
    html.put("</style>\n</head>\n<body>\n<header>\n<h1>")?;
    html.inline(&title)?;
    html.put("</h1>\n<dl>\n")?;
    fact(html, "Directory", &view.header.cwd)?;
    if let Some((provider, model)) = &survey.model {
        fact(html, "Model", &format!("{provider}/{model}"))?;
    }
    if let Some(level) = &survey.thinking_level {
        fact(html, "Thinking", level)?;
    }
    html.put("<dt>Created</dt><dd>")?;
    html.time(time_of(&view.header.timestamp))?;
    html.put("</dd>\n")?;
    fact(html, "Session", view.header.id.as_str())?;
    if let Some(parent) = &view.header.parent_session {
        fact(html, "Came from", parent)?;
    }
    fact(html, "Messages", &counts(survey))?;
    totals(html, survey)?;
    html.put("</dl>\n</header>\n")
}

/// Tokens and cost, own and crew apart (`product.md` P-12).
fn totals(html: &mut Html<'_>, survey: &Survey) -> Done {
    fact(html, "Own tokens", &spent(&survey.own))?;
    if survey.crew.is_empty() {
        return Ok(());
    }
    let crew = survey.crew_sum();
    let agents = count(survey.crew.len(), "subagent");
    fact(html, "Crew tokens", &format!("{} · {agents}", spent(&crew)))?;
    fact(html, "Total cost", &dollars(survey.own.cost + crew.cost))
}

fn fact(html: &mut Html<'_>, name: &str, value: &str) -> Done {
    html.between("<dt>", name, "</dt><dd>")?;
    html.inline(value)?;
    html.put("</dd>\n")
}

fn counts(survey: &Survey) -> String {
    let prompts = count(survey.prompts, "prompt");
    let answers = count(survey.answers, "answer");
    format!("{prompts} · {answers} · {}", count(survey.tool_calls, "tool call"))
}

/// Tokens and cost in one line (`host.md` 8.14 without its cuts).
pub(super) fn spent(sum: &Sum) -> String {
    let mut text = format!("↑ {} · ↓ {}", grouped(sum.input), grouped(sum.output));
    for (number, what) in [(sum.cache_read, "cache read"), (sum.cache_write, "cache written")] {
        if number > 0 {
            text += &format!(" · {} {what}", grouped(number));
        }
    }
    format!("{text} · {}", dollars(sum.cost))
}

fn title(view: &View<'_>, survey: &Survey) -> String {
    let first = survey.first_prompt.as_deref().map(|text| excerpt(text, TITLE_CHARS_MAX * 2));
    let named = view.index.name().map(str::to_owned).or(first);
    let title = named.map(|text| excerpt(&sanitise_inline(&text), TITLE_CHARS_MAX));
    let title = title.filter(|title| !is_blank(title));
    title.unwrap_or_else(|| format!("Session {}", view.header.id))
}

/// The list of children, each with brief, outcome and cost (`terminal.md`
/// TERM-50).
fn contents(html: &mut Html<'_>, children: &Children) -> Done {
    if children.list.is_empty() {
        return Ok(());
    }
    html.put("<nav>\n<h4>Crew</h4>\n<ul>\n")?;
    for (number, child) in children.list.iter().enumerate() {
        html.between("<li><a href=\"#", &child_anchor(number), "\">")?;
        html.inline(&label(child))?;
        html.put("</a> <span class=\"meta\">")?;
        html.inline(&format!("{} · {}", outcome(child), dollars(child.sum.cost)))?;
        html.put("</span></li>\n")?;
    }
    html.put("</ul>\n</nav>\n")
}

fn section(html: &mut Html<'_>, number: usize, child: &Child) -> Done {
    let scanned = Scanned::open(&child.path)?;
    let mut view = scanned.view()?;
    let last = view.index.entries().last().map(|entry| entry.id.clone());
    let path = last.map_or_else(Vec::new, |leaf| view.index.path(&leaf));
    let on_path = on_path(&view, &path);
    let survey = Survey::of(&mut view, &on_path)?;
    html.between("<section id=\"", &child_anchor(number), "\">\n<h2>")?;
    html.inline(&label(child))?;
    html.put("</h2>\n<dl>\n")?;
    fact(html, "Outcome", outcome(child))?;
    if let Some((provider, model)) = &survey.model {
        fact(html, "Model", &format!("{provider}/{model}"))?;
    }
    fact(html, "Session", view.header.id.as_str())?;
    fact(html, "Messages", &counts(&survey))?;
    fact(html, "Tokens", &spent(&survey.own))?;
    html.put("</dl>\n")?;
    let none = Children::default();
    let prefix = format!("{}.", child_anchor(number));
    Transcript::new(view, &survey, &none, prefix).write(html, &path)?;
    html.put("</section>\n")
}

fn label(child: &Child) -> String {
    match &child.subagent {
        Some(id) => format!("{id} · {}", child.brief),
        None => child.brief.clone(),
    }
}

fn outcome(child: &Child) -> &str {
    child.outcome.as_deref().unwrap_or("no outcome recorded")
}

const TITLE_CHARS_MAX: usize = 100;
