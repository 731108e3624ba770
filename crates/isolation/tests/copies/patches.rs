//! Patch mode: capture, apply, conflict, and what must stay (ISO-6 to ISO-8,
//! ISO-13, ISO-14, ISO-17, ISO-18, OBS-13).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;

use crew_isolation::Error;
use crew_task::isolation::Merged;
use crew_task::settings::Backend;

use crate::world::{BACKENDS, Child, World, chmod, lines, mode, never, odd, tree, with_line};

// ISO-8, ISO-14, OBS-13: contents, modes, links, binaries, renames, any name.
#[test]
fn every_kind_of_change_arrives_and_git_state_stays() {
    for backend in BACKENDS {
        let world = World::new(backend);
        world.write("run.sh", "#!/bin/sh\n");
        world.write("kind", "a file\n");
        world.write("folder/x", "in a folder\n");
        world.write("old.dat", [&b"\0\x01"[..], &[7; 5000]].concat());
        symlink("a.txt", world.path("link")).unwrap();
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "more"]);
        let (state, child) = (world.state(), world.start("kid"));
        child.write("a.txt", with_line(&child.read("a.txt"), 3, "CHANGED"));
        child.remove("b.txt");
        fs::rename(child.path("dir/c.txt"), child.path("moved.txt")).unwrap();
        chmod(&child.path("run.sh"), 0o755);
        child.write("old.dat", [&b"\0\x02"[..], &[7; 5000]].concat());
        child.remove("link");
        symlink("moved.txt", child.path("link")).unwrap();
        child.remove("kind");
        child.write("kind/inner", "now a folder\n");
        fs::remove_dir_all(child.path("folder")).unwrap();
        child.write("folder", "now a file\n");
        child.write("empty", "");
        child.write("no-end", "no line feed");
        for name in
            [&b"-x"[..], b"new\nline \"quoted\" \\ \t", b"bytes-\xff/\xfe", b"sp ace/\xc3\xbc"]
        {
            child.write(odd(name), name);
        }
        let wanted = tree(child.cwd());
        let integration = world.applied(&child);
        assert_eq!(world.tree(), wanted, "{backend:?}");
        assert_eq!(world.state(), state, "{backend:?}: index, HEAD, refs, logs");
        assert!(integration.has_root_changes);
        assert_eq!(
            integration.patch,
            Some(world.folder.join("kid.patch").to_str().unwrap().into())
        );
        assert!(world.patch("kid.patch").contains("rename from dir/c.txt"));
        assert_eq!(mode(&world.folder.join("kid.patch")), 0o600);
        assert!(!world.path("dir").exists(), "an empty folder is gone");
        assert_eq!(world.slots(), Vec::<String>::new());
    }
}

// ISO-2, ISO-7; "the person's work is not part of the delta".
#[test]
fn what_the_person_had_not_committed_stays_apart() {
    for backend in BACKENDS {
        let world = World::new(backend);
        world.write("a.txt", format!("STAGED\n{}", world.read("a.txt")));
        world.git(&["add", "a.txt"]);
        world.write("a.txt", world.read("a.txt") + "UNSTAGED\n");
        world.write("mine.txt", "UNTRACKED\n");
        world.write("ignored/x", "IGNORED\n");
        let child = world.start("kid");
        child.append("dir/c.txt", "BY-CHILD\n");
        child.append("mine.txt", "two\n");
        world.applied(&child);
        assert_eq!(world.read("mine.txt"), "UNTRACKED\ntwo\n");
        assert_eq!(world.status(), "MM a.txt\n M dir/c.txt\n?? mine.txt");
        assert_eq!(world.read("ignored/x"), "IGNORED\n");
        let patch = world.patch("kid.patch");
        assert!(patch.contains("+BY-CHILD"));
        for word in ["+STAGED", "+UNSTAGED", "+UNTRACKED"] {
            assert!(!patch.contains(word), "{patch}");
        }
    }
}

// task.md 12 row 78; ISO-14, ISO-17, OP-7
#[test]
fn a_conflict_changes_nothing_and_keeps_the_patch() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 3, "BY-CHILD"));
    child.append("b.txt", "OTHER\n");
    world.write("a.txt", with_line(&world.read("a.txt"), 3, "BY-PARENT"));
    let (before, state) = (world.tree(), world.state());
    let integration = world.finish(&child);
    let Merged::Conflict(why) = &integration.merged else { panic!("{integration:?}") };
    assert!(why.contains("a.txt"), "{why}");
    assert_eq!((world.tree(), world.state()), (before, state));
    assert!(world.patch("kid.patch").contains("+BY-CHILD"));
    assert!(integration.summary().contains("kid.patch"));
    assert_eq!(integration.changes_applied(), Some(false));
}

