//! Repositories inside the working tree (ISO-2, ISO-8, ISO-16, ISO-17).

use std::fs;
use std::path::Path;

use crew_task::isolation::Merged;
use crew_task::settings::Backend;

use crate::world::{BACKENDS, World, git, init, with_line, write};

/// A repository in the working tree, with the person's work in it.
fn nest(world: &World, place: &str) {
    let root = world.path(place);
    write(&root, "x.txt", "x 0\nx 1\n");
    write(&root, "y.txt", "y\n");
    init(&root);
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-qm", "inner base"]);
    write(&root, "y.txt", "y\nUSER-WORK\n");
}

fn nested_patches(world: &World) -> Vec<String> {
    let names = fs::read_dir(&world.folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains(".nested-")).collect();
    names.sort();
    names
}

// ISO-2, ISO-8, ISO-16: seen, captured apart, committed without the person's
// work; also where the outer repository ignores the inner one.
#[test]
fn changes_in_an_inner_repository_come_back_as_a_commit_of_it() {
    for (backend, place) in BACKENDS.into_iter().zip(["vendor/lib", "ignored/lib"]) {
        let world = World::new(backend);
        nest(&world, place);
        let inner = world.path(place);
        let child = world.start("kid");
        assert_eq!(child.read(format!("{place}/y.txt")), "y\nUSER-WORK\n");
        child.append(&format!("{place}/x.txt"), "NESTED\n");
        child.append("a.txt", "ROOT\n");
        let integration = world.applied(&child);
        assert_eq!(
            git(&inner, &["show", "--format=%s|%an", "--name-only"]),
            "work of kid|U\n\nx.txt"
        );
        assert_eq!(git(&inner, &["status", "--porcelain"]), " M y.txt", "{backend:?}");
        assert_eq!(world.read(format!("{place}/x.txt")), "x 0\nx 1\nNESTED\n");
        let patches = nested_patches(&world);
        assert_eq!(patches, [format!("kid.nested-1-{}.patch", place.replace('/', "-"))]);
        assert_eq!(integration.nested.len(), 1);
        assert!(world.patch(&patches[0]).contains("+NESTED"));
        assert!(!world.patch("kid.patch").contains("NESTED"));
    }
}

// ISO-17: nothing in the working tree itself, something in an inner one.
#[test]
fn a_change_of_an_inner_repository_alone_is_applied() {
    let world = World::new(Backend::Auto);
    nest(&world, "lib");
    nest(&world, "lib/deeper/one");
    let child = world.start("kid");
    child.append("lib/deeper/one/x.txt", "DEEP\n");
    child.git(&["-C", "lib/deeper/one", "commit", "-qam", "by the child"]);
    let integration = world.applied(&child);
    assert!(!integration.has_root_changes);
    assert_eq!(nested_patches(&world), ["kid.nested-1-lib-deeper-one.patch"]);
    assert!(world.read("lib/deeper/one/x.txt").ends_with("DEEP\n"));
    assert_eq!(git(&world.path("lib"), &["log", "--format=%s"]), "inner base");
}

// ISO-16: a failure is a warning that names the file; the root stays applied.
#[test]
fn a_conflict_in_an_inner_repository_is_a_warning() {
    let world = World::new(Backend::Auto);
    nest(&world, "lib");
    let child = world.start("kid");
    child.write("lib/x.txt", with_line("x 0\nx 1\n", 1, "BY-CHILD"));
    child.append("a.txt", "ROOT\n");
    world.write("lib/x.txt", with_line("x 0\nx 1\n", 1, "BY-PARENT"));
    let head = git(&world.path("lib"), &["rev-parse", "HEAD"]);
    let integration = world.finish(&child);
    assert_eq!(integration.merged, Merged::Applied);
    let [warning] = &integration.warnings[..] else { panic!("{integration:?}") };
    assert!(warning.contains("lib") && warning.contains("kid.nested-1-lib.patch"), "{warning}");
    assert_eq!(world.read("lib/x.txt"), "x 0\nBY-PARENT\n");
    assert_eq!(git(&world.path("lib"), &["rev-parse", "HEAD"]), head);
    assert!(world.read("a.txt").ends_with("ROOT\n"));
    assert!(integration.needs_files());
}

