//! The end of the tour: what was really found, and who found it. Never longer
//! than [`LINES_MAX`] lines, whatever the reports hold.

use super::errand::{DECISION, Errand};
use super::finding::{clean, findings, quoted_paths};
use super::owner::folder_line;
use super::round::{Member, Round, State};

/// Lines of the whole text.
pub(super) const LINES_MAX: usize = 25;

/// Lines about one member, its heading not counted.
const MEMBER_LINES_MAX: usize = 4;

/// Two of heading, six for each of three members, two of the owner.
const _: () = assert!(2 + 3 * (MEMBER_LINES_MAX + 2) + 2 <= LINES_MAX);

/// Sums up a round in Markdown.
pub(super) fn summary(round: &Round) -> String {
    let mut lines = vec!["## What the crew found".to_owned()];
    for member in round.members.iter().take(Errand::ALL.len()) {
        lines.push(String::new());
        lines.push(heading(member));
        lines.extend(about(member).into_iter().map(|line| format!("- {line}")));
    }
    lines.push(String::new());
    lines.push(match folder_line(round) {
        Some(line) => format!("**Myself:** the top folder, {line}."),
        None if round.members.is_empty() => "Nobody could be started.".to_owned(),
        None => "I had no tool of my own to look with.".to_owned(),
    });
    lines.join("\n")
}

fn heading(member: &Member) -> String {
    let name = if member.id.is_empty() { member.errand.subagent() } else { &member.id };
    format!("**{}**, {}:", clean(name), member.errand.brief())
}

fn about(member: &Member) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(path) = member.responses.iter().find_map(|message| decision(message)) {
        lines.push(format!("it asked which file to review; I chose `{path}`"));
    }
    let mut answers = member.reports.iter().filter(|report| report.needs.is_none());
    if let Some(first) = answers.next() {
        let later = answers.flat_map(|report| findings(&report.text, 1));
        let later: Vec<_> = later.take(1).map(|line| format!("asked once more: {line}")).collect();
        let room = MEMBER_LINES_MAX - lines.len() - later.len();
        lines.extend(findings(&first.text, room));
        lines.extend(later);
    }
    match &member.state {
        State::Failed(error) => lines.push(format!("no result: {}", clean(error))),
        State::Running | State::Reported | State::Closed if lines.is_empty() => {
            lines.push("nothing was reported".to_owned());
        }
        State::Running | State::Reported | State::Closed => {}
    }
    // A failure is said even where the lines before fill the room.
    if lines.len() > MEMBER_LINES_MAX {
        lines.remove(0);
    }
    lines
}

fn decision(message: &str) -> Option<String> {
    quoted_paths(message.strip_prefix(DECISION)?).into_iter().next()
}
