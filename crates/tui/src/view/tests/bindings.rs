//! Keys that `keybindings.json` changed (`host.md` 8.7, TERM-19).

use super::world::World;
use crate::keys::{Bindings, Code, Key};
use crate::request::{Reply, Request};

/// A face with the keys of a file.
fn with_keys(lines: &[(&str, &[&str])], of_pi: bool) -> World {
    let mut world = World::new(100, 30);
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    let lines: Vec<_> = lines.iter().map(|(id, own)| ((*id).to_owned(), keys(own))).collect();
    world.view.setup.keys = Bindings::new(&lines, of_pi).0;
    world
}

/// The draft before, keys, the draft after, with the keys of a file.
fn check(lines: &[(&str, &[&str])], before: &str, keys: &str, after: &str) {
    let mut world = with_keys(lines, false);
    world.type_text(before);
    world.keys(keys);
    assert_eq!(world.draft(), after, "{keys} with {lines:?}");
}

#[test]
fn the_editor_goes_by_the_file() {
    check(&[("tui.editor.deleteWordBackward", &["ctrl+t"])], "one two", "C-t", "one ");
    check(&[("tui.editor.deleteWordBackward", &["ctrl+t"])], "one two", "C-w", "one two");
    check(&[("tui.editor.undo", &[])], "abc", "C-_", "abc");
    check(&[("app.clear", &["ctrl+g"])], "abc", "C-g", "");
    check(
        &[("tui.input.newLine", &["enter"]), ("tui.input.submit", &["alt+enter"])],
        "a",
        "Enter b",
        "a\nb",
    );
    check(&[("tui.editor.jumpForward", &["ctrl+t"])], "a.b", "C-a C-t . x", "ax.b");
    check(&[("tui.editor.cursorUp", &["up", "ctrl+p"])], "ab", "C-j c C-p x", "axb\nc");
}

// TERM-15, TERM-19.
#[test]
fn the_leader_stays_whatever_the_file_says() {
    let mut world = with_keys(&[("app.message.copy", &["ctrl+x"])], false);
    world.type_text("later");
    world.keys("C-x Enter");
    assert_eq!((world.sent.len(), world.draft().as_str()), (1, ""));
}

#[test]
fn lists_go_by_the_file_too() {
    let lines: &[(&str, &[&str])] = &[
        ("tui.select.up", &["ctrl+k"]),
        ("tui.select.cancel", &["ctrl+q"]),
        ("app.models.save", &["ctrl+t"]),
    ];
    let mut world = with_keys(lines, false);
    world.keys("C-x m");
    let offer = |name: &str| crate::request::ModelOffer {
        reference: format!("anthropic/{name}"),
        name: name.to_owned(),
        facts: String::new(),
        lacks: None,
        is_current: name == "b",
        is_default: false,
    };
    world.reply(Reply::Models(vec![offer("a"), offer("b")]));
    let foot = world.rows().pop().unwrap_or_default();
    assert_eq!(foot, "Enter this session · Ctrl+T or Ctrl+X s also the default · Ctrl+Q");
    world.keys("Esc");
    assert!(world.view.is_full(), "Esc is not bound any more");
    world.keys("C-k C-t");
    let saved = |request: &Request| matches!(request, Request::UseModel { reference, save: true } if reference == "anthropic/a");
    assert!(world.requests().iter().any(saved));
    assert!(!world.view.is_full());
    world.keys("C-x b C-q");
    assert!(!world.view.is_full(), "the board too");
}

// TERM-19: Ctrl+L and Ctrl+P as in Pi.
#[test]
fn the_keys_of_pi_choose_and_change_the_model() {
    let mut world = with_keys(&[], true);
    world.keys("C-p");
    world.press(Key::ctrl('p').with_shift());
    let asked = world.requests();
    let cycles: Vec<bool> = asked
        .iter()
        .filter_map(|request| {
            let Request::CycleModel { backwards } = request else { return None };
            Some(*backwards)
        })
        .collect();
    assert_eq!(cycles, [false, true]);
    world.keys("C-l");
    assert!(world.view.is_full());
    let mut world = with_keys(&[], false);
    world.keys("C-l");
    assert!(world.requests().iter().any(|request| matches!(request, Request::Redraw)));
}

#[test]
fn hints_and_the_list_of_keys_name_what_is_bound() {
    let lines: &[(&str, &[&str])] = &[
        ("app.interrupt", &["f9"]),
        ("app.thinking.toggle", &["alt+t", "f5"]),
        ("crew.redraw", &[]),
        ("app.session.new", &["f4"]),
    ];
    let mut world = with_keys(lines, false);
    world.run_starts();
    assert!(world.row_with("F9 stops it").is_some(), "{:?}", world.rows());
    world.keys("Esc");
    assert!(world.sent.is_empty(), "Esc stops nothing now");
    world.press(Key::plain(Code::F(9)));
    assert_eq!(world.sent.len(), 1);
    world.view.size.rows = 60;
    world.keys("C-x ?");
    let rows = world.rows();
    let row = |what: &str| rows.iter().find(|row| row.contains(what)).cloned();
    assert!(row("show or hide thoughts").is_some_and(|row| row.contains("Alt+T, F5")), "{rows:?}");
    assert!(row("new session").is_some_and(|row| row.contains("F4")), "{rows:?}");
    assert_eq!(row("draw the screen anew"), None);
    assert_eq!(row("open another session"), None);
}

// case 16: the question of leaving names the key that leaves.
#[test]
fn leaving_is_confirmed_with_the_bound_key() {
    let mut world = with_keys(&[("app.clear", &["f6"])], false);
    world.spawn("scout-00000001", "Part");
    world.press(Key::plain(Code::F(6)));
    world.press(Key::plain(Code::F(6)));
    assert!(world.row_with("F6 again quits").is_some(), "{:?}", world.rows());
    world.keys("C-c");
    assert!(world.row_with("again quits").is_none(), "any other key stays");
    world.press(Key::plain(Code::F(6)));
    world.press(Key::plain(Code::F(6)));
    world.press(Key::plain(Code::F(6)));
    assert!(world.requests().iter().any(|request| matches!(request, Request::Quit)));
}

// TERM-19: letters of the board and of transcripts too.
#[test]
fn letters_of_the_board_go_by_the_file() {
    let lines: &[(&str, &[&str])] = &[
        ("crew.board.stop", &["k"]),
        ("crew.board.close", &[]),
        ("crew.transcript.leave", &["z"]),
    ];
    let mut world = with_keys(lines, false);
    world.spawn("scout-00000001", "Part");
    world.keys("C-x b");
    let foot = world.rows().pop().unwrap_or_default();
    assert!(foot.contains("k stop · X stop all"), "{foot}");
    assert!(!foot.contains("close"), "{foot}");
    world.keys("x");
    assert!(world.row_with("again stops").is_none());
    world.keys("k");
    assert!(world.row_with("k again stops scout-00000001").is_some(), "{:?}", world.rows());
    world.keys("k");
    assert_eq!(world.sent.len(), 1);
    world.keys("Esc C-o q");
    assert!(world.view.is_full(), "q is not bound any more");
    world.keys("z");
    assert!(!world.view.is_full());
}
