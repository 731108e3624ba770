//! The three assignments that the scripted owner hands out, and the sentences
//! by which owner and child know each other's messages.

use serde_json::{Value, json};

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// A scout counts languages and finds entry points.
    Languages,
    /// A scout weighs files and reads the history.
    Sizes,
    /// A reviewer looks at one file, after asking which.
    Review,
}

impl Errand {
    /// In the order of spawning.
    pub(super) const ALL: [Errand; 3] = [Errand::Languages, Errand::Sizes, Errand::Review];

    /// Name of the bundled definition.
    pub(super) fn subagent(self) -> &'static str {
        match self {
            Errand::Languages | Errand::Sizes => "scout",
            Errand::Review => "code-reviewer",
        }
    }

    /// What people read about it.
    pub(super) fn brief(self) -> &'static str {
        match self {
            Errand::Languages => "languages and entry points",
            Errand::Sizes => "largest files and recent commits",
            Errand::Review => "small review",
        }
    }

    fn goal(self) -> &'static str {
        match self {
            Errand::Languages => {
                "It is known which languages this folder is written in and where its programs start."
            }
            Errand::Sizes => {
                "It is known which files of this folder are the largest and what was changed last."
            }
            Errand::Review => {
                "One file of this folder was read with care, and what stands out in it is known."
            }
        }
    }

    fn instructions(self) -> [&'static str; 2] {
        match self {
            Errand::Languages => [
                "Count the files of each language.",
                "Name the entry points, nearest to the top first.",
            ],
            Errand::Sizes => [
                "Name the five largest files with their sizes.",
                "Name the newest commits that touch this folder, if it is a git checkout.",
            ],
            Errand::Review => [
                "Find two candidates and ask which of them to review.",
                "Read the chosen file and report only what you can show.",
            ],
        }
    }

    /// The `task` argument of `crew_spawn` (`crew.md` TASK-1).
    pub(super) fn task(self) -> Value {
        json!({
            "goal": self.goal(),
            "context": ["The owner and you are played by the scripted model demo/crew."],
            "instructions": self.instructions(),
        })
    }

    /// Which one the arguments of a `crew_spawn` call hand out.
    pub(super) fn of_spawn(arguments: &Value) -> Option<Errand> {
        let brief = arguments["brief"].as_str()?;
        Errand::ALL.into_iter().find(|errand| errand.brief() == brief)
    }

    /// Which one a child was prompted with.
    pub(super) fn of_prompt(prompt: &str) -> Option<Errand> {
        Errand::ALL.into_iter().find(|errand| prompt.contains(errand.goal()))
    }
}

/// Follow-up to the first scout; a path in backquotes comes behind it.
pub(super) const MEASURE: &str = "One more thing: how many lines has this entry point?";

/// Follow-up to the first scout when it found no entry point.
pub(super) const COUNT_TOP: &str = "One more thing: how many entries has the top folder?";

/// Answer to the reviewer; a path in backquotes comes behind it.
pub(super) const DECISION: &str = "Review this file and leave the others alone:";
