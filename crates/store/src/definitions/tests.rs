use std::fs;

use crew_base::definition::DEFAULT_CHILD_TOOLS;
use crew_base::model::ThinkingLevel;
use tempfile::TempDir;

use super::*;

struct World {
    root: TempDir,
    catalog: Catalog,
    trusted: bool,
}

impl World {
    fn new() -> World {
        World { root: tempfile::tempdir().unwrap(), catalog: Catalog::default(), trusted: true }
    }

    fn folders(&self) -> Folders {
        Folders {
            user_dir: self.root.path().join("user"),
            project_dir: self.root.path().join("project/.pi"),
        }
    }

    fn write(&self, place: &str, text: &str) -> PathBuf {
        let path = match place.split_once(':').unwrap() {
            ("user", name) => self.folders().user_dir.join(name),
            (_, name) => self.folders().project_dir.join(name),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn define(&self, place: &str, name: &str, fields: &str) -> PathBuf {
        let text = format!("---\nname: {name}\ndescription: about {name}\n{fields}\n---\nROLE");
        self.write(place, &text)
    }

    fn discover(&mut self) -> Discovery {
        let folders = self.folders();
        self.catalog.discover(&folders, self.trusted).discovery
    }
}

fn names(discovery: &Discovery, source: Source) -> Vec<&str> {
    let all = discovery.definitions.iter();
    all.filter(|definition| definition.source == source)
        .map(|definition| definition.name.as_str())
        .collect()
}

fn by_name<'a>(discovery: &'a Discovery, name: &str) -> &'a Definition {
    let mut all = discovery.definitions.iter();
    all.find(|definition| definition.name == name).unwrap()
}

/// As many warnings as rows, each row's words in one of them.
fn warned(discovery: &Discovery, rows: &[&[&str]]) {
    let warnings = &discovery.warnings;
    assert_eq!(warnings.len(), rows.len(), "{warnings:#?}");
    for row in rows {
        let fits =
            |w: &Warning| row.iter().all(|word| w.path.contains(word) || w.message.contains(word));
        assert!(warnings.iter().any(fits), "{row:?} in {warnings:#?}");
    }
}

#[test]
fn sources_come_by_priority_and_files_by_name() {
    // CAT-1 to CAT-4, TOOL-14, BUND-2, row 61.
    let mut world = World::new();
    world.define("user:agents/b.md", "both", "");
    world.define("user:agents/a.md", "useronly", "");
    world.define("user:agents/B.md", "upper", "");
    world.define("user:agents/c.md", "scout", "thinking: high");
    world.define("user:agents/sub/x.md", "deep", "");
    world.define("user:agents/n.txt", "text", "");
    world.define("project:agents/z.md", "both", "");
    world.define("project:agents/y.md", "projonly", "");
    let found = world.discover();
    warned(&found, &[]);
    assert_eq!(names(&found, Source::Project), ["projonly", "both"]);
    assert_eq!(names(&found, Source::User), ["upper", "useronly", "scout"]);
    assert!(!names(&found, Source::Bundled).contains(&"scout"));
    assert_eq!(by_name(&found, "scout").thinking, Some(ThinkingLevel::High));
    let order: Vec<Source> = found.definitions.iter().map(|d| d.source).collect();
    assert!(order.is_sorted());
    assert_eq!(found.folders.len(), 2);
}

#[test]
fn an_untrusted_project_is_skipped_with_one_warning() {
    // CAT-6, CAT-7, CFG-1, row 60.
    let mut world = World::new();
    world.trusted = false;
    warned(&world.discover(), &[]);
    world.define("user:agents/u.md", "u", "thinking: low");
    world.define("project:agents/p.md", "p", "thinking: wrong");
    let config = r#"{"agents":{"u":{"thinking":"high"}},"widget":{"showToolCalls":false}}"#;
    world.write("project:pi-crew.json", config);
    let folders = world.folders();
    let found = world.catalog.discover(&folders, false);
    warned(&found.discovery, &[&["project/.pi", "trusted"]]);
    assert!(found.show_tool_calls);
    assert!(names(&found.discovery, Source::Project).is_empty());
    let thinking = by_name(&found.discovery, "u").thinking;
    assert_eq!(thinking, Some(ThinkingLevel::Low));
    fs::remove_dir_all(folders.project_dir.join("agents")).unwrap();
    warned(&world.discover(), &[&["trusted"]]);
    fs::remove_file(folders.project_dir.join("pi-crew.json")).unwrap();
    warned(&world.discover(), &[]);
}

