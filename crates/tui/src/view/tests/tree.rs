//! The tree of the session: sketch S-10, keys, and what a move shows.

use crew_base::entry::read_line;
use crew_base::id::SessionId;
use crew_engine::api::{
    BranchWish, Command, Control, MoveEnd, Moved, Refusal, SessionUpdate, Status,
};

use super::world::World;
use crate::request::{Reply, Request, RowKind, TreeFilter, TreeRow};

fn row(id: &str, parent: &str, kind: RowKind, text: &str) -> TreeRow {
    TreeRow {
        entry: id.into(),
        parent: (!parent.is_empty()).then(|| parent.into()),
        kind,
        text: text.to_owned(),
        label: None,
        labelled: None,
        is_leaf: false,
    }
}

/// The tree of sketch S-10, with what its filter hides.
fn sketch() -> Vec<TreeRow> {
    let compare = "Compare how the three parsers treat trailing commas, then fix ours.";
    let start = "I start three scouts and read our own parser meanwhile.";
    let mut rows = vec![
        row("m", "", RowKind::Setting, "prompt and tools"),
        row("a", "m", RowKind::User, compare),
        row("b", "a", RowKind::Answer, start),
        row("t", "b", RowKind::Calls, "calls crew_spawn"),
        row("c", "t", RowKind::Card(Status::Completed), "scout-1a2b3c4d: Three places decide it"),
        row("d", "c", RowKind::User, "leave tuples alone"),
        row("e", "d", RowKind::Answer, "Then only the list rule changes."),
        row("f", "c", RowKind::User, "also look at tuples"),
    ];
    rows[5].label = Some("plan B".to_owned());
    rows[5].labelled = Some("2026-11-30 13:43".to_owned());
    rows[7].is_leaf = true;
    rows
}

fn open(columns: usize, rows: usize) -> World {
    let mut world = World::new(columns, rows);
    world.session(SessionUpdate::SessionInfoChanged(Some("comma fix".to_owned())));
    world.keys("/ t r e e Enter");
    assert!(world.requests().iter().any(|request| matches!(request, Request::Tree)));
    world.reply(Reply::Tree(sketch()));
    world
}

#[test]
fn s10_the_tree() {
    for (columns, rows) in [(100, 30), (40, 12), (200, 50)] {
        let mut world = open(columns, rows);
        let text: String = world.rows().iter().map(|row| format!("│{row}\n")).collect();
        insta::assert_snapshot!(format!("s10_{columns}x{rows}"), text);
    }
}

fn navigated(world: &mut World) -> Option<(String, Option<BranchWish>)> {
    let sent = world.sent.pop()?;
    let Command::Navigate { to, summary, label: None, .. } = sent else { panic!("{sent:?}") };
    Some((to.to_string(), summary))
}

#[test]
fn enter_asks_about_a_summary_where_something_is_left() {
    // host.md 2.8.3
    let wish = |text: Option<&str>| Some(BranchWish { instructions: text.map(str::to_owned) });
    let check = |keys: &str, expected: Option<BranchWish>| {
        let mut world = open(100, 30);
        world.keys("Up Enter");
        assert!(world.row_with("summarise the branch you leave?").is_some());
        world.keys(keys);
        assert_eq!(navigated(&mut world), Some(("e".to_owned(), expected)), "{keys}");
        assert!(!world.view.is_full(), "{keys}");
    };
    check("Enter", None);
    check("n", None);
    check("s", wish(None));
    check("i Enter", wish(None));
    check("i a l l Enter", wish(Some("all")));
    check("i x Esc s", wish(None));
}

#[test]
fn esc_leaves_the_question_and_then_the_tree() {
    let mut world = open(100, 30);
    world.keys("Up Enter Esc");
    assert!(world.view.is_full() && world.row_with("summarise the branch").is_none());
    world.keys("Esc");
    assert!(!world.view.is_full() && world.sent.is_empty());
}

#[test]
fn nothing_is_asked_where_nothing_is_left_or_the_setting_says_so() {
    let mut world = open(100, 30);
    world.keys("Enter");
    assert_eq!(navigated(&mut world), Some(("f".to_owned(), None)));
    let mut world = open(100, 30);
    world.view.setup.skip_summary = true;
    world.keys("Up Up Up Up Up Enter");
    assert_eq!(navigated(&mut world), Some(("a".to_owned(), None)));
}

#[test]
fn a_search_chooses_the_best_match_and_never_an_old_row() {
    // host.md 11.119
    let mut world = open(100, 30);
    world.keys("Up Up Up");
    world.type_text("leave");
    assert!(world.row_with("› ").is_some_and(|row| row.contains("leave tuples alone")));
    world.keys("Enter s");
    assert_eq!(navigated(&mut world).map(|(to, _)| to), Some("d".to_owned()));
    // A label is found too, a capital L is never search text.
    let mut world = open(100, 30);
    world.type_text("plan");
    assert!(world.row_with("› ").is_some_and(|row| row.contains("leave tuples alone")));
    world.press(crate::keys::Key::char('L'));
    assert!(world.row_with("label: plan B").is_some());
}

#[test]
fn a_label_is_typed_over_the_old_one_and_the_rows_are_read_again() {
    let mut world = open(100, 30);
    world.keys("Up Up");
    world.press(crate::keys::Key::char('L'));
    world.keys("Backspace C Enter");
    let Some(Command::Control(session, Control::Label(entry, text))) = world.sent.pop() else {
        panic!("no label")
    };
    assert_eq!((session, entry.as_str()), (SessionId::from(super::world::OWNER), "d"));
    assert_eq!(text, "plan C");
    assert!(world.requests().iter().any(|request| matches!(request, Request::Tree)));
    world.reply(Reply::Tree(sketch()));
    assert!(world.row_with("› ").is_some_and(|row| row.contains("leave tuples alone")));
}

