//! Agents as this tool sees them: a definition and the keys only `task` reads
//! (OBS-2), and the general agent that only this tool knows.

use std::sync::Arc;

use serde_json::Value;

use crew_base::definition::{DEFAULT_CHILD_TOOLS, Definition, Source};

use crate::settings::Spawns;

/// Name of the general agent.
pub const GENERAL: &str = "task";

/// An agent that can be spawned.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// What it shares with the crew's catalogue.
    pub definition: Arc<Definition>,
    /// `spawns`; `None` may not delegate (TASK-SPAWN-6).
    pub spawns: Option<Spawns>,
    /// `output`, if the key is there: a schema, or text of one.
    pub output: Option<Value>,
    /// `model`, a selector or a list of them in order.
    pub models: Vec<String>,
}

impl Agent {
    /// A definition without any key of this tool.
    pub fn plain(definition: Arc<Definition>) -> Agent {
        let models = definition.model.iter().cloned().collect();
        Agent { definition, spawns: None, output: None, models }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Requests it may make at most, whatever the setting says (`task.md` 1.6).
    pub fn budget_ceiling(&self) -> Option<u32> {
        const SCOUT: u32 = 100;
        let is_scout = self.name() == "scout" && self.definition.source == Source::Bundled;
        is_scout.then_some(SCOUT)
    }
}

/// The general agent: default tools, may not delegate (OBS-2).
pub fn general() -> Agent {
    let definition = Definition {
        name: GENERAL.to_owned(),
        description: "General worker for one self-contained assignment.".to_owned(),
        source: Source::Bundled,
        path: "bundled:task".to_owned(),
        model: None,
        thinking: None,
        tools: DEFAULT_CHILD_TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
        skills: None,
        compaction: true,
        prompt: "You are a careful engineer who carries one assignment to its end. Look before \
                 you change anything, keep to what was asked, check what you did with the means \
                 at hand, and report facts: what you found or changed, where, and what is still \
                 open."
            .to_owned(),
    };
    Agent::plain(Arc::new(definition))
}

/// The agents of a discovery with the general one behind them, unless a
/// definition has its name. `main` and `sub` are nobody (TASK-SPAWN-5).
pub fn catalogue(mut agents: Vec<Agent>) -> Vec<Agent> {
    agents.retain(|agent| !RESERVED.contains(&agent.name()));
    if !agents.iter().any(|agent| agent.name() == GENERAL) {
        agents.push(general());
    }
    agents
}

const RESERVED: [&str; 2] = ["main", "sub"];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, source: Source) -> Agent {
        let definition =
            Definition { name: name.to_owned(), source, ..(*general().definition).clone() };
        Agent::plain(Arc::new(definition))
    }

    // TASK-SPAWN-5, OBS-2.
    #[test]
    fn the_general_agent_stands_behind_all_others() {
        let names = |agents: Vec<Agent>| -> Vec<String> {
            catalogue(agents).iter().map(|agent| agent.name().to_owned()).collect()
        };
        let scout = named("scout", Source::Bundled);
        assert_eq!(names(vec![scout.clone(), named("main", Source::User)]), ["scout", "task"]);
        let own = named("task", Source::User);
        assert_eq!(names(vec![own.clone()]), ["task"]);
        assert_eq!(catalogue(vec![own])[0].definition.source, Source::User);
    }

    #[test]
    fn only_the_bundled_scout_has_a_ceiling() {
        assert_eq!(named("scout", Source::Bundled).budget_ceiling(), Some(100));
        assert_eq!(named("scout", Source::User).budget_ceiling(), None);
        assert_eq!(general().budget_ceiling(), None);
    }
}
