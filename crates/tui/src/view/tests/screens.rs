//! Whole screens as cells at three sizes, against the sketches of
//! `terminal.md` 3.

use crew_engine::api::{Status, UpdateKind};

use super::world::{World, figures};
use crate::request::{ChildOffer, ModelOffer, Reply, SessionOffer, TrustFiles};

const SIZES: [(usize, usize); 3] = [(100, 30), (40, 12), (200, 50)];

fn check(name: &str, build: impl Fn(&mut World)) {
    for (columns, rows) in SIZES {
        let mut world = World::new(columns, rows);
        build(&mut world);
        world.pass(1_500);
        let shown = world.rows();
        world.settle();
        let mut text = String::new();
        for row in &world.printed {
            text.push_str(&format!("⋮{row}\n"));
        }
        for row in &shown {
            text.push_str(&format!("│{row}\n"));
        }
        insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), text);
    }
}

fn three(world: &mut World) {
    world.spawn("scout-1a2b3c4d", "Commas in the JSON reader");
    world.spawn("scout-5e6f7a8b", "Commas in the query reader");
    world.spawn("worker-9c0d1e2f", "Fix the list rule");
    world.figures(vec![
        figures(
            "scout-1a2b3c4d",
            "Commas in the JSON reader",
            &[("grep", "/trailing/ in src/json")],
        ),
        figures("scout-5e6f7a8b", "Commas in the query reader", &[("read", "src/query/args.rs")]),
        figures("worker-9c0d1e2f", "Fix the list rule", &[("$", "cargo test · 2 steps")]),
    ]);
}

