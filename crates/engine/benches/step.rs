//! What one step of the engine costs: a text delta, a fan-out, a child's whole
//! cycle, and an event while a thousand children rest.

use crew_base::message::Block;
use crew_base::model::ModelEvent;
use crew_testkit::fixtures;
use crew_testkit::play::{Play, a, spawn_arguments};

fn main() {
    divan::main();
}

fn delta() -> Vec<ModelEvent> {
    vec![ModelEvent::BlockDelta { index: 0, delta: "some words ".to_owned() }]
}

/// An owner whose answer streams.
fn streaming(children: usize) -> Play {
    let mut play = Play::default();
    if children > 0 {
        fan_out(&mut play, children);
        play.say(&a(), "they work");
        let open = play.children("A");
        for child in &open {
            play.report(child, "done");
        }
        while !play.engine.agent(&a()).is_some_and(|agent| agent.is_idle()) {
            play.say(&a(), "seen");
        }
    }
    play.prompt("A", "go").expect("the owner is idle");
    let start = ModelEvent::BlockStart { index: 0, block: Block::text("") };
    play.stream(&a(), vec![ModelEvent::Started, start]);
    play
}

fn fan_out(play: &mut Play, children: usize) {
    play.prompt("A", "go").expect("the owner is idle");
    let call = |number| ("crew_spawn", spawn_arguments(&format!("b{number}")));
    let calls: Vec<_> = (0..children).map(call).collect();
    play.call(&a(), &calls);
}

#[divan::bench(args = [0, 1000])]
fn one_text_delta_beside_children_at_rest(bencher: divan::Bencher, children: usize) {
    let mut play = streaming(children);
    bencher.bench_local(|| play.stream(&a(), delta()));
}

#[divan::bench(args = [1, 100])]
fn spawns_in_one_batch(bencher: divan::Bencher, children: usize) {
    bencher.with_inputs(Play::default).bench_local_values(|mut play| {
        fan_out(&mut play, children);
        play
    });
}

#[divan::bench]
fn a_whole_cycle_of_a_child_with_one_tool(bencher: divan::Bencher) {
    let prepared = || {
        let mut play = Play::default();
        let child = play.spawn("A", &["work"]).remove(0);
        (play, child)
    };
    bencher.with_inputs(prepared).bench_local_values(|(mut play, child)| {
        play.call(&child.session, &[("bash", serde_json::json!({"command": "true"}))]);
        play.tool_ends(&child.session, crew_base::tool::ToolOutcome::text("ok"));
        play.report(&child, "done");
        play
    });
}

#[divan::bench]
fn an_event_that_is_late_beside_a_thousand_children(bencher: divan::Bencher) {
    let mut play = streaming(1000);
    let child = play.children("A").remove(0);
    let event = || crew_engine::Event::Model {
        session: child.session.clone(),
        run: crew_base::id::RunId(1),
        events: vec![fixtures::usage()],
    };
    bencher.bench_local(|| play.event(event()));
}
