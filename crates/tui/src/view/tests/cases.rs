//! Edge cases about the main screen.

use crew_base::model::ModelEvent;
use crew_engine::api::{Command, SessionUpdate, Status};

use super::world::{World, figures};
use crate::draw::crew::Level;
use crate::keys::{Code, Input, Key};
use crate::request::Request;
use crate::screen::Size;
use crate::view;

// Case 3: the editor is there at every height and the region within H - 1.
#[test]
fn the_editor_is_there_at_every_size() {
    let mut world = World::new(100, 30);
    world.spawn_many(3);
    world.queued(&["one", "two"], &["three"]);
    world.type_text("draft");
    for rows in [30, 5, 3, 2, 30, 12, 6, 1, 24] {
        for columns in [200, 100, 40, 22, 8, 7, 1] {
            view::resize(&mut world.view, Size { columns, rows });
            let shown = world.rows();
            let cursor = crate::draw::draw(&world.view).cursor.expect("the editor has the cursor");
            assert!(cursor.0 < shown.len() && cursor.1 < columns.max(1), "{columns}x{rows}");
            if columns >= 8 {
                assert!(shown[cursor.0].contains("draft"), "{columns}x{rows}: {shown:?}");
            }
        }
    }
}

// Case 2, C137: wide letters, joined emoji and tabs stream at every width.
#[test]
fn no_row_is_wider_than_the_terminal_while_text_streams() {
    let mut world = World::new(120, 30);
    world.run_starts();
    for columns in [200, 22, 7, 1, 120] {
        view::resize(&mut world.view, Size { columns, rows: 30 });
        world.delta("日本語 👨‍👩‍👧 a\tb | c\n\n```\nlong code line\twith tabs 日本語\n```\n- item ");
        world.rows();
        let look = world.view.look();
        for line in world.view.live.take_final(&look) {
            assert!(!line.is_prose || line.row.width() <= columns.max(2), "{columns}");
        }
    }
}

// Case 4: 15 subagents at 100x30.
#[test]
fn fifteen_subagents_take_ten_rows() {
    let mut world = World::new(100, 30);
    world.spawn_many(15);
    let rows = world.rows();
    let first = rows.iter().filter(|row| row.contains(" - Part ")).count();
    assert_eq!(first, 9, "{rows:?}");
    assert!(rows.iter().any(|row| row == "+6 more: 6 running"), "{rows:?}");
    assert_eq!(world.view.level(), Level::Some);
}

// Case 5: the one that needs input keeps its place.
#[test]
fn the_one_that_needs_input_is_shown_among_fifteen() {
    let mut world = World::new(40, 12);
    world.spawn_many(15);
    world.settles("scout-0000000d", Status::NeedsInput, "May I?");
    let rows = world.rows();
    assert!(rows.iter().any(|row| row.starts_with("❓ scout-0000000d")), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("+13 more: 13 running")), "{rows:?}");
    assert!(rows.iter().any(|row| row == "─ owner ── 1 needs you ─"), "{rows:?}");
}

// Case 6: long mode fits, the hint is there once, the editor does not move.
#[test]
fn the_widget_is_long_and_short_again() {
    let mut world = World::new(100, 30);
    let rows: Vec<(&str, &str)> = (0..10).map(|_| ("read", "a.rs")).collect();
    for id in ["scout-a", "scout-b", "scout-c"] {
        world.spawn(id, "Part");
    }
    let all = ["scout-a", "scout-b", "scout-c"].map(|id| figures(id, "Part", &rows));
    world.figures(all.to_vec());
    world.pass(2_000);
    let short = world.rows().len();
    world.keys("C-x d");
    world.pass(2_000);
    let long = world.rows();
    assert!(long.len() <= 29 && long.len() >= short);
    assert_eq!(long.iter().filter(|row| row.contains("ctrl+x d to collapse")).count(), 1);
    world.keys("C-x d");
    assert_eq!(world.rows().iter().filter(|row| row.contains("ctrl+x d to details")).count(), 1);
}

