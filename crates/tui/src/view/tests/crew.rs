//! Working with the crew directly (TERM-40 to TERM-44).

use crew_base::id::{SessionId, SubagentId};
use crew_engine::api::{AbortOrigin, Command, CrewRefusal, Refusal, Status, UpdateKind};

use super::world::World;
use crate::request::Request;
use crate::view::Receiver;

fn asking() -> World {
    let mut world = World::new(100, 30);
    world.spawn("worker-9c0d1e2f", "Fix the list rule");
    world.settles("worker-9c0d1e2f", Status::NeedsInput, "May I change the public error enum?");
    world
}

// TERM-37, TERM-41, sketch S-4.
#[test]
fn a_subagent_is_answered_with_exactly_the_text() {
    let mut world = asking();
    world.type_text("owner draft");
    assert_eq!(world.rule(), "─ owner ── 1 needs you: Ctrl+X a ─");
    world.keys("C-x a");
    assert_eq!(world.rule(), "─ answer to worker-9c0d1e2f ── Esc back to owner, text kept ─");
    assert_eq!(world.draft(), "");
    assert!(world.row_with("asks: May I change the public error enum?").is_some());
    world.type_text("Yes, but keep it.");
    world.keys("Enter");
    let Some(Command::Respond(owner, id, text)) = world.sent.last() else { panic!() };
    assert_eq!(owner.as_str(), super::world::OWNER);
    assert_eq!((id.as_str(), text.as_str()), ("worker-9c0d1e2f", "Yes, but keep it."));
    world.answer(Ok(()));
    assert_eq!(world.draft(), "owner draft");
    assert_eq!(world.view.receiver, Receiver::Owner);
}

// TERM-4: leaving the answer keeps both texts.
#[test]
fn leaving_an_answer_keeps_the_text() {
    let mut world = asking();
    world.type_text("owner draft");
    world.keys("C-x a");
    world.type_text("half an answer");
    world.keys("Esc");
    assert_eq!(world.draft(), "owner draft");
    world.keys("C-c Up Up");
    assert!(["half an answer", "owner draft"].contains(&world.draft().as_str()));
}

// Case 23, TERM-43: the owner was faster; the text stays, the reason is shown.
#[test]
fn the_loser_of_a_race_keeps_the_text() {
    let mut world = asking();
    world.keys("C-x a");
    world.type_text("Yes");
    world.keys("Enter");
    world.crew("worker-9c0d1e2f", "Fix the list rule", Status::Running, UpdateKind::Responded);
    world.pass(2_000);
    let id = SubagentId::from("worker-9c0d1e2f");
    let refusal = Refusal::Subagent(CrewRefusal::WrongPhase(id, Status::Running));
    world.answer(Err(refusal));
    world.settle();
    assert_eq!(world.draft(), "Yes");
    assert!(
        world
            .printed
            .contains(&"worker-9c0d1e2f already runs again: the owner answered 2s ago".into()),
        "{:?}",
        world.printed
    );
}

// Case 25, C034: it fails while its answer is typed; nothing reaches the owner.
#[test]
fn an_answer_to_one_that_failed_goes_nowhere() {
    let mut world = asking();
    world.keys("C-x a");
    world.type_text("Yes");
    world.settles("worker-9c0d1e2f", Status::Error, "connection reset");
    world.closes("worker-9c0d1e2f", Status::Error);
    assert_eq!(world.draft(), "Yes");
    assert_eq!(world.view.receiver, Receiver::Answer("worker-9c0d1e2f".into()));
    world.keys("Enter");
    assert!(world.sent.is_empty());
    assert_eq!(world.draft(), "Yes");
    world.settle();
    assert!(world.printed.iter().any(|row| row.contains("connection reset")));
}

// Case 27, TERM-44: stops act on ids, not on rows.
#[test]
fn an_armed_stop_names_and_stops_one_id() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "One");
    world.spawn("scout-2", "Two");
    world.keys("C-x b Down x");
    assert!(world.row_with("x again stops scout-2").is_some());
    world.settles("scout-1", Status::Error, "gone");
    world.closes("scout-1", Status::Error);
    world.keys("x");
    assert!(
        matches!(world.sent.last(), Some(Command::AbortSubagent(_, id)) if id.as_str() == "scout-2")
    );
    world.keys("x");
    world.pass(2_100);
    world.keys("x");
    assert_eq!(world.sent.len(), 1, "the first one was forgotten after two seconds");
}

