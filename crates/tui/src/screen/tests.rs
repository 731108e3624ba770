//! The driver against a terminal emulator.

use super::*;
use crate::theme::TEXT;

struct Terminal {
    parser: vt100::Parser,
    screen: Screen,
    size: Size,
    written: usize,
}

fn side(cells: usize) -> std::num::NonZero<u16> {
    std::num::NonZero::new(cells as u16).unwrap()
}

impl Terminal {
    fn new(rows: usize, columns: usize) -> Terminal {
        let parser = vt100::Parser::new(side(rows), side(columns), 500);
        let size = Size { columns, rows };
        Terminal { parser, screen: Screen::new(Theme::default()), size, written: 0 }
    }

    fn shell(&mut self, lines: usize) {
        for line in 0..lines {
            self.parser.process(format!("shell {line}\r\n").as_bytes());
        }
    }

    fn frame(&mut self, prints: &[&str], rows: &[&str], cursor: (usize, usize)) {
        let line = |text: &&str| Line::whole(Row::of(text, TEXT));
        let prints: Vec<_> = prints.iter().map(line).collect();
        self.picture(&prints, rows, cursor, false);
    }

    fn picture(&mut self, prints: &[Line], rows: &[&str], cursor: (usize, usize), is_full: bool) {
        let rows = rows.iter().map(|text| Row::of(text, TEXT)).collect();
        let picture = Picture { rows, cursor: Some(cursor), is_full };
        let bytes = self.screen.frame(self.size, prints, &picture);
        self.written = bytes.len();
        self.parser.process(&bytes);
    }

    fn rows(&self) -> Vec<String> {
        let columns = self.size.columns as u16;
        let mut rows: Vec<_> = self.parser.screen().rows(0, columns).collect();
        while rows.last().is_some_and(|row| row.trim().is_empty()) {
            rows.pop();
        }
        rows.iter().map(|row| row.trim_end().to_owned()).collect()
    }
}

// TERM-9: the region starts at the cursor row and moves down.
#[test]
fn the_region_starts_where_the_shell_stopped() {
    let mut terminal = Terminal::new(10, 20);
    terminal.shell(2);
    terminal.frame(&[], &["rule", "draft", "foot"], (1, 5));
    assert_eq!(terminal.rows(), ["shell 0", "shell 1", "rule", "draft", "foot"]);
    assert_eq!(terminal.parser.screen().cursor_position(), (3, 5));
    terminal.frame(&["one", "two"], &["rule", "draft", "foot"], (1, 5));
    assert_eq!(terminal.rows(), ["shell 0", "shell 1", "one", "two", "rule", "draft", "foot"]);
    assert_eq!(terminal.parser.screen().cursor_position(), (5, 5));
}

// TERM-9: a region that gets lower leaves blank rows, printed rows fill them.
#[test]
fn the_last_row_never_moves_up() {
    let mut terminal = Terminal::new(8, 20);
    terminal.shell(20);
    terminal.frame(&[], &["w1", "w2", "w3", "draft"], (3, 0));
    terminal.frame(&[], &["w1", "draft"], (1, 0));
    let rows = terminal.rows();
    assert_eq!(rows[rows.len() - 4..], ["", "", "w1", "draft"]);
    terminal.frame(&["p1"], &["w1", "draft"], (1, 0));
    let rows = terminal.rows();
    assert_eq!(rows[rows.len() - 4..], ["p1", "", "w1", "draft"]);
    terminal.frame(&["p2", "p3"], &["w1", "draft"], (1, 0));
    let rows = terminal.rows();
    assert_eq!(rows[rows.len() - 5..], ["p1", "p2", "p3", "w1", "draft"]);
    assert_eq!(rows.len(), 8);
}

// TERM-23: a long line goes out whole and the terminal breaks it.
#[test]
fn a_long_line_pushes_the_region_by_its_rows() {
    let mut terminal = Terminal::new(8, 10);
    terminal.frame(&[], &["aaaa", "bbbb"], (1, 0));
    terminal.frame(&["0123456789abcde", "日本語日本語"], &["aaaa", "bbbb"], (1, 0));
    assert_eq!(terminal.rows(), ["0123456789", "abcde", "日本語日本", "語", "aaaa", "bbbb"]);
}