// Case 7: a richer level comes once, after a second.
#[test]
fn a_richer_level_waits_for_a_quiet_second() {
    let mut world = World::new(100, 30);
    world.spawn_many(5);
    assert_eq!(world.view.level(), Level::Newest);
    world.pass(100);
    for number in [3, 4] {
        let id = format!("scout-{number:08x}");
        world.settles(&id, Status::Completed, "r");
        world.closes(&id, Status::Completed);
        world.pass(400);
        assert_eq!(world.view.level(), Level::Newest);
    }
    world.pass(700);
    assert!(world.view.level() < Level::Newest);
    world.spawn("scout-new", "Part");
    world.spawn_many(9);
    assert!(world.view.level() > Level::Facts, "a poorer one comes at once");
}

// Case 8: a card never splits a paragraph.
#[test]
fn a_card_waits_for_its_place_in_the_record() {
    let text = "One paragraph of the owner that is being streamed.";
    for cut in 1..text.len() {
        let mut world = World::new(100, 30);
        world.spawn("scout-1", "Commas");
        world.run_starts();
        world.delta(&text[..cut]);
        world.settles("scout-1", Status::Completed, "done");
        world.settle();
        assert!(world.row_with("✅ scout-1").is_some(), "the widget carries the icon");
        world.delta(&text[cut..]);
        world.answer_ends(text, "stop", None);
        world.card("scout-1", "done");
        world.settle();
        assert_eq!(world.printed, [text, "✅ scout-1 - Commas in the JSON reader", "  done"]);
    }
}

// Case 9, TERM-35: a card changes neither menu nor draft.
#[test]
fn a_card_leaves_menu_selection_and_draft_alone() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Commas");
    world.type_text("/t");
    world.keys("Down");
    let menu = world.view.menu.clone().expect("the menu is open");
    assert_eq!(menu.at, 1);
    world.settles("scout-1", Status::Completed, "done");
    world.card("scout-1", "done");
    world.settle();
    assert_eq!(world.view.menu.as_ref(), Some(&menu));
    assert_eq!(world.draft(), "/t");
    assert!(world.printed.iter().any(|row| row.contains("✅ scout-1")));
}

// Case 10: what became final under a full view is printed when it is left.
#[test]
fn a_card_that_came_under_the_board_is_printed_once_behind_it() {
    let mut world = World::new(100, 30);
    world.spawn("scout-1", "Commas");
    let before = world.rows();
    world.keys("C-x b");
    world.card("scout-1", "done");
    world.settle();
    assert!(world.printed.is_empty());
    world.keys("Esc");
    assert_eq!(world.rows(), before);
    world.settle();
    world.settle();
    assert_eq!(world.printed.iter().filter(|row| row.contains("✅")).count(), 1);
}

// Case 12, TERM-1: a result starts a run, the draft stays, Enter then steers.
#[test]
fn a_draft_survives_a_run_that_a_result_started() {
    let mut world = World::new(100, 30);
    world.type_text("half");
    world.card("scout-1", "done");
    world.run_starts();
    world.delta("text");
    assert_eq!(world.draft(), "half");
    world.keys("Enter");
    assert!(matches!(world.sent.last(), Some(Command::PromptOrSteer(_, message))
        if matches!(message, crew_base::message::Message::User(user) if user.content.text() == "half")));
    assert_eq!(world.draft(), "");
}

// Case 13: what the engine refuses stands in the editor again.
#[test]
fn a_refused_text_is_never_lost() {
    let mut world = World::new(100, 30);
    world.type_text("do it");
    world.keys("Enter");
    world.type_text("more");
    world.answer(Err(crew_engine::api::Refusal::Ending));
    assert_eq!(world.draft(), "do it\nmore");
    world.settle();
    assert!(world.printed.iter().any(|row| row.contains("the program is ending")));
}

// Case 14: Esc stops the owner, the queued text comes back, three run on.
#[test]
fn esc_stops_the_owner_only_and_says_so() {
    let mut world = World::new(100, 30);
    world.spawn_many(3);
    world.run_starts();
    world.delta("text");
    world.queued(&["also tuples"], &[]);
    assert!(world.row_with("Esc stops the owner only (3 subagents go on)").is_some());
    world.keys("Esc");
    assert!(matches!(world.sent.last(), Some(Command::Abort(_))));
    let requests = world.requests();
    assert!(requests.iter().any(|request| matches!(request, Request::TakeBack)));
    world.reply(crate::request::Reply::TakenBack(vec!["also tuples".into()]));
    world.answer_ends("text", "aborted", None);
    world.run_ends(true);
    world.settle();
    assert_eq!(world.draft(), "also tuples");
    assert!(world.printed.contains(&"stopped the owner · 3 subagents go on".to_owned()));
    assert_eq!(world.view.crew.counts().running, 3);
}

