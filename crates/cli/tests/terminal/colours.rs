//! Code with the colours of its language, through the whole program.

use crate::common::World;
use crate::common::server::Reply;
use crate::pty::Terminal;

const ANSWER: &str = "Look:\n\n```rust\nlet answer = 42;\n```\n\nThat is all.";
const PROMPTS_MAX: usize = 40;

// TERM-21, TERM-53: the colours come from beside the loop, into lines that are
// printed once. Code that they reach too late is plain, as with the first use
// on a busy machine; so it may take more than one answer.
#[test]
fn code_of_an_answer_gets_colours_and_is_printed_once() {
    let world = World::new(|_| Reply::text(ANSWER));
    let mut terminal = Terminal::start(&world, 40, 100, &[]);
    terminal.wait_for("─ owner ─");
    let mut prompts = 0;
    while !terminal.bytes().contains("\x1b[0;35mlet\x1b[0;36m answer = \x1b[0;33m42") {
        prompts += 1;
        assert!(prompts <= PROMPTS_MAX, "never coloured: {:?}", terminal.bytes());
        terminal.send(&format!("go {prompts}\r"));
        terminal.wait_until("the answer", |terminal| count(terminal, "That is all.") == prompts);
        terminal.rest();
    }
    assert_eq!(count(&terminal, "  let answer = 42;"), prompts, "{}", terminal.all());
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
}

fn count(terminal: &Terminal, text: &str) -> usize {
    terminal.all().matches(text).count()
}