// TERM-28, case 41: the same picture costs no byte.
#[test]
fn nothing_is_written_when_nothing_changed() {
    let mut terminal = Terminal::new(8, 40);
    terminal.frame(&[], &["rule", "draft"], (1, 2));
    terminal.frame(&[], &["rule", "draft"], (1, 2));
    assert_eq!(terminal.written, 0);
    // TERM-30, TERM-31: a changed cell costs a move and the cell.
    terminal.frame(&[], &["rvle", "draft"], (1, 2));
    assert!(terminal.written < 60, "{}", terminal.written);
    assert_eq!(terminal.rows(), ["rvle", "draft"]);
    terminal.frame(&[], &["r", "draft"], (1, 2));
    assert_eq!(terminal.rows(), ["r", "draft"]);
}

// TERM-33, case 42: after a doubtful cell the column is set.
#[test]
fn text_behind_a_doubtful_cell_starts_at_its_column() {
    let mut terminal = Terminal::new(8, 40);
    let row = Row::of("⏹️ x", TEXT);
    let picture = Picture { rows: vec![row], cursor: Some((0, 0)), is_full: false };
    let bytes = terminal.screen.frame(terminal.size, &[], &picture);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("⏹️\u{1b}[3G x"), "{text:?}");
}

// TERM-14, case 10: the main screen is back cell for cell.
#[test]
fn a_full_view_gives_the_main_screen_back() {
    let mut terminal = Terminal::new(8, 20);
    terminal.shell(3);
    terminal.frame(&["one"], &["rule", "draft"], (1, 3));
    let before = terminal.rows();
    terminal.picture(&[], &["board", "row"], (0, 0), true);
    assert_eq!(terminal.rows(), ["board", "row"]);
    terminal.picture(&[], &["board"], (0, 0), true);
    assert_eq!(terminal.rows(), ["board"]);
    terminal.frame(&[], &["rule", "draft"], (1, 3));
    assert_eq!(terminal.rows(), before);
    terminal.frame(&["card"], &["rule", "draft"], (1, 3));
    let rows = terminal.rows();
    assert_eq!(rows[3..], ["one", "card", "rule", "draft"]);
}

// TERM-27: at the end the region is gone and the modes are reset.
#[test]
fn the_end_leaves_last_lines_and_no_mode() {
    let mut terminal = Terminal::new(8, 20);
    terminal.shell(2);
    terminal.frame(&["one"], &["rule", "draft"], (1, 3));
    let bytes = terminal.screen.end(terminal.size, &[Line::prose(Row::of("bye", TEXT))]);
    terminal.parser.process(&bytes);
    assert_eq!(terminal.rows(), ["shell 0", "shell 1", "one", "bye"]);
    assert_eq!(terminal.parser.screen().cursor_position(), (4, 0));
    assert!(!terminal.parser.screen().hide_cursor());
}

// Case 3: any heights, one after the other; vt100 does not reflow, so widths
// are left to the tests with tmux.
#[test]
fn the_editor_is_always_there_once() {
    let mut terminal = Terminal::new(30, 20);
    terminal.shell(40);
    for rows in [30usize, 5, 3, 30, 12] {
        terminal.size.rows = rows;
        terminal.parser.screen_mut().set_size(side(rows), side(20));
        let widget: Vec<_> = (0..rows.saturating_sub(2).min(8)).map(|n| format!("w{n}")).collect();
        let mut region: Vec<_> = widget.iter().map(String::as_str).collect();
        region.push("draft");
        let cursor = (region.len() - 1, 0);
        terminal.frame(&[], &region, cursor);
        let shown = terminal.rows();
        assert_eq!(shown.iter().filter(|row| *row == "draft").count(), 1, "{rows}: {shown:?}");
        assert_eq!(shown.last().map(String::as_str), Some("draft"));
    }
}

// TERM-2: nothing that clears the screen or its history, no mouse.
#[test]
fn no_frame_clears_the_screen() {
    let mut screen = Screen::new(Theme::default());
    let mut all = screen.start();
    for (rows, columns) in [(30, 100), (30, 40), (12, 40), (30, 100)] {
        let size = Size { columns, rows };
        let picture = Picture {
            rows: vec![Row::of("rule", TEXT), Row::of("draft", TEXT)],
            cursor: Some((1, 0)),
            is_full: false,
        };
        all.extend(screen.frame(size, &[Line::whole(Row::of("x", TEXT))], &picture));
    }
    all.extend(screen.end(Size { columns: 100, rows: 30 }, &[]));
    let text = String::from_utf8(all).unwrap();
    for forbidden in ["\x1b[2J", "\x1b[3J", "\x1b[J", "\x1b[?1000h", "\x1b[?1002h", "\x1b[?1003h"] {
        assert!(!text.contains(forbidden), "{forbidden:?}");
    }
}