#[test]
fn s2_streaming_with_three_subagents() {
    check("s2", |world| {
        three(world);
        world.settles("worker-9c0d1e2f", Status::NeedsInput, "May I change the error enum?");
        world.run_starts();
        world.tool_starts("c", "read", r#"{"path":"src/parser/list.rs","offset":120,"limit":61}"#);
        world.tool_ends("c", "read", &"x\n".repeat(61));
        world.delta("Our parser accepts a trailing comma only inside calls, because the list rule stops at the first closing brac");
        world.queued(&["also look at tuples"], &[]);
        world.pass(12_500);
    });
}

#[test]
fn s3_a_card_arrives_while_a_draft_is_typed() {
    check("s3", |world| {
        three(world);
        world.type_text("and please keep the old error text whe");
        world.settles("scout-1a2b3c4d", Status::Completed, "r");
        let report = "Three places decide it:\n\n- src/json/list.rs:88 skips a comma before ]\n- src/json/map.rs:140 does the same before }\n- tests/commas.rs pins both\n\nMore\n\nand more";
        world.card("scout-1a2b3c4d", report);
        world.run_starts();
    });
}

#[test]
fn s4_the_person_answers_directly() {
    check("s4", |world| {
        world.spawn("worker-9c0d1e2f", "Fix the list rule");
        world.settles(
            "worker-9c0d1e2f",
            Status::NeedsInput,
            "May I change the public error enum? Two crates outside this folder match on it.",
        );
        world.keys("C-x a");
        world.type_text("Yes, but keep the old variant as deprecated.");
    });
}

#[test]
fn s5_errors() {
    check("s5", |world| {
        world.spawn("scout-5e6f7a8b", "Commas in the query reader");
        world.run_starts();
        world.answer_ends("", "error", Some("529: no body"));
        world.session(crew_engine::api::SessionUpdate::AgentEnd {
            messages: Vec::new(),
            will_retry: true,
        });
        world.session(crew_engine::api::SessionUpdate::RetryStart {
            attempt: 2,
            attempts_max: 3,
            delay_ms: 7_500,
            error: "529: no body".into(),
        });
    });
}

#[test]
fn s7_the_board() {
    check("s7", |world| {
        three(world);
        world.settles("worker-9c0d1e2f", Status::NeedsInput, "May I change the public error enum?");
        world.spawn("scout-0d0d0d0d", "Commas in the template reader");
        world.settles("scout-0d0d0d0d", Status::Error, "connection reset 3 times");
        world.closes("scout-0d0d0d0d", Status::Error);
        world.crew(
            "scout-1a2b3c4d",
            "",
            Status::Running,
            UpdateKind::Activity { tool: "read".into(), target: "src/json/list.rs".into() },
        );
        world.keys("C-x b");
    });
}

#[test]
fn s8_the_session_picker() {
    check("s8", |world| {
        world.keys("/ r e s u m e Enter");
        let offer = |title: &str, children: Vec<ChildOffer>, is_fork| SessionOffer {
            path: format!("/s/{title}.jsonl").into(),
            id: title.to_owned(),
            title: title.to_owned(),
            is_named: true,
            cwd: "~/src/parser".into(),
            age_ms: 7_300_000,
            messages: 62,
            cost: 1.43,
            text: String::new(),
            is_current: false,
            is_fork,
            children,
        };
        let child = |title: &str, outcome| ChildOffer {
            path: format!("/s/crew/{title}.jsonl").into(),
            title: title.to_owned(),
            outcome: Some(outcome),
            age_ms: 130_000,
            messages: 14,
            cost: 0.03,
        };
        let children = vec![
            child("scout · Commas in the JSON reader", Status::Completed),
            child("worker · Fix the list rule", Status::NeedsInput),
        ];
        world.reply(Reply::Sessions(vec![
            offer("comma fix", children, false),
            offer("release notes, shorter", Vec::new(), true),
        ]));
        world.keys("Right");
    });
}

#[test]
fn s9_the_model_picker() {
    check("s9", |world| {
        world.keys("C-x m");
        let offer = |reference: &str, facts: &str, is_current| ModelOffer {
            reference: reference.to_owned(),
            name: String::new(),
            facts: facts.to_owned(),
            lacks: None,
            is_current,
            is_default: is_current,
        };
        world.reply(Reply::Models(vec![
            offer("anthropic/claude-opus-5", "200k   $5/$25 per M", true),
            offer("anthropic/claude-haiku-5", "200k   $1/$5 per M", false),
            offer("demo/crew", "scripted, no real answers", false),
        ]));
        world.keys("Down");
    });
}

#[test]
fn s11_the_trust_question() {
    check("s11", |world| {
        let file = |path: &str, holds: &str| (path.to_owned(), holds.to_owned());
        let files = TrustFiles {
            files: vec![
                file(
                    "~/src/parser/.pi/settings.json",
                    "3 keys: shellCommandPrefix, defaultModel, skills",
                ),
                file("~/src/parser/.pi/agents", "2 files"),
            ],
            parent: "~/src".into(),
        };
        world.view.ask_trust(files, true);
    });
}

#[test]
fn s6_the_transcript_of_a_subagent() {
    check("s6", |world| {
        three(world);
        world.keys("C-x b Down Enter");
        let lines = [
            r###"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"## Goal\n\nFind every place."}}"###,
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"The argument reader has a flag that nobody sets"}],"stopReason":"stop"}}"#,
        ];
        let entries = lines.iter().map(|line| crew_base::entry::read_line(line).unwrap()).collect();
        world.reply(Reply::Transcript { id: "scout-5e6f7a8b".into(), entries });
    });
}

#[test]
fn s1_and_s12_the_first_start() {
    for (columns, rows) in SIZES {
        for (name, model) in [("s1", Some(super::world::model())), ("s12", None)] {
            let mut world = World::bare(columns, rows);
            world.reply(Reply::Found(Box::new(crate::request::Found {
                context_files: vec!["AGENTS.md".into()],
                skills: 2,
                agents: ["scout", "planner", "reviewer", "worker"]
                    .map(|name| (name.to_owned(), String::new()))
                    .to_vec(),
                looked_for: "keys of 14 providers (none set), auth.json (not there)".into(),
                ..Default::default()
            })));
            world.show(model);
            let shown = world.rows();
            world.settle();
            let mut text: String = world.printed.iter().map(|row| format!("⋮{row}\n")).collect();
            text.extend(shown.iter().map(|row| format!("│{row}\n")));
            insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), text);
        }
    }
}
