//! The interactive mode in a pseudo terminal, with a terminal emulator that
//! judges what is seen. Numbers are edge cases of `terminal.md` 11.

use std::time::Duration;

use crate::common::server::{Gate, Reply, Request};
use crate::common::{World, until};
use crate::pty::{Terminal, spawns};
use serde_json::json;

/// An owner that spawns three, then says so; children answer behind a gate.
fn crew_of_three(gate: &Gate) -> impl Fn(&Request) -> Reply + Send + Sync + use<> {
    let gate = gate.clone();
    move |request| match (request.is_child(), request.has_results()) {
        (true, _) => Reply::report("found it").behind(&gate),
        (false, false) => spawns(3),
        (false, true) => Reply::text("they are at work"),
    }
}

// Case 1 (without reflow), TERM-2, TERM-9, TERM-27: what was on the screen
// stays, the answer goes into the scrollback, the end says how to come back.
#[test]
fn a_prompt_is_answered_and_the_shell_gets_its_screen_back() {
    let world = World::new(|_| Reply::text("The **answer** is 42."));
    let mut terminal = Terminal::start_below(&world, 30, 100, 12, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("what is it\r");
    terminal.wait_for("The answer is 42.");
    terminal.wait_for("0%/128k");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    let rows = terminal.rows();
    for number in 0..12 {
        assert!(rows.contains(&format!("shell {number}")), "{rows:?}");
    }
    assert!(rows.iter().any(|row| row == "You: what is it"), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("resume with: crew --session ")), "{rows:?}");
    assert!(!rows.iter().any(|row| row.contains("─ owner ─")), "{rows:?}");
    terminal.modes_are_reset();
    let bytes = terminal.bytes();
    for forbidden in ["\x1b[2J", "\x1b[3J", "\x1b[?1000h", "\x1b[?1002h", "\x1b[?1006h"] {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
}

// Cases 12, 14, 16, TERM-1, TERM-5: three run on when the owner is stopped,
// quitting asks, and nothing survives.
#[test]
fn three_subagents_run_on_and_quitting_asks() {
    let gate = Gate::default();
    let world = World::new(crew_of_three(&gate));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("they are at work");
    terminal.wait_for("crew 3");
    terminal.send("a draft");
    terminal.wait_for("a draft");
    terminal.send("\x03");
    terminal.send("\x03\x03");
    terminal.wait_for("Quit and stop 3 subagents?");
    terminal.send("x");
    terminal.wait_gone("Quit and stop");
    assert!(terminal.screen().contains("\nx"), "{}", terminal.screen());
    terminal.send("\x7f\x03\x03");
    terminal.wait_for("Quit and stop 3 subagents?");
    terminal.send("\x03");
    assert_eq!(terminal.code(), 0);
    let rows = terminal.rows();
    assert_eq!(rows.iter().filter(|row| row.starts_with("stopped scout-")).count(), 3, "{rows:?}");
    until("nothing lives", || world.living().is_empty());
    gate.open();
}

// Results enter while the owner is idle; each card once and in order.
#[test]
fn results_come_back_as_cards() {
    let gate = Gate::default();
    let world = World::new(crew_of_three(&gate));
    let mut terminal = Terminal::start(&world, 40, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("they are at work");
    terminal.send("half a draft");
    terminal.wait_for("half a draft");
    gate.open();
    terminal.wait_until("three cards", |terminal| terminal.all().matches("✅ scout-").count() >= 3);
    terminal.wait_for("half a draft");
    terminal.send("\x03\x18b");
    terminal.wait_for("3 done");
    terminal.send("\x1b");
    terminal.wait_gone("last action");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-41, TERM-42: the person answers a subagent; the owner is told.
#[test]
fn the_person_answers_a_subagent() {
    let world = World::new(|request| {
        if request.is_child() {
            let answered = request.all_text().contains("use tabs");
            return match answered {
                true => Reply::report("done with tabs"),
                false => Reply::call(
                    "crew_report",
                    json!({"outcome": "needs_input", "needs": "Tabs or spaces?", "report": "Ready."}),
                ),
            };
        }
        match request.has_results() {
            false => spawns(1),
            true => Reply::text("noted"),
        }
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("1 needs you: Ctrl+X a");
    terminal.send("\x18a");
    terminal.wait_for("answer to scout-");
    terminal.send("use tabs\r");
    terminal.wait_for("You answered scout-");
    terminal.wait_for("done with tabs");
    terminal.wait_for("─ owner ─");
    terminal.send("\x04");
    // The subagent awaits its owner and is no open work.
    assert_eq!(terminal.code(), 0);
}

// Case 28, C109, C110: nothing of a text can reach the terminal as a control.
#[test]
fn no_control_of_a_text_reaches_the_terminal() {
    let hostile =
        "a\u{1b}[2Jb\u{1b}]52;c;QUFB\u{7}c\u{1b}]8;;http://x\u{1b}\\d\u{9b}31me\u{202e}f\rg";
    let world = World::new(move |request| match request.has_results() {
        false => Reply::text(hostile)
            .and_call("bash", json!({"command": "printf 'x\\033[?1049hy\\033]0;title\\007z\\n'"})),
        true => Reply::text("end of it"),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("end of it");
    let bytes = terminal.bytes();
    for forbidden in
        ["\x1b[2J", "\x1b]52", "\x1b]8", "\u{9b}", "\u{202e}", "\x1b[?1049h", "\x1b]0;"]
    {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
    assert!(terminal.all().contains("<U+202E>"), "{}", terminal.all());
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 2, C137: sizes change while text streams.
#[test]
fn any_size_is_survived_while_text_streams() {
    let world = World::new(|_| Reply::pieces(300, "日本語 👨‍👩‍👧 text\twith tabs "));
    let mut terminal = Terminal::start(&world, 30, 200, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    for (rows, columns) in [(30, 22), (5, 7), (3, 1), (30, 120), (12, 40), (30, 100)] {
        terminal.resize(rows, columns);
        std::thread::sleep(Duration::from_millis(60));
    }
    terminal.wait_for("─ owner ─");
    terminal.send("still here");
    terminal.wait_for("still here");
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
    terminal.modes_are_reset();
}

// Case 21, TERM-18: typed before the first frame.
#[test]
fn type_ahead_stays_in_the_editor() {
    let world = World::new(|_| Reply::text("must not be asked"));
    let mut terminal = Terminal::start_typed(&world, 30, 100, "hello\n");
    terminal.wait_for("─ owner ─");
    terminal.wait_for("hello");
    terminal.send("!");
    terminal.wait_for("!");
    assert_eq!(world.server.requests().len(), 0);
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 38: five thousand lines with an escape and an end mark inside.
#[test]
fn a_huge_paste_is_one_marker_and_runs_nothing() {
    let world = World::new(|_| Reply::text("must not be asked"));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    let paste = "rm -rf \x1b[201~ x\r".repeat(5_000);
    terminal.send(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal.wait_for("[paste #1 +5001 lines]");
    assert_eq!(world.server.requests().len(), 0);
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 39, TERM-27: signals leave every mode reset and nothing running.
#[test]
fn signals_restore_the_terminal() {
    use rustix::process::Signal;
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let gate = Gate::default();
        let world = World::new(crew_of_three(&gate));
        let mut terminal = Terminal::start(&world, 30, 100, &[]);
        terminal.wait_for("─ owner ─");
        terminal.send("go\r");
        terminal.wait_for("they are at work");
        // In a full view too.
        terminal.send("\x18b");
        terminal.wait_for("last action");
        terminal.signal(signal);
        assert_eq!(terminal.code(), code);
        terminal.modes_are_reset();
        until("nothing lives", || world.living().is_empty());
        gate.open();
    }
}

// Ctrl+\ exits at once with 131.
#[test]
fn ctrl_backslash_exits_at_once() {
    let world = World::new(|_| Reply::text("x"));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("\x1c");
    assert_eq!(terminal.code(), 131);
    terminal.modes_are_reset();
}

// Case 34: 500 three times, then success: one printed line of it.
#[test]
fn a_failing_provider_is_told_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let tries = AtomicUsize::new(0);
    let world = World::new(move |_| match tries.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Reply::status(529, "", ""),
        _ => Reply::text("here it is"),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("here it is");
    terminal.wait_for("answered at try 3: overloaded (529)");
    assert_eq!(terminal.all().matches("529").count(), 1, "{}", terminal.all());
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 34: a refused key.
#[test]
fn a_refused_key_says_what_to_do() {
    let body = r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let world = World::new(move |_| Reply::status(401, "", body));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("local refused the key (401, invalid x-api-key). Nothing was sent again.");
    terminal.wait_for("/model picks another model");
    assert_eq!(world.server.requests().len(), 1);
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 36: no colours, 16 colours, ASCII.
#[test]
fn colours_and_letters_are_those_of_the_terminal() {
    let run = |variables: &[(&str, &str)]| {
        let mut world = World::new(|_| Reply::text("`code` and **bold**"));
        let own = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        world.variables.extend(own);
        let mut terminal = Terminal::start(&world, 30, 100, &[]);
        terminal.wait_for("owner");
        terminal.send("go\r");
        terminal.wait_for("code and bold");
        terminal.send("\x04");
        assert_eq!(terminal.code(), 0);
        terminal.bytes()
    };
    let plain = run(&[("NO_COLOR", "1")]);
    assert!(!plain.contains(";3") || !plain.contains("\x1b[0;36m"), "no palette colour");
    for number in (30..38).chain(90..98) {
        assert!(!plain.contains(&format!(";{number}m")), "{number}");
    }
    let colours = run(&[]);
    assert!(colours.contains(";36m"));
    assert!(!colours.contains("38;5;") && !colours.contains("38;2;") && !colours.contains(";48"));
    let ascii = run(&[("LANG", "C"), ("LC_ALL", "C")]);
    assert!(ascii.is_ascii(), "{:?}", ascii.chars().find(|c| !c.is_ascii()));
}

// Case 41, TERM-28: at rest not one byte is written.
#[test]
fn nothing_is_written_at_rest() {
    let world = World::new(|_| Reply::text("done"));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("done");
    terminal.rest();
    let before = terminal.bytes().len();
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(terminal.bytes().len(), before);
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 33, TERM-32: a terminal that reads nothing delays drawing, not the crew.
#[test]
fn a_terminal_that_reads_nothing_stops_nobody() {
    let world = World::new(|request| match request.has_results() {
        false => Reply::pieces(4_000, "many words of an answer\n\n")
            .and_call("bash", json!({"command": "touch made"})),
        true => Reply::text("over now"),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.pause();
    terminal.send("go\r");
    until("the run went on", || world.project().join("made").exists());
    terminal.go_on();
    terminal.wait_for("over now");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// TERM-36, TERM-60, case 22: nothing of the project is used before the answer.
#[test]
fn trust_is_asked_before_anything_of_the_project_is_used() {
    let world = World::new(|_| Reply::text("x"));
    world.project_file(".pi/settings.json", r#"{"defaultModel":"m2","shellCommandPrefix":"x"}"#);
    let mut terminal = Terminal::start_typed(&world, 30, 100, "\n");
    terminal.wait_for("This folder brings its own settings");
    terminal.wait_for("2 keys: defaultModel, shellCommandPrefix");
    terminal.wait_for("› 1  Not this time");
    std::thread::sleep(Duration::from_millis(400));
    assert!(terminal.screen().contains("› 1  Not this time"));
    // What the files hold can be read before.
    terminal.send("v");
    terminal.wait_for("files of this project");
    terminal.wait_for(r#""shellCommandPrefix":"x""#);
    terminal.send("q");
    terminal.wait_for("› 1  Not this time");
    terminal.send("3");
    terminal.wait_for("› 3  Always in this folder");
    terminal.send("\r");
    terminal.wait_gone("This folder brings");
    until("the decision is kept", || {
        std::fs::read_to_string(world.agent().join("trust.json"))
            .is_ok_and(|text| text.contains("true"))
    });
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// Case 35, P-4, TERM-52: no model, the text stays, no request.
#[test]
fn without_a_model_the_three_ways_are_told() {
    let world = World::new(|_| Reply::text("x"));
    world.agent_file("models.json", "{}");
    let mut terminal = Terminal::start_bare(&world, 30, 100, &[]);
    terminal.wait_for("no model yet. Looked for:");
    terminal.send("explain this repo\r");
    terminal.wait_for("explain this repo");
    terminal.wait_for("─ owner ── no model ─");
    terminal.send("\x03/model demo/crew\r");
    terminal.wait_for("crew (scripted)");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// P-3, the issue's whole tour: the scripted model in the real program.
#[test]
fn the_scripted_model_plays_the_whole_tour() {
    let world = World::new(|_| Reply::text("x"));
    world.project_file("main.rs", "fn main() {}\n");
    let mut terminal = Terminal::start_bare(&world, 40, 100, &["--model", "demo/crew"]);
    terminal.wait_for("crew (scripted)");
    terminal.send("look around\r");
    terminal.wait_for("What the crew found");
    terminal.rest();
    terminal.send("\x0f");
    terminal.wait_for("Esc back");
    terminal.send("/started\r");
    terminal.wait_for("matches");
    terminal.send("\x1b");
    terminal.wait_gone("Esc back");
    terminal.send("/new\r");
    terminal.wait_for("── new session ──");
    terminal.send("/resume\r");
    terminal.wait_for("look around");
    terminal.send("\x1b");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

// Resuming prints the end of the session; a fork puts the text back.
#[test]
fn a_session_is_resumed_and_forked() {
    let world = World::new(|request| Reply::text(&format!("seen: {}", request.tail())));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("first thing\r");
    terminal.wait_for("seen: first thing");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    let mut terminal = Terminal::start(&world, 30, 100, &["-c"]);
    terminal.wait_for("seen: first thing");
    terminal.send("second thing\r");
    terminal.wait_for("seen: second thing");
    terminal.rest();
    terminal.send("/fork\r");
    terminal.wait_for("fork from");
    terminal.wait_for("second thing");
    terminal.send("\r");
    terminal.wait_until("the text is back", |terminal| {
        let screen = terminal.screen();
        screen.contains("─ owner ─\nsecond thing")
    });
    assert_eq!(world.session_files().len(), 2, "the fork has the first exchange");
    terminal.send("\x03\x04");
    assert_eq!(terminal.code(), 0);
}

// host.md 6.3.4: `--resume` opens the picker; leaving it leaves.
#[test]
fn resume_asks_which_session() {
    let world = World::new(|request| Reply::text(&format!("seen: {}", request.tail())));
    let run = world.run(&["-p", "the first words"]);
    assert_eq!(run.code, Some(0));
    let mut terminal = Terminal::start(&world, 30, 100, &["--resume"]);
    terminal.wait_for("the first words");
    terminal.send("\x1b");
    assert_eq!(terminal.code(), 0);
    let mut terminal = Terminal::start(&world, 30, 100, &["--resume"]);
    terminal.wait_for("the first words");
    terminal.send("\r");
    terminal.wait_for("seen: the first words");
    terminal.send("more\r");
    terminal.wait_for("seen: more");
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    assert_eq!(world.session_files().len(), 1);
}

// TERM-30, C124: fifteen subagents stream; keys are echoed.
#[test]
fn keys_are_echoed_while_fifteen_stream() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new(move |request| match (request.is_child(), request.has_results()) {
        (true, _) => Reply::pieces(2_000, "words of a child ").held(&held),
        (false, false) => spawns(15),
        (false, true) => Reply::text("at work"),
    });
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("─ owner ─");
    terminal.send("go\r");
    terminal.wait_for("at work");
    terminal.wait_for("+6 more");
    let mut slow = 0;
    let text = "the quick brown fox jumps over the lazy dog";
    for end in 1..=text.len() {
        let begun = std::time::Instant::now();
        terminal.send(&text[end - 1..end]);
        terminal.wait_for(text[..end].trim_end());
        slow += usize::from(begun.elapsed() > Duration::from_millis(100));
    }
    // Wall times on a shared machine: most of them must be quick.
    assert!(slow * 4 < text.len(), "{slow} of {} were slow", text.len());
    gate.open();
    terminal.send("\x03\x04\x04");
    assert_eq!(terminal.code(), 0);
}

// Cases 36, 37, TERM-57: line mode writes no escape byte and says each state
// once.
#[test]
fn line_mode_says_everything_in_lines() {
    let world = World::new(|request| {
        if request.is_child() {
            return match request.all_text().contains("use tabs") {
                true => Reply::report("done with tabs"),
                false => Reply::call(
                    "crew_report",
                    json!({"outcome": "needs_input", "needs": "Tabs or spaces?", "report": "R."}),
                ),
            };
        }
        match request.has_results() {
            false => spawns(1),
            true => Reply::text("noted"),
        }
    });
    for dumb in [false, true] {
        let mut terminal = match dumb {
            false => Terminal::start(&world, 30, 100, &["--plain"]),
            true => Terminal::start_dumb(&world, 30, 100),
        };
        terminal.wait_for("owner>");
        terminal.send("go\n");
        terminal.wait_for("needs you: Tabs or spaces?");
        terminal.send("/crew answer scout use tabs\n");
        terminal.wait_for("done with tabs");
        terminal.wait_until("idle again", |t| t.all().trim_end().ends_with("owner>"));
        terminal.send("/quit\n");
        assert_eq!(terminal.code(), 0);
        let bytes = terminal.bytes();
        assert!(!bytes.contains('\u{1b}') && !bytes.contains('\u{7}'), "{bytes:?}");
        assert_eq!(bytes.matches("needs you: Tabs or spaces?").count(), 1, "{bytes}");
    }
}
