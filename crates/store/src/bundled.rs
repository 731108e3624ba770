//! What ships inside the binary (`crew.md` 19): six definitions, the skill
//! `pi-crew` with its reference page, two prompt templates.
//!
//! The texts are Markdown below `resources/`. Bundled definitions are reached
//! through `definitions` only and never copied (BUND-2).

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::files;

/// One embedded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Its relative path with `/` separators.
    pub name: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// The six bundled definitions in byte order of their file names (`crew.md`
/// BUND-1, CAT-3).
pub fn definitions() -> &'static [File] {
    &[
        File {
            name: "code-reviewer.md",
            text: include_str!("../resources/agents/code-reviewer.md"),
        },
        File { name: "oracle.md", text: include_str!("../resources/agents/oracle.md") },
        File { name: "planner.md", text: include_str!("../resources/agents/planner.md") },
        File {
            name: "quality-reviewer.md",
            text: include_str!("../resources/agents/quality-reviewer.md"),
        },
        File { name: "scout.md", text: include_str!("../resources/agents/scout.md") },
        File { name: "worker.md", text: include_str!("../resources/agents/worker.md") },
    ]
}

/// The files of the skill `pi-crew`, relative to its folder (`crew.md` BUND-21
/// to BUND-23).
pub fn skill_files() -> &'static [File] {
    &[
        File { name: "SKILL.md", text: include_str!("../resources/skills/pi-crew/SKILL.md") },
        File {
            name: "references/create-agent.md",
            text: include_str!("../resources/skills/pi-crew/references/create-agent.md"),
        },
    ]
}

/// The templates behind `/pi-crew-plan` and `/pi-crew-review` (`crew.md` CMD-1).
pub fn prompts() -> &'static [File] {
    &[
        File {
            name: "pi-crew-plan.md",
            text: include_str!("../resources/prompts/pi-crew-plan.md"),
        },
        File {
            name: "pi-crew-review.md",
            text: include_str!("../resources/prompts/pi-crew-review.md"),
        },
    ]
}

/// The name under which warnings and faces show a bundled file.
pub fn path_of(file: &File) -> String {
    format!("bundled:{}", file.name)
}

/// Folder of the bundled skill below the agent directory; it need not exist.
pub fn skill_folder(agent_dir: &Path) -> PathBuf {
    agent_dir.join("crew").join("skills").join("pi-crew")
}

