//! Appending to and opening session files; run with `cargo bench -p crew-store`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crew_base::entry::{Entry, EntryBody, Header, HeaderKind};
use crew_base::message::Message;
use crew_base::time::Time;
use crew_store::session::log::{Plan, SessionLog};
use crew_store::session::open::open;
use divan::Bencher;

fn main() {
    divan::main();
}

fn header() -> Header {
    Header {
        kind: HeaderKind::Session,
        version: 3,
        id: "bench".into(),
        timestamp: Time(0).iso(),
        cwd: "/bench".into(),
        parent_session: None,
    }
}

fn message(number: usize, text: &str) -> Entry {
    Entry {
        id: format!("{number:08x}").as_str().into(),
        parent_id: number.checked_sub(1).map(|parent| format!("{parent:08x}").as_str().into()),
        timestamp: Time(number as u64).iso(),
        body: EntryBody::Message { message: Message::user_text(text, Time(number as u64)) },
    }
}

#[divan::bench(sample_count = 10)]
fn ten_thousand_appends_of_450_bytes(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let entries: Vec<Entry> = (0..10_000).map(|n| message(n, &"x".repeat(250))).collect();
    let mut run = 0;
    bencher.bench_local(|| {
        run += 1;
        let mut log = SessionLog::create(Plan {
            header: header(),
            path: Some(folder.path().join(format!("{run}.jsonl"))),
            lock: false,
        });
        for entry in &entries {
            log.append(entry).expect("an append");
        }
    });
}

#[divan::bench(sample_count = 10, args = [50, 150])]
fn open_a_session_of_megabytes(bencher: Bencher<'_, '_>, megabytes: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = generated(folder.path(), megabytes * 1_000_000);
    bencher.bench_local(|| open(&path, header(), false).expect("a session"));
}

/// A session of prompts, tool calls and results as an agent leaves it.
fn generated(folder: &Path, bytes: usize) -> PathBuf {
    let mut text = serde_json::to_string(&header()).expect("a header") + "\n";
    let output = "    let line = \\\"some output of a tool\\\";\\n".repeat(60);
    let mut number = 0;
    while text.len() < bytes {
        let (id, parent) = (number + 1, number);
        let (call, at) = (number / 2, 1_796_046_183_871u64 + number as u64);
        let message = if number % 2 == 0 {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"Looking at the next part of it."}},{{"type":"toolCall","id":"call_{call}","name":"bash","arguments":{{"command":"sed -n 1,60p src/main.rs"}}}}],"api":"openai-completions","provider":"fake","model":"m1","usage":{{"input":60,"output":7,"cacheRead":40,"cacheWrite":0,"totalTokens":107,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"toolUse","timestamp":{at}}}"#
            )
        } else {
            format!(
                r#"{{"role":"toolResult","toolCallId":"call_{call}","toolName":"bash","content":[{{"type":"text","text":"{output}"}}],"isError":false,"durationMs":59,"timestamp":{at}}}"#
            )
        };
        let _ = writeln!(
            text,
            r#"{{"type":"message","id":"{id:08x}","parentId":"{parent:08x}","timestamp":"{}","message":{message}}}"#,
            Time(at).iso()
        );
        number += 1;
    }
    let path = folder.join("large.jsonl");
    std::fs::write(&path, text).expect("a generated session");
    path
}
