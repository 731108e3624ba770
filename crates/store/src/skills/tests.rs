use std::fs;

use tempfile::TempDir;

use super::*;

struct World {
    root: TempDir,
    sources: Sources,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let sources = Sources {
            cwd: at("repo/sub"),
            project_dir: at("repo/sub/.pi"),
            agent_dir: at("home/agent"),
            home: Some(at("home")),
            trusted: true,
            discover: true,
            ..Sources::default()
        };
        fs::create_dir_all(at("repo/.git")).unwrap();
        fs::create_dir_all(at("repo/sub")).unwrap();
        World { root, sources }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn skill(&self, path: &str, name: &str) -> PathBuf {
        let text = format!("---\nname: {name}\ndescription: {path}\n---\nBODY\n");
        self.write(path, &text)
    }

    fn names(&self) -> Vec<String> {
        let found = discover(&self.sources);
        found.skills.into_iter().map(|skill| skill.name).collect()
    }
}

#[test]
fn sources_come_in_their_order() {
    // 5.3.4.
    let mut world = World::new();
    world.skill("repo/sub/listed/SKILL.md", "p-listed");
    world.skill("repo/sub/.pi/skills/a/SKILL.md", "p-own");
    world.skill("repo/sub/.agents/skills/a/SKILL.md", "p-agents");
    world.skill("repo/.agents/skills/a/SKILL.md", "p-above");
    world.skill(".agents/skills/a/SKILL.md", "beyond-repository");
    world.skill("home/listed/SKILL.md", "u-listed");
    world.skill("home/agent/skills/a/SKILL.md", "u-own");
    world.skill("home/.agents/skills/a/SKILL.md", "u-agents");
    world.skill("repo/sub/flag/SKILL.md", "flag");
    bundled::materialise(&world.sources.agent_dir).unwrap();
    world.sources.project_list = vec!["../listed".into()];
    world.sources.user_list = vec!["~/listed".into()];
    world.sources.paths = vec!["flag/SKILL.md".into()];
    let project = ["p-listed", "p-own", "p-agents", "p-above"];
    let user = ["u-listed", "u-own", "u-agents", "pi-crew", "flag"];
    assert_eq!(world.names(), [&project[..], &user[..]].concat());
    let origins = discover(&world.sources).skills;
    assert!(origins.iter().map(|skill| skill.origin).is_sorted());
    world.sources.trusted = false;
    assert_eq!(world.names(), user);
    world.sources.discover = false;
    assert_eq!(world.names(), ["flag"]);
}

#[test]
fn the_home_is_the_users_also_when_work_goes_on_below_it() {
    // 5.3.4, 5.6.1.
    let mut world = World::new();
    world.skill("home/.agents/skills/a/SKILL.md", "mine");
    world.sources.cwd = world.at("home/work");
    let found = discover(&world.sources);
    assert_eq!(found.skills[0].origin, Origin::UserAgents);
    world.sources.trusted = false;
    assert_eq!(world.names(), ["mine"]);
}

#[test]
fn a_name_is_taken_once_and_a_file_twice_is_silent() {
    // 5.3.4, host.md 11.102.
    let mut world = World::new();
    let winner = world.skill("repo/sub/.pi/skills/same/SKILL.md", "same");
    let loser = world.skill("home/agent/skills/same/SKILL.md", "same");
    world.sources.paths = vec![winner.to_string_lossy().into_owned()];
    let found = discover(&world.sources);
    assert_eq!(found.skills.len(), 1);
    assert_eq!(found.skills[0].file, winner);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert_eq!(found.warnings[0].path, shown(&loser));
}

#[test]
fn what_a_folder_gives_depends_on_its_skill_file_and_place() {
    // 5.3.3.
    let world = World::new();
    world.skill("repo/sub/.pi/skills/loose.md", "loose");
    world.skill("repo/sub/.pi/skills/deep/er/SKILL.md", "deep");
    world.skill("repo/sub/.pi/skills/deep/note.md", "note");
    world.skill("repo/sub/.pi/skills/deep/er/inner/SKILL.md", "inner");
    world.skill("repo/sub/.pi/skills/.hidden/SKILL.md", "dot");
    world.skill("repo/sub/.pi/skills/node_modules/x/SKILL.md", "module");
    world.skill("repo/sub/.agents/skills/loose.md", "agents-loose");
    world.skill("repo/sub/.agents/skills/kept/SKILL.md", "kept");
    world.skill("home/agent/skills/SKILL.md", "whole");
    world.skill("home/agent/skills/x/SKILL.md", "below");
    assert_eq!(world.names(), ["deep", "loose", "kept", "whole"]);
}

