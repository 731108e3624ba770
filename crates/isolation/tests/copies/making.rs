//! Making copies: baselines, backends, refusals (ISO-2 to ISO-5, OBS-13).

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crew_isolation::{BASELINE_BYTES_MAX, Copies, Error};
use crew_task::settings::Backend;

use crate::world::{BACKENDS, World, chmod, git, mode, never, odd, plan, tree, try_git};

/// Work of every kind that is not committed.
fn uncommitted(world: &World) {
    world.write("a.txt", format!("STAGED\n{}", world.read("a.txt")));
    world.git(&["add", "a.txt"]);
    world.write("a.txt", world.read("a.txt") + "UNSTAGED\n");
    fs::remove_file(world.path("b.txt")).unwrap();
    world.write("mine.txt", "UNTRACKED\n");
    world.write("bin.dat", b"\0\x01\xff");
    world.write("secret", "key\n");
    chmod(&world.path("secret"), 0o600);
    chmod(&world.path("dir/c.txt"), 0o755);
    symlink("a.txt", world.path("link")).unwrap();
    symlink("/nowhere/at/all", world.path("dangling")).unwrap();
    world.write(odd(b"-x"), "dash\n");
    world.write(odd(b"new\nline \"quoted\" \\ \t"), "hostile\n");
    world.write(odd(b"not-text-\xff\xfe/inner"), "bytes\n");
    world.write("ignored/x", "IGNORED\n");
}

// ISO-2, ISO-3, OBS-13; modes, links and names of any kind.
#[test]
fn a_copy_starts_as_the_tree_is() {
    for backend in BACKENDS {
        let world = World::new(backend);
        uncommitted(&world);
        let (before, state) = (world.tree(), world.state());
        let child = world.start("kid");
        assert_eq!(child.warnings, Vec::<String>::new());
        let mut expected = before.clone();
        if backend == Backend::Worktree {
            // Git writes it, and git ignores this.
            expected.remove(Path::new("ignored/x"));
        }
        assert_eq!(tree(child.cwd()), expected, "{backend:?}");
        let status = ["status", "--porcelain", "-z"];
        assert_eq!(child.git(&status), world.git(&status), "{backend:?}: what is staged");
        assert_eq!((world.tree(), world.state()), (before, state), "{backend:?}: the source");
        for path in [world.copies.base(), child.cwd(), child.cwd().parent().unwrap()] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        world.copies.discard(child.prepared.handle).unwrap();
        assert_eq!(world.slots(), Vec::<String>::new());
    }
}