// Case 15: the key that closes a view does nothing else.
#[test]
fn esc_on_the_board_does_not_stop_the_owner() {
    let mut world = World::new(100, 30);
    world.run_starts();
    world.keys("C-x b Esc");
    assert!(!world.view.is_full());
    assert!(world.sent.is_empty());
}

// Case 16: quitting with open work asks; a letter stays and is typed.
#[test]
fn quitting_with_open_work_is_confirmed() {
    let mut world = World::new(100, 30);
    world.spawn_many(3);
    world.keys("C-c C-c");
    assert!(world.row_with("Quit and stop 3 subagents?").is_some());
    world.keys("x");
    assert_eq!(world.draft(), "x");
    assert!(!world.view.quitting);
    world.keys("C-c C-c C-c");
    assert!(world.row_with("Quit and stop 3 subagents?").is_some());
    world.keys("C-c");
    assert!(world.requests().iter().any(|request| matches!(request, Request::Quit)));
}

// Case 17: nothing open, nothing asked.
#[test]
fn ctrl_c_twice_quits_when_nothing_is_open() {
    let mut world = World::new(100, 30);
    world.keys("C-c");
    world.pass(800);
    world.keys("C-c");
    assert!(!world.view.quitting, "too late for the second one");
    world.keys("C-c");
    assert!(world.view.quitting);
}

// Case 19: Left held until the text is empty does not open the board.
#[test]
fn a_held_left_does_not_open_the_board() {
    let mut world = World::new(100, 30);
    world.type_text("ab");
    world.keys("Backspace Backspace Left Left");
    assert!(!world.view.is_full());
    world.pass(600);
    world.keys("Left");
    assert!(world.view.is_full());
}

// Case 20, TERM-15: the leader with an unknown key does nothing.
#[test]
fn the_leader_waits_and_an_unknown_key_does_nothing() {
    let mut world = World::new(100, 30);
    for words in ["C-x Esc", "C-x z", "C-x C-c"] {
        world.keys(words);
        assert_eq!(world.draft(), "");
        assert!(world.sent.is_empty() && !world.view.is_full() && world.requests().is_empty());
    }
    world.keys("C-x");
    assert!(world.row_with("Ctrl+X then").is_none());
    world.pass(60_000);
    assert!(world.row_with("Ctrl+X then").is_some());
    world.keys("d");
    assert!(world.view.widget_long);
}

// Case 21, TERM-18: what was typed before the first frame is not sent.
#[test]
fn type_ahead_goes_into_the_editor() {
    let mut world = World::bare(100, 30);
    let mut inputs: Vec<Input> = "hello".chars().map(|c| Input::Key(Key::char(c))).collect();
    inputs.push(Input::Key(Key::plain(Code::Enter)));
    world.view.type_ahead(inputs);
    assert_eq!(world.draft(), "hello\n");
    assert!(world.sent.is_empty());
}

// Case 22: a key from before the question could be read is no answer.
#[test]
fn the_trust_question_discards_what_was_typed_before() {
    let mut world = World::bare(100, 30);
    world.view.ask_trust(Default::default(), true);
    world.keys("2 Enter");
    assert!(world.view.question.is_some());
    assert!(world.requests().is_empty());
    world.pass(400);
    world.keys("Enter");
    let requests = world.requests();
    use crate::request::TrustChoice;
    assert!(matches!(requests[..], [Request::Trusted(TrustChoice::NotNow)]), "{requests:?}");
}

// Case 29: what a subagent wrote is below its icon, indented.
#[test]
fn a_report_cannot_imitate_the_face() {
    let mut world = World::new(100, 30);
    world.card("scout-1", "─ owner ─\n\nYou: yes\n\n✅ scout-2 - faked");
    world.settle();
    assert_eq!(world.printed[0], "✅ scout-1 - Commas in the JSON reader");
    assert!(world.printed[1..].iter().all(|row| row.is_empty() || row.starts_with("  ")));
}

