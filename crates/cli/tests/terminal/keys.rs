//! `keybindings.json` in the real program (`host.md` 8.7, 8.23, TERM-19).

use crate::common::World;
use crate::common::server::Reply;
use crate::pty::Terminal;

// The file counts at the start, what is wrong with it is told once, and
// `/reload` reads it again.
#[test]
fn keys_come_from_the_file_and_reload_reads_it_again() {
    let world = World::new(|_| Reply::text("unused"));
    let write = |text: &str| world.agent_file("keybindings.json", text);
    write(r#"{"tui.editor.deleteWordBackward": "f8", "app.fly": "f9", "app.clear": ["hyper+c"]}"#);
    let mut terminal = Terminal::start(&world, 30, 140, &[]);
    terminal.wait_for("keybindings.json: no action here: app.fly");
    terminal.wait_for("keybindings.json: app.clear: the key \"hyper+c\" is not used");
    terminal.wait_for("─ owner ─");
    terminal.send("one two\x1b[19~three");
    terminal.wait_for("one three");
    terminal.send("\x03");
    terminal.wait_gone("one three");

    write(r#"{"tui.editor.deleteWordBackward": "f7"}"#);
    terminal.send("/reload\r");
    terminal.wait_for("read again: settings, models, keys");
    terminal.send("four five\x1b[19~six");
    terminal.wait_for("four fivesix");
    terminal.send("\x1b[18~seven");
    terminal.wait_for("four seven");

    write("{");
    terminal.send("\x03/reload\r");
    terminal.wait_for("keybindings.json: the keys do not parse");
    terminal.send("eight nine\x17ten");
    terminal.wait_for("eight ten");
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}
