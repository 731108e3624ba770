//! The corpus of the fuzz targets, replayed on a stable compiler: every input
//! whole and cut off at many places (`docs/testing.md`).

#[path = "../../../fuzz/checks/model.rs"]
mod checks;

use std::fs;
use std::path::Path;

use crew_base::model::Api;

/// Gives each input of a folder to a check, and the beginnings of it.
fn replay(folder: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let bytes = fs::read(&path).expect("an input can be read");
        for end in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            check(&bytes[..end]);
        }
        check(&bytes);
        count += 1;
    }
    assert!(count >= 4, "{} holds {count} inputs", folder.display());
}

#[test]
fn the_corpus_of_every_decoder_keeps_the_contract_at_every_cut() {
    for api in [
        Api::AnthropicMessages,
        Api::OpenaiCompletions,
        Api::OpenaiResponses,
        Api::GoogleGenerativeAi,
    ] {
        // The streams of the other formats are foreign bytes for this one.
        for folder in ["anthropic", "completions", "responses", "google", "sse"] {
            replay(&format!("fuzz/corpus/{folder}"), |bytes| checks::response(api, bytes));
        }
    }
}

#[test]
fn the_corpus_of_event_streams_is_read_the_same_at_every_cut() {
    replay("fuzz/corpus/sse", checks::sse);
}

#[test]
fn the_corpus_of_arguments_becomes_objects_or_errors() {
    replay("fuzz/corpus/arguments", checks::arguments);
}
