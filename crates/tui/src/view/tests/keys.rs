//! Keys and commands of the editor.

use crew_base::model::ThinkingLevel;
use crew_engine::api::{Command, Control, SessionUpdate};

use super::world::World;
use crate::request::{ModelOffer, Reply, Request};

/// The draft before, keys, the draft after.
fn check(before: &str, keys: &str, after: &str) {
    let mut world = World::new(100, 30);
    world.type_text(before);
    world.keys(keys);
    assert_eq!(world.draft(), after, "{keys}");
}

#[test]
fn keys_of_the_editor_do_what_the_table_says() {
    check("one two", "C-w", "one ");
    check("one two", "C-a C-k", "");
    check("one two", "C-u C-y", "one two");
    check("a", "C-j b", "a\nb");
    check("a\\", "Enter b", "a\nb");
    check("abc", "C-b C-b x", "axbc");
    check("abc", "C-a C-d", "bc");
    check("abc", "C-_", "");
    check("a.b.c", "C-a C-] . x", "ax.b.c");
    check("some text", "C-c", "");
}

// host.md 8.8.
#[test]
fn up_brings_older_inputs_and_down_the_draft() {
    let mut world = World::new(100, 30);
    for text in ["first", "second"] {
        world.type_text(text);
        world.keys("Enter");
    }
    world.keys("Up");
    assert_eq!(world.draft(), "second");
    world.keys("Up");
    assert_eq!(world.draft(), "first");
    world.keys("Down Down");
    assert_eq!(world.draft(), "");
    world.keys("C-r f i r");
    assert_eq!(world.draft(), "first");
    assert!(world.row_with("history: fir").is_some());
}

// TERM-16: Ctrl+S and Ctrl+Q do nothing.
#[test]
fn keys_of_flow_control_do_nothing() {
    check("x", "C-s C-q", "x");
}

#[test]
fn enter_sends_and_alt_enter_queues() {
    let mut world = World::new(100, 30);
    world.type_text("now");
    world.keys("Enter");
    assert!(matches!(world.sent.last(), Some(Command::PromptOrSteer(..))));
    world.type_text("later");
    world.keys("A-Enter");
    assert!(matches!(world.sent.last(), Some(Command::PromptOrFollowUp(..))));
    world.type_text("later too");
    world.keys("C-x Enter");
    assert!(matches!(world.sent.last(), Some(Command::PromptOrFollowUp(..))));
    world.type_text("  ");
    world.keys("Enter");
    assert_eq!(world.sent.len(), 3);
}

// What is entered before the session is there is sent as soon as it is.
#[test]
fn a_text_entered_early_is_sent_when_the_session_is_open() {
    let mut world = World::bare(100, 30);
    world.type_text("early");
    world.keys("Enter");
    assert!(world.row_with("queued until the session is open: early").is_some());
    world.show(Some(super::world::model()));
    let requests = world.requests();
    assert!(requests.iter().any(|request| matches!(request, Request::Send(command)
        if matches!(**command, Command::PromptOrSteer(..)))));
    world.type_text("late");
    let mut world = World::bare(100, 30);
    world.type_text("early");
    world.keys("Enter");
    world.show(None);
    assert_eq!(world.draft(), "early", "without a model it comes back");
}

// host.md 8.4: unknown words are sent as text, built-ins on the whole input.
#[test]
fn unknown_commands_are_text() {
    let mut world = World::new(100, 30);
    world.type_text("/unknown word");
    world.keys("Enter");
    assert!(matches!(world.sent.last(), Some(Command::PromptOrSteer(..))));
    world.type_text("/quit now please");
    world.keys("Enter");
    assert_eq!(world.sent.len(), 2);
    world.type_text("/changelog");
    world.keys("Esc Enter");
    world.settle();
    assert!(world.printed.contains(&"/changelog is not built yet".to_owned()));
}

#[test]
fn commands_are_completed_and_run() {
    let mut world = World::new(100, 30);
    world.type_text("/reda");
    assert!(world.row_with("› /redraw").is_some(), "{:?}", world.rows());
    world.type_text("x");
    world.keys("Backspace Backspace Backspace Backspace Backspace");
    world.type_text("new");
    world.keys("Enter");
    assert!(world.requests().iter().any(|request| matches!(request, Request::New)));
    assert_eq!(world.draft(), "");
}

