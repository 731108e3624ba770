//! Branch mode (ISO-9 to ISO-11, ISO-15, OBS-13).

use std::fs;

use crew_task::isolation::Merged;
use crew_task::settings::{Backend, Merge};

use crate::world::{BACKENDS, Child, World, chmod, lines, mode, try_git, with_line};

fn log(world: &World, base: &str) -> Vec<String> {
    let range = format!("{base}..HEAD");
    let text = world.git(&["log", "--reverse", "--format=%s|%an|%cn", &range]);
    text.lines().map(str::to_owned).collect()
}

fn branches(world: &World) -> String {
    world.git(&["for-each-ref", "--format=%(refname:short)"])
}

// ISO-9, ISO-15: clean tree, the child's commits as they are, the rest as one.
#[test]
fn commits_of_a_child_arrive_as_they_are() {
    for backend in BACKENDS {
        let world = World::branch(backend);
        let base = world.head();
        let child = world.start("kid");
        child.append("a.txt", "ONE\n");
        child.git(&["commit", "-qam", "child says one"]);
        let tip = child.git(&["rev-parse", "HEAD"]);
        child.append("b.txt", "REST\n");
        child.write("new", "n\n");
        let integration = world.applied(&child);
        assert_eq!(log(&world, &base), ["child says one|Kid|Kid", "work of kid|U|U"]);
        assert_eq!(world.git(&["rev-parse", "HEAD^"]), tip);
        assert_eq!((world.status(), branches(&world)), (String::new(), "main".into()));
        assert_eq!(world.git(&["fsck", "--no-dangling"]), "");
        let branch = integration.branch.unwrap();
        assert_eq!(
            (branch.name.as_str(), &branch.base, branch.is_kept),
            ("crew/task/kid", &base, false)
        );
        assert_eq!(integration.patch, None);
        let reflog = world.git(&["reflog", "--format=%gs", "-1"]);
        assert_eq!(reflog, "crew: crew/task/kid");
    }
}

// task.md 12 row 81; ISO-7, ISO-10
#[test]
fn the_commit_holds_only_what_the_child_did() {
    let world = World::branch(Backend::Auto);
    let base = world.head();
    world.write("b.txt", world.read("b.txt") + "USER-WORK\n");
    world.write("mine", "UNTRACKED\n");
    world.write("c.txt", "STAGED\n");
    world.git(&["add", "c.txt"]);
    let status = world.status();
    let child = world.start("kid");
    child.append("dir/c.txt", "TWO\n");
    world.applied(&child);
    assert_eq!(log(&world, &base), ["work of kid|U|U"]);
    assert_eq!(world.git(&["show", "--format=", "--name-only"]), "dir/c.txt");
    assert_eq!(world.status(), status);
    assert!(world.read("b.txt").ends_with("USER-WORK\n"));
    assert_eq!(world.git(&["stash", "list"]), "");
}

// ISO-9, ISO-10: dirty tree; each commit without the person's changes, in the
// same files too, message and author kept.
#[test]
fn commits_are_written_anew_without_the_persons_work() {
    let world = World::branch(Backend::Auto);
    let base = world.head();
    world.write("a.txt", with_line(&lines("a.txt"), 10, "USER-WORK"));
    world.write("mine", "UNTRACKED\n");
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 1, "ONE"));
    child.git(&["commit", "-qam", "one with all of a.txt"]);
    child.write("b.txt", with_line(&child.read("b.txt"), 2, "TWO"));
    child.git(&["add", "-A"]);
    child.git(&["commit", "-qm", "two\n\nwith a body"]);
    child.append("dir/c.txt", "REST\n");
    world.applied(&child);
    let expected = ["one with all of a.txt|Kid|U", "two|Kid|U", "work of kid|U|U"];
    assert_eq!(log(&world, &base), expected);
    assert_eq!(world.git(&["show", "HEAD:a.txt"]) + "\n", with_line(&lines("a.txt"), 1, "ONE"));
    assert_eq!(
        world.read("a.txt"),
        with_line(&with_line(&lines("a.txt"), 1, "ONE"), 10, "USER-WORK")
    );
    assert_eq!(world.status(), " M a.txt\n?? mine");
    assert_eq!(world.git(&["show", "-s", "--format=%b", "HEAD^"]), "with a body");
}

