//! The corpus of the fuzz targets, replayed on a stable compiler: every input
//! whole and cut off at many places (`docs/testing.md`).

#[path = "../../../fuzz/checks/store.rs"]
mod checks;

use std::fs;
use std::path::Path;

/// Gives each input of a target to its check, and the beginnings of it.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let bytes = fs::read(entry.expect("it can be listed").path()).expect("an input");
        for end in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            check(&bytes[..end]);
        }
        check(&bytes);
        count += 1;
    }
    assert!(count >= 4, "{} holds {count} inputs", folder.display());
}

// host.md 2.2.5, 0.2; faults.md C076, C077
#[test]
fn the_corpus_of_session_files_loads_or_is_left_alone() {
    replay("session", checks::session);
}

// crew.md CAT-10, CAT-11
#[test]
fn the_corpus_of_front_matter_is_read_or_named_by_line() {
    replay("frontmatter", checks::front_matter);
}