#[test]
fn the_first_valid_file_of_a_source_takes_the_name() {
    // CAT-5, row 62.
    let mut world = World::new();
    world.write("user:agents/0.md", "---\nname: twin\n---\nno description");
    world.define("user:agents/a.md", "twin", "thinking: low");
    world.define("user:agents/b.md", "twin", "thinking: high");
    let found = world.discover();
    warned(&found, &[&["0.md", "description"], &["b.md", "twin"]]);
    assert_eq!(by_name(&found, "twin").thinking, Some(ThinkingLevel::Low));
    // CAT-9: told every time.
    assert_eq!(world.discover().warnings, found.warnings);
}

#[cfg(unix)]
#[test]
fn links_count_and_what_cannot_be_read_is_told() {
    // CAT-2.
    let mut world = World::new();
    let real = world.define("user:elsewhere/x.txt", "linked", "");
    let agents = world.define("user:agents/a.md", "a", "");
    let agents = agents.parent().unwrap();
    std::os::unix::fs::symlink(&real, agents.join("l.md")).unwrap();
    std::os::unix::fs::symlink("nowhere", agents.join("broken.md")).unwrap();
    std::os::unix::fs::symlink(agents, agents.join("folder.md")).unwrap();
    fs::write(agents.join("bytes.md"), [0xff, 0xfe]).unwrap();
    fs::create_dir(agents.join("dir.md")).unwrap();
    let found = world.discover();
    assert_eq!(names(&found, Source::User), ["a", "linked"]);
    warned(&found, &[&["broken.md"], &["folder.md"], &["bytes.md", "UTF-8"]]);
    let mut world = World::new();
    world.write("user:agents", "a file in place of the folder");
    warned(&world.discover(), &[&["user/agents", "folder"]]);
}