// TERM-44: all of them only when asked twice.
#[test]
fn stopping_all_is_armed_first() {
    let mut world = World::new(100, 30);
    world.spawn_many(3);
    world.keys("C-x b X");
    assert!(world.row_with("X again stops all open subagents").is_some());
    world.keys("X");
    let owner = SessionId::from(super::world::OWNER);
    assert!(
        matches!(world.sent.last(), Some(Command::AbortCrew(session, AbortOrigin::Person)) if *session == owner)
    );
}

// TERM-35: the selection stays with its subagent, also when that has ended.
#[test]
fn the_board_keeps_its_selection() {
    let mut world = World::new(100, 30);
    world.spawn_many(4);
    world.keys("C-x b Down Down");
    let selected = |world: &mut World| world.row_with("› ").unwrap_or_default();
    assert!(selected(&mut world).contains("scout-00000002"));
    world.settles("scout-00000000", Status::NeedsInput, "q");
    world.settles("scout-00000002", Status::Error, "broke");
    world.closes("scout-00000002", Status::Error);
    assert!(selected(&mut world).contains("scout-00000002"), "{:?}", world.rows());
    assert!(selected(&mut world).contains("failed 0s ago: broke"));
}

// TERM-40: those that need input first, ended ones last with their cause.
#[test]
fn the_board_says_what_each_waits_for() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "One");
    world.spawn("scout-2", "Two");
    world.spawn("scout-3", "Three");
    world.crew(
        "scout-1",
        "One",
        Status::Running,
        UpdateKind::Activity { tool: "read".into(), target: "src/query/args.rs".into() },
    );
    world.settles("scout-2", Status::NeedsInput, "May I?");
    world.settles("scout-3", Status::Completed, "a\nb");
    world.spawn("scout-4", "Four");
    world.settles("scout-4", Status::Error, "connection reset");
    world.closes("scout-4", Status::Error);
    world.pass(180_000);
    world.keys("C-x b");
    let rows = world.rows();
    let of = |id: &str| rows.iter().position(|row| row.contains(id)).unwrap();
    assert!(of("scout-2") < of("scout-1") && of("scout-1") < of("scout-3"));
    assert!(of("scout-3") < of("scout-4"));
    assert!(rows[of("scout-2")].contains("asks: May I?"));
    assert!(rows[of("scout-1")].contains("read  src/query/args.rs"));
    assert!(rows[of("scout-3")].contains("report of 2 lines, waits for its owner"));
    assert!(rows[of("scout-4")].contains("failed 3m ago: connection reset"));
}

// TERM-20: a unique beginning of an id is enough.
#[test]
fn crew_commands_take_the_beginning_of_an_id() {
    let mut world = asking();
    world.spawn("scout-1", "One");
    world.spawn("scout-2", "Two");
    world.type_text("/crew answer worker Yes, go on");
    world.keys("Enter");
    assert!(matches!(world.sent.last(), Some(Command::Respond(_, id, text))
        if id.as_str() == "worker-9c0d1e2f" && text == "Yes, go on"));
    world.type_text("/crew stop scout");
    world.keys("Enter");
    world.settle();
    assert!(world.printed.contains(&"\"scout\" fits scout-1, scout-2".to_owned()));
    world.type_text("/crew stop scout-2");
    world.keys("Enter");
    assert!(
        matches!(world.sent.last(), Some(Command::AbortSubagent(_, id)) if id.as_str() == "scout-2")
    );
    world.type_text("/crew close worker");
    world.keys("Enter");
    assert!(
        matches!(world.sent.last(), Some(Command::Done(_, id)) if id.as_str() == "worker-9c0d1e2f")
    );
}

// C116: seven need answers at once; the count is shown, any order works.
#[test]
fn seven_questions_wait_side_by_side() {
    let mut world = World::new(100, 30);
    world.spawn_many(7);
    for number in 0..7 {
        world.settles(&format!("scout-{number:08x}"), Status::NeedsInput, "q");
    }
    assert_eq!(world.rule(), "─ owner ── 7 need you: Ctrl+X a ─");
    world.keys("C-x b Down Down a");
    assert_eq!(world.view.receiver, Receiver::Answer("scout-00000002".into()));
    assert!(world.rule().contains("7 need you") || world.rule().contains("Esc back"));
}

// TERM-37, C115: shown at once, in every view, by name.
#[test]
fn needs_input_shows_in_every_view() {
    let mut world = asking();
    for (keys, leave) in [("C-o", "Esc"), ("C-x m", "Esc"), ("C-x ?", "q"), ("C-x t", "Esc")] {
        world.keys(keys);
        assert!(world.view.is_full());
        assert!(world.row_with("1 needs you").is_some(), "{keys}: {:?}", world.rows());
        world.keys(leave);
    }
}

