//! Colours of code on the main screen: asked for, waited for, given up
//! (TERM-21, TERM-53, issue text "code with highlighting").

use ratatui::style::{Color, Modifier};

use super::world::World;
use crate::highlight::{Ask, Coloured, Highlighter, Span};
use crate::markdown::Line;
use crate::request::{Reply, Request};
use crate::theme::{Role, Theme, Token};
use crate::view;

fn asked(world: &mut World) -> Vec<Ask> {
    let asks = |request| if let Request::Highlight(asks) = request { asks } else { Vec::new() };
    world.requests().into_iter().flat_map(asks).collect()
}

/// Does what the thread of the program does.
fn colour(world: &mut World, asks: &[Ask]) {
    let mut highlighter = Highlighter::default();
    let answers = asks.iter().map(|ask| highlighter.colour(ask)).collect();
    world.reply(Reply::Highlighted(answers));
}

fn take(world: &mut World) -> Vec<Line> {
    view::take_final(&mut world.view)
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.row.text()).collect()
}

/// Parts of a line that are not plain code, with their colour on a terminal.
fn parts(line: &Line) -> Vec<(String, Option<Color>)> {
    let mut parts: Vec<(String, Option<Color>)> = Vec::new();
    for glyph in line.row.glyphs() {
        let cell = Theme::default().cell(glyph.style);
        assert_eq!((cell.bg, cell.add_modifier), (None, Modifier::empty()));
        match parts.last_mut() {
            Some((text, colour)) if *colour == cell.fg => text.push_str(glyph.symbol),
            Some(_) | None => parts.push((glyph.symbol.to_owned(), cell.fg)),
        }
    }
    parts.retain(|(_, colour)| !matches!(colour, None | Some(Color::Cyan)));
    parts.iter().map(|(text, colour)| (text.trim().to_owned(), *colour)).collect()
}

fn check(language: &str, code: &str, expected: &[(&str, Color)]) {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta(&format!("```{language}\n{code}\n```\n"));
    let asks = asked(&mut world);
    colour(&mut world, &asks);
    let lines = take(&mut world);
    assert_eq!(texts(&lines)[1..], [format!("  {code}"), "```".to_owned()]);
    let expected: Vec<_> =
        expected.iter().map(|(text, colour)| ((*text).to_owned(), Some(*colour))).collect();
    assert_eq!(parts(&lines[1]), expected, "{language} {code}");
}

#[test]
fn code_is_printed_in_colours_of_the_palette() {
    let (word, text, number) = (Color::Magenta, Color::Green, Color::Yellow);
    check(
        "rust",
        "let a = \"b\"; // c",
        &[("let", word), ("\"b\"", text), ("// c", Color::DarkGray)],
    );
    check("json", "{\"a\": 17}", &[("\"a\"", text), ("17", number)]);
    check("diff", "+ added", &[("+ added", Color::Green)]);
    check("diff", "- removed", &[("- removed", Color::Red)]);
    check("klingon", "let a = 17;", &[]);
    check("", "let a = 17;", &[]);
}

// Answers in steps put their code inside of list items.
#[test]
fn code_inside_of_an_item_has_its_colours_too() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta(
        "1. A:\n   ```rust\n   let a;\n\n   /* b\n   ```\n   ```json\n   [1]\n   ```\n2. B\n",
    );
    assert!(take(&mut world).is_empty());
    assert!(world.row_with("let a;").is_some());
    let asks = asked(&mut world);
    colour(&mut world, &asks);
    let lines = take(&mut world);
    let shown: Vec<_> = lines.iter().map(|line| line.row.text().trim()).collect();
    assert_eq!(shown, ["1. A:", "```rust", "let a;", "", "/* b", "```json", "[1]"]);
    let mut coloured: Vec<_> = lines.iter().flat_map(parts).collect();
    coloured.retain(|(text, _)| !text.starts_with("```"));
    let expected = [("let", Color::Magenta), ("/* b", Color::DarkGray), ("1", Color::Yellow)];
    assert_eq!(coloured, expected.map(|(text, colour)| (text.to_owned(), Some(colour))));
}