// ISO-10: the child's edit lies in the person's: the file comes whole.
#[test]
fn an_edit_inside_the_persons_edit_takes_the_file_whole() {
    let world = World::branch(Backend::Auto);
    world.write("a.txt", with_line(&lines("a.txt"), 3, "USER"));
    world.write("b.txt", world.read("b.txt") + "USER\n");
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 3, "USER AND CHILD"));
    world.applied(&child);
    assert_eq!(world.git(&["show", "--format=", "--name-only"]), "a.txt");
    assert_eq!(world.read("a.txt"), with_line(&lines("a.txt"), 3, "USER AND CHILD"));
    assert_eq!(world.status(), " M b.txt");
}

// ISO-15: HEAD went on; commits are picked one by one onto it.
#[test]
fn commits_are_picked_onto_a_head_that_moved() {
    let world = World::branch(Backend::Auto);
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 1, "CHILD"));
    child.git(&["commit", "-qam", "child"]);
    child.write("b.txt", "SAME\n");
    child.git(&["commit", "-qam", "the same as the parent"]);
    world.write("a.txt", with_line(&world.read("a.txt"), 10, "PARENT"));
    world.write("b.txt", "SAME\n");
    world.git(&["commit", "-qam", "parent"]);
    let base = world.head();
    world.write("dir/c.txt", "USER-WORK\n");
    world.applied(&child);
    assert_eq!(log(&world, &base), ["child|Kid|U"], "an empty one is left out");
    let both = with_line(&with_line(&lines("a.txt"), 1, "CHILD"), 10, "PARENT");
    assert_eq!(world.read("a.txt"), both);
    assert_eq!((world.status().as_str(), branches(&world).as_str()), (" M dir/c.txt", "main"));
}

// task.md 12 row 80; ISO-15, ISO-17
#[test]
fn a_conflict_keeps_the_branch_and_the_tree() {
    let world = World::branch(Backend::Auto);
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 3, "BY-CHILD"));
    world.write("a.txt", with_line(&world.read("a.txt"), 3, "BY-PARENT"));
    world.git(&["commit", "-qam", "parent's commit"]);
    world.write("b.txt", world.read("b.txt") + "USER-WORK\n");
    world.git(&["add", "b.txt"]);
    let (before, head) = (world.tree(), world.head());
    let integration = world.finish(&child);
    let Merged::Conflict(why) = &integration.merged else { panic!("{integration:?}") };
    assert!(why.contains("`a.txt`"), "{why}");
    assert!(integration.summary().contains("crew/task/kid"));
    assert!(world.git(&["show", "crew/task/kid:a.txt"]).contains("BY-CHILD"));
    assert_eq!((world.tree(), world.head()), (before, head));
    assert_eq!((world.status().as_str(), world.git(&["stash", "list"]).as_str()), ("M  b.txt", ""));
    assert!(!world.path(".git/CHERRY_PICK_HEAD").exists());
    // A later child of that id does not touch it.
    world.applied(&{
        let child = world.start("kid");
        child.write("new", "n\n");
        child
    });
    assert_eq!(branches(&world), "crew/task/kid\nmain");
}

// ISO-15: uncommitted edits of the parent meanwhile, mergeable and not.
#[test]
fn uncommitted_edits_meanwhile_are_merged_or_nothing_happens() {
    let check = |line: usize, fits: bool| {
        let world = World::branch(Backend::Auto);
        let child = world.start("kid");
        child.write("a.txt", with_line(&child.read("a.txt"), 3, "BY-CHILD"));
        world.write("a.txt", with_line(&world.read("a.txt"), line, "BY-USER"));
        chmod(&world.path("a.txt"), 0o600);
        let (before, head) = (world.tree(), world.head());
        let integration = world.finish(&child);
        if fits {
            assert_eq!(integration.merged, Merged::Applied);
            let both = with_line(&with_line(&lines("a.txt"), 3, "BY-CHILD"), line, "BY-USER");
            assert_eq!((world.read("a.txt"), mode(&world.path("a.txt"))), (both, 0o600));
            assert_eq!(
                world.git(&["show", "HEAD:a.txt"]) + "\n",
                with_line(&lines("a.txt"), 3, "BY-CHILD")
            );
            assert_eq!(world.status(), " M a.txt");
        } else {
            assert!(matches!(integration.merged, Merged::Conflict(_)), "{integration:?}");
            assert_eq!((world.tree(), world.head()), (before, head));
            assert_eq!(branches(&world), "crew/task/kid\nmain");
        }
    };
    check(10, true);
    check(3, false);
}