// MEN-9, MEN-10.
#[test]
fn mentions_are_offered_and_inserted_with_a_blank() {
    let mut world = World::new(100, 30);
    let agents = [("scout", "looks"), ("code-reviewer", "reviews"), ("odd name", "x")];
    world.reply(Reply::Found(Box::new(crate::request::Found {
        agents: agents.map(|(name, what)| (name.to_owned(), what.to_owned())).to_vec(),
        ..Default::default()
    })));
    world.type_text("ask @crew:");
    let rows = world.rows();
    assert!(rows.iter().any(|row| row.contains("@crew:scout") && row.contains("looks")));
    assert!(!rows.iter().any(|row| row.contains("odd name")));
    world.type_text("rev");
    world.keys("Tab");
    assert_eq!(world.draft(), "ask @crew:code-reviewer ");
}

// host.md 8.11: Enter on an open path menu accepts and does not submit.
#[test]
fn enter_on_a_file_menu_accepts() {
    let mut world = World::new(100, 30);
    world.type_text("see @ma");
    assert!(
        world
            .requests()
            .iter()
            .any(|request| matches!(request, Request::Files { query, .. } if query == "ma"))
    );
    let number = world.view.files.number;
    let paths = vec!["src/main.rs".to_owned(), "a b.rs".to_owned()];
    world.reply(Reply::Files { number: 1, paths: paths.clone() });
    assert!(world.view.menu.is_none(), "an old answer changes nothing");
    world.reply(Reply::Files { number, paths });
    world.keys("Enter");
    assert_eq!(world.draft(), "see @src/main.rs ");
    assert!(world.sent.is_empty());
    world.type_text("@a");
    let number = world.view.files.number;
    world.reply(Reply::Files { number, paths: vec!["a b.rs".to_owned()] });
    world.keys("Tab");
    assert_eq!(world.draft(), "see @src/main.rs @\"a b.rs\" ");
}

#[test]
fn the_thinking_level_goes_round() {
    let mut world = World::new(100, 30);
    world.keys("S-Tab");
    assert!(matches!(
        world.sent.last(),
        Some(Command::Control(_, Control::Thinking(ThinkingLevel::High)))
    ));
    world.session(SessionUpdate::ThinkingLevelChanged(ThinkingLevel::High));
    assert!(world.row_with("claude-opus-5 • high").is_some());
    world.type_text("/thinking odd");
    world.keys("Esc Enter");
    world.settle();
    assert!(world.printed.iter().any(|row| row.contains("no thinking level is called odd")));
}

// host.md 8.13.
#[test]
fn a_shell_command_is_shown_while_it_runs() {
    let mut world = World::new(100, 30);
    world.type_text("!!ls");
    assert_eq!(world.rule(), "─ shell ─");
    world.keys("Enter");
    let requests = world.requests();
    assert!(requests.iter().any(
        |request| matches!(request, Request::Shell { command, exclude: true } if command == "ls")
    ));
    world.reply(Reply::ShellOutput("a.rs\n".into()));
    assert!(world.row_with("    a.rs").is_some());
    world.keys("Esc");
    assert!(world.requests().iter().any(|request| matches!(request, Request::StopShell)));
    world.reply(Reply::ShellEnded);
    assert!(world.view.shell.is_none());
}

// Sketch S-9, host.md 8.17.
#[test]
fn the_model_picker_searches_and_saves() {
    let mut world = World::new(100, 30);
    world.keys("C-x m");
    let offer = |reference: &str, is_current| ModelOffer {
        reference: reference.to_owned(),
        name: String::new(),
        facts: "200k".into(),
        lacks: None,
        is_current,
        is_default: false,
    };
    world.reply(Reply::Models(vec![
        offer("anthropic/claude-opus-5", true),
        offer("anthropic/claude-haiku-5", false),
        offer("ollama/qwen4-coder", false),
    ]));
    assert!(world.row_with("› ✓ anthropic/claude-opus-5").is_some(), "{:?}", world.rows());
    world.type_text("haiku");
    world.keys("C-x s");
    let requests = world.requests();
    assert!(requests.iter().any(|request| matches!(request,
        Request::UseModel { reference, save: true } if reference == "anthropic/claude-haiku-5")));
    assert!(!world.view.is_full());
}

