//! Keys that are stored and forgotten without leaving the program (`host.md`
//! 1.4.2, 1.4.7, 8.3).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::common::World;
use crate::common::server::Reply;
use crate::pty::Terminal;

#[test]
fn a_key_is_typed_unseen_used_at_once_and_forgotten_again() {
    let world = World::new(|request| Reply::text(&format!("answer {}", request.answers())));
    let mut terminal = Terminal::start(&world, 30, 100, &[]);
    terminal.wait_for("0%/128k");
    terminal.send("/login nobody\r");
    terminal.wait_for("no provider is called nobody");
    terminal.wait_for("with a key: local · without: anthropic");
    terminal.send("/login local\r");
    terminal.wait_for("Key for local");
    terminal.send("sk-typed-unseen\r");
    terminal.wait_for("read again:");
    let path = world.agent().join("auth.json");
    let stored: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(stored["local"], json!({"type": "api_key", "key": "sk-typed-unseen"}));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    terminal.send("one\r");
    terminal.wait_for("answer 0");
    assert!(world.server.requests()[0].headers.contains("sk-typed-unseen"));
    // Enter alone changes nothing.
    terminal.rest();
    terminal.send("/login local\r");
    terminal.wait_for("Key for local");
    terminal.send("\r");
    terminal.wait_for("no key was typed; nothing has changed");
    // So does Ctrl+C; the program goes on.
    terminal.rest();
    terminal.send("/login local\r");
    terminal.wait_for("Key for local");
    terminal.send("sk-half\x03");
    terminal.rest();
    let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(kept["local"]["key"], "sk-typed-unseen");
    terminal.send("/logout local\r");
    terminal.wait_until("the key is gone", |_| {
        let stored: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        stored == json!({})
    });
    terminal.rest();
    terminal.send("two\r");
    terminal.wait_for("answer 1");
    let last = world.server.requests().pop().unwrap();
    assert!(!last.headers.contains("sk-typed-unseen"), "the key of models.json counts again");
    terminal.rest();
    terminal.send("\x04");
    assert_eq!(terminal.code(), 0);
    assert!(!terminal.bytes().contains("sk-typed-unseen"), "it was never shown");
    terminal.modes_are_reset();
}