/// Writes the bundled skill to `<agent-dir>/crew/skills/pi-crew`, so that a
/// model can read it by path, and returns the path of its `SKILL.md`. Files
/// with the right content are left alone; new ones are private (`product.md`
/// P-14a, `host.md` 1.1.5).
pub fn materialise(agent_dir: &Path) -> Result<PathBuf> {
    let folder = skill_folder(agent_dir);
    for file in skill_files() {
        let path = folder.join(file.name);
        let same = std::fs::read(&path).is_ok_and(|bytes| bytes == file.text.as_bytes());
        if !same {
            files::replace(&path, file.text.as_bytes())?;
        }
    }
    Ok(folder.join("SKILL.md"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{definitions, frontmatter, prompts, skills};
    use crew_base::definition::{DEFAULT_CHILD_TOOLS, Definition, Source};
    use crew_base::model::ThinkingLevel;
    use std::sync::Arc;

    fn bundled() -> Vec<Arc<Definition>> {
        let parse = |file: &File| {
            let parsed = definitions::parse(file.text, Source::Bundled, &path_of(file));
            // BUND-5.
            assert_eq!(parsed.warnings, Vec::<String>::new(), "{}", file.name);
            parsed.definition.unwrap()
        };
        super::definitions().iter().map(parse).collect()
    }

    fn contains_all(text: &str, words: &[&str]) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(text.contains(word), "\"{word}\" is missing");
        }
    }

    #[test]
    fn the_six_definitions_have_the_tools_and_levels_of_the_table() {
        // BUND-1, BUND-3, the table of section 19.
        let full = DEFAULT_CHILD_TOOLS.join(" ");
        let got: Vec<_> = bundled()
            .iter()
            .map(|d| {
                assert_eq!((&d.model, &d.skills, d.compaction), (&None, &None, true));
                (d.name.clone(), d.tools.join(" "), d.thinking)
            })
            .collect();
        let row = |name: &str, tools: &str, level| (name.to_owned(), tools.to_owned(), Some(level));
        let expected = [
            row("code-reviewer", "read bash", ThinkingLevel::High),
            row("oracle", "read bash", ThinkingLevel::Max),
            row("planner", "read bash", ThinkingLevel::High),
            row("quality-reviewer", "read bash", ThinkingLevel::High),
            row("scout", "read bash", ThinkingLevel::Off),
            row("worker", &full, ThinkingLevel::Medium),
        ];
        assert_eq!(got, expected);
        for file in super::definitions() {
            let fields = frontmatter::read(file.text).unwrap();
            let sets_tools = fields.get("tools").is_some();
            assert_eq!(sets_tools, file.name != "worker.md", "omitted, not copied");
        }
    }

    #[test]
    fn every_role_says_what_all_roles_must_say() {
        // BUND-4.
        for definition in bundled() {
            let words = [
                "in the language of the task",
                "`crew_report`",
                "full answer in `report`",
                "`needs_input`",
                "one precise set of questions",
                "only when",
                "Stop reading when more context no longer changes the answer.",
            ];
            contains_all(&definition.prompt, &words);
        }
    }

    #[test]
    fn each_role_names_its_report() {
        // BUND-7, BUND-9, BUND-10, BUND-15, BUND-18, BUND-20.
        let prompt = |name: &str| {
            let all = bundled();
            let found = all.iter().find(|d| d.name == name).unwrap();
            found.prompt.clone()
        };
        let sections =
            ["**Scope**", "**Findings**", "**Relationships**", "`None`", "**Where to start**"];
        contains_all(&prompt("scout"), &sections);
        let modes = [
            "**Blocking questions.**",
            "one to five",
            "**Implementation plan.**",
            "**No plan needed.**",
            "20 steps",
            "three rounds",
            "reuse",
        ];
        contains_all(&prompt("planner"), &modes);
        contains_all(
            &prompt("oracle"),
            &[
                "first line is the verdict",
                "at most three",
                "low, medium or high",
                "(always)",
                "No material objection",
            ],
        );
        for name in ["code-reviewer", "quality-reviewer"] {
            let form = [
                "[Critical | Major | Minor]",
                "File:",
                "Issue:",
                "Evidence:",
                "Impact:",
                "Fix:",
                "last five commits",
                "uncommitted",
                "says exactly",
            ];
            contains_all(&prompt(name), &form);
        }
        contains_all(
            &prompt("worker"),
            &[
                "**Completed**",
                "**Files changed**",
                "**Verification**",
                "**Blockers**",
                "**Observations**",
                "No commits and no pushes",
            ],
        );
    }

    #[test]
    fn the_skill_and_its_page_are_written_privately_and_only_when_different() {
        // BUND-21 to BUND-23, P-14a.
        let agent_dir = tempfile::tempdir().unwrap();
        let skill = materialise(agent_dir.path()).unwrap();
        let page = skill.parent().unwrap().join("references/create-agent.md");
        assert_eq!(std::fs::read_to_string(&skill).unwrap(), skill_files()[0].text);
        contains_all(
            &std::fs::read_to_string(&page).unwrap(),
            &["`tools`", "`skills`", "+name", "`compaction`"],
        );
        let first = std::fs::metadata(&skill).unwrap().modified().unwrap();
        std::fs::write(&page, "older text").unwrap();
        materialise(agent_dir.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&page).unwrap(), skill_files()[1].text);
        assert_eq!(std::fs::metadata(&skill).unwrap().modified().unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&skill), mode(skill.parent().unwrap())), (0o600, 0o700));
        }
        let loaded = skills::load(&skill, crate::resources::Origin::Bundled);
        let (loaded, warnings) = (loaded.skill.unwrap(), loaded.warnings);
        assert_eq!((loaded.name.as_str(), warnings.len()), ("pi-crew", 0));
        contains_all(&loaded.description, &["before using any crew tool"]);
        let text = skill_files()[0].text;
        let words = [
            "## Integrate",
            "`goal`",
            "`context`",
            "`instructions`",
            "`brief`",
            "Never poll",
            "crew_respond",
            "crew_done",
            "crew_abort",
            "<pi-crew subagent=\"NAME\" />",
            "references/create-agent.md",
        ];
        contains_all(text, &words);
    }

    #[test]
    fn the_two_templates_take_the_words_after_the_command() {
        // CMD-1, BUND-24 to BUND-33.
        for file in super::prompts() {
            let template = prompts::parse(file.name, file.text).unwrap();
            let filled = prompts::substitute(&template.body, &["MY".into(), "TASK".into()]);
            contains_all(
                &filled,
                &["MY TASK", "`crew_list`", "`edit` and `write` must be absent", "crew_done"],
            );
            assert!(!filled.contains("ARGUMENTS"), "{}", file.name);
            let bare = prompts::substitute(&template.body, &[]);
            assert!(bare.contains("none was given"), "{}", file.name);
            assert!(template.argument_hint.is_some());
        }
        contains_all(
            super::prompts()[0].text,
            &[
                "at most four",
                "Never answer for the user",
                "only after every spawned scout has settled",
            ],
        );
        contains_all(
            super::prompts()[1].text,
            &["in parallel", "before every spawned reviewer has settled", "`both`"],
        );
    }
}
