//! Compaction and overflow in a session (`host.md` 3.7, 3.8).

#[path = "compaction/world.rs"]
mod world;

#[path = "compaction/manual.rs"]
mod manual;
#[path = "compaction/recovery.rs"]
mod recovery;
#[path = "compaction/threshold.rs"]
mod threshold;

use crew_agent::Update;
use crew_base::entry::EntryBody;
use crew_base::message::{Message, StopReason};
use world::{World, settings};

/// A session whose context is past the threshold of 800 tokens: two exchanges,
/// of which the last is kept when fifty tokens are.
fn past_threshold() -> World {
    let mut world = World::new(settings(50));
    world.exchange("first question", "first answer", 100);
    world.exchange("second question", &"y".repeat(200), 900);
    world
}

// C073: the pairing breaks once the context was compacted.
#[test]
fn thirty_three_compactions_with_parallel_tools_and_steering_stay_paired() {
    let mut world = World::new(settings(60));
    for round in 0..33 {
        world.prompt(&format!("task {round}"));
        for turn in 0..3 {
            let names = ["read", "bash", "read", "bash"];
            world.call(
                &names[..1 + (round + turn) % 4],
                300 + 10 * turn as u64,
                StopReason::ToolUse,
            );
            world.steer(&format!("aside {round}.{turn}"));
            world.tools_end(&"r".repeat(40 * (1 + (round * 7 + turn) % 9)));
        }
        world.call(&["bash", "read"], 900, StopReason::ToolUse);
        world.steer("hurry");
        world.tools_end("over the threshold now");
        assert!(world.agent.is_compacting(), "round {round}");
        // As steering that waits does, so do results of the crew.
        world.feed(crew_agent::Input::Results(vec![world::result(round as u64)]));
        while world.agent.is_compacting() {
            world.answer(&format!("summary {round}"), 20);
        }
        while !world.agent.is_idle() {
            world.answer("done", 100);
        }
    }
    assert_eq!(world.compactions().len(), 33);
    assert_eq!(world.entered.len(), 33);
    assert_eq!(world.settled.len(), 33);
    // Each summary is made with the one before it.
    for (round, entry) in world.compactions().into_iter().enumerate() {
        let EntryBody::Compaction { summary, .. } = &entry.body else { panic!("{entry:?}") };
        assert!(summary.starts_with(&format!("summary {round}")), "{summary}");
    }
    let is_told = |text: &str| {
        let requests = world.requests.iter().filter(|(_, request)| request.messages.len() == 2);
        let texts = requests.map(|(_, request)| world::text_of(&request.messages[1]));
        texts.into_iter().any(|asked| asked.contains(&format!("<earlier_notes>\n{text}")))
    };
    assert!(is_told("summary 0") && is_told("summary 31") && !is_told("summary 32"));
}

#[test]
fn the_entry_holds_prompt_tools_and_what_it_cost() {
    // host.md 3.8.14, 3.8.15, 2.4.
    let mut world = past_threshold();
    world.answer("the summary", 30);
    world.answer("the turn", 30);
    let entries = world.compactions();
    let EntryBody::Compaction {
        summary,
        first_kept_entry_id,
        tokens_before,
        details,
        usage,
        from_hook,
        system_message: Some(Message::System(system)),
    } = &entries[0].body
    else {
        panic!("{:?}", entries[0])
    };
    assert!(summary.starts_with("the summary"), "{summary}");
    assert_eq!((*tokens_before, *from_hook), (900, Some(false)));
    let details = details.as_ref().expect("there are details");
    assert_eq!(details.text(), r#"{"readFiles":[],"modifiedFiles":[]}"#);
    assert!(usage.as_ref().is_some_and(|usage| usage.total_tokens > 0));
    assert_eq!(system.sections.0.len(), 1);
    assert_eq!(system.tools_added.len(), 2);
    let result = world.last_result();
    assert_eq!(result.first_kept_entry_id, *first_kept_entry_id);
    assert!(result.estimated_tokens_after < 900, "{result:?}");
    let position = world.log.iter().position(|entry| entry.id == *first_kept_entry_id);
    assert!(position.is_some(), "the kept entry is in the log");
    // The next request holds the same tools and needs no patch.
    let before = world.log.len();
    world.prompt("third question");
    assert_eq!(world.log.len(), before + 1);
    let request = &world.requests.last().expect("a request").1;
    assert!(matches!(request.messages[0].as_ref(), Message::System(_)));
    assert!(matches!(request.messages[1].as_ref(), Message::CompactionSummary(_)));
}

#[test]
fn a_summary_request_has_one_message_and_no_tools() {
    // host.md 3.8.10.
    let world = past_threshold();
    let request = &world.requests.last().expect("a summary request").1;
    assert_eq!(request.messages.len(), 2);
    let Message::System(system) = request.messages[0].as_ref() else { panic!("an instruction") };
    assert!(system.tools_added.is_empty() && !system.content.text().is_empty());
    assert!(matches!(request.messages[1].as_ref(), Message::User(_)));
    assert_eq!(request.cache, crew_base::model::CacheRetention::None);
    assert_eq!(request.tool_choice, crew_base::model::ToolChoice::Auto);
    let told = world.updates.iter().filter(|update| matches!(update, Update::MessageStart(_)));
    // Two prompts, two answers, the system message: nothing of the summary.
    assert_eq!(told.count(), 5);
}