// TERM-38: one signal in three seconds, none while the terminal has the focus.
#[test]
fn attention_is_called_sparingly() {
    let bells = |world: &mut World| {
        world.requests().iter().filter(|request| matches!(request, Request::Attention(_))).count()
    };
    let mut world = World::new(100, 30);
    world.spawn_many(3);
    world.pass(10_000);
    world.settles("scout-00000000", Status::NeedsInput, "q");
    world.settles("scout-00000001", Status::NeedsInput, "q");
    assert_eq!(bells(&mut world), 1);
    world.pass(4_000);
    crate::view::key(&mut world.view, world.now, crate::keys::Input::Focus(true));
    world.settles("scout-00000002", Status::NeedsInput, "q");
    assert_eq!(bells(&mut world), 0);
}

// TERM-44: a stop is confirmed on screen by the abort card.
#[test]
fn a_stop_is_confirmed_by_its_card() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "One");
    world.keys("C-x x Enter");
    assert!(world.row_with("Enter again stops scout-1").is_some());
    world.keys("Enter");
    assert!(matches!(world.sent.last(), Some(Command::AbortSubagent(..))));
    world.abort_entry("scout-1");
    world.settle();
    assert_eq!(world.printed, ["⏹️ scout-1 - B", "  aborted by the user"]);
}

// TERM-42, TERM-46: words to a running subagent say `queued`, then that they
// were taken; the receiver stays what the rule says.
#[test]
fn words_to_a_running_subagent_wait_until_it_takes_them() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Commas");
    world.type_text("owner draft");
    world.keys("C-x b s");
    assert_eq!(world.rule(), "─ steer scout-1 ── Esc back to owner, text kept ─");
    world.type_text("also the tests");
    world.keys("Enter");
    assert!(matches!(world.sent.last(), Some(Command::SteerSubagent(_, id, text))
        if id.as_str() == "scout-1" && text == "also the tests"));
    assert!(world.row_with("queued steer to scout-1: also the tests").is_some());
    world.answer(Ok(()));
    assert!(world.row_with("queued steer").is_none());
    world.settle();
    assert_eq!(world.printed, ["scout-1 has taken it"]);
    assert_eq!(world.view.receiver, Receiver::Steer("scout-1".into()));
    world.keys("Esc");
    assert_eq!(world.draft(), "owner draft");
}

// TERM-4, TERM-46: words that were not taken never end up with the owner.
#[test]
fn words_that_were_not_taken_are_given_back_where_they_belong() {
    let refused = || {
        let id = SubagentId::from("scout-1");
        Err(Refusal::Subagent(CrewRefusal::WrongPhase(id, Status::Aborted)))
    };
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Commas");
    world.type_text("/crew steer scout-1 also the tests");
    world.keys("Enter");
    world.type_text("owner draft");
    world.closes("scout-1", Status::Aborted);
    world.answer(refused());
    world.settle();
    assert_eq!(world.draft(), "owner draft");
    let told = "scout-1: not taken: it had ended · Up brings the text back";
    assert_eq!(world.printed.last().map(String::as_str), Some(told));
    world.spawn("scout-1", "Commas");
    world.keys("C-x b s");
    world.type_text("more");
    world.keys("Enter");
    world.answer(refused());
    assert_eq!(world.draft(), "more");
}

// TERM-46: nothing is sent to one that has ended.
#[test]
fn nothing_is_said_to_one_that_has_ended() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Commas");
    world.keys("C-x b Enter");
    assert!(world.row_with("─ steer scout-1 ").is_some());
    world.keys("i");
    world.type_text("hello");
    world.settles("scout-1", Status::Error, "connection reset");
    world.closes("scout-1", Status::Error);
    let sent = world.sent.len();
    world.keys("Enter");
    assert_eq!((world.sent.len(), world.draft()), (sent, "hello".to_owned()));
    world.settle();
    assert!(world.printed.iter().any(|row| row.contains("is gone (error)")), "{:?}", world.printed);
    world.keys("C-x b End Enter");
    assert!(world.row_with("has ended").is_some());
}