// TERM-49: search over the expanded text, position kept while rows come.
#[test]
fn the_transcript_is_searched_and_keeps_its_place() {
    let mut world = World::new(60, 10);
    for number in 0..40 {
        world.run_starts();
        let text = format!("Answer {number}");
        world.delta(&text);
        world.answer_ends(&text, "stop", None);
    }
    world.run_ends(false);
    world.keys("C-o");
    assert!(world.row_with("Answer 39").is_some());
    world.keys("/ ANSWER Space 7 Enter");
    assert!(world.row_with("Answer 7").is_some(), "{:?}", world.rows());
    assert!(world.row_with("1 match").is_some());
    let before = world.rows();
    world.run_starts();
    world.delta("news");
    world.answer_ends("news", "stop", None);
    let after = world.rows();
    assert_eq!(before[..7], after[..7]);
    world.keys("G");
    assert!(world.row_with("news").is_some());
    world.keys("Esc");
    assert!(!world.view.is_full());
}

// Esc Esc on an empty editor.
#[test]
fn esc_twice_opens_the_tree() {
    let mut world = World::new(100, 30);
    world.keys("Esc Esc");
    assert!(world.requests().iter().any(|request| matches!(request, Request::Tree)));
    world.keys("Esc");
    world.type_text("x");
    world.keys("Esc Esc");
    assert!(!world.view.is_full());
}

// TERM-48.
#[test]
fn code_blocks_are_copied_by_number() {
    let mut world = World::new(100, 30);
    world.run_starts();
    let text = "See:\n\n```rust\nlet a;\n```\n\nand\n\n```\nb\nc\n```\n";
    world.delta(text);
    world.answer_ends(text, "stop", None);
    world.run_ends(false);
    world.requests();
    world.keys("C-x 2");
    let requests = world.requests();
    assert!(
        matches!(&requests[..], [Request::Copy { text, .. }] if text == "b\nc\n"),
        "{requests:?}"
    );
    world.keys("C-x y");
    assert!(
        matches!(&world.requests()[..], [Request::Copy { text: copied, .. }] if copied == text)
    );
}

// TERM-36: a question of the start shows its default, discards what was typed
// before it could be read, and takes a number or Enter.
#[test]
fn a_choice_waits_for_enter_and_its_default_is_harmless() {
    let choice = crate::request::Choice {
        text: "This session belongs to ~/other.".into(),
        answers: vec![
            ("Leave".into(), "nothing is opened or changed".into()),
            ("Fork it into this folder".into(), String::new()),
        ],
    };
    let ask = |world: &mut World, keys: &str| {
        world.reply(crate::request::Reply::Choose(choice.clone()));
        world.keys("Enter");
        assert!(world.row_with("› 1  Leave").is_some(), "typed too early");
        world.pass(400);
        world.keys(keys);
        let chosen = |request| if let Request::Chosen(at) = request { Some(at) } else { None };
        world.requests().into_iter().find_map(chosen)
    };
    let mut world = World::new(100, 30);
    assert_eq!(ask(&mut world, "Enter"), Some(0));
    assert_eq!(ask(&mut world, "2 Enter"), Some(1));
    assert_eq!(ask(&mut world, "Down Up Down Enter"), Some(1));
    assert_eq!(ask(&mut world, "2 Esc"), Some(0));
    assert_eq!(ask(&mut world, "2"), None);
    assert!(world.row_with("› 2  Fork it into this folder").is_some());
}

// host.md 8.11.
#[test]
fn models_are_completed() {
    let mut world = World::new(100, 30);
    world.reply(crate::request::Reply::Found(Box::new(crate::request::Found {
        models: vec![("anthropic/opus".into(), "Opus".into()), ("demo/crew".into(), "".into())],
        ..Default::default()
    })));
    world.type_text("/model de");
    let menu = world.view.menu.as_ref().expect("models are offered");
    assert_eq!(menu.offers[0].insert, "/model demo/crew");
}
