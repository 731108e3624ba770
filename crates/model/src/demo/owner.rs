//! The owner's script: hands out three errands, goes on by itself, answers,
//! follows up, closes, sums up. Never polls (`crew.md` TOOL-9) and never
//! waits: without anything to do it ends its turn.

use serde_json::json;

use super::command::top_folder;
use super::errand::{COUNT_TOP, DECISION, Errand, MEASURE};
use super::finding::{clean, findings, quoted, quoted_paths};
use super::reply::Reply;
use super::round::{Folder, Member, Report, Round, State};
use super::summary::summary;
use super::{look, view::View};

/// The next answer of an owner.
pub(super) fn reply(view: &View) -> Reply {
    let round = Round::of(view);
    if round.is_exhausted() {
        return Reply::text(
            "demo/crew stops here: its script allows no more answers in one round.",
        );
    }
    if !round.is_spawned && round.is_addressed {
        return opening();
    }
    let mut reply = Reply::default();
    if round.is_addressed {
        reply.say(ADDRESSED);
    }
    for id in &round.strays {
        let id = clean(id);
        reply.say(format!("A result of {id} came in. It is no part of this script; I leave it."));
    }
    if !round.is_spawned || round.is_finished && round.reported().next().is_none() {
        if reply.text.is_empty() {
            reply.say("The scripted tour is over; another prompt starts it again.");
        }
        return reply;
    }
    look_around(view, &round, &mut reply);
    for member in round.reported() {
        attend(view, member, &mut reply);
    }
    if reply.calls.is_empty() {
        close_turn(&round, &mut reply);
    }
    reply
}

fn opening() -> Reply {
    let mut reply = Reply::text(OPENING);
    for errand in Errand::ALL {
        reply.call(
            "crew_spawn",
            json!({
                "subagent": errand.subagent(),
                "brief": errand.brief(),
                "task": errand.task(),
            }),
        );
    }
    reply
}

/// Work of its own while the others are at theirs.
fn look_around(view: &View, round: &Round, reply: &mut Reply) {
    match &round.folder {
        Folder::NotAsked => {
            let started: Vec<_> = round.running().map(|member| clean(&member.id)).collect();
            for member in &round.members {
                if let (State::Failed(error), "") = (&member.state, member.id.as_str()) {
                    let brief = member.errand.brief();
                    reply.say(format!("The errand \"{brief}\" did not start: {}", clean(error)));
                }
            }
            if !started.is_empty() {
                reply.say(format!("{} are at work. I do not wait for them.", quoted(&started)));
            }
            if view.offers("ls") {
                reply.say("Meanwhile I look at the top folder myself.");
                reply.call("ls", json!({"path": "."}));
            } else if view.offers("bash") {
                reply.say("Meanwhile I look at the top folder myself.");
                reply.call("bash", json!({"command": top_folder(), "timeout": 20}));
            }
        }
        Folder::Seen { is_new: true, .. } => {
            if let Some(line) = folder_line(round) {
                reply.say(format!("The top folder: {line}."));
            }
        }
        Folder::Asked | Folder::Seen { is_new: false, .. } => {}
    }
}

/// What the owner's own look at the top folder gave.
pub(super) fn folder_line(round: &Round) -> Option<String> {
    match &round.folder {
        Folder::Seen { text, is_error: true, .. } => {
            Some(format!("it could not be listed: {}", clean(text)))
        }
        Folder::Seen { text, .. } => Some(look::folder(text)),
        Folder::NotAsked | Folder::Asked => None,
    }
}

/// Deals with the newest result of a member: a follow-up, or its end.
fn attend(view: &View, member: &Member, reply: &mut Reply) {
    let Some(report) = member.reports.last() else { return };
    let id = clean(&member.id);
    if let Some(message) = follow_up(member, report).filter(|_| view.offers("crew_respond")) {
        reply.say(match &report.needs {
            Some(needs) => format!("`{id}` asks: {} I decide.", clean(needs)),
            None => format!("`{id}` has reported. One question more."),
        });
        reply.call("crew_respond", json!({"subagent_id": member.id, "message": message}));
    } else if view.offers("crew_done") {
        let open = if report.needs.is_some() { " Its question stays open." } else { "" };
        reply.say(format!("`{id}` has reported; I close it.{open}"));
        reply.call("crew_done", json!({"subagent_id": member.id}));
    } else {
        reply.say(format!("`{id}` has reported; without `crew_done` it stays open."));
    }
}

/// One follow-up for each member at most, so that no exchange can go on.
fn follow_up(member: &Member, report: &Report) -> Option<String> {
    if !member.responses.is_empty() {
        return None;
    }
    if let Some(needs) = &report.needs {
        return Some(match quoted_paths(needs).first() {
            Some(path) => format!("{DECISION} `{path}`"),
            None => UNDECIDED.to_owned(),
        });
    }
    match member.errand {
        Errand::Languages => {
            let entries = findings(&report.text, 9);
            let entries = entries.iter().find(|line| line.starts_with("Entry points:"));
            let path = entries.and_then(|line| quoted_paths(line).into_iter().next());
            Some(path.map_or(COUNT_TOP.to_owned(), |path| format!("{MEASURE} `{path}`")))
        }
        Errand::Sizes | Errand::Review => None,
    }
}

/// Ends the turn: in the middle with a word, at the end with the summary.
fn close_turn(round: &Round, reply: &mut Reply) {
    let running: Vec<_> = round.running().map(|member| clean(&member.id)).collect();
    if !running.is_empty() {
        let verb = if running.len() == 1 { "is" } else { "are" };
        let running = quoted(&running);
        reply.say(format!("{running} {verb} still at work; the result comes by itself."));
    } else if !round.is_finished {
        reply.say(summary(round));
    } else if reply.text.is_empty() {
        reply.say("Everybody is closed.");
    }
}

const OPENING: &str = "I am demo/crew, a scripted model: whatever you write, I play the same \
short tour. The tools, the sessions and the crew are real, and so is all I report. Three \
subagents start now, side by side.";

const ADDRESSED: &str = "I am scripted and cannot take that in; the tour goes on.";

const UNDECIDED: &str = "A scripted owner cannot judge that. Take the smallest scope that you can \
check, and report on it.";