// ISO-4
#[test]
fn the_git_directory_of_a_copy_is_its_own() {
    for backend in BACKENDS {
        let world = World::new(backend);
        world.git(&["tag", "v1"]);
        let state = world.state();
        let child = world.start("kid");
        assert_eq!(
            child.git(&["rev-parse", "HEAD", "v1", "main"]),
            format!("{0}\n{0}\n{0}", world.head())
        );
        assert_eq!(child.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        child.append("a.txt", "ONE\n");
        child.git(&["commit", "-qam", "one"]);
        child.git(&["branch", "side"]);
        child.git(&["tag", "-d", "v1"]);
        child.git(&["stash", "list"]);
        assert_ne!(child.git(&["rev-parse", "HEAD"]), world.head());
        assert_eq!(world.state(), state, "{backend:?}");
        assert_eq!(world.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
        assert_eq!(child.git(&["fsck", "--connectivity-only"]), "");
    }
}

// ISO-5: the working directory is the same place in the copy.
#[test]
fn the_working_directory_is_found_again_in_the_copy() {
    let world = World::new(Backend::Auto);
    fs::create_dir_all(world.path("ignored/deep")).unwrap();
    for place in ["dir", "ignored/deep"] {
        let child = world.start_in("kid", &world.path(place));
        assert!(child.cwd().is_dir() && child.cwd().ends_with(place), "{:?}", child.cwd());
    }
}

#[test]
fn a_repository_without_a_commit_is_copied_too() {
    for backend in BACKENDS {
        let world = World::empty(backend);
        world.write("a.txt", "a\n");
        let child = world.start("kid");
        assert_eq!(child.read("a.txt"), "a\n");
        assert_eq!(child.git(&["status", "--porcelain"]), "?? a.txt");
        child.append("a.txt", "b\n");
        child.write("new", "n\n");
        world.applied(&child);
        assert_eq!((world.read("a.txt"), world.read("new")), ("a\nb\n".into(), "n\n".into()));
    }
}

// ISO-2: refused with advice, nothing is left.
#[test]
fn a_folder_without_a_repository_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let copies = Copies::new(None, folder.path().join("agent"));
    let place = folder.path().join("plain");
    fs::create_dir(&place).unwrap();
    let check = |place: &Path| {
        let error = copies.prepare(&plan("kid", Backend::Auto), place, &never).unwrap_err();
        assert!(matches!(error, Error::NotARepository { .. }), "{error}");
        assert!(error.to_string().contains("git init"), "{error}");
    };
    check(&place);
    git(&place, &["init", "-q", "--bare"]);
    check(&place);
    assert_eq!(fs::read_dir(copies.base()).unwrap().count(), 0);
}

// ISO-2, task.md 1.6
#[test]
fn more_than_the_bound_of_uncommitted_content_is_refused() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let file = File::create(world.path("huge")).unwrap();
        file.set_len(BASELINE_BYTES_MAX + 1).unwrap();
        let error =
            world.copies.prepare(&plan("kid", backend), &world.project, &never).unwrap_err();
        let Error::TooLarge { bytes, bytes_max, .. } = error else { panic!("{error}") };
        assert!(bytes > bytes_max);
        assert_eq!(world.slots(), Vec::<String>::new());
        // What is ignored does not count.
        world.write(".gitignore", "ignored/\nhuge\n");
        if backend == Backend::Worktree {
            world.start("kid");
        }
    }
}

#[test]
fn a_cancel_leaves_nothing_behind() {
    for backend in BACKENDS {
        let world = World::new(backend);
        // At every point where it is asked, in turn.
        for point in (0..60).step_by(7) {
            let asked = AtomicUsize::new(0);
            let cancel = || asked.fetch_add(1, Ordering::Relaxed) >= point;
            let made = world.copies.prepare(&plan("kid", backend), &world.project, &cancel);
            match made {
                Err(error) => assert!(matches!(error, Error::Cancelled), "{error}"),
                Ok((prepared, _)) => world.copies.discard(prepared.handle).unwrap(),
            }
            assert_eq!(world.slots(), Vec::<String>::new(), "{point}");
        }
    }
}

// ISO-3: the configured backend is a hint.
#[test]
fn a_backend_that_fails_is_replaced_by_the_other() {
    let world = World::new(Backend::Auto);
    world.write(".gitattributes", "a.txt filter=broken\n");
    world.git(&["config", "filter.broken.clean", "cat"]);
    world.git(&["config", "filter.broken.smudge", "false"]);
    world.git(&["config", "filter.broken.required", "true"]);
    let child = world.start("kid");
    assert_eq!(tree(child.cwd()), world.tree());
    assert!(
        child.warnings.iter().any(|warning| warning.contains("a copy was used")),
        "{:?}",
        child.warnings
    );
    child.append("b.txt", "MORE\n");
    world.applied(&child);
    assert!(world.read("b.txt").ends_with("MORE\n"));
}

