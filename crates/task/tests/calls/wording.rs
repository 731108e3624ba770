//! The message of a commit that the host makes for a child (ISO-9).

use crew_base::message::Usage;
use crew_task::isolation::{Integration, Merged};
use crew_task::settings::Merge;
use serde_json::json;

use crate::isolated;
use crate::world::{World, prepared};

/// A child in branch mode whose message is to be generated has handed in.
fn wording() -> World {
    let mut world = World::new();
    world.setup.settings.isolation.merge = Merge::Branch;
    world.setup.settings.isolation.generated_messages = true;
    isolated(&mut world);
    world.copied(prepared());
    world.completes("kid", json!({"ok": 1}));
    assert!(world.has("describe 3") && !world.has("integrate"));
    world
}

fn usage() -> Usage {
    Usage { input: 7, ..Usage::default() }
}

// ISO-9, OBS-5: the message comes from a model, and what it cost is the child's.
#[test]
fn a_commit_gets_the_message_that_a_model_made_of_the_diff() {
    let mut world = wording();
    let kid = world.session("kid");
    world.tasks.described(world.now, &kid, Ok(Some("+fn new()\n".into())));
    world.take();
    assert!(world.has("word <diff>\n+fn new()\n</diff>"), "{:?}", world.log);
    world.tasks.worded(&kid, Some("Add new\n\nAnd more."), Some(usage()));
    world.take();
    assert_eq!(world.captures[0].1.message, "Add new");
    world.integrated(Ok(Integration { merged: Merged::Applied, ..Integration::default() }));
    assert_eq!(world.record(1, 0)["usage"]["input"], 17);
}

// ISO-9: without anything usable the id stands there; a name is no label
// (TASK-SPAWN-22), and nobody asks in patch mode.
#[test]
fn without_a_usable_answer_the_message_is_the_id() {
    let check = |diff: Result<Option<String>, String>, answer: Option<&str>| {
        let mut world = wording();
        let kid = world.session("kid");
        let asks = matches!(diff, Ok(Some(_)));
        world.tasks.described(world.now, &kid, diff);
        world.take();
        assert_eq!(world.log.iter().any(|entry| entry.starts_with("word ")), asks);
        if asks {
            world.tasks.worded(&kid, answer, None);
            world.take();
        }
        assert_eq!(world.captures[0].1.message, "kid");
    };
    check(Err("git is gone".into()), None);
    check(Ok(None), None);
    check(Ok(Some("+x".into())), None);
    check(Ok(Some("+x".into())), Some(" \n"));
    let mut world = World::new();
    world.setup.settings.isolation.generated_messages = true;
    isolated(&mut world);
    world.copied(prepared());
    world.completes("kid", json!({"ok": 1}));
    assert!(world.has("integrate") && !world.has("describe 3"));
}

// ISO-6: finished work comes back although nobody waits for a message any more.
#[test]
fn a_cancel_while_a_message_is_made_brings_the_work_back_without_it() {
    for was_asked in [false, true] {
        let mut world = wording();
        let kid = world.session("kid");
        if was_asked {
            world.tasks.described(world.now, &kid, Ok(Some("+x".into())));
            world.take();
        }
        assert!(world.cancel(1));
        assert_eq!(world.has("stop wording"), was_asked);
        assert_eq!(world.captures[0].1.message, "kid");
        // What comes now is late.
        world.tasks.described(world.now, &kid, Ok(Some("+x".into())));
        world.tasks.worded(&kid, Some("Late"), None);
        world.take();
        assert_eq!(world.captures.len(), 1);
        world.integrated(Ok(Integration { merged: Merged::Applied, ..Integration::default() }));
        assert!(world.answer(1).text.contains("completed"));
    }
}
