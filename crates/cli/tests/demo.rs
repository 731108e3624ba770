//! `crew demo` (`product.md` P-2).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use common::server::Reply;
use common::{Run, World, collect};

fn world() -> World {
    let world = World::new(|_| Reply::text("never"));
    world.project_file("src/main.rs", "fn main() {\n    println!(\"hi\");\n}\n");
    world.project_file("src/big.rs", "// line\n".repeat(500));
    world.project_file("README.md", "# Example\n");
    world.project_file("Cargo.toml", "[package]\nname = \"example\"\n");
    world
}

/// Every file and folder with its size and time.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    let folders = files.iter().filter_map(|file| file.parent()).map(Path::to_owned);
    let all: Vec<PathBuf> = folders.chain(files.iter().cloned()).collect();
    all.into_iter()
        .map(|path| {
            let data = fs::metadata(&path).unwrap();
            (path, (data.len(), data.modified().unwrap()))
        })
        .collect()
}

#[track_caller]
fn tells(run: &Run, words: &[&str]) {
    for word in words {
        assert!(run.out.contains(word), "`{word}` is missing in: {}", run.out);
    }
}

#[test]
fn the_demo_shows_a_crew_at_work_and_writes_nothing() {
    let world = world();
    let before = state(&world.project());
    let start = Instant::now();
    let mut command = world.command(&["demo"]);
    let run = world.finish(&mut command);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    tells(&run, &["demo/crew (scripted)", "owner", "crew_spawn", "scout-", "reviewer-"]);
    tells(&run, &["started:", "asks:", "reports:", "goes on", "< result of", "closed"]);
    // What is really there.
    tells(&run, &["src/big.rs", "Rust"]);
    assert!(!run.out.contains('\u{1b}'), "no colours into a file");
    let timeline = run.out.split("\n\n").nth(1).unwrap();
    assert!(timeline.lines().all(|line| line.chars().count() <= 100), "{timeline}");
    assert_eq!(state(&world.project()), before);
    let mut kept = Vec::new();
    collect(&world.at("home"), &mut kept);
    collect(&world.agent().join("sessions"), &mut kept);
    assert_eq!(kept, Vec::<PathBuf>::new());
    assert_eq!(world.server.requests().len(), 0);
    assert_eq!(world.living(), Vec::<String>::new());
}

#[test]
fn the_demo_needs_neither_home_nor_a_writable_folder() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    let project = world.project();
    fs::set_permissions(&project, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = world.command(&["demo", project.to_str().unwrap()]);
    command.env_remove("HOME").env_remove("CREW_CODING_AGENT_DIR").current_dir("/");
    let run = world.finish(&mut command);
    fs::set_permissions(&project, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    tells(&run, &["src/big.rs"]);
}

#[test]
fn a_folder_that_is_none_is_told() {
    let world = world();
    for (dir, word) in [("nowhere", "nowhere"), ("README.md", "README.md")] {
        let run = world.finish(&mut world.command(&["demo", dir]));
        run.is(1, "");
        run.tells(&[word, "crew demo DIR"]);
    }
}