// A language that is not known does not keep the next block from its colours.
#[test]
fn each_block_of_an_item_has_its_own_language() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("- A:\n  ```klingon\n  1\n  ```\n  ```json\n  2\n  ```\n- B\n");
    let asks = asked(&mut world);
    assert_eq!(asks.len(), 2);
    colour(&mut world, &asks);
    let mut coloured: Vec<_> = take(&mut world).iter().flat_map(parts).collect();
    coloured.retain(|(text, _)| !text.starts_with("```"));
    assert_eq!(coloured, [("2".to_owned(), Some(Color::Yellow))]);
}

// TERM-21: several blocks may be late at the same moment.
#[test]
fn all_that_is_late_is_printed_at_once() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("```rust\na\n```\n```json\n1\n```\n");
    take(&mut world);
    world.pass(100);
    assert_eq!(take(&mut world).len(), 5);
    assert_eq!(world.view.live.deadline(), None);
}

// TERM-53: without colours there is nothing to ask for, and a token looks like
// plain code.
#[test]
fn without_colours_nothing_is_asked_and_nothing_waits() {
    let mut world = World::new(80, 24);
    let mut setup = world.view.setup.clone();
    setup.theme = Theme { colours: false, ..Theme::default() };
    world.view = view::View::new(setup, world.view.size, world.now);
    world.show(None);
    world.settle();
    world.run_starts();
    world.delta("```rust\nlet a;\n");
    assert!(asked(&mut world).is_empty());
    assert_eq!(texts(&take(&mut world)), ["```rust", "  let a;"]);
    let theme = Theme { colours: false, ..Theme::default() };
    let style = |role| theme.cell(crate::theme::Style::role(role));
    for token in [Token::Comment, Token::Keyword, Token::Text, Token::Number, Token::Type] {
        assert_eq!(style(Role::Token(token)), style(Role::Code), "{token:?}");
    }
}

// TERM-21: a line that can still change is drawn, not printed; what follows it
// waits with it; each is printed once.
#[test]
fn a_line_is_drawn_plain_until_its_colours_come() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("Before.\n\n```rust\nlet a;\n```\n\nBehind.\n\n");
    assert_eq!(texts(&take(&mut world)), ["Before.", "", "```rust"]);
    for row in ["  let a;", "```", "Behind."] {
        assert!(world.row_with(row).is_some(), "{row}");
    }
    let asks = asked(&mut world);
    colour(&mut world, &asks);
    assert!(world.row_with("  let a;").is_none());
    assert_eq!(texts(&take(&mut world)), ["  let a;", "```", "", "Behind."]);
    assert!(take(&mut world).is_empty());
}

// The thread is busy for ever: no frame is held, keys are shown at once, and
// the line is printed plain when its time is over.
#[test]
fn a_highlighter_that_never_answers_holds_nothing() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("```rust\nlet a;\nlet b;\n");
    let asks = asked(&mut world);
    assert_eq!(asks.len(), 2);
    take(&mut world);
    let until = world.view.deadline().unwrap();
    assert_eq!(until.since(world.now), 100);
    world.type_text("typed");
    assert!(world.row_with("typed").is_some());
    assert!(world.row_with("  let b;").is_some());
    world.pass(until.since(world.now));
    assert_eq!(world.view.deadline(), None, "a deadline that is over would wake for ever");
    let lines = take(&mut world);
    assert_eq!(texts(&lines), ["  let a;", "  let b;"]);
    assert!(lines.iter().all(|line| parts(line).is_empty()));
    // The rest of the block stays plain, and a late answer changes nothing.
    world.delta("let c;\n");
    assert!(asked(&mut world).is_empty());
    colour(&mut world, &asks);
    assert_eq!(texts(&take(&mut world)), ["  let c;"]);
    // The next block has its chance again.
    world.delta("```\n```json\n1\n");
    assert_eq!(asked(&mut world).len(), 1);
}