// ISO-15: "restore the stash with its index".
#[test]
fn what_was_staged_stays_staged() {
    let world = World::branch(Backend::Auto);
    world.write("a.txt", with_line(&lines("a.txt"), 10, "STAGED"));
    world.git(&["add", "a.txt"]);
    world.git(&["rm", "-q", "b.txt"]);
    let child = world.start("kid");
    child.write("a.txt", with_line(&child.read("a.txt"), 1, "CHILD"));
    child.git(&["mv", "dir/c.txt", "moved.txt"]);
    world.applied(&child);
    assert_eq!(world.status(), "M  a.txt\nD  b.txt");
    assert_eq!(world.git(&["fsck", "--no-dangling"]), "");
    let staged = world.git(&["show", ":a.txt"]) + "\n";
    assert_eq!(staged, with_line(&with_line(&lines("a.txt"), 1, "CHILD"), 10, "STAGED"));
    assert!(world.path("moved.txt").exists() && !world.path("dir/c.txt").exists());
}

// An untracked file of the person that the child changed becomes tracked.
#[test]
fn a_changed_untracked_file_is_committed_as_the_child_left_it() {
    let world = World::branch(Backend::Auto);
    world.write("mine", "m\n");
    let child = world.start("kid");
    child.append("mine", "more\n");
    world.applied(&child);
    assert_eq!((world.read("mine").as_str(), world.status().as_str()), ("m\nmore\n", ""));
}

// A history with merges, or none that starts at the base.
#[test]
fn histories_that_are_no_line_come_back_as_one() {
    let world = World::branch(Backend::Auto);
    let base = world.head();
    let child = world.start("kid");
    child.git(&["checkout", "-qb", "side"]);
    child.append("b.txt", "SIDE\n");
    child.git(&["commit", "-qam", "side"]);
    child.git(&["checkout", "-q", "main"]);
    child.append("a.txt", "MAIN\n");
    child.git(&["commit", "-qam", "main"]);
    child.git(&["merge", "-q", "--no-edit", "side"]);
    world.applied(&child);
    assert_eq!(log(&world, &base), ["main|Kid|U", "Merge branch 'side'|Kid|U"]);
    let base = world.head();
    let child = world.start("orphan");
    child.git(&["checkout", "-q", "--orphan", "fresh"]);
    child.append("a.txt", "ORPHAN\n");
    child.git(&["commit", "-qam", "orphan"]);
    world.applied(&child);
    assert_eq!(log(&world, &base), ["work of orphan|U|U"]);
    assert!(world.read("a.txt").ends_with("MAIN\nORPHAN\n"));
}

// ISO-9: no root change, no branch.
#[test]
fn without_changes_there_is_no_branch() {
    let world = World::branch(Backend::Auto);
    let state = world.state();
    let child = world.start("kid");
    let integration = world.finish(&child);
    assert_eq!((integration.merged, integration.branch), (Merged::Nothing, None));
    assert_eq!(world.state(), state);
}

// ISO-11: the name cannot be a ref, so the patch is written and nothing applied.
#[test]
fn a_branch_that_cannot_be_made_becomes_a_patch() {
    let world = World::branch(Backend::Auto);
    world.git(&["branch", "crew"]);
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    let before = world.tree();
    let integration = world.finish(&child);
    assert!(integration.error.clone().unwrap().contains("branch"), "{integration:?}");
    assert_eq!((integration.merged.clone(), integration.branch.clone()), (Merged::Skipped, None));
    assert!(world.patch("kid.patch").contains("+MORE"));
    assert!(integration.summary().contains("kid.patch"));
    assert_eq!(world.tree(), before);
}

#[test]
fn a_repository_without_a_commit_gets_the_patch() {
    let world = World { merge: Merge::Branch, ..World::empty(Backend::Auto) };
    world.write("a", "a\n");
    let child = world.start("kid");
    child.append("a", "b\n");
    let integration = world.finish(&child);
    assert_eq!((integration.merged, integration.branch), (Merged::Applied, None));
    assert_eq!((world.read("a").as_str(), integration.warnings.len()), ("a\nb\n", 1));
}

// ISO-18
#[test]
fn with_apply_off_the_branch_is_kept_and_named() {
    let world = World { apply: false, ..World::branch(Backend::Auto) };
    let (before, head) = (world.tree(), world.head());
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    let integration = world.finish(&child);
    assert!(integration.summary().contains("crew/task/kid"));
    assert_eq!((world.tree(), world.head()), (before, head));
    assert!(world.git(&["show", "crew/task/kid:a.txt"]).ends_with("MORE"));
}

