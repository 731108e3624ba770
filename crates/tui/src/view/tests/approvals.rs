//! Tools that wait for the person's word.

use super::world::World;
use crate::request::{Approval, Reply, Request};

fn waits(world: &mut World, id: u64, view: &str) {
    world.reply(Reply::Approval(Approval { id, tool: "bash".into(), view: view.into() }));
}

/// What was answered since the last call.
fn answers(world: &mut World) -> Vec<(u64, bool)> {
    let answer = |request| {
        if let Request::Approve { id, is_allowed } = request {
            Some((id, is_allowed))
        } else {
            None
        }
    };
    world.requests().into_iter().filter_map(answer).collect()
}

// task.md OBS-3, TERM-36, faults C115, C116: shown at once, none replaced.
#[test]
fn the_named_keys_answer_the_oldest_and_typing_answers_none() {
    for (columns, rows) in [(100, 30), (40, 12)] {
        let mut world = World::new(columns, rows);
        waits(&mut world, 1, "{\"command\":\"rm x\"}");
        waits(&mut world, 2, "the second one");
        assert!(world.row_with("Run bash? (1 of 2)").is_some(), "{:?}", world.rows());
        assert!(world.row_with("rm x").is_some());
        world.keys("y n Enter");
        assert_eq!(answers(&mut world), []);
        world.keys("C-x o");
        assert_eq!(answers(&mut world), [(1, true)]);
        assert!(world.row_with("the second one").is_some());
        world.keys("C-x r");
        assert_eq!(answers(&mut world), [(2, false)]);
        assert!(world.row_with("Run bash?").is_none());
        world.keys("C-x o");
        assert_eq!(answers(&mut world), []);
    }
}

#[test]
fn commands_answer_too() {
    let mut world = World::new(80, 24);
    waits(&mut world, 1, "one");
    waits(&mut world, 2, "two");
    world.keys("/allow Enter");
    world.keys("/refuse Enter");
    assert_eq!(answers(&mut world), [(1, true), (2, false)]);
}

// TERM-58.
#[test]
fn what_needs_no_answer_any_more_is_gone_and_hostile_text_is_drawn() {
    let mut world = World::new(40, 12);
    let lines: String = (0..40).map(|n| format!("line {n}\u{1b}[2J\n")).collect();
    waits(&mut world, 1, &lines);
    assert!(world.row_with("and 38 more lines").is_some(), "{:?}", world.rows());
    assert!(!world.rows().concat().contains('\u{1b}'));
    world.reply(Reply::ApprovalOver(1));
    assert!(world.row_with("Run bash?").is_none());
}
