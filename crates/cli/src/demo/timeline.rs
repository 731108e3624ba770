//! The live timeline of the demo: when, who, what; one line for each thing
//! that happens, children indented below their owner.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crew_base::message::StopReason;
use crew_base::text::{excerpt, sanitise_inline};
use crew_crew::activity::target;
use crew_engine::api::{CrewUpdate, SessionUpdate, Status, Update, UpdateKind, is_owner_tool};
use crew_runtime::Notice;

use crate::config::models;
use crate::drive::{Cut, Face};
use crate::output::{self, Product};
use crate::progress::Progress;

/// Columns for names: two, `code-reviewer-` and eight digits fit, with a space.
const WHO_COLUMNS: usize = 25;
const WHEN_COLUMNS: usize = 6;
/// Columns that are left for what happens, however narrow the terminal is.
const WHAT_COLUMNS_MIN: usize = 20;
/// Lines of one thing that owner or person say.
const SPOKEN_LINES_MAX: usize = 3;

/// How the timeline looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Columns of a line.
    pub(super) columns: usize,
    /// Whether colours are used.
    pub(super) colours: bool,
}

/// The timeline as a face.
pub(super) struct Timeline {
    product: Product,
    look: Look,
    home: Option<String>,
    start: Instant,
    /// Children in order of their first line; each has a colour.
    known: Vec<String>,
    /// The owner's newest text; the last one of all is the summary.
    held: Option<(Duration, String)>,
}

enum Who<'a> {
    Person,
    Owner,
    Child(&'a str),
}

impl Timeline {
    /// An empty timeline; the home folder is shown as `~`.
    pub(super) fn new(product: Product, look: Look, home: Option<String>) -> Timeline {
        let start = Instant::now();
        Timeline { product, look, home, start, known: Vec::new(), held: None }
    }

    /// The lines before anything happens.
    pub(super) fn begin(&mut self, dir: &Path, prompt: &str) -> io::Result<()> {
        let dir = sanitise_inline(&dir.to_string_lossy());
        let text = format!(
            "A crew at work in {dir}, led by {}. Tools and results are real;\nnothing is written there.\n\n",
            models::shown("demo/crew"),
        );
        self.product.write(&text)?;
        self.line(Duration::ZERO, &Who::Person, prompt)?;
        self.product.flush()
    }

    /// The summary, already safe to print.
    pub(super) fn end(&mut self, summary: &str) -> io::Result<()> {
        let took = self.start.elapsed().as_secs_f32();
        let children = self.known.len();
        let text = format!("\n{}\n\n{children} subagents, {took:.1} s\n", summary.trim_end());
        self.product.write(&text)?;
        self.product.flush()
    }

    fn session(&mut self, update: &SessionUpdate) -> io::Result<()> {
        match update {
            SessionUpdate::AgentStart | SessionUpdate::TurnStart => self.release(),
            SessionUpdate::MessageEnd(message) => {
                let Some(answer) = message.as_assistant() else { return Ok(()) };
                let text = answer.text();
                if !text.trim().is_empty() {
                    self.release()?;
                    self.held = Some((self.start.elapsed(), text));
                }
                if answer.stop_reason == StopReason::ToolUse { self.release() } else { Ok(()) }
            }
            SessionUpdate::ToolStart { name, arguments, .. } => {
                let arguments_value = arguments.value();
                let text = |key: &str| arguments_value[key].as_str().unwrap_or_default().to_owned();
                let what = if is_owner_tool(name) {
                    let parts = [text("subagent"), text("subagent_id"), text("brief")];
                    let parts: Vec<String> =
                        parts.into_iter().filter(|part| !part.is_empty()).collect();
                    format!("{name} {}", parts.join(": "))
                } else {
                    let (tool, target) = target(name, arguments, self.home.as_deref());
                    format!("{tool} {target}")
                };
                self.now(&Who::Owner, &format!("> {what}"))
            }
            SessionUpdate::RetryStart { error, .. } => {
                self.now(&Who::Owner, &format!("tries again after: {error}"))
            }
            SessionUpdate::MessageStart(_)
            | SessionUpdate::MessageUpdate { .. }
            | SessionUpdate::ToolProgress { .. }
            | SessionUpdate::ToolEnd { .. }
            | SessionUpdate::TurnEnd { .. }
            | SessionUpdate::AgentEnd { .. }
            | SessionUpdate::AgentSettled { .. }
            | SessionUpdate::QueueUpdate { .. }
            | SessionUpdate::RetryEnd { .. }
            | SessionUpdate::CompactionStart { .. }
            | SessionUpdate::CompactionEnd { .. }
            | SessionUpdate::SummaryRetryScheduled { .. }
            | SessionUpdate::SummaryRetryStart { .. }
            | SessionUpdate::SummaryRetryFinished
            | SessionUpdate::BranchSummaryStart
            | SessionUpdate::MoveEnd(_)
            | SessionUpdate::ThinkingLevelChanged(_)
            | SessionUpdate::SessionInfoChanged(_)
            | SessionUpdate::EntryAppended(_) => Ok(()),
        }
    }

    fn crew(&mut self, update: &CrewUpdate) -> io::Result<()> {
        let id = update.subagent.as_str();
        if !self.known.iter().any(|known| known == id) {
            self.known.push(id.to_owned());
        }
        let child = Who::Child(id);
        match &update.kind {
            // Closing comes also behind the owner's last text.
            UpdateKind::Closed => self.line(self.start.elapsed(), &child, "closed"),
            UpdateKind::Spawned => self.now(&child, &format!("started: {}", update.brief)),
            UpdateKind::Responded => self.now(&child, "goes on with the answer"),
            UpdateKind::Activity { tool, target } => {
                self.now(&child, &format!("> {tool} {target}"))
            }
            UpdateKind::Settled { text, .. } => {
                let lead = match update.status {
                    Status::Completed => "reports",
                    Status::NeedsInput => "asks",
                    Status::Error => "failed",
                    Status::Aborted => "aborted",
                    Status::Running => "settled",
                };
                self.now(&child, &format!("{lead}: {}", first_words(text)))
            }
            UpdateKind::Delivered => self.now(&Who::Owner, &format!("< result of {id}")),
        }
    }

