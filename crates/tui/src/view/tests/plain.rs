//! Line mode (TERM-57; cases 36 and 37).

use crew_engine::api::{Command, Status};

use super::world::World;
use crate::plain::Plain;

fn typed(plain: &mut Plain, world: &mut World, text: &str) -> Vec<Command> {
    let now = world.now;
    let commands = plain.feed(&mut world.view, now, text.as_bytes());
    world.sent.extend(commands.clone());
    commands
}

#[test]
fn every_line_says_who_speaks_and_each_state_once() {
    let mut world = World::new(80, 24);
    let mut plain = Plain::default();
    assert_eq!(plain.take(&mut world.view), "owner> ");
    typed(&mut plain, &mut world, "look at it\n");
    world.run_starts();
    for id in ["scout-1", "scout-2", "scout-3"] {
        world.spawn(id, "Part\u{1b}[2J");
    }
    world.delta("I look.\n\n```sh\nls\n```\n");
    let text = plain.take(&mut world.view);
    let expected = "owner: I look.\nowner: code sh\nowner: ls\nowner: end of code\nowner: works\n\
                    scout-1: works on Part\nscout-2: works on Part\nscout-3: works on Part\n";
    assert_eq!(text, expected);
    assert_eq!(plain.take(&mut world.view), "", "nothing is said twice");
    world.settles("scout-2", Status::NeedsInput, "Tabs?");
    assert_eq!(plain.take(&mut world.view), "scout-2: needs you: Tabs?\n");
    world.answer_ends("I look.\n\n```sh\nls\n```\n", "stop", None);
    world.run_ends(false);
    assert_eq!(plain.take(&mut world.view), "owner: is idle\nowner> ");
    let commands = typed(&mut plain, &mut world, "/crew answer scout-2 tabs\n");
    assert!(matches!(&commands[..], [Command::Respond(_, id, text)]
        if id.as_str() == "scout-2" && text == "tabs"));
}

#[test]
fn the_board_is_said_in_sentences_and_the_prompt_names_the_receiver() {
    let mut world = World::new(80, 24);
    let mut plain = Plain::default();
    world.spawn("scout-1", "Part");
    world.settles("scout-1", Status::NeedsInput, "Tabs?");
    plain.take(&mut world.view);
    typed(&mut plain, &mut world, "/crew\n");
    let text = plain.take(&mut world.view);
    assert!(text.starts_with("crew: 1 open: 0 running, 1 need you, 0 done\n"), "{text}");
    assert!(text.contains("crew: scout-1, Part, needs you: Tabs?, worked 0s, $0.00\n"), "{text}");
    typed(&mut plain, &mut world, "/crew answer scout-1\n");
    assert!(plain.take(&mut world.view).ends_with("answer scout-1> "));
    let commands = typed(&mut plain, &mut world, "tabs\n");
    assert!(matches!(&commands[..], [Command::Respond(..)]));
}

// TERM-5: quitting with open work asks here too.
#[test]
fn questions_are_answered_by_words() {
    let mut world = World::new(80, 24);
    let mut plain = Plain::default();
    world.spawn("scout-1", "Part");
    typed(&mut plain, &mut world, "/quit\n");
    assert!(plain.take(&mut world.view).contains("Type yes to quit."));
    typed(&mut plain, &mut world, "no\n");
    assert!(!world.view.quitting);
    typed(&mut plain, &mut world, "/quit\nyes\n");
    assert!(world.view.quitting);
}

// TERM-58: not one control character but line feeds.
#[test]
fn no_control_character_is_written() {
    let mut world = World::new(80, 24);
    let mut plain = Plain::default();
    world.card("scout-\u{1b}[2J1", "re\u{9b}31mport\u{7}\n\u{1b}]52;c;QQ\u{7}x");
    world.run_starts();
    world.tool_starts("c", "bash", r#"{"command":"printf \u001b[2J"}"#);
    world.tool_ends("c", "bash", "a\u{1b}[2Jb\rc");
    let text = plain.take(&mut world.view);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}