// task.md 12 row 79; ISO-14
#[test]
fn a_change_that_is_there_already_is_a_success() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 3, "SAME"));
    child.write("new", "same\n");
    world.write("a.txt", with_line(&world.read("a.txt"), 3, "SAME"));
    world.write("new", "same\n");
    let before = world.tree();
    assert_eq!(world.finish(&child).merged, Merged::AlreadyThere);
    assert_eq!(world.tree(), before);
}

// ISO-8, ISO-14
#[test]
fn a_child_that_changed_nothing_leaves_an_empty_patch() {
    let world = World::new(Backend::Auto);
    world.write("mine", "m\n");
    let child = world.start("kid");
    child.write("ignored/build", "o\n");
    let integration = world.finish(&child);
    assert_eq!(integration.merged, Merged::Nothing);
    assert!(!integration.has_root_changes);
    assert_eq!(world.patch("kid.patch"), "");
}

// ISO-18
#[test]
fn with_apply_off_only_the_patch_is_written() {
    let world = World { apply: false, ..World::new(Backend::Auto) };
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    let before = world.tree();
    let integration = world.finish(&child);
    assert_eq!((integration.merged.clone(), integration.error.clone()), (Merged::Skipped, None));
    assert_eq!(world.tree(), before);
    assert!(
        world.patch("kid.patch").contains("+MORE") && integration.summary().contains("kid.patch")
    );
}

// The parent goes on working: other files, and other lines of the same file.
#[test]
fn edits_of_the_parent_meanwhile_are_kept() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 1, "BY-CHILD"));
    fs::rename(child.path("dir/c.txt"), child.path("dir/d.txt")).unwrap();
    world.write("a.txt", with_line(&world.read("a.txt"), 9, "BY-PARENT"));
    world.write("b.txt", "whole\n");
    world.write("dir/c.txt", with_line(&world.read("dir/c.txt"), 5, "BY-PARENT"));
    world.write("made", "by the parent\n");
    world.applied(&child);
    let both = with_line(&with_line(&lines("a.txt"), 1, "BY-CHILD"), 9, "BY-PARENT");
    assert_eq!(world.read("a.txt"), both);
    assert_eq!(
        (world.read("b.txt"), world.read("made")),
        ("whole\n".into(), "by the parent\n".into())
    );
    assert_eq!(world.read("dir/d.txt"), with_line(&lines("dir/c.txt"), 5, "BY-PARENT"));
    assert!(!world.path("dir/c.txt").exists());
}

// What stands in the way is never overwritten, be it ignored or untracked.
#[test]
fn a_file_of_the_parent_in_the_way_of_a_new_one_is_a_conflict() {
    let check = |name: &str, made: &dyn Fn(&World)| {
        let world = World::new(Backend::Auto);
        let child = world.start("kid");
        child.write(name, "BY-CHILD\n");
        child.append("a.txt", "MORE\n");
        made(&world);
        let before = world.tree();
        let integration = world.finish(&child);
        assert!(matches!(integration.merged, Merged::Conflict(_)), "{name}: {integration:?}");
        assert_eq!(world.tree(), before, "{name}");
    };
    check("new", &|world| world.write("new", "BY-PARENT\n"));
    check("new", &|world| world.write("new/inner", "BY-PARENT\n"));
    check("new/deep/x", &|world| world.write("new", "BY-PARENT\n"));
    check("new", &|world| symlink("/etc/hostname", world.path("new")).unwrap());
    check("new/x", &|world| {
        fs::create_dir(world.folder.join("elsewhere")).unwrap();
        symlink(world.folder.join("elsewhere"), world.path("new")).unwrap();
    });
    check("a.d/x", &|world| {
        fs::rename(world.path("dir"), world.path("a.d")).unwrap();
        world.write("a.d/x", "moved here\n");
    });
}

// OBS-13, P-14a: git knows one bit of a mode; the others are the person's.
#[test]
fn modes_of_the_person_survive_and_new_files_come_as_they_are() {
    for backend in BACKENDS {
        let world = World::new(backend);
        chmod(&world.path("a.txt"), 0o600);
        chmod(&world.path("b.txt"), 0o640);
        let child = world.start("kid");
        for name in ["a.txt", "b.txt"] {
            child.append(name, "MORE\n");
        }
        chmod(&child.path("b.txt"), 0o750);
        child.write("key", "k\n");
        chmod(&child.path("key"), 0o600);
        world.applied(&child);
        let modes = ["a.txt", "b.txt", "key"].map(|name| mode(&world.path(name)));
        assert_eq!(modes, [0o600, 0o750, 0o600], "{backend:?}");
    }
}