// OBS-13: nothing that the person hooked up runs.
#[test]
fn hooks_and_monitors_of_the_person_do_not_run() {
    for backend in BACKENDS {
        let world = World::branch(backend);
        let trace = world.folder.join("hook-ran");
        fs::create_dir(world.path(".git/hooks")).unwrap();
        let script = format!("#!/bin/sh\necho \"$0\" >> '{}'\nexit 1\n", trace.display());
        for hook in [
            "pre-commit",
            "commit-msg",
            "post-checkout",
            "post-commit",
            "post-index-change",
            "reference-transaction",
            "applypatch-msg",
            "pre-applypatch",
            "post-rewrite",
            "fsmonitor",
        ] {
            let path = world.path(".git/hooks").join(hook);
            fs::write(&path, &script).unwrap();
            chmod(&path, 0o755);
        }
        let monitor = world.path(".git/hooks/fsmonitor");
        fs::write(
            world.path(".git/config"),
            format!(
                "{}[core]\n\tfsmonitor = {}\n[commit]\n\tgpgSign = true\n",
                fs::read_to_string(world.path(".git/config")).unwrap(),
                monitor.display(),
            ),
        )
        .unwrap();
        let child = world.start("kid");
        child.append("a.txt", "KID\n");
        world.applied(&child);
        assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap());
    }
}

// The base may lie in the tree that is copied.
#[test]
fn the_place_of_the_copies_is_no_part_of_a_copy() {
    for backend in BACKENDS {
        let mut world = World::new(backend);
        world.copies = Copies::new(Some(world.path("copies")), world.agent_dir.clone());
        let (first, second) = (world.start("first"), world.start("second"));
        for child in [&first, &second] {
            assert!(!child.path("copies").exists(), "{backend:?}");
        }
        second.write("made", "m\n");
        world.applied(&second);
        assert_eq!(world.read("made"), "m\n");
        assert!(!world.patch("second.patch").contains("copies"));
    }
}

// A work tree of git has its objects and refs elsewhere.
#[test]
fn a_linked_work_tree_is_copied_as_any_other() {
    for backend in BACKENDS {
        let mut world = World::new(backend);
        let main = world.project.clone();
        let linked = world.folder.join("linked");
        world.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]);
        world.project = linked;
        let child = world.start("kid");
        assert_eq!(child.git(&["symbolic-ref", "HEAD"]), "refs/heads/other");
        child.append("a.txt", "KID\n");
        child.git(&["commit", "-qam", "in the copy"]);
        world.applied(&child);
        assert!(world.read("a.txt").ends_with("KID\n"));
        assert_eq!(world.git(&["log", "--format=%s", "--all"]), "base");
        assert!(try_git(&main, &["diff", "--quiet"]).0, "the main work tree is as it was");
    }
}

#[test]
fn settings_and_exclusions_of_the_repository_hold_in_the_copy() {
    let world = World::new(Backend::Auto);
    fs::create_dir_all(world.path(".git/info")).unwrap();
    fs::write(world.path(".git/info/exclude"), "*.log\n").unwrap();
    world.git(&["config", "remote.origin.url", "https://example.invalid/\"x\".git"]);
    world.write("x.log", "log\n");
    let child = world.start("kid");
    assert_eq!(child.git(&["config", "remote.origin.url"]), "https://example.invalid/\"x\".git");
    child.write("y.log", "log\n");
    child.append("a.txt", "KID\n");
    world.applied(&child);
    assert!(!world.path("y.log").exists());
}

