//! The corpus of the fuzz target for RPC lines, replayed through the program:
//! every line is answered once and the next one is read (`docs/testing.md`;
//! `host.md` 7.1.1, 7.2.2; faults.md C130).

mod common;

use std::fs;
use std::path::Path;

use common::World;
use common::client::Client;
use common::server::Reply;
use serde_json::json;

#[test]
fn every_line_of_the_corpus_is_answered_and_the_next_is_read() {
    let world = World::new(|_| Reply::text("ok"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rpc");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 20, "{paths:?}");
    let mut client = Client::start(&world, &[]);
    for path in paths {
        let since = client.count();
        let mut line = fs::read(&path).unwrap();
        let is_silent = String::from_utf8_lossy(&line).contains("extension_ui_response");
        line.push(b'\n');
        client.raw(&line);
        // Answered before what is asked behind it, or in the same moment.
        client.ask("get_state", json!({}));
        let mine = client.lines(since).into_iter().filter(|told| {
            let id = told["id"].as_str().unwrap_or_default();
            told["type"] == "response" && !id.starts_with('c')
        });
        let name = path.display();
        let expected = usize::from(!is_silent);
        if expected == 1 {
            client.wait(since, |told| {
                told["type"] == "response" && !told["id"].to_string().starts_with("\"c")
            });
        }
        assert!(mine.count() <= expected, "{name}: answered once at most");
        until_idle(&mut client);
    }
    assert_eq!(client.close(), Some(0));
}

fn until_idle(client: &mut Client) {
    common::until("rest", || client.state()["isStreaming"] == false);
}