// WID-2, TERM-40: figures of the host give what updates of another time told.
#[test]
fn a_session_that_is_opened_again_knows_what_its_subagents_need() {
    let mut world = World::new(100, 30);
    let mut one = super::world::figures("scout-1", "Commas", &[("read", "a.rs")]);
    one.status = Status::NeedsInput;
    one.settled = Some("Which one?".into());
    let mut two = super::world::figures("scout-2", "More", &[]);
    two.waits = Some("waits for the model (rate limit, 8s)".into());
    two.rows = Some(Vec::new());
    world.figures(vec![one, two]);
    world.pass(1_500);
    assert!(world.row_with("haiku-5 · low | ↑ 31.0k · ↓ 1.2k · $0.00").is_some());
    assert!(world.row_with("41s · 7 tool calls · 1 failure").is_some());
    world.keys("C-x b");
    assert!(world.row_with("asks: Which one?").is_some(), "{:?}", world.rows());
    assert!(world.row_with("waits for the model (rate limit, 8s)").is_some());
}

// TERM-61: results that wait are counted apart and cannot be taken back.
#[test]
fn results_that_wait_are_counted_apart() {
    let mut world = World::new(100, 30);
    world.queued(&["one"], &[]);
    world.facts(|facts| facts.results_waiting = 2);
    let rows = world.rows();
    let at = rows.iter().position(|row| row.starts_with("queued steer: one · Ctrl+X u")).unwrap();
    assert_eq!(rows[at + 1], "2 results wait for the next request");
}

// TERM-45: the last words of one that ends are read too.
#[test]
fn a_transcript_is_read_again_when_its_subagent_ends() {
    let reads = |world: &mut World| {
        world.rows();
        world.requests().iter().filter(|request| matches!(request, Request::Read { .. })).count()
    };
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Commas");
    world.keys("C-x b Enter");
    assert_eq!(reads(&mut world), 1);
    assert_eq!(reads(&mut world), 0);
    world.pass(1_000);
    assert_eq!(reads(&mut world), 1, "it runs");
    world.settles("scout-1", Status::Completed, "done");
    assert_eq!(reads(&mut world), 1);
    world.closes("scout-1", Status::Completed);
    assert_eq!(reads(&mut world), 1);
    world.pass(5_000);
    assert_eq!(reads(&mut world), 0);
}

/// A subagent with four rows, and the widget at a width.
fn widget_rows(columns: usize, tools: bool) -> Vec<String> {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Look at the parser");
    let rows = [("read", "a.rs"), ("read", "b.rs"), ("bash", "make"), ("crew_report", "")];
    let mut facts = super::world::figures("scout-1", "Look at the parser", &rows);
    (facts.tool_calls, facts.failures) = (4, 1);
    world.figures(vec![facts]);
    world.view.setup.widget_tools = tools;
    let widget = crate::draw::crew::Widget { columns, ..world.view.widget() };
    let level = widget.level(&world.view.crew);
    let rows = widget.rows(&world.view.crew, level);
    rows.iter().map(|row| row.text().to_owned()).collect()
}

// crew.md WID-13, row 89.
#[test]
fn no_line_of_the_widget_is_wider_than_the_terminal() {
    let rows = widget_rows(4, true);
    assert!(rows.len() > 3, "{rows:?}");
    for row in &rows {
        assert!(crate::cells::text_width(row) <= 4, "{row:?}");
    }
    assert!(rows[0].ends_with('…'), "{rows:?}");
    assert_eq!(widget_rows(0, true), Vec::<String>::new());
}

// crew.md WID-14, row 90.
#[test]
fn without_tool_calls_the_widget_keeps_header_and_totals() {
    let rows = widget_rows(100, false);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0].contains("scout-1 - Look at the parser") && !rows[0].contains("ctrl+x"));
    assert!(rows[2].contains("4 tool calls") && rows[2].contains('1'), "{rows:?}");
    let all = rows.join("\n");
    for absent in ["---", "showing latest", "a.rs", "make"] {
        assert!(!all.contains(absent), "{all}");
    }
    assert!(widget_rows(100, true).iter().any(|row| row.contains("showing latest 3")));
}

// TERM-39, TERM-58, host.md 8.22.
#[test]
fn the_title_says_who_needs_the_person() {
    let mut world = asking();
    assert_eq!(world.view.title(), "crew 1? · parser");
    let name = Some("comma\u{1b}]2;evil\u{7} fix".to_owned());
    world.session(crew_engine::api::SessionUpdate::SessionInfoChanged(name));
    world.crew("worker-9c0d1e2f", "", Status::Running, UpdateKind::Responded);
    let title = world.view.title();
    assert!(title.starts_with("crew - comma") && title.ends_with("fix - parser"), "{title}");
    assert!(!title.contains(['\u{1b}', '\u{7}']), "{title:?}");
}