    /// A line of this moment, behind what the owner said before.
    fn now(&mut self, who: &Who<'_>, what: &str) -> io::Result<()> {
        self.release()?;
        self.line(self.start.elapsed(), who, what)
    }

    /// The owner's held text turns out not to be the summary.
    fn release(&mut self) -> io::Result<()> {
        let Some((at, text)) = self.held.take() else { return Ok(()) };
        self.line(at, &Who::Owner, &text)
    }

    fn line(&mut self, at: Duration, who: &Who<'_>, what: &str) -> io::Result<()> {
        self.product.write(&rows(self.look, at, who, what, &self.known))
    }
}

impl Face for Timeline {
    fn show(&mut self, notice: &Notice) -> io::Result<()> {
        match notice {
            Notice::Update(Update::Session { update, .. }) => self.session(update),
            Notice::Update(Update::Crew(update)) => self.crew(update),
            Notice::Warning(text) => {
                output::warning(text);
                Ok(())
            }
            Notice::Opened { .. }
            | Notice::Question(_)
            | Notice::QuestionOver(_)
            | Notice::Update(
                Update::Task(_)
                | Update::Answered { .. }
                | Update::RunFailed { .. }
                | Update::AtRest(_),
            ) => Ok(()),
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.product.flush()
    }

    fn cut(&mut self, cut: &Cut) {
        Progress::new(true, false).cut(cut);
    }
}

/// Aligned, safe and no wider than the terminal: one line, two for longer
/// words of owner and person, the rest cut.
fn rows(look: Look, at: Duration, who: &Who<'_>, what: &str, known: &[String]) -> String {
    let (name, colour, lines_max) = match who {
        Who::Person => ("you".to_owned(), "1", SPOKEN_LINES_MAX),
        Who::Owner => ("owner".to_owned(), "1;36", SPOKEN_LINES_MAX),
        Who::Child(id) => {
            let place = known.iter().position(|known| known == id).unwrap_or(0);
            let colour = CHILD_COLOURS[place % CHILD_COLOURS.len()];
            (format!("  {}", sanitise_inline(id)), colour, 1)
        }
    };
    let mut name = format!("{:WHO_COLUMNS$}", excerpt(&name, WHO_COLUMNS - 1));
    let mut when = format!("{:>5.1}s", at.as_secs_f32());
    let room = look.columns.saturating_sub(WHEN_COLUMNS + WHO_COLUMNS + 3).max(WHAT_COLUMNS_MIN);
    let mut rows = String::new();
    for what in wrapped(&sanitise_inline(what), room, lines_max) {
        rows.push_str(&if look.colours {
            format!("\u{1b}[2m{when}\u{1b}[0m  \u{1b}[{colour}m{name}\u{1b}[0m {what}\n")
        } else {
            format!("{when}  {name} {what}\n")
        });
        when = " ".repeat(WHEN_COLUMNS);
        name = " ".repeat(WHO_COLUMNS);
    }
    rows
}

/// Lines of whole words; what does not fit into the last one is cut.
fn wrapped(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text;
    while lines.len() + 1 < lines_max && rest.chars().count() > columns {
        let end = rest.char_indices().nth(columns).map_or(rest.len(), |(at, _)| at);
        let end = match rest[end..].starts_with(' ') {
            true => end,
            false => rest[..end].rfind(' ').unwrap_or(end),
        };
        lines.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    lines.push(if rest.chars().count() > columns {
        excerpt(rest, columns - 1)
    } else {
        rest.to_owned()
    });
    lines
}

/// The first line of a report that says something.
fn first_words(report: &str) -> &str {
    let says = |line: &&str| !line.is_empty() && !line.starts_with('#');
    report.lines().map(str::trim).find(says).unwrap_or_default().trim_start_matches("- ")
}

const CHILD_COLOURS: [&str; 5] = ["33", "32", "35", "34", "31"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_safe_and_cut() {
        let look = Look { columns: 60, colours: false };
        let known = ["scout-1a2b3c4d".to_owned()];
        let check = |who: Who<'_>, what: &str, expected: &[&str]| {
            let rows = rows(look, Duration::from_millis(1234), &who, what, &known);
            assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
            assert!(rows.lines().all(|line| line.chars().count() <= 60), "{rows}");
        };
        check(Who::Owner, "hello", &["  1.2s  owner                     hello"]);
        check(
            Who::Child("scout-1a2b3c4d"),
            "\u{1b}[31m> ls\n  src and more and more and more",
            &["  1.2s    scout-1a2b3c4d          > ls src and more and mor…"],
        );
        check(
            Who::Person,
            "some words that take three lines and a few more that are not to be seen any more",
            &[
                "  1.2s  you                       some words that take three",
                "                                  lines and a few more that",
                "                                  are not to be seen any mo…",
            ],
        );
    }

    #[test]
    fn a_very_narrow_terminal_still_shows_something() {
        let look = Look { columns: 10, colours: true };
        let line = rows(look, Duration::ZERO, &Who::Owner, "hello there", &[]);
        assert!(line.contains("hello there") && line.contains("\u{1b}[1;36m"));
    }

    #[test]
    fn a_report_is_shown_by_its_first_words() {
        assert_eq!(first_words("\n## Scope\n\n- src only\n"), "src only");
        assert_eq!(first_words("# Nothing"), "");
    }
}