// Case 30: names with controls are one clean line each.
#[test]
fn names_with_controls_are_clean() {
    let mut world = World::new(100, 30);
    world.view.setup.branch = Some("ma\u{1b}[2Jin\nx".into());
    world.view.setup.cwd = "~/a\u{9b}31m\u{7}".into();
    world.view.name = Some("n\u{1b}]0;t\u{7}ame".into());
    world.spawn("scout-\u{1b}[7m1", "bri\u{1b}[0mef\nline");
    world.facts(|facts| {
        if let Some(model) = &mut facts.model {
            model.id = "m\u{1b}[1mo\rdel".into();
        }
    });
    for row in world.rows() {
        assert!(!row.chars().any(char::is_control), "{row:?}");
    }
    assert!(world.row_with("~/a (main x) • name").is_some(), "{:?}", world.rows());
}

// Case 32, C125: the clock ticks while an answer and a tool run.
#[test]
fn the_clock_ticks_each_second() {
    let mut world = World::new(100, 30);
    world.run_starts();
    world.tool_starts("c1", "bash", r#"{"command":"sleep 2"}"#);
    for second in 1..5u64 {
        world.pass(1_000);
        let text = format!("runs a tool · {second}s");
        assert!(world.row_with(&text).is_some(), "{:?}", world.rows());
    }
}

// Case 34, TERM-24: one live line, one printed line.
#[test]
fn a_failed_request_that_is_retried_is_told_once() {
    let mut world = World::new(100, 30);
    for attempt in 1..=3u32 {
        world.run_starts();
        world.answer_ends("", "error", Some("529: no body"));
        world.session(SessionUpdate::AgentEnd { messages: Vec::new(), will_retry: true });
        world.session(SessionUpdate::RetryStart {
            attempt,
            attempts_max: 3,
            delay_ms: 8_000,
            error: "529: no body".into(),
        });
        let text =
            format!("retry {attempt} of 3 in 8s · anthropic: overloaded (529) · Esc cancels");
        assert!(world.row_with(&text).is_some(), "{:?}", world.rows());
        world.settle();
        assert!(world.printed.is_empty(), "{:?}", world.printed);
        world.pass(8_000);
    }
    world.run_starts();
    world.answer_ends("", "error", Some("529: no body"));
    world.session(SessionUpdate::RetryEnd { success: false, attempt: 3, final_error: None });
    world.run_ends(false);
    world.settle();
    let told: Vec<_> = world.printed.iter().filter(|row| row.contains("529")).collect();
    assert_eq!(told, ["✗ anthropic is overloaded (529). Tried 4 times."]);
}

// Case 34: a refused key is not retried and says what to do.
#[test]
fn a_refused_key_names_the_next_step() {
    let mut world = World::new(100, 30);
    world.run_starts();
    let body = r#"401: {"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    world.answer_ends("", "error", Some(body));
    world.run_ends(false);
    world.settle();
    assert_eq!(
        world.printed[0],
        "✗ anthropic refused the key (401, invalid x-api-key). Nothing was sent again."
    );
    assert!(world.printed[1].contains("/model picks another model"));
}

// Case 35, TERM-52, P-4: without a model the text stays.
#[test]
fn enter_without_a_model_keeps_the_text_and_says_three_ways() {
    let mut world = World::bare(100, 30);
    world.show(None);
    world.printed.clear();
    world.settle();
    world.printed.clear();
    world.type_text("explain this repo");
    world.keys("Enter");
    world.settle();
    assert_eq!(world.draft(), "explain this repo");
    assert!(world.sent.is_empty());
    for way in ["a key", "local", "demo"] {
        assert!(world.printed.iter().any(|row| row.trim_start().starts_with(way)), "{way}");
    }
    assert_eq!(world.rule(), "─ owner ── no model ─");
}

// Case 38: a large paste is one marker and sends nothing.
#[test]
fn a_paste_of_five_thousand_lines_is_one_marker() {
    let mut world = World::new(100, 30);
    world.paste(&"rm -rf x\u{1b}[201~\r".repeat(5_000));
    assert!(world.sent.is_empty());
    assert!(world.row_with("[paste #1 +5001 lines]").is_some(), "{:?}", world.rows());
    assert_eq!(world.draft().lines().count(), 5_000);
}

// Case 41, TERM-28: nothing in flight, nothing moves and no timer is set.
#[test]
fn nothing_moves_when_nothing_is_in_flight() {
    let mut world = World::new(100, 30);
    for id in ["scout-1", "scout-2"] {
        world.spawn(id, "Part");
        world.settles(id, Status::Completed, "done");
    }
    world.pass(3_000);
    world.settle();
    let before = world.rows();
    assert!(!world.view.is_moving());
    assert_eq!(world.view.deadline(), None);
    world.pass(60_000);
    assert_eq!(world.rows(), before);
}

// TERM-21: parallel tools are printed as they end, text before them first.
#[test]
fn rows_are_printed_in_the_order_they_become_final() {
    let mut world = World::new(100, 30);
    world.run_starts();
    world.delta("I look.");
    world.event(ModelEvent::BlockEnd {
        index: 0,
        block: crew_base::message::Block::text("I look."),
    });
    world.answer_ends("I look.", "toolUse", None);
    world.tool_starts("a", "read", r#"{"path":"a.rs"}"#);
    world.tool_starts("b", "read", r#"{"path":"b.rs"}"#);
    let rows = world.rows();
    assert!(rows[0].starts_with("  read  a.rs") && rows[1].starts_with("  read  b.rs"));
    world.tool_ends("b", "read", "x\ny");
    world.tool_ends("a", "read", "x");
    world.settle();
    assert_eq!(world.printed, ["I look.", "  read  b.rs · 2 lines", "  read  a.rs · 1 line"]);
}

// TERM-61: queued messages with their kind, at most three rows.
#[test]
fn queued_messages_are_shown_with_their_kind() {
    let mut world = World::new(100, 30);
    world.run_starts();
    world.queued(&["a"], &["b"]);
    let rows = world.rows();
    assert!(rows.contains(&"queued steer: a · Ctrl+X u takes it back".to_owned()), "{rows:?}");
    assert!(rows.contains(&"queued follow-up: b".to_owned()));
    world.queued(&["a", "b", "c", "d"], &["e"]);
    assert!(world.rows().contains(&"+3 queued".to_owned()), "{:?}", world.rows());
    world.facts(|facts| facts.results_waiting = 2);
    assert!(world.row_with("2 results wait for the next request").is_some());
}

// TERM-7, P-13: a request that is held back says for what and how long.
#[test]
fn a_held_back_request_says_how_long() {
    let mut world = World::new(100, 30);
    world.session(SessionUpdate::AgentStart);
    assert!(world.row_with("waits for the model · 0s").is_some(), "{:?}", world.rows());
    let wait = "waits for the model (rate limit, 4s)";
    world.facts(|facts| facts.waits = Some(wait.to_owned()));
    assert!(world.row_with(&format!("{wait} · 0s · Esc stops it")).is_some(), "{:?}", world.rows());
}

// host.md 8.12, TERM-61: during a compaction texts wait here and are sent after
// it; they can be taken back.
#[test]
fn texts_wait_for_the_end_of_a_compaction() {
    let mut world = World::new(100, 30);
    let reason = crew_engine::api::CompactionReason::Manual;
    world.session(SessionUpdate::CompactionStart { reason });
    for text in ["one", "two"] {
        world.type_text(text);
        world.keys("Enter");
    }
    assert!(world.sent.is_empty());
    assert!(world.row_with("queued after compaction: one · Ctrl+X u takes it back").is_some());
    world.keys("C-x u");
    assert_eq!(world.draft(), "one\ntwo");
    world.keys("Enter");
    world.requests();
    world.session(SessionUpdate::CompactionEnd {
        reason,
        result: None,
        aborted: false,
        will_retry: false,
        error: None,
    });
    let command = |request| if let Request::Send(sent) = request { Some(*sent) } else { None };
    let sent = world.requests().into_iter().find_map(command);
    let Some(command @ Command::PromptOrSteer(..)) = sent else { panic!("{sent:?}") };
    assert!(world.row_with("queued after").is_none());
    // Refused, it comes back.
    view::sending(&mut world.view, &command);
    view::sent(&mut world.view, crew_engine::api::CommandId(77));
    let result = Err(crew_engine::api::Refusal::Busy);
    let command = crew_engine::api::CommandId(77);
    world.update(crew_engine::api::Update::Answered { command, result });
    assert_eq!(world.draft(), "one\ntwo");
}
