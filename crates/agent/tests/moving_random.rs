//! Random walks through a session tree: whatever was said, moved, summarised
//! or not written, the context is what the written entries give at the leaf
//! (`host.md` 2.6, 2.8.2, 2.2.4).

use std::sync::Arc;

use crew_agent::{Branch, BranchWish, Input, Left, Settings};
use crew_base::entry::{Entry, EntryBody};
use crew_base::id::{EntryId, Ids};
use crew_base::message::{BranchSummaryMessage, Message, SharedMessage};
use crew_base::model::ThinkingLevel;
use crew_base::time::Time;
use crew_testkit::session_play::SessionPlay;
use crew_testkit::trace;

/// The entries on disk: those that were written and not refused.
struct Disk {
    entries: Vec<Entry>,
    /// How many of the written ones were looked at.
    seen: usize,
}

impl Disk {
    fn take(&mut self, play: &SessionPlay) {
        self.entries.extend(play.written()[self.seen..].iter().cloned());
        self.seen = play.written().len();
    }

    fn path(&self, leaf: Option<&EntryId>) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut at = leaf.cloned();
        while let Some(id) = at {
            let entry = self.entries.iter().find(|entry| entry.id == id).expect("it is written");
            path.push(entry);
            at = entry.parent_id.clone();
        }
        path.reverse();
        path
    }

    fn context(&self, leaf: Option<&EntryId>) -> Vec<(EntryId, SharedMessage)> {
        let path = self.path(leaf);
        path.into_iter()
            .filter_map(|entry| Some((entry.id.clone(), Arc::new(message(entry)?))))
            .collect()
    }

    fn branch(&self, from: Option<&EntryId>, to: &EntryId) -> Branch {
        let target = self.entries.iter().find(|entry| entry.id == *to).expect("it is written");
        let user = message(target).filter(|message| matches!(message, Message::User(_)));
        let leaf = if user.is_some() { target.parent_id.clone() } else { Some(to.clone()) };
        let kept: Vec<EntryId> = self.path(Some(to)).iter().map(|e| e.id.clone()).collect();
        let left = self.path(from).into_iter().filter(|entry| !kept.contains(&entry.id));
        let left = left
            .filter_map(|entry| Some(Left { message: Arc::new(message(entry)?), details: None }));
        Branch {
            draft: user.map(|user| trace::message_line(&user)),
            context: self.context(leaf.as_ref()),
            thinking: ThinkingLevel::Off,
            left: left.collect(),
            leaf,
        }
    }
}

fn message(entry: &Entry) -> Option<Message> {
    if let EntryBody::Message { message } = &entry.body {
        return Some(message.clone());
    }
    let EntryBody::BranchSummary { summary, from_id, .. } = &entry.body else { return None };
    Some(Message::BranchSummary(BranchSummaryMessage {
        summary: summary.clone(),
        from_id: from_id.clone(),
        timestamp: Time(0),
    }))
}

fn check(seed: u64, step: usize, play: &SessionPlay, disk: &Disk) {
    let lines = |messages: Vec<SharedMessage>| -> Vec<String> {
        messages.iter().map(|message| trace::message_line(message)).collect()
    };
    let record = play.agent.record();
    let shown = lines(record.messages().cloned().collect());
    let stored = disk.context(record.leaf()).into_iter().map(|(_, message)| message).collect();
    assert_eq!(shown, lines(stored), "seed {seed}, step {step}");
    assert!(record.is_consistent(), "seed {seed}, step {step}");
    assert!(play.agent.is_idle(), "seed {seed}, step {step}");
}

/// Goes somewhere, with or without a summary, which may be cancelled or fail.
fn move_about(play: &mut SessionPlay, disk: &mut Disk, dice: &mut Ids) {
    let target = usize::try_from(dice.below(disk.entries.len() as u64)).expect("it is small");
    let to = disk.entries[target].id.clone();
    let from = play.agent.record().leaf().cloned();
    let summary = (dice.below(2) == 0).then(BranchWish::default);
    let label = (dice.below(3) == 0).then(|| "label".to_owned());
    play.input(Input::Navigate { to: to.clone(), summary, label });
    if play.agent.is_moving() {
        match dice.below(6) {
            0 => play.input(Input::Abort),
            1 => play.branch(Err("gone".to_owned())),
            _ => play.branch(Ok(disk.branch(from.as_ref(), &to))),
        }
    }
    if play.agent.is_moving() {
        match dice.below(4) {
            0 => play.input(Input::Abort),
            1 => play.call(&[("c", "bash")]),
            _ => play.say("notes"),
        }
    }
    let fails = dice.below(3) == 0;
    let written = play.written().len() - disk.seen;
    if fails && written > 0 {
        // The first that was written fails, so nothing of it is there.
        play.write_fails(written - 1);
        disk.seen = play.written().len();
    } else {
        disk.take(play);
    }
}

#[test]
fn the_context_is_what_the_entries_give_at_the_leaf() {
    let mut summaries = 0;
    for seed in 0..300 {
        let mut dice = Ids::new(seed);
        let mut play = SessionPlay::new(Settings::default());
        let mut disk = Disk { entries: Vec::new(), seen: 0 };
        for step in 0..25 {
            if disk.entries.is_empty() || dice.below(2) == 0 {
                play.prompt(&format!("said {step}"));
                play.say(&format!("answer {step}"));
                disk.take(&play);
            } else {
                move_about(&mut play, &mut disk, &mut dice);
            }
            check(seed, step, &play, &disk);
        }
        let is_summary = |e: &&Entry| matches!(e.body, EntryBody::BranchSummary { .. });
        summaries += disk.entries.iter().filter(is_summary).count();
    }
    assert!(summaries > 300, "the walks summarise too little: {summaries}");
}