#[test]
fn overrides_apply_user_first_then_project() {
    // CFG-2, CFG-5 to CFG-7, rows 63 to 66.
    let check = |project: &str, name: &str, expected: (Option<&str>, Option<&str>, &str)| {
        let mut world = World::new();
        world.define("user:agents/two.md", "two", "tools: read, bash\nthinking: max");
        let user = r#"{"agents": {"two": {"tools": ["+grep"], "thinking": "low"},
            "scout": {"model": "fake/m2"}}, "other": 1}"#;
        world.write("user:pi-crew.json", user);
        world.write("project:pi-crew.json", project);
        let found = world.discover();
        let definition = by_name(&found, name);
        let thinking = definition.thinking.map(ThinkingLevel::word);
        let tools = definition.tools.join(" ");
        let got = (definition.model.as_deref(), thinking, tools.as_str());
        assert_eq!(got, expected, "{project}");
        found.warnings.len()
    };
    let plain = (None, Some("low"), "read bash grep");
    assert_eq!(check("{}", "two", plain), 0);
    let model = (Some("p/m"), Some("low"), "read bash grep");
    assert_eq!(check(r#"{"agents":{"two":{"model":"p/m"}}}"#, "two", model), 0);
    assert_eq!(check(r#"{"agents":{"two":{"thinking":"wrong"}}}"#, "two", plain), 1);
    let minus = (None, Some("low"), "read grep");
    assert_eq!(check(r#"{"agents":{"two":{"tools":["-bash"]}}}"#, "two", minus), 0);
    let reset = (None, Some("low"), "read ls");
    assert_eq!(check(r#"{"agents":{"two":{"tools":["read","+ls"]}}}"#, "two", reset), 0);
    let bundled = (Some("fake/m2"), Some("off"), "read bash");
    assert_eq!(check("{}", "scout", bundled), 0);
    let malformed = (Some("noslash"), Some("off"), "read bash");
    assert_eq!(check(r#"{"agents":{"scout":{"model":"noslash"}}}"#, "scout", malformed), 1);
}

#[test]
fn configuration_faults_carry_the_path_of_their_file() {
    // CAT-28, CFG-4, CFG-8, CFG-9, rows 67 and 68.
    let mut world = World::new();
    world.define("user:agents/a.md", "a", "");
    let user = r#"{"agents": {"a": {"interactive": true, "name": "x", "tools": "-absent"},
        "b": 7, "ghost": {"thinking": "low"}, " ": {}}, "widget": {"showToolCalls": "yes"}}"#;
    world.write("user:pi-crew.json", user);
    world.write("project:pi-crew.json", r#"{"agents": {"ghost": {}}}"#);
    let found = world.discover();
    let rows: [&[&str]; 7] = [
        &["user/pi-crew.json", "interactive", "unknown field"],
        &["user/pi-crew.json", "name", "not overridable"],
        &["user/pi-crew.json", "\"a\"", "absent"],
        &["user/pi-crew.json", "\"b\""],
        &["user/pi-crew.json", "blank"],
        &["user/pi-crew.json", "showToolCalls"],
        &["project/.pi/pi-crew.json", "ghost"],
    ];
    warned(&found, &rows);
    assert_eq!(by_name(&found, "a").tools, DEFAULT_CHILD_TOOLS);
}

#[test]
fn the_widget_setting_of_the_project_wins() {
    // CFG-9.
    let check = |user: &str, project: &str, expected: bool| {
        let mut world = World::new();
        world.write("user:pi-crew.json", user);
        world.write("project:pi-crew.json", project);
        let folders = world.folders();
        let found = world.catalog.discover(&folders, true);
        assert_eq!(found.show_tool_calls, expected, "{user} {project}");
    };
    let (on, off) =
        (r#"{"widget":{"showToolCalls":true}}"#, r#"{"widget":{"showToolCalls":false}}"#);
    check("{}", "{}", true);
    check(off, "{}", false);
    check(off, on, true);
    check(on, off, false);
    check(off, r#"{"widget":{"showToolCalls":1}}"#, false);
}

#[test]
fn a_file_is_parsed_again_only_when_its_size_or_time_changed() {
    // CAT-8, row 100: what was handed out before stays as it was.
    let mut world = World::new();
    let path = world.define("user:agents/a.md", "a", "thinking: low");
    world.write("user:pi-crew.json", r#"{"agents":{"a":{"compaction":false}}}"#);
    let before = world.discover();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    world.define("user:agents/a.md", "a", "thinking: max");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    let level = |found: &Discovery| by_name(found, "a").thinking.map(ThinkingLevel::word);
    assert_eq!(level(&world.discover()), Some("low"), "same size and time");
    file.set_modified(time + std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(level(&world.discover()), Some("max"), "another time");
    assert_eq!(level(&before), Some("low"));
    world.define("user:agents/a.md", "a", "thinking: medium");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(time + std::time::Duration::from_secs(1)).unwrap();
    let found = world.discover();
    assert_eq!(level(&found), Some("medium"), "another size");
    assert!(!by_name(&found, "a").compaction);
    fs::remove_file(world.folders().user_dir.join("pi-crew.json")).unwrap();
    assert!(by_name(&world.discover(), "a").compaction, "overrides do not stick");
    fs::remove_file(&path).unwrap();
    assert!(names(&world.discover(), Source::User).is_empty());
    assert!(world.catalog.definitions.is_empty());
}

#[test]
fn agents_have_what_only_the_task_tool_reads() {
    // task.md OBS-2, CAT-15: to the crew a list of models has the wrong type.
    let mut world = World::new();
    world.define("user:agents/a.md", "lister", "model: [p/1, p/2]\nspawns: scout");
    world.define("user:agents/b.md", "overridden", "model: [p/1, p/2]");
    world.define("user:agents/c.md", "plain", "model: p/3\noutput: {type: object}");
    world.write("user:pi-crew.json", r#"{"agents":{"overridden":{"model":"p/9"}}}"#);
    let found = world.catalog.discover(&world.folders(), true);
    warned(&found.discovery, &[&["a.md", "model", "type"], &["b.md", "model", "type"]]);
    assert_eq!(by_name(&found.discovery, "lister").model, None);
    let agent = |name: &str| found.agents.iter().find(|agent| agent.name() == name).unwrap();
    assert_eq!(agent("lister").models, ["p/1", "p/2"]);
    assert!(agent("lister").spawns.as_ref().is_some_and(|spawns| spawns.allows("scout")));
    assert_eq!(agent("overridden").models, ["p/9"]);
    assert_eq!(agent("plain").models, ["p/3"]);
    assert_eq!(agent("plain").output, Some(serde_json::json!({"type": "object"})));
    assert_eq!(found.agents.len(), found.discovery.definitions.len());
}