// ISO-4, ISO-7: commits of a child count like its uncommitted work.
#[test]
fn commits_and_the_rest_arrive_as_one_patch() {
    let world = World::new(Backend::Auto);
    let state = world.state();
    let child = world.start("kid");
    child.append("a.txt", "ONE\n");
    child.git(&["commit", "-qam", "one"]);
    child.write("ignored/forced", "f\n");
    child.git(&["add", "-f", "ignored/forced"]);
    child.append("b.txt", "TWO\n");
    world.applied(&child);
    assert!(world.read("a.txt").ends_with("ONE\n") && world.read("b.txt").ends_with("TWO\n"));
    assert_eq!(world.read("ignored/forced"), "f\n", "what git was told to track");
    assert_eq!(world.state(), state);
}

// The copy is not trusted: its git directory may be anything.
#[test]
fn a_child_cannot_confuse_the_capture_with_its_git_directory() {
    let confusions: [fn(&Child); 8] = [
        |child| fs::remove_dir_all(child.path(".git")).unwrap(),
        |child| {
            fs::remove_dir_all(child.path(".git")).unwrap();
            child.git(&["init", "-q"]);
        },
        |child| fs::write(child.path(".git/index"), "broken").unwrap(),
        |child| fs::write(child.path(".git/config"), "[[[").unwrap(),
        |child| drop(child.git(&["update-index", "--assume-unchanged", "a.txt"])),
        |child| drop(child.git(&["checkout", "-q", "--orphan", "other"])),
        // Hiding a file of the person is no removal.
        |child| child.write(".git/info/exclude", "mine.txt\n"),
        |child| child.append(".gitignore", "mine.txt\n"),
    ];
    for (confuse, backend) in confusions.iter().zip(BACKENDS.iter().cycle()) {
        let world = World::new(*backend);
        world.write("mine.txt", "UNTRACKED\n");
        let child = world.start("kid");
        child.append("a.txt", "MORE\n");
        confuse(&child);
        world.applied(&child);
        assert!(world.read("a.txt").ends_with("MORE\n"));
        assert_eq!(world.read("mine.txt"), "UNTRACKED\n");
    }
}

// ISO-15 for patches: one after the other, each sees the tree as it is then.
#[test]
fn two_children_are_merged_one_after_the_other() {
    let world = World::new(Backend::Auto);
    let children = [world.start("one"), world.start("two"), world.start("three")];
    for (at, child) in children.iter().enumerate() {
        child.write("a.txt", with_line(&child.read("a.txt"), at * 4, &child.id));
        child.write(format!("by-{}", child.id), "x\n");
    }
    thread::scope(|scope| {
        for child in &children {
            scope.spawn(|| world.applied(child));
        }
    });
    let expected = ["one", "two", "three"].iter().enumerate();
    let expected = expected.fold(lines("a.txt"), |text, (at, id)| with_line(&text, at * 4, id));
    assert_eq!(world.read("a.txt"), expected);
    assert_eq!(world.status(), " M a.txt\n?? by-one\n?? by-three\n?? by-two");
}

// The second call builds on the first, also on what git does not track yet.
#[test]
fn a_later_child_sees_what_an_earlier_one_brought() {
    let world = World::new(Backend::Auto);
    let first = world.start("first");
    first.write("made.txt", "n\n");
    first.write("a.txt", with_line(&first.read("a.txt"), 3, "FIRST"));
    world.applied(&first);
    let second = world.start("second");
    assert_eq!(second.read("made.txt"), "n\n");
    second.write("made.txt", "m\n");
    second.write("a.txt", with_line(&second.read("a.txt"), 3, "SECOND"));
    world.applied(&second);
    assert_eq!(world.read("made.txt"), "m\n");
    assert_eq!(world.read("a.txt"), with_line(&lines("a.txt"), 3, "SECOND"));
}