// TERM-27: what waits is printed before the program ends.
#[test]
fn at_the_end_nothing_waits() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("```rust\nlet a;\n");
    assert_eq!(texts(&view::take_last(&mut world.view)), ["```rust", "  let a;"]);
}

// While a full view is open nothing is printed, and the wait is over by itself.
#[test]
fn a_full_view_does_not_keep_the_loop_awake() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("```rust\nlet a;\n");
    world.keys("C-o");
    assert!(world.view.is_full());
    world.pass(1_000);
    assert!(take(&mut world).is_empty());
    assert!(world.view.live.deadline().is_none());
    world.keys("Esc");
    assert_eq!(texts(&take(&mut world)), ["```rust", "  let a;"]);
}

// Above the limits a block is plain at once.
#[test]
fn what_is_too_long_is_not_asked_for() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta(&format!("```rust\nlet a;\n{}\nlet b;\n", "x".repeat(2_001)));
    assert_eq!(asked(&mut world).len(), 1, "a long line and what follows it");
    let mut world = World::new(80, 24);
    world.run_starts();
    let line = format!("{}\n", "y".repeat(1_024));
    world.delta(&format!("```rust\n{}", line.repeat(40)));
    assert_eq!(asked(&mut world).len(), 31, "no more than 32 KiB on their way");
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta(&format!("```rust\n{}", "\n".repeat(5_000)));
    assert_eq!(asked(&mut world).len(), 1_024, "nor many lines without a byte");
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("```rust\n");
    let mut answered = 0;
    for _ in 0..600 {
        world.delta(&line);
        let asks = asked(&mut world);
        answered += asks.len();
        let plain = |ask: &Ask| Coloured {
            fence: ask.fence,
            line: ask.line,
            bytes: ask.text.len(),
            spans: Some(Vec::new()),
        };
        world.reply(Reply::Highlighted(asks.iter().map(plain).collect()));
        take(&mut world);
    }
    assert_eq!(answered, 512, "no more than 512 KiB of a block");
}

// C109: colours change no cell, whatever the text and whatever the answer.
#[test]
fn hostile_code_has_the_cells_of_plain_code() {
    let code =
        "let a\u{1b}[31m = \u{1b}]52;c;QQ\u{7}\"\u{202e}日e\u{301}\u{9b}2J\"\tx\u{8}\rb \u{1b}";
    let plain = crate::markdown::render(&format!("```rust\n{code}\n```"), 80);
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta(&format!("```rust\n{code}\n"));
    let asks = asked(&mut world);
    assert!(!asks[0].text.chars().any(char::is_control));
    let role = Role::Token(Token::Text);
    let spans = [1, 2, 3, 4, 5, 9, 7, 6_000].map(|end| Span { end, role }).to_vec();
    let bytes = asks[0].text.len();
    world.reply(Reply::Highlighted(vec![Coloured {
        fence: 1,
        line: 0,
        bytes,
        spans: Some(spans),
    }]));
    let lines = take(&mut world);
    assert_eq!(lines[1].row.text(), plain[1].row.text());
    assert!(!lines[1].row.text().chars().any(char::is_control));
}

// TERM-24: a second try is followed from its first line, and only what is new
// is printed.
#[test]
fn a_second_try_has_the_colours_of_its_whole_block() {
    let mut world = World::new(80, 24);
    world.run_starts();
    world.delta("```rust\n/* one\n");
    let asks = asked(&mut world);
    colour(&mut world, &asks);
    assert_eq!(take(&mut world).len(), 2);
    world.answer_ends("```rust\n/* one\n", "error", Some("overloaded"));
    take(&mut world);
    world.run_starts();
    world.delta("```rust\n/* one\ntwo */\n");
    let asks = asked(&mut world);
    assert_eq!(asks.iter().map(|ask| ask.line).collect::<Vec<_>>(), [0, 1]);
    colour(&mut world, &asks);
    let lines = take(&mut world);
    assert_eq!(texts(&lines).last(), Some(&"  two */"));
    assert_eq!(parts(lines.last().unwrap()), [("two */".to_owned(), Some(Color::DarkGray))]);
}