// OBS-13: a session started from a hook of git, or from a shell with odd habits.
#[test]
fn variables_of_git_do_not_lead_astray() {
    const MARK: &str = "CREW_ISOLATION_TEST_VARIABLES";
    if std::env::var_os(MARK).is_none() {
        let test = "making::variables_of_git_do_not_lead_astray";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--test-threads=1"]).env(MARK, "1");
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_COMMON_DIR",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_EXEC_PATH",
            "GIT_NAMESPACE",
            "GIT_SHALLOW_FILE",
            "GIT_CEILING_DIRECTORIES",
            "GIT_TRACE",
            "GIT_TRACE2_EVENT",
        ] {
            command.env(name, "/nowhere/at/all");
        }
        for (name, value) in [
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_EXTERNAL_DIFF", "false"),
            ("GIT_DIFF_OPTS", "-u0"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.bare"),
            ("GIT_CONFIG_VALUE_0", "true"),
            ("GIT_PAGER", "false"),
            ("GIT_EDITOR", "false"),
            ("LC_ALL", "de_DE.UTF-8"),
        ] {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    for backend in BACKENDS {
        for world in [World::new(backend), World::branch(backend)] {
            let child = world.start("kid");
            child.append("a.txt", "KID\n");
            world.applied(&child);
            assert!(world.read("a.txt").ends_with("KID\n"));
        }
    }
}

// Settings that change what git prints or accepts.
#[test]
fn habits_in_the_settings_change_nothing() {
    for world in [World::new(Backend::Worktree), World::branch(Backend::Copy)] {
        let config = world.path(".git/config");
        let habits = "[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n\texternal = false\n\trenames = copies\n\
            \tcontext = 0\n\tignoreSubmodules = all\n\torderFile = /nowhere\n[apply]\n\twhitespace = error\n[core]\n\tabbrev = 4\n\
            \tquotePath = false\n\twhitespace = trailing-space\n[color]\n\tui = always\n\tdiff = always\n[log]\n\tshowSignature = true\n\
            [status]\n\tshowUntrackedFiles = no\n[merge]\n\tconflictStyle = zdiff3\n\tff = false\n[i18n]\n\tlogOutputEncoding = latin1\n\
            [pull]\n\trebase = true\n[alias]\n\tdiff-tree = !false\n[core]\n\tpager = false\n\teditor = false\n";
        fs::write(&config, fs::read_to_string(&config).unwrap() + habits).unwrap();
        let child = world.start("kid");
        child.append("a.txt", "trailing  \n");
        child.write("n\u{fc}", "n\n");
        fs::rename(child.path("b.txt"), child.path("c.txt")).unwrap();
        let wanted = tree(child.cwd());
        world.applied(&child);
        assert_eq!(world.tree(), wanted);
    }
}

// Kinds of repositories that store things differently.
#[test]
fn repositories_of_every_make_are_copied() {
    let check = |what: &str, make: &dyn Fn(&World)| {
        for world in [World::new(Backend::Worktree), World::branch(Backend::Copy)] {
            make(&world);
            let before = world.status();
            let child = world.start("kid");
            assert_eq!(child.git(&["status", "--porcelain"]), before, "{what}");
            child.append("dir/c.txt", "KID\n");
            child.git(&["commit", "-qam", "by the child"]);
            child.write("dir/new", "n\n");
            world.applied(&child);
            assert!(world.read("dir/c.txt").ends_with("KID\n"), "{what}");
            assert!(world.path("dir/new").exists(), "{what}");
            let gone =
                ["-c", "core.quotePath=false", "diff", "HEAD", "--name-only", "--diff-filter=D"];
            assert_eq!(world.git(&gone), "", "{what}: nothing was taken away");
            assert_eq!(world.git(&["fsck", "--no-dangling"]), "", "{what}");
        }
    };
    check("sha256", &|world| {
        fs::remove_dir_all(world.path(".git")).unwrap();
        world.git(&["init", "-q", "-b", "main", "--template=", "--object-format=sha256"]);
        world.git(&["config", "user.name", "U"]);
        world.git(&["config", "user.email", "u@x"]);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "base"]);
    });
    check("sparse", &|world| drop(world.git(&["sparse-checkout", "set", "dir"])));
    check("sparse index", &|world| {
        drop(world.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "dir"]));
    });
    check("split index", &|world| {
        world.git(&["config", "core.splitIndex", "true"]);
        world.git(&["update-index", "--split-index"]);
    });
    check("shallow", &|world| {
        let url = format!("file://{}", world.project.display());
        world.write("a.txt", "second\n");
        world.git(&["commit", "-qam", "second"]);
        let other = world.folder.join("shallow");
        world.git(&["clone", "-q", "--depth=1", "--template=", &url, other.to_str().unwrap()]);
        fs::remove_dir_all(world.path(".git")).unwrap();
        fs::rename(other.join(".git"), world.path(".git")).unwrap();
        world.git(&["config", "user.name", "U"]);
        world.git(&["config", "user.email", "u@x"]);
        world.git(&["reset", "-q"]);
    });
}
