//! What the person allows: policies for the tools that the engine answers
//! itself (`task.md` OBS-3). Those of `task` are in `tasks`, those of the shell in
//! its own tests.

use crew_engine::api::task::Policy;
use crew_engine::{Event, TaskWork};
use crew_testkit::play::{Play, a, spawn_arguments};

// `task.md` OBS-3: policies hold for the crew's tools, too.
#[test]
fn a_policy_refuses_a_crew_tool_or_asks_before_it_runs() {
    let owner = |policy: Policy, can_ask: bool| {
        let mut play = Play::empty();
        play.is_obedient = false;
        assert!(play.open("A", None).is_err(), "it is not there yet");
        let approval = &mut play.opening().1.approval;
        approval.tools.insert("crew_spawn".to_owned(), policy);
        approval.can_ask = can_ask;
        assert!(play.opens(None));
        play.is_obedient = true;
        assert_eq!(play.prompt("A", "go"), Ok(()));
        play.call(&a(), &[("crew_spawn", spawn_arguments("b"))]);
        play
    };
    for (policy, can_ask, word) in [(Policy::Deny, true, "deny"), (Policy::Prompt, false, "prompt")]
    {
        let play = owner(policy, can_ask);
        let text = play.tool_result(&a());
        assert!(text.contains("approval.tools.crew_spawn") && text.contains(word), "{text}");
        assert!(play.children("A").is_empty());
    }
    for is_allowed in [true, false] {
        let mut play = owner(Policy::Prompt, true);
        let Some(TaskWork::Ask { run, tool, view, .. }) = play.works.pop() else { panic!() };
        assert_eq!(tool, "crew_spawn");
        assert!(view.contains("goal of b"), "{view}");
        assert!(play.children("A").is_empty(), "nothing happens before the answer");
        play.event(Event::TaskAnswered { run, is_allowed });
        assert_eq!(play.children("A").len(), usize::from(is_allowed));
        assert_eq!(play.tool_result(&a()).contains("refused by the person"), !is_allowed);
    }
    // An abort withdraws the question; a late answer spawns nothing.
    let mut play = owner(Policy::Prompt, true);
    let Some(TaskWork::Ask { run, .. }) = play.works.pop() else { panic!() };
    assert_eq!(play.abort("A"), Ok(()));
    play.event(Event::TaskAnswered { run, is_allowed: true });
    assert!(play.children("A").is_empty());
    assert!(play.engine.agent(&a()).unwrap().is_idle());
}
