//! The interactive mode in a real terminal with reflow: tmux. Numbers are edge
//! cases of `terminal.md` 11. Without tmux on the search path there is nothing
//! that could judge, and the tests say so and end.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::server::{Gate, Reply, Request};
use crate::common::{LIMIT, World};
use serde_json::json;

/// Lines of a shell that stood there before the program.
const SHELL_LINES: usize = 60;

/// A tmux of its own: one socket, one window, no configuration.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// A shell that prints lines, runs the program, and stays; nothing when
    /// there is no tmux.
    fn start(world: &World, columns: usize, rows: usize) -> Option<Tmux> {
        let is_there = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        if !is_there.is_ok_and(|status| status.success()) {
            let _ = writeln!(std::io::stderr(), "no tmux here: this test needs one");
            return None;
        }
        let tmux = Tmux { socket: world.at("tmux").to_string_lossy().into_owned() };
        let command = world.command(&["--model", "local/m1"]);
        let mut line = format!(
            "for i in $(seq 1 {SHELL_LINES}); do echo shell line $i.; done; env -i TERM=screen-256color \
             LANG=C.UTF-8"
        );
        for (name, value) in command.get_envs() {
            let value = value.unwrap_or_default().to_string_lossy();
            line.push_str(&format!(" '{}={value}'", name.to_string_lossy()));
        }
        line.push_str(&format!(" '{}'", command.get_program().to_string_lossy()));
        for argument in command.get_args() {
            line.push_str(&format!(" '{}'", argument.to_string_lossy()));
        }
        line.push_str("; echo the shell again; exec sleep 600");
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let size = ["-x", &columns, "-y", &rows];
        let folder = world.project();
        let folder = folder.to_string_lossy();
        let mut arguments = vec!["-f", "/dev/null", "new-session", "-d", "-c", &folder];
        arguments.extend(size);
        arguments.push(&line);
        assert!(tmux.run(&arguments).0, "tmux starts");
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("tmux")
            .args(["-S", &self.socket])
            .args(arguments)
            .env("LANG", "C.UTF-8")
            .env_remove("TMUX")
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn keys(&self, keys: &[&str]) {
        assert!(self.run(&[&["send-keys"], keys].concat()).0, "{keys:?}");
    }

    fn text(&self, text: &str) {
        self.keys(&["-l", text]);
    }

    fn resize(&self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        assert!(self.run(&["resize-window", "-x", &columns, "-y", &rows]).0);
        // The program waits for a rest between two changes (TERM-25).
        std::thread::sleep(Duration::from_millis(250));
    }

    /// The rows that are seen.
    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"]).1
    }

    /// History and screen; wrapped lines are one.
    fn all(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"]).1
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&Tmux) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < LIMIT, "never seen: {what}\n{}", self.all());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(text, |tmux| tmux.all().contains(text));
    }

    /// The column at which a text is found, searched from the bottom.
    fn column_of(&self, text: &str) -> usize {
        self.run(&["copy-mode"]);
        self.keys(&["-X", "search-backward-text", text]);
        let column = self.run(&["display-message", "-p", "#{copy_cursor_x}"]).1;
        self.keys(&["-X", "cancel"]);
        column.trim().parse().unwrap()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// Every line of the shell and of the conversation stands there once, and no
/// second editor.
fn is_whole(tmux: &Tmux, turns: usize) {
    let all = tmux.all();
    for number in 1..=SHELL_LINES {
        let line = format!("shell line {number}.");
        assert_eq!(all.matches(&line).count(), 1, "{line}\n{all}");
    }
    for number in 1..=turns {
        for line in [format!("You: turn {number}."), format!("heard turn {number}.")] {
            assert_eq!(all.matches(&line).count(), 1, "{line}\n{all}");
        }
    }
    assert!(all.matches("─ owner ─").count() <= 1, "{all}");
}

fn talk(tmux: &Tmux, turns: usize) {
    tmux.wait_for("0%/128k");
    for number in 1..=turns {
        tmux.text(&format!("turn {number}."));
        tmux.keys(&["Enter"]);
        tmux.wait_for(&format!("heard turn {number}."));
    }
}

fn echo() -> World {
    World::new(|request: &Request| Reply::text(&format!("heard {}", request.tail())))
}

// Case 1, TERM-2, TERM-25: widths change, nothing is lost or printed twice.
#[test]
fn history_outlives_changes_of_width() {
    let world = echo();
    let Some(tmux) = Tmux::start(&world, 100, 30) else { return };
    talk(&tmux, 3);
    for columns in [80, 40, 120, 100] {
        tmux.resize(columns, 30);
        is_whole(&tmux, 3);
    }
    tmux.keys(&["C-d"]);
    tmux.wait_for("the shell again");
    is_whole(&tmux, 3);
    assert_eq!(tmux.all().matches("─ owner ─").count(), 0, "{}", tmux.all());
}

// Case 1a, TERM-25: dragged from wide to narrow and back, at two heights.
#[test]
fn a_dragged_window_keeps_the_history_whole() {
    let world = echo();
    let Some(tmux) = Tmux::start(&world, 110, 30) else { return };
    talk(&tmux, 3);
    for _ in 0..3 {
        for columns in [110, 90, 70, 50, 25, 50, 70, 90, 110] {
            let (width, rows) = (columns.to_string(), "30");
            assert!(tmux.run(&["resize-window", "-x", &width, "-y", rows]).0);
            std::thread::sleep(Duration::from_millis(40));
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    is_whole(&tmux, 3);
    for columns in [100, 60, 30, 45, 80, 110] {
        tmux.resize(columns, 12);
        is_whole(&tmux, 3);
    }
    tmux.keys(&["C-d"]);
    tmux.wait_for("the shell again");
    is_whole(&tmux, 3);
}

// Case 10, TERM-14, TERM-22: a card comes while the board is open; leaving it
// gives the main screen back, then the card once.
#[test]
fn a_card_that_came_under_the_board_is_printed_behind_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request: &Request| {
        let task = json!({"goal": "g", "context": [], "instructions": ["look"]});
        match (request.is_child(), request.has_results()) {
            (true, _) => Reply::report("the report of it").behind(&held),
            (false, false) => Reply::call(
                "crew_spawn",
                json!({"subagent": "scout", "brief": "Part", "task": task}),
            ),
            (false, true) => Reply::text(&format!("heard {}.", request.answers())),
        }
    });
    let Some(tmux) = Tmux::start(&world, 100, 30) else { return };
    tmux.wait_for("0%/128k");
    tmux.text("go");
    tmux.keys(&["Enter"]);
    tmux.wait_for("heard 1.");
    tmux.wait_for("crew 1");
    let top = |tmux: &Tmux| {
        let screen = tmux.screen();
        let rows: Vec<_> = screen.lines().take_while(|row| !row.contains("heard 1.")).collect();
        rows.join("\n")
    };
    let before = top(&tmux);
    tmux.keys(&["C-x", "b"]);
    tmux.wait_until("the board", |tmux| tmux.screen().contains("last action"));
    gate.open();
    tmux.wait_until("the report", |tmux| tmux.screen().contains("report of 1 line"));
    tmux.keys(&["Escape"]);
    tmux.wait_until("the main screen", |tmux| !tmux.screen().contains("last action"));
    tmux.wait_for("the report of it");
    tmux.wait_for("heard 2.");
    let all = tmux.all();
    assert_eq!(all.matches("the report of it").count(), 1, "{all}");
    assert_eq!(all.matches("heard 1.").count(), 1, "{all}");
    assert!(all.contains(before.trim_end()), "{before}\n---\n{all}");
    tmux.keys(&["C-d"]);
    tmux.wait_for("the shell again");
}

// Case 18, TERM-6, TERM-16: without enhanced keys Ctrl+Shift+E is the end of the
// line and Shift+Enter sends; the hints name what works here.
#[test]
fn hints_name_the_keys_that_work_in_tmux() {
    let world = echo();
    let Some(tmux) = Tmux::start(&world, 100, 30) else { return };
    tmux.wait_for("0%/128k");
    tmux.keys(&["C-x", "?"]);
    tmux.wait_until("the keys", |tmux| tmux.screen().contains("Ctrl+J, \\ Enter"));
    assert!(tmux.screen().contains("Ctrl+X d, Ctrl+Shift+E"), "{}", tmux.screen());
    tmux.keys(&["q"]);
    tmux.text("urn 1.");
    tmux.keys(&["C-a"]);
    tmux.text("t");
    // What a terminal without the report sends for both.
    tmux.keys(&["C-e"]);
    tmux.text("..");
    tmux.wait_until("the cursor was at the end", |tmux| tmux.screen().contains("turn 1..."));
    tmux.keys(&["Enter"]);
    tmux.wait_for("heard turn 1...");
    tmux.keys(&["C-d"]);
    tmux.wait_for("the shell again");
}

// Case 42, TERM-33: behind icons whose width terminals judge differently the
// text stands at the same column in tmux as in the buffer.
#[test]
fn text_behind_doubtful_icons_keeps_its_column() {
    const ICONS: &str = "⏹️🇩🇪⚠️";
    let world = World::new(|_| Reply::text(&format!("aa{ICONS}QQ end")));
    let Some(tmux) = Tmux::start(&world, 100, 30) else { return };
    tmux.wait_for("0%/128k");
    tmux.text("go");
    tmux.keys(&["Enter"]);
    tmux.wait_for("QQ end");
    let width = crew_tui::cells::text_width(&format!("aa{ICONS}"));
    assert_eq!(tmux.column_of("QQ end"), width, "{}", tmux.all());
    // Drawn as part of the region too.
    tmux.text(&format!("bb{ICONS}ZZ"));
    tmux.wait_for("ZZ");
    assert_eq!(tmux.column_of("ZZ"), width, "{}", tmux.all());
    tmux.keys(&["C-c"]);
    tmux.keys(&["C-d"]);
    tmux.wait_for("the shell again");
}