// ISO-16: only after the root succeeded.
#[test]
fn inner_repositories_wait_for_the_root() {
    let world = World::new(Backend::Auto);
    nest(&world, "lib");
    let child = world.start("kid");
    child.append("lib/x.txt", "NESTED\n");
    child.write("a.txt", with_line(&child.read("a.txt"), 3, "BY-CHILD"));
    world.write("a.txt", with_line(&world.read("a.txt"), 3, "BY-PARENT"));
    let before = world.tree();
    let integration = world.finish(&child);
    assert!(matches!(integration.merged, Merged::Conflict(_)));
    assert_eq!(world.tree(), before);
    assert!(integration.summary().contains("kid.nested-1-lib.patch"));
}

#[test]
fn an_inner_repository_without_a_commit_gets_its_files() {
    let world = World::new(Backend::Auto);
    world.write("fresh/x", "x\n");
    init(&world.path("fresh"));
    let child = world.start("kid");
    child.append("fresh/x", "MORE\n");
    world.applied(&child);
    assert_eq!(world.read("fresh/x"), "x\nMORE\n");
    assert_eq!(git(&world.path("fresh"), &["status", "--porcelain"]), "?? x");
}

// A submodule is there for the child, stays where it stands, and what changed in
// it comes back to its working tree.
#[test]
fn files_of_a_submodule_come_back_and_its_commit_stays() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let other = world.folder.join("other");
        fs::create_dir(&other).unwrap();
        write(&other, "s.txt", "s\n");
        init(&other);
        git(&other, &["add", "-A"]);
        git(&other, &["commit", "-qm", "s"]);
        let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
        world.git(&[&add[..], &[other.to_str().unwrap(), "sub"]].concat());
        world.git(&["commit", "-qm", "with a submodule"]);
        world.write("sub/s.txt", "s\nUSER-WORK\n");
        let (state, head) = (world.state(), git(&world.path("sub"), &["rev-parse", "HEAD"]));
        let child = world.start("kid");
        assert_eq!(child.read("sub/s.txt"), "s\nUSER-WORK\n", "{backend:?}");
        child.write("sub/new", "n\n");
        child.git(&["-C", "sub", "add", "-A"]);
        child.git(&["-C", "sub", "commit", "-qm", "in the submodule"]);
        child.git(&["commit", "-qam", "moves the submodule"]);
        child.append("a.txt", "ROOT\n");
        world.applied(&child);
        assert_eq!(
            (world.read("sub/new"), world.read("sub/s.txt")),
            ("n\n".into(), "s\nUSER-WORK\n".into())
        );
        assert_eq!(git(&world.path("sub"), &["rev-parse", "HEAD"]), head);
        assert_eq!(world.state(), state);
        assert!(!world.patch("kid.patch").contains("Subproject"));
    }
}

// The child's copy of an inner repository is gone or something else now.
#[test]
fn a_removed_inner_repository_is_a_removal_of_its_files() {
    let world = World::new(Backend::Auto);
    nest(&world, "lib");
    let child = world.start("kid");
    fs::remove_dir_all(child.path("lib")).unwrap();
    world.applied(&child);
    assert_eq!(git(&world.path("lib"), &["status", "--porcelain"]), "");
    assert!(!world.path("lib/x.txt").exists() && world.path("lib/.git").exists());
}

#[test]
fn a_link_in_place_of_an_inner_repository_is_not_followed() {
    let world = World::new(Backend::Auto);
    nest(&world, "lib");
    let child = world.start("kid");
    fs::remove_dir_all(child.path("lib")).unwrap();
    std::os::unix::fs::symlink(world.path("dir"), child.path("lib")).unwrap();
    let before = world.tree();
    let integration = world.finish(&child);
    assert!(integration.error.unwrap().contains("is kept in"));
    assert_eq!(world.tree(), before);
    assert!(Path::new(&world.folder).read_dir().unwrap().next().is_none(), "no patch");
}

// A folder that looks like a repository and is none must not stop anything; one
// that cannot be looked into is left out whole, and told.
#[test]
fn a_broken_inner_repository_is_a_folder_like_others() {
    for backend in BACKENDS {
        let world = World::new(backend);
        world.write("broken/.git", "gitdir: /nowhere/at/all\n");
        world.write("broken/x", "x\n");
        world.write("ignored/broken/.git/config", "[[[");
        let child = world.start("kid");
        child.append("a.txt", "MORE\n");
        let integration = world.finish(&child);
        assert_eq!(integration.merged, Merged::Applied, "{integration:?}");
        assert_eq!(
            (world.read("broken/x"), world.read("a.txt").ends_with("MORE\n")),
            ("x\n".into(), true)
        );
        assert!(!world.patch("kid.patch").contains("broken"), "{backend:?}");
    }
}