#[test]
fn filters_go_round_and_keep_the_selection_or_its_nearest() {
    // host.md 8.19, TERM-35
    let mut world = open(100, 30);
    world.keys("Up");
    for (filter, selected) in [
        (TreeFilter::NoTools, "Then only the list rule"),
        (TreeFilter::UserOnly, "leave tuples alone"),
        (TreeFilter::Labelled, "leave tuples alone"),
        (TreeFilter::All, "leave tuples alone"),
        (TreeFilter::Default, "leave tuples alone"),
    ] {
        world.keys("C-o");
        let head = world.rows().remove(0);
        assert!(head.contains(&format!("filter: {} ", filter.word())), "{head}");
        let row = world.row_with("› ").unwrap_or_default();
        assert!(row.contains(selected), "{filter:?}: {row}");
    }
}

#[test]
fn folding_hides_what_hangs_below_and_says_how_much() {
    let mut world = open(100, 30);
    world.keys("Up Up Left");
    let row = world.row_with("leave tuples alone").unwrap_or_default();
    assert!(row.contains("+1"), "{row}");
    assert!(world.row_with("Then only the list rule").is_none());
    world.keys("Right");
    assert!(world.row_with("Then only the list rule").is_some());
    // At a row without children it goes to the one above.
    world.keys("Down Left");
    assert!(world.row_with("› ").is_some_and(|row| row.contains("leave tuples alone")));
}

#[test]
fn label_times_are_shown_on_request() {
    let mut world = open(100, 30);
    assert!(world.row_with("13:43").is_none());
    world.keys("C-t");
    assert!(world.row_with("[label: plan B · 2026-11-30 13:43]").is_some());
}

#[test]
fn a_hostile_text_stays_one_clean_row() {
    let mut world = open(40, 12);
    let mut rows = sketch();
    rows[7].label = Some("x".repeat(100));
    rows[7].text = "漢字".repeat(60);
    world.reply(Reply::Tree(rows));
    let shown = world.row_with("› ").unwrap_or_default();
    assert!(shown.contains("漢") && shown.contains("[xx"), "{shown}");
}

fn entry(id: &str, text: &str) -> crew_base::entry::Entry {
    let line = format!(
        r#"{{"type":"message","id":"{id}","parentId":null,"timestamp":"t","message":{{"role":"user","content":"{text}"}}}}"#
    );
    read_line(&line).unwrap()
}

#[test]
fn a_move_shows_the_branch_and_gives_the_message_back() {
    // host.md 2.8.2; what was typed meanwhile is kept (TERM-35).
    let mut world = World::new(100, 30);
    world.settle();
    world.printed.clear();
    world.type_text("typed");
    let moved = Moved { leaf: Some("a".into()), draft: Some("again".to_owned()), summary: None };
    world.session(SessionUpdate::MoveEnd(MoveEnd::Moved(Box::new(moved))));
    let asked = world.requests();
    assert!(asked.iter().any(|r| matches!(r, Request::Branch(Some(leaf)) if leaf.as_str() == "a")));
    world.reply(Reply::Branch(vec![entry("a", "an old question")]));
    world.settle();
    let printed = world.printed.join("\n");
    assert!(printed.contains("another place in the tree"), "{printed}");
    assert!(printed.contains("an old question"), "{printed}");
    assert_eq!(world.draft(), "again\ntyped");
}

#[test]
fn while_a_branch_is_summarised_texts_wait_and_esc_cancels() {
    // host.md 3.1.11, 3.5.1
    let mut world = World::new(100, 30);
    world.session(SessionUpdate::BranchSummaryStart);
    assert!(world.row_with("summarising the branch you leave").is_some());
    world.keys("n o w Enter");
    assert!(world.sent.is_empty());
    assert!(world.row_with("queued after the summary: now").is_some());
    world.keys("Esc");
    assert!(matches!(world.sent.pop(), Some(Command::Abort(_))));
    world.session(SessionUpdate::MoveEnd(MoveEnd::Cancelled));
    let sends = |request: &Request| {
        let Request::Send(command) = request else { return false };
        matches!(**command, Command::PromptOrSteer(..))
    };
    let sent = world.requests().iter().any(sends);
    assert!(sent);
    assert!(world.row_with("summarising").is_none());
}

#[test]
fn a_move_that_was_refused_says_why() {
    let mut world = open(100, 30);
    world.keys("Enter");
    world.answer(Err(Refusal::MoveFailed("no key".to_owned())));
    world.settle();
    assert!(world.printed.iter().any(|row| row.contains("tree: no key")), "{:?}", world.printed);
}

#[test]
fn a_narrow_screen_asks_in_few_words_and_what_is_typed_has_the_cursor() {
    let mut world = open(40, 12);
    world.keys("Up Enter");
    assert_eq!(world.rows()[10], "summarise? Enter no · s yes · i how");
    world.keys("i");
    world.type_text("names");
    assert_eq!(world.rows()[10], "the summary attends to: names");
    let cursor = crate::draw::draw(&world.view).cursor;
    assert_eq!(cursor, Some((10, 29)));
    world.keys("Esc Esc");
    assert_eq!(crate::draw::draw(&world.view).cursor, Some((1, 6)));
}

#[test]
fn a_busy_owner_refuses_a_move_and_says_what_to_do() {
    // host.md 2.8.2
    let mut world = open(100, 30);
    world.keys("Enter");
    world.answer(Err(Refusal::Busy));
    world.settle();
    let printed = world.printed.join("\n");
    assert!(printed.contains("tree: the owner is busy"), "{printed}");
    assert!(printed.contains("Esc stops it; then try again"), "{printed}");
}
