//! `keybindings.json` (`host.md` 8.7).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;

use crew_store::keybindings::{keybindings_path, read};

/// The lines of a file, and what is told about it behind its path.
fn check(text: &[u8], lines: &[(&str, &[&str])], told: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let path = keybindings_path(dir.path());
    fs::write(&path, text).unwrap();
    let (found, warnings) = read(&path);
    let expected: Vec<(String, Vec<String>)> = lines
        .iter()
        .map(|(id, keys)| ((*id).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect()))
        .collect();
    assert_eq!(found, expected);
    assert!(warnings.iter().all(|warning| warning.path == path.to_string_lossy()));
    let messages: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(messages, told);
    assert_eq!(fs::read(&path).unwrap(), text, "the file is left alone");
}

#[test]
fn a_line_is_a_key_or_a_list_of_keys() {
    check(
        br#"{"b.two": ["ctrl+b", "up"], "a.one": "f1", "c.none": []}"#,
        &[("b.two", &["ctrl+b", "up"]), ("a.one", &["f1"]), ("c.none", &[])],
        &[],
    );
    check(b"\xef\xbb\xbf{}", &[], &[]);
    check(b" \n", &[], &[]);
}

#[test]
fn what_is_no_key_is_told_and_the_rest_counts() {
    check(
        br#"{"a": 1, "b": "f1", "c": ["up", null], "d": {"keys": "up"}}"#,
        &[("b", &["f1"])],
        &[
            "a is neither a key nor a list of keys",
            "c is neither a key nor a list of keys",
            "d is neither a key nor a list of keys",
        ],
    );
}

#[test]
fn a_file_that_does_not_parse_counts_as_none() {
    for text in ["{", "[]", "{\"a\": \"up\",}", "{} // no"] {
        let dir = tempfile::tempdir().unwrap();
        let path = keybindings_path(dir.path());
        fs::write(&path, text).unwrap();
        let (lines, warnings) = read(&path);
        assert_eq!((lines.len(), warnings.len()), (0, 1), "{text}");
        assert!(warnings[0].message.starts_with("the keys do not parse ("), "{text}");
        assert!(warnings[0].message.ends_with("; the keys are those without the file"), "{text}");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(keybindings_path(dir.path())).unwrap();
    assert_eq!(read(&keybindings_path(dir.path())).1.len(), 1, "a folder");
    assert_eq!(read(&dir.path().join("missing")), (Vec::new(), Vec::new()));
}