// Git is in the middle of something: HEAD is not ours to move.
#[test]
fn nothing_is_merged_into_a_rebase_or_a_locked_index() {
    let check = |what: &dyn Fn(&World)| {
        let world = World::branch(Backend::Auto);
        let child = world.start("kid");
        child.append("a.txt", "MORE\n");
        what(&world);
        let (before, head) = (world.tree(), world.head());
        let integration = world.finish(&child);
        assert!(matches!(integration.merged, Merged::Conflict(_)), "{integration:?}");
        assert_eq!((world.tree(), world.head()), (before, head));
        assert_eq!(branches(&world).lines().next(), Some("crew/task/kid"));
        world
    };
    check(&|world| {
        world.git(&["checkout", "-qb", "other"]);
        world.write("b.txt", "OTHER\n");
        world.git(&["commit", "-qam", "other"]);
        world.git(&["checkout", "-q", "main"]);
        world.write("b.txt", "MAIN\n");
        world.git(&["commit", "-qam", "main"]);
        assert!(!try_git(&world.project, &["merge", "-q", "other"]).0);
    });
    let world = check(&|world| fs::write(world.path(".git/index.lock"), "somebody's").unwrap());
    assert_eq!(fs::read(world.path(".git/index.lock")).unwrap(), b"somebody's");
}

// A detached HEAD moves itself and no branch.
#[test]
fn a_detached_head_is_moved_without_a_branch() {
    let world = World::branch(Backend::Auto);
    let base = world.head();
    world.git(&["checkout", "-q", "--detach"]);
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    world.applied(&child);
    assert_eq!(log(&world, &base), ["work of kid|U|U"]);
    assert_eq!(world.git(&["rev-parse", "main"]), base);
}

// OBS-13: without an identity of the person's the product commits in its own name.
#[test]
fn a_person_without_a_name_gets_commits_of_the_product() {
    let world = World::branch(Backend::Auto);
    world.git(&["config", "user.name", ""]);
    world.git(&["config", "user.email", "u@x"]);
    let base = world.head();
    let child = world.start("kid");
    child.append("a.txt", "MORE\n");
    world.applied(&child);
    assert_eq!(log(&world, &base), ["work of kid|crew|crew"]);
}

// A commit of a child may hold any name; none of them reaches a git directory.
#[test]
fn a_commit_with_names_of_git_is_refused() {
    let world = World::branch(Backend::Auto);
    let child = world.start("kid");
    fs::write(child.path("evil"), "[core]\n").unwrap();
    let blob = child.git(&["hash-object", "-w", "evil"]);
    let make = |text: &str| {
        fs::write(child.path("tree"), text).unwrap();
        let from = fs::File::open(child.path("tree")).unwrap();
        let mut command = std::process::Command::new("git");
        let output =
            command.args(["mktree"]).current_dir(child.cwd()).stdin(from).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let inner = make(&format!("100644 blob {blob}\tconfig\n"));
    let listed = child.git(&["ls-tree", "HEAD"]);
    let tree = make(&format!("{listed}\n040000 tree {inner}\t.git\n"));
    let commit = child.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "evil"]);
    child.git(&["update-ref", "HEAD", &commit]);
    let (before, config) = (world.tree(), fs::read(world.path(".git/config")).unwrap());
    let head = world.head();
    let integration = world.finish(&child);
    assert!(integration.error.is_some() && integration.patch.is_some(), "{integration:?}");
    assert_eq!((world.tree(), world.head()), (before, head));
    assert_eq!(branches(&world), "main");
    assert_eq!(fs::read(world.path(".git/config")).unwrap(), config);
}

// ISO-9: what a message is generated from: only what the host commits itself,
// and nothing of the person's.
#[test]
fn the_description_is_what_the_host_will_commit() {
    let world = World::branch(Backend::Auto);
    world.write("b.txt", world.read("b.txt") + "USER-WORK\n");
    world.write("mine", "UNTRACKED\n");
    let describe = |child: &Child, bytes: usize| {
        world.copies.describe(child.prepared.handle, bytes, &|| false).unwrap()
    };
    let child = world.start("kid");
    assert_eq!(describe(&child, 4096), None);
    child.append("a.txt", "ONE\n");
    child.git(&["commit", "-qm", "one", "a.txt"]);
    assert_eq!(describe(&child, 4096), None, "the child committed all");
    child.append("dir/c.txt", "TWO\n");
    let state = world.state();
    let diff = describe(&child, 4096).unwrap();
    assert!(diff.contains("dir/c.txt") && diff.contains("+TWO"), "{diff}");
    for foreign in ["USER-WORK", "UNTRACKED", "ONE"] {
        assert!(!diff.contains(foreign), "{diff}");
    }
    assert_eq!(describe(&child, 10).unwrap().len(), 10);
    assert_eq!(world.state(), state);
    assert!(world.copies.describe(99, 10, &|| false).is_err());
    world.applied(&child);
    assert!(world.read("dir/c.txt").ends_with("TWO\n"));
}
