//! Changes of a tree without git: order, refusals, and the way back from every
//! point.

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;

/// A person's tree and the folder of a change.
struct Place {
    dir: TempDir,
}

type Files = BTreeMap<PathBuf, String>;

impl Place {
    fn new(files: &[(&str, &str)]) -> Place {
        let place = Place { dir: TempDir::new().unwrap() };
        for inner in ["slot/merge/old", "slot/merge/new", "root"] {
            fs::create_dir_all(place.dir.path().join(inner)).unwrap();
        }
        for (name, text) in files {
            put(&place.root(), name, text);
        }
        place
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("slot/merge")
    }

    /// Plans to change files; `None` removes one.
    fn plan(&self, changes: &[(&str, Option<&str>)]) -> Journal {
        self.with(|swap| {
            let paths = changes.iter().map(|(name, _)| PathBuf::from(name)).collect();
            let mut steps = Vec::new();
            for (number, (name, text)) in changes.iter().enumerate() {
                let path = PathBuf::from(name);
                let old = swap.keep_old(number, &path, &paths).unwrap();
                let new = match text {
                    None => Shape::Absent,
                    Some(text) => {
                        put(&self.folder().join("new"), name, text);
                        Shape::File(0o644)
                    }
                };
                steps.push((path, old, new));
            }
            swap.journal(Path::new("/common"), Path::new(""), steps, None)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&Swap<'_>) -> T) -> T {
        let (folder, root) = (self.folder(), self.root());
        let git = Git { scratch: self.dir.path(), cancel: &|| false, marker: None };
        act(&Swap { git, folder: &folder, root: &root })
    }

    fn run(&self, journal: &Journal) -> Result<(), Refused> {
        self.with(|swap| swap.run(journal))
    }

    fn recover(&self) -> undo::Undone {
        let journal = read(&self.folder()).expect("a journal was written");
        self.with(|swap| recover(&swap.git, &self.folder(), &journal))
    }

    /// Every file; folders end with a slash.
    fn files(&self) -> Files {
        let mut found = Files::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.root().join(&folder)).unwrap() {
                let path = folder.join(entry.unwrap().file_name());
                if self.root().join(&path).is_dir() {
                    found.insert(path.join(""), String::new());
                    folders.push(path);
                } else {
                    let text = fs::read_to_string(self.root().join(&path)).unwrap();
                    found.insert(path, text);
                }
            }
        }
        found
    }
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const START: &[(&str, &str)] =
    &[("a", "old a"), ("b", "old b"), ("d/one", "1"), ("f", "a file"), ("g/x", "in a folder")];

const CHANGES: &[(&str, Option<&str>)] = &[
    ("a", Some("new a")),
    ("b", None),
    ("d/one", None),
    ("f", None),
    ("f/inner", Some("now a folder")),
    ("g", Some("now a file")),
    ("g/x", None),
    ("made/deep/er", Some("made")),
];

#[test]
fn a_change_is_made_whole() {
    let place = Place::new(START);
    place.run(&place.plan(CHANGES)).unwrap();
    let files: Vec<String> =
        place.files().iter().map(|(path, text)| format!("{}={text}", path.display())).collect();
    let expected =
        "a=new a|f/=|f/inner=now a folder|g=now a file|made/=|made/deep/=|made/deep/er=made";
    assert_eq!(files.join("|"), expected);
    assert!(read(&place.folder()).is_none(), "nothing is left to recover");
}

// Whatever was edited between plan and change, all is as it was found.
#[test]
fn an_edit_in_between_refuses_all_of_it() {
    for edited in ["a", "b", "d/one", "f", "g/x", "made/deep/er"] {
        let place = Place::new(START);
        let journal = place.plan(CHANGES);
        put(&place.root(), edited, "edited by the person");
        let before = place.files();
        let refused = place.run(&journal).unwrap_err();
        assert!(refused.why.contains("changed meanwhile"), "{edited}: {}", refused.why);
        assert_eq!(place.files(), before, "{edited}");
        assert_eq!(refused.warnings, Vec::<String>::new(), "{edited}");
    }
}

// A death after any number of steps: the tree is as it was.
#[test]
fn a_change_that_stopped_anywhere_is_taken_back() {
    for done in 0..=CHANGES.len() {
        let place = Place::new(START);
        let before = place.files();
        let journal = place.plan(CHANGES);
        place.with(|swap| {
            write_json(&swap.folder.join(JOURNAL), &journal).unwrap();
            let first = Journal { steps: journal.steps[..done].to_vec(), ..journal.clone() };
            // What comes first may not be possible alone; then it stops there.
            let _ = swap.steps(&first, &mut BTreeSet::new());
        });
        let undone = place.recover();
        if undone.is_finished {
            assert_eq!(done, CHANGES.len());
            assert_ne!(place.files(), before);
        } else {
            assert_eq!(undone.warnings, Vec::<String>::new());
            assert_eq!(place.files(), before, "after {done}");
        }
    }
}

// A death between the exchange and the look at what came out of it.
#[test]
fn a_strangers_file_under_the_temporary_name_goes_back() {
    let place = Place::new(START);
    let journal = place.plan(&[("a", Some("new a")), ("b", Some("new b"))]);
    place.with(|swap| write_json(&swap.folder.join(JOURNAL), &journal).unwrap());
    let step = &journal.steps[0];
    put(&place.root(), "a", "new a");
    fs::write(place.root().join(&step.temporary), "edited by the person").unwrap();
    let undone = place.recover();
    let files = place.files();
    assert_eq!(files[Path::new("a")], "edited by the person");
    assert_eq!(files[Path::new("b")], "old b");
    assert!(files.len() == 7 && undone.warnings.len() == 1, "{files:?} {undone:?}");
}

// What was edited after the death stays, the rest goes back.
#[test]
fn edits_after_a_death_stay_and_are_named() {
    let place = Place::new(START);
    let journal = place.plan(CHANGES);
    place.with(|swap| {
        write_json(&swap.folder.join(JOURNAL), &journal).unwrap();
        swap.steps(&journal, &mut BTreeSet::new()).unwrap();
    });
    put(&place.root(), "made/deep/er", "edited by the person");
    let undone = place.recover();
    assert!(undone.warnings.iter().any(|warning| warning.contains("made/deep/er")));
    let files = place.files();
    assert_eq!(files[Path::new("made/deep/er")], "edited by the person");
    assert_eq!(
        (files[Path::new("a")].as_str(), files[Path::new("f")].as_str()),
        ("old a", "a file")
    );
    assert!(read(&place.folder()).is_some(), "the old content is still told of");
}

#[test]
fn modes_go_back_too() {
    let place = Place::new(&[("a", "same")]);
    let at = place.root().join("a");
    fs::set_permissions(&at, Permissions::from_mode(0o600)).unwrap();
    let journal = place.plan(&[("a", Some("same"))]);
    place.with(|swap| write_json(&swap.folder.join(JOURNAL), &journal).unwrap());
    fs::set_permissions(&at, Permissions::from_mode(0o644)).unwrap();
    assert!(place.recover().is_finished, "all is as it was to be");
    fs::set_permissions(&at, Permissions::from_mode(0o644)).unwrap();
    let git = Git { scratch: place.dir.path(), cancel: &|| false, marker: None };
    undo::undo(&git, &place.folder(), &journal, None);
    assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn no_step_leaves_the_tree_or_enters_a_git_directory() {
    for name in [".git/config", "x/.GIT/hooks/pre-commit", "../outside", "/absolute"] {
        let place = Place::new(START);
        let before = place.files();
        let step = (PathBuf::from(name), Shape::Absent, Shape::Link(b"t".to_vec()));
        let journal =
            place.with(|swap| swap.journal(Path::new("/c"), Path::new(""), vec![step], None));
        let refused = place.run(&journal).unwrap_err();
        assert!(refused.why.contains("no name for a file"), "{}", refused.why);
        assert_eq!(place.files(), before);
        assert!(read(&place.folder()).is_none(), "nothing was begun");
    }
}

// The old content is needed as long as it is nowhere else.
#[test]
fn what_cannot_be_put_back_keeps_the_change_open() {
    let place = Place::new(START);
    let journal = place.plan(CHANGES);
    place.with(|swap| {
        write_json(&swap.folder.join(JOURNAL), &journal).unwrap();
        swap.steps(&journal, &mut BTreeSet::new()).unwrap();
    });
    put(&place.root(), "made/deep/er", "edited by the person");
    fs::remove_file(place.folder().join("old/0")).unwrap();
    fs::create_dir(place.folder().join("old/0")).unwrap();
    let undone = place.recover();
    assert!(undone.warnings.iter().any(|warning| warning.contains("old/0")), "{undone:?}");
    assert!(is_under_way(place.folder().parent().unwrap()));
    assert_eq!(place.files()[Path::new("b")], "old b", "the rest went back");
}