#[test]
fn ignore_files_hide_skills() {
    // 5.3.3.
    let world = World::new();
    let skills = "repo/sub/.pi/skills";
    for name in ["a", "b", "c", "sub/d", "sub/e", "f"] {
        world.skill(&format!("{skills}/{name}/SKILL.md"), &name.replace('/', "-"));
    }
    world.write(&format!("{skills}/.gitignore"), "a/\n/sub/e\n");
    world.write(&format!("{skills}/.ignore"), "b\n");
    world.write(&format!("{skills}/.fdignore"), "c\n");
    world.write(&format!("{skills}/sub/.ignore"), "!e\n");
    world.write(&format!("{skills}/f/.gitignore"), "SKILL.md\n");
    assert_eq!(world.names(), ["sub-d", "sub-e"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_loops_end() {
    // 5.3.3.
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.skill("elsewhere/real/SKILL.md", "linked");
    let skills = world.at("home/agent/skills");
    fs::create_dir_all(skills.join("sub")).unwrap();
    symlink(world.at("elsewhere/real"), skills.join("link")).unwrap();
    symlink(&skills, skills.join("sub/loop")).unwrap();
    symlink(world.at("nowhere"), skills.join("broken.md")).unwrap();
    let found = discover(&world.sources);
    assert_eq!((found.skills.len(), found.warnings.len()), (1, 0));
    assert_eq!(found.skills[0].file, skills.join("link/SKILL.md"));
}

#[test]
fn settings_lists_act_on_what_is_found_by_itself() {
    // 5.7.1.
    let mut world = World::new();
    for name in ["draft-a", "draft-b", "good", "off"] {
        world.skill(&format!("home/agent/skills/{name}/SKILL.md"), name);
    }
    world.skill("repo/sub/.pi/skills/draft-p/SKILL.md", "draft-p");
    let list = ["!skills/draft-*", "+skills/draft-b", "-skills/off", "missing"];
    world.sources.user_list = list.map(str::to_owned).to_vec();
    assert_eq!(world.names(), ["draft-p", "draft-b", "good"]);
    let warnings = discover(&world.sources).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].path.ends_with("missing"));
}

#[test]
fn a_skill_needs_a_description_and_should_have_a_plain_name() {
    // 5.3.2.
    let check = |path: &str, text: &str, name: Option<&str>, warnings: usize| {
        let world = World::new();
        let file = world.write(path, text);
        let loaded = load(&file, Origin::UserFolder);
        let got = loaded.skill.map(|skill| skill.name);
        assert_eq!((got.as_deref(), loaded.warnings.len()), (name, warnings), "{text}");
    };
    let (skill, loose) = ("x/folder/SKILL.md", "x/folder/a.md");
    check(skill, "---\nname: good-1\ndescription: d\n---\n", Some("good-1"), 0);
    check(skill, "---\ndescription: d\n---\n", Some("folder"), 0);
    check(skill, "---\nname: 012\ndescription: no\n---\n", Some("012"), 0);
    check(skill, "---\nname: Bad_Name\ndescription: d\n---\n", Some("Bad_Name"), 1);
    check(skill, "---\nname: a--b\ndescription: d\n---\n", Some("a--b"), 1);
    check(skill, "---\nname: -a\ndescription: d\n---\n", Some("-a"), 1);
    let long = "n".repeat(65);
    check(skill, &format!("---\nname: {long}\ndescription: d\n---\n"), Some(&long), 1);
    let long = "ö".repeat(1024);
    check(skill, &format!("---\nname: a\ndescription: {long}\n---\n"), Some("a"), 0);
    check(skill, &format!("---\nname: a\ndescription: {long}x\n---\n"), Some("a"), 1);
    check(skill, "---\nname: a\n---\n", None, 1);
    check(skill, "---\nname: a\ndescription: ' '\n---\n", None, 1);
    check(skill, "---\nname: a\ndescription: d\nno end", None, 1);
    check(loose, "---\nname: a\n---\n", None, 0);
    check(loose, "# A note\n", None, 0);
    check(loose, "---\nname: [\n---\n", None, 1);
}

#[test]
fn only_a_literal_true_hides_a_skill() {
    // 5.3.2.
    let check = |value: &str, hidden: bool| {
        let world = World::new();
        let text =
            format!("---\nname: a\ndescription: d\ndisable-model-invocation: {value}\n---\n");
        let file = world.write("a/SKILL.md", &text);
        assert_eq!(load(&file, Origin::UserFolder).skill.unwrap().hidden, hidden, "{value}");
    };
    check("true", true);
    check("false", false);
    check("yes", false);
    check("'true'", false);
    check("1", false);
    check("", false);
}

fn skill(name: &str, description: &str, hidden: bool) -> Skill {
    Skill {
        name: name.into(),
        description: description.into(),
        file: PathBuf::from(format!("/s & t/{name}/SKILL.md")),
        hidden,
        origin: Origin::UserFolder,
    }
}

#[test]
fn the_prompt_lists_visible_skills_as_xml() {
    // 5.3.5.
    let skills = [skill("a", "helps <much> & \"more\"", false), skill("b", "d", true)];
    let tools = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let text = prompt_section(&skills, &tools(&["bash"])).unwrap();
    let start = text.find("<available_skills>").unwrap();
    let squeezed: String = text[start..].lines().map(str::trim).collect();
    let expected = "<available_skills><skill><name>a</name>\
        <description>helps &lt;much&gt; &amp; &quot;more&quot;</description>\
        <location>/s &amp; t/a/SKILL.md</location></skill></available_skills>";
    assert_eq!(squeezed, expected);
    assert!(prompt_section(&skills, &tools(&["read"])).is_some());
    assert_eq!(prompt_section(&skills, &tools(&["edit"])), None);
    assert_eq!(prompt_section(&skills[1..], &tools(&["read"])), None);
}

#[test]
fn a_skill_command_becomes_the_body_and_the_words() {
    // 5.3.6.
    let mut world = World::new();
    let file = world.skill("home/agent/skills/good/SKILL.md", "good");
    let skills = discover(&world.sources).skills;
    let check = |input: &str, args: Option<&str>| {
        let got = expand(&skills, input).unwrap();
        let expected = args.map(|args| {
            let folder = shown(file.parent().unwrap());
            format!(
                "<skill name=\"good\" location=\"{}\">\nRelative paths in this skill start at {folder}.\n\nBODY\n</skill>{args}",
                shown(&file)
            )
        });
        assert_eq!(got, expected, "{input}");
    };
    check("/skill:good", Some(""));
    check("/skill:good  with  args ", Some("\n\nwith  args"));
    check("/skill:good\nline", Some("\n\nline"));
    check("/skill:unknown x", None);
    check(" /skill:good", None);
    check("/skill:", None);
    check("/skills:good", None);
    fs::remove_file(&file).unwrap();
    assert!(expand(&skills, "/skill:good").is_err());
    world.sources.discover = false;
    assert!(world.names().is_empty());
}

#[test]
fn a_subagent_gets_its_listed_skills_or_all_but_the_bundled_one() {
    // ISO-7, CAT-19, CAT-30.
    let mut shipped = skill("pi-crew", "d", false);
    shipped.origin = Origin::Bundled;
    let skills = [skill("one", "d", false), skill("two", "d", true), shipped];
    let check = |listed: Option<&[&str]>, names: &[&str], unknown: &[&str]| {
        let listed: Option<Vec<String>> =
            listed.map(|l| l.iter().map(|n| (*n).to_owned()).collect());
        let (kept, missing) = for_child(&skills, listed.as_deref());
        let kept: Vec<&str> = kept.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(
            (kept.as_slice(), missing.as_slice()),
            (names, &unknown.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()[..])
        );
    };
    check(None, &["one", "two"], &[]);
    check(Some(&[]), &[], &[]);
    check(Some(&["two", "+one", "pi-crew"]), &["two", "pi-crew"], &["+one"]);
}
