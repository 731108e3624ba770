//! Deaths of the host: what a restart finds and does (ISO-3, ISO-12, ISO-19).
//!
//! For a death this program starts itself with one test's name and a folder in
//! the environment; the test then plays the host until it is killed.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::Duration;

use crew_isolation::{Copies, Recovered};
use crew_task::isolation::Capture;
use crew_task::settings::{Backend, Merge};

use crate::world::{Tree, World, never, plan, tree};

/// The last file that is made.
const LAST: &str = "made/98";

const PLACE: &str = "CREW_ISOLATION_TEST_PLACE";
/// Enough for a merge to last longer than it takes to see its first file.
const FILES: usize = 300;
/// Times a death may come too late, on a busy machine.
const TRIES_MAX: usize = 10;

/// Starts this program as a host that runs `test` in `place`.
fn host(test: &str, place: &Path) -> Process {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(PLACE, place);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn place_of_host() -> Option<PathBuf> {
    env::var_os(PLACE).map(PathBuf::from)
}

/// Waits until something is seen; the host must live until then.
fn wait(host: &mut Process, is_seen: impl Fn() -> bool) {
    while !is_seen() {
        if let Some(status) = host.try_wait().unwrap() {
            assert!(is_seen(), "the host ended with {status} before anything was seen");
            return;
        }
        // Short enough to come in time, long enough to leave the host a processor.
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// True if the kill was what ended it.
fn kill(mut host: Process) -> bool {
    host.kill().unwrap();
    host.wait().unwrap().signal() == Some(9)
}

fn copies(place: &Path) -> Copies {
    Copies::new(None, place.join("agent"))
}

/// The host's part of a merge: many files change, appear and vanish.
fn merge_as_host(place: &Path, merge: Merge) {
    let copies = copies(place);
    let project = place.join("project");
    let (prepared, _) = copies.prepare(&plan("kid", Backend::Worktree), &project, &never).unwrap();
    let cwd = Path::new(&prepared.cwd);
    for number in 0..FILES {
        let path = cwd.join(format!("f/{number}"));
        match number % 3 {
            0 => fs::write(path, format!("by the child {number}\n")).unwrap(),
            1 => fs::remove_file(path).unwrap(),
            _ => {
                fs::create_dir_all(cwd.join("made")).unwrap();
                fs::write(cwd.join(format!("made/{number}")), "made\n").unwrap();
            }
        }
    }
    let folder = place.join("session").to_str().unwrap().to_owned();
    let capture = Capture {
        handle: prepared.handle,
        id: "kid".into(),
        folder,
        merge,
        apply: true,
        message: "m".into(),
        generated_message: false,
    };
    copies.integrate(&capture, &never).unwrap();
}

fn large_world() -> World {
    let world = World::new(Backend::Worktree);
    for number in 0..FILES {
        world.write(format!("f/{number}"), format!("of the person {number}\n"));
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "many"]);
    world.write("a.txt", "USER-WORK\n");
    world
}

fn place(world: &World) -> PathBuf {
    world.project.parent().unwrap().to_owned()
}

/// A world whose host was killed in the middle of a merge, with the tree as it
/// was before.
fn die_in_merge(test: &str) -> (World, Tree) {
    for _ in 0..TRIES_MAX {
        let world = large_world();
        let before = world.tree();
        let mut host = host(test, &place(&world));
        // The first file of the order that is removed.
        let first = world.path("f/1");
        wait(&mut host, || !first.exists());
        let is_killed = kill(host);
        if is_killed && !world.path(LAST).exists() {
            assert!(world.tree() != before);
            return (world, before);
        }
    }
    panic!("every merge was over before it was seen");
}

// All or nothing: the merge is taken back, the patch is still there.
#[test]
fn a_death_in_the_middle_of_a_patch_leaves_the_tree_as_it_was() {
    if let Some(place) = place_of_host() {
        return merge_as_host(&place, Merge::Patch);
    }
    let test = "recovery::a_death_in_the_middle_of_a_patch_leaves_the_tree_as_it_was";
    let (world, before) = die_in_merge(test);
    let recovered = world.copies.recover();
    assert_eq!((recovered.undone, recovered.removed), (1, 1), "{recovered:?}");
    assert_eq!(recovered.warnings, Vec::<String>::new());
    assert!(world.tree() == before, "as it was");
    assert_eq!(world.status(), " M a.txt");
    assert!(world.patch("kid.patch").contains("+by the child"));
    assert_eq!(world.slots(), Vec::<String>::new());
    assert_eq!(world.copies.recover(), Recovered::default());
}

#[test]
fn a_death_in_the_middle_of_a_branch_merge_leaves_all_as_it_was() {
    if let Some(place) = place_of_host() {
        return merge_as_host(&place, Merge::Branch);
    }
    let test = "recovery::a_death_in_the_middle_of_a_branch_merge_leaves_all_as_it_was";
    let (world, before) = die_in_merge(test);
    let recovered = world.copies.recover();
    assert_eq!((recovered.undone, recovered.removed), (1, 1), "{recovered:?}");
    assert!(world.tree() == before, "as it was");
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "many");
    assert_eq!(world.status(), " M a.txt");
    assert!(!world.path(".git/index.lock").exists());
    let made = world.git(&["show", "--format=", "--name-only", "crew/task/kid"]);
    assert_eq!(made.lines().count(), FILES, "the work is on its branch");
}

// What the person wrote between the death and the restart is theirs.
#[test]
fn edits_after_a_death_are_kept_and_named() {
    if let Some(place) = place_of_host() {
        return merge_as_host(&place, Merge::Patch);
    }
    let (world, before) = die_in_merge("recovery::edits_after_a_death_are_kept_and_named");
    world.write("f/1", "written after the death\n");
    world.write("new", "n\n");
    let recovered = world.copies.recover();
    assert!(recovered.warnings.iter().any(|warning| warning.contains("`f/1`")), "{recovered:?}");
    assert_eq!(world.read("f/1"), "written after the death\n");
    let mut expected = before;
    for name in ["f/1", "new"] {
        expected.insert(name.into(), world.tree()[Path::new(name)].clone());
    }
    assert!(world.tree() == expected);
    assert_eq!(recovered.kept.len(), 1, "the old content is still needed");
    assert!(recovered.kept[0].exists());
}

// ISO-19: copies of the dead go, unless a child's changes are nowhere else;
// those of the living stay.
#[test]
fn copies_of_the_dead_go_and_those_with_work_stay() {
    if let Some(place) = place_of_host() {
        let copies = copies(&place);
        let project = place.join("project");
        for id in ["idle", "busy"] {
            let (prepared, _) = copies.prepare(&plan(id, Backend::Auto), &project, &never).unwrap();
            if id == "busy" {
                fs::write(Path::new(&prepared.cwd).join("work"), "PRECIOUS\n").unwrap();
            }
        }
        fs::write(place.join("ready"), "").unwrap();
        loop {
            std::thread::park();
        }
    }
    let world = World::new(Backend::Auto);
    let mine = world.start("mine");
    let place = place(&world);
    let mut host = host("recovery::copies_of_the_dead_go_and_those_with_work_stay", &place);
    wait(&mut host, || place.join("ready").exists());
    assert_eq!(world.copies.recover(), Recovered::default(), "all owners live");
    assert_eq!(world.slots().len(), 3);
    assert!(kill(host));
    let recovered = world.copies.recover();
    assert_eq!((recovered.removed, recovered.warnings.len()), (1, 0), "{recovered:?}");
    let [kept] = &recovered.kept[..] else { panic!("{recovered:?}") };
    assert_eq!(fs::read_to_string(kept.join("work")).unwrap(), "PRECIOUS\n");
    assert_eq!(tree(mine.cwd()), world.tree());
    assert_eq!(world.copies.recover(), Recovered::default(), "kept ones are left alone");
    assert!(kept.exists());
}

// A death while a copy was being made: nothing to keep, nothing in the source.
#[test]
fn a_copy_that_was_not_finished_goes() {
    let world = World::new(Backend::Auto);
    let child = world.start("kid");
    let slot = child.cwd().parent().unwrap().to_owned();
    fs::remove_file(slot.join("copy.json")).unwrap();
    let dead = r#"{"pid":1,"started":"another time","child":"kid"}"#;
    // Another folder with that content is nobody's: this process holds no lock on it.
    let other = world.copies.base().join("other");
    fs::create_dir_all(other.join("tree")).unwrap();
    fs::write(other.join("owner"), dead).unwrap();
    let recovered = world.copies.recover();
    assert_eq!((recovered.removed, recovered.kept.len()), (1, 0), "{recovered:?}");
    assert!(slot.exists() && !other.exists());
}