// task.md 12 row 82; ISO-12: no file can be written, so the copy is kept and named.
#[test]
fn a_copy_whose_patch_cannot_be_written_is_kept() {
    let mut world = World::new(Backend::Auto);
    let child = world.start("kid");
    child.append("a.txt", "PRECIOUS\n");
    world.folder = world.path("a.txt");
    let integration = world.finish(&child);
    let error = integration.error.clone().unwrap();
    let [slot] = &world.slots()[..] else { panic!("{:?}", world.slots()) };
    let kept = world.copies.base().join(slot).join("tree");
    assert!(error.contains(kept.to_str().unwrap()), "{error}");
    assert!(fs::read_to_string(kept.join("a.txt")).unwrap().ends_with("PRECIOUS\n"));
    assert_eq!((integration.merged, integration.patch), (Merged::Skipped, None));
    assert!(world.copies.recover().kept.is_empty(), "it is left alone from then on");
    assert_eq!(world.slots().len(), 1);
}

// ISO-8: a set of patches is complete or not there.
#[test]
fn a_failed_set_of_patches_is_removed_completely() {
    let world = World::new(Backend::Auto);
    world.write("inner/x", "x\n");
    let inner = world.path("inner");
    crate::world::git(&inner, &["init", "-q"]);
    crate::world::git(&inner, &["add", "-A"]);
    crate::world::git(&inner, &["commit", "-qm", "inner"]);
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    child.append("inner/x", "MORE\n");
    // The second file of the set cannot get its name.
    fs::create_dir_all(world.folder.join("kid.nested-1-inner.patch/in-the-way")).unwrap();
    let before = world.tree();
    let integration = world.finish(&child);
    assert!(integration.error.is_some() && integration.patch.is_none());
    assert!(!world.folder.join("kid.patch").exists());
    assert_eq!(fs::read_dir(&world.folder).unwrap().count(), 1);
    assert_eq!(world.tree(), before);
}

// A cancel before the capture is an error; after it the patch is what is left.
#[test]
fn a_cancelled_integration_changes_nothing() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    let before = world.tree();
    let capture = world.capture(&child);
    let error = world.copies.integrate(&capture, &|| true).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert_eq!(world.tree(), before);
    let patch = world.folder.join("kid.patch");
    let integration = world.copies.integrate(&capture, &|| patch.exists()).unwrap();
    assert_eq!(integration.merged, Merged::Skipped);
    assert!(integration.error.unwrap().contains("cancelled"));
    assert!(world.patch("kid.patch").contains("+MORE"));
    assert_eq!(world.tree(), before);
    world.applied(&child);
    assert!(world.read("a.txt").ends_with("MORE\n"));
}

// Line ends are the person's choice.
#[test]
fn line_ends_stay_as_the_person_has_them() {
    for backend in BACKENDS {
        let world = World::new(backend);
        world.write(".gitattributes", "*.txt text eol=crlf\n");
        world.write("win.txt", "one\r\ntwo\r\nthree\r\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "crlf"]);
        let child = world.start("kid");
        assert_eq!(child.read("win.txt"), "one\r\ntwo\r\nthree\r\n");
        child.write("win.txt", "one\r\nTWO\r\nthree\r\n");
        world.applied(&child);
        assert_eq!(world.read("win.txt"), "one\r\nTWO\r\nthree\r\n", "{backend:?}");
        assert_eq!(world.git(&["diff", "--stat"]).lines().count(), 2);
    }
}

// The parent's shell stands there.
#[test]
fn the_working_directory_of_the_parent_is_not_removed() {
    let world = World::new(Backend::Auto);
    let child = world.start_in("kid", &world.path("dir"));
    child.remove("c.txt");
    world.applied(&child);
    assert!(world.path("dir").is_dir() && !world.path("dir/c.txt").exists());
}

// "Captured work is never the victim": a repository made by the child.
#[test]
fn files_of_a_new_repository_arrive_and_its_history_is_told_of() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    child.write("fresh/x", "x\n");
    child.git(&["init", "-q", "fresh"]);
    child.write("fresh/sub/y", "y\n");
    let integration = world.finish(&child);
    assert_eq!(integration.merged, Merged::Applied, "{integration:?}");
    assert_eq!((world.read("fresh/x"), world.read("fresh/sub/y")), ("x\n".into(), "y\n".into()));
    assert!(!world.path("fresh/.git").exists());
    assert!(integration.warnings.iter().any(|warning| warning.contains("fresh")));
}

#[test]
fn an_unknown_copy_is_an_error_and_no_panic() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    let capture = world.capture(&child);
    world.copies.discard(child.prepared.handle).unwrap();
    let error = world.copies.integrate(&capture, &never).unwrap_err();
    assert!(matches!(error, Error::UnknownCopy { .. }));
    world.copies.discard(child.prepared.handle).unwrap();
    assert!(!Path::new(&child.prepared.cwd).exists());
}
