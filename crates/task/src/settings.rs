//! Settings of the tool as values (`task.md` 1.5, OBS-1). Read for each
//! dispatch by the store, never here.

use std::collections::BTreeMap;

use serde_json::Value;

use crew_base::limits::{TASK_BATCH_ITEMS, TASK_OUTPUT_BYTES_MAX, TASK_OUTPUT_LINES_MAX};
use crew_base::model::ThinkingLevel;

/// How a schema is taken, as the cycle that checks it knows it.
pub type SchemaMode = crew_cycle::schema::SchemaMode;

/// Everything below `task.`, with its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `task.batch`.
    pub batch: bool,
    /// `task.enableEffort`.
    pub enable_effort: bool,
    /// `task.maxEffort`.
    pub max_effort: ThinkingLevel,
    /// `task.maxConcurrency`; 0 or less is no limit.
    pub max_concurrency: i64,
    /// `task.maxRecursionDepth`; below 0 is no limit.
    pub max_recursion_depth: i64,
    /// `task.maxRuntimeMs`; 0 is no limit.
    pub max_runtime_ms: u64,
    /// `task.softRequestBudget`; 0 switches the guard off.
    pub soft_request_budget: u32,
    /// `task.softRequestBudgetNotice`.
    pub soft_request_budget_notice: bool,
    /// `task.maxBatchItems` (OP-9).
    pub max_batch_items: usize,
    /// `task.disabledAgents`.
    pub disabled_agents: Vec<String>,
    /// `task.agentModelOverrides`: agent name to selectors in order.
    pub agent_model_overrides: BTreeMap<String, Vec<String>>,
    /// `task.spawns`: what a top session may spawn (OBS-2).
    pub spawns: Spawns,
    /// `task.outputSchema`, if the key is there.
    pub output_schema: Option<Value>,
    /// `task.schemaMode`.
    pub schema_mode: Option<SchemaMode>,
    /// `task.isolation.*` and `isolation.backend`.
    pub isolation: Isolation,
    /// Tail limit in bytes, from the environment if it names a positive one.
    pub output_bytes_max: usize,
    /// Tail limit in lines, from the environment if it names a positive one.
    pub output_lines_max: usize,
}

/// `task.isolation.*` and `isolation.backend` (OBS-13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// `enabled`.
    pub enabled: bool,
    /// `apply`.
    pub apply: bool,
    /// `merge`.
    pub merge: Merge,
    /// `commits` is `ai`.
    pub generated_messages: bool,
    /// `isolation.backend`.
    pub backend: Backend,
}

/// How isolated changes come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// As a patch on the working tree.
    Patch,
    /// As commits.
    Branch,
}

/// How a copy is made (OP-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// What works best.
    Auto,
    /// A git work tree.
    Worktree,
    /// A recursive copy.
    Copy,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            batch: true,
            enable_effort: false,
            max_effort: ThinkingLevel::Max,
            max_concurrency: 32,
            max_recursion_depth: 2,
            max_runtime_ms: 0,
            soft_request_budget: 200,
            soft_request_budget_notice: true,
            max_batch_items: TASK_BATCH_ITEMS,
            disabled_agents: Vec::new(),
            agent_model_overrides: BTreeMap::new(),
            spawns: Spawns::All,
            output_schema: None,
            schema_mode: None,
            isolation: Isolation::default(),
            output_bytes_max: TASK_OUTPUT_BYTES_MAX,
            output_lines_max: TASK_OUTPUT_LINES_MAX,
        }
    }
}

impl Default for Isolation {
    fn default() -> Isolation {
        Isolation {
            enabled: false,
            apply: true,
            merge: Merge::Patch,
            generated_messages: false,
            backend: Backend::Auto,
        }
    }
}

/// Which agents may be spawned (TASK-SPAWN-6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spawns {
    /// None.
    Off,
    /// Every agent; the default one is `task`.
    All,
    /// Only these; the first is the default one. Never empty.
    Only(Vec<String>),
}

impl Spawns {
    /// Reads `true`, `false`, `*`, a list or a comma-separated text. Values of
    /// another kind allow nothing.
    pub fn read(value: &Value) -> Spawns {
        let names: Vec<String> = match value {
            Value::Bool(true) => return Spawns::All,
            Value::String(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
            Value::Array(items) => {
                items.iter().filter_map(|item| Some(item.as_str()?.trim().to_owned())).collect()
            }
            Value::Bool(false) | Value::Null | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.iter().any(|name| name == "*") {
            Spawns::All
        } else if names.is_empty() {
            Spawns::Off
        } else {
            Spawns::Only(names)
        }
    }

    /// Whether anything may be spawned.
    pub fn is_on(&self) -> bool {
        match self {
            Spawns::Off => false,
            Spawns::All | Spawns::Only(_) => true,
        }
    }

    /// The agent of an item that names none.
    pub fn default_agent(&self) -> &str {
        match self {
            Spawns::Off | Spawns::All => crate::agents::GENERAL,
            Spawns::Only(names) => names.first().map_or(crate::agents::GENERAL, String::as_str),
        }
    }

    /// Whether this agent may be spawned.
    pub fn allows(&self, agent: &str) -> bool {
        match self {
            Spawns::Off => false,
            Spawns::All => true,
            Spawns::Only(names) => names.iter().any(|name| name == agent),
        }
    }
}

impl Settings {
    /// Whether a session of this depth may spawn (TASK-SPAWN-9).
    pub fn depth_allows(&self, depth: u32) -> bool {
        self.max_recursion_depth < 0 || i64::from(depth) < self.max_recursion_depth
    }

    /// The limit on running children of one session, if there is one.
    pub fn concurrency(&self) -> Option<usize> {
        usize::try_from(self.max_concurrency).ok().filter(|limit| *limit > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // TASK-SPAWN-6, OBS-2; task.md 12 row 16.
    #[test]
    fn spawns_is_read_from_every_form() {
        let check = |value: Value, expected: Spawns, default: &str| {
            let read = Spawns::read(&value);
            assert_eq!((&read, read.default_agent()), (&expected, default), "{value}");
        };
        let only = |names: &[&str]| Spawns::Only(names.iter().map(|n| (*n).to_owned()).collect());
        check(json!(true), Spawns::All, "task");
        check(json!("*"), Spawns::All, "task");
        check(json!(false), Spawns::Off, "task");
        check(json!(""), Spawns::Off, "task");
        check(json!([]), Spawns::Off, "task");
        check(json!("scout, worker"), only(&["scout", "worker"]), "scout");
        check(json!(["worker", " scout "]), only(&["worker", "scout"]), "worker");
        check(json!(["a", "*"]), Spawns::All, "task");
        check(json!(3), Spawns::Off, "task");
    }

    // TASK-SPAWN-9; task.md 12 rows 14, 15.
    #[test]
    fn depth_is_bounded_below_the_maximum() {
        let check = |max: i64, depth: u32, expected: bool| {
            let settings = Settings { max_recursion_depth: max, ..Settings::default() };
            assert_eq!(settings.depth_allows(depth), expected, "{max} {depth}");
        };
        check(2, 0, true);
        check(2, 1, true);
        check(2, 2, false);
        check(0, 0, false);
        check(-1, 99, true);
    }
}
