//! Preflight: which agent, schema and model selectors each item gets, and
//! what is refused before anything starts (DISP-10, TASK-SPAWN-5 to
//! TASK-SPAWN-13).
//!
//! Owns decisions only. Must never allocate an id or start a child; read
//! `tasks` for what follows.

use std::sync::Arc;

use crew_cycle::schema::{OutputSchema, SchemaMode, SchemaSource};

use crate::agents::Agent;
use crate::arguments::{Item, Request};
use crate::settings::{Settings, Spawns};

/// What of the calling session counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// 0 for a top session.
    pub depth: u32,
    /// Its spawn policy.
    pub spawns: Spawns,
}

/// An item that may start.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// As given.
    pub item: Item,
    /// Its agent.
    pub agent: Arc<Agent>,
    /// The schema that applies, with source and mode.
    pub schema: OutputSchema,
    /// Model selectors in order; empty means the parent's model (TASK-SPAWN-13).
    pub models: Vec<String>,
    /// It works in a copy.
    pub is_isolated: bool,
}

/// Resolves every item before anything starts. If one fails, none does: one
/// line for each that fails, the flat form its reason alone (DISP-10).
pub fn preflight(
    request: &Request,
    standing: &Standing,
    agents: &[Arc<Agent>],
    settings: &Settings,
) -> Result<Vec<Resolved>, String> {
    let mut resolved = Vec::with_capacity(request.items.len());
    let mut refused = Vec::new();
    for (index, item) in request.items.iter().enumerate() {
        match resolve(item, standing, agents, settings) {
            Ok(good) => resolved.push(good),
            Err(text) if request.is_batch => refused.push(format!("{}: {text}", item.label(index))),
            Err(text) => refused.push(text),
        }
    }
    if refused.is_empty() { Ok(resolved) } else { Err(refused.join("\n")) }
}

fn resolve(
    item: &Item,
    standing: &Standing,
    agents: &[Arc<Agent>],
    settings: &Settings,
) -> Result<Resolved, String> {
    if !settings.depth_allows(standing.depth) {
        return Err(format!(
            "no further delegation: this session has depth {}, the maximum is {} \
             (task.maxRecursionDepth)",
            standing.depth, settings.max_recursion_depth
        ));
    }
    let name = item.agent.as_deref().unwrap_or_else(|| standing.spawns.default_agent());
    check_policy(name, &standing.spawns)?;
    let agent = find(name, agents, settings)?;
    let schema = schema_of(item, agent, settings);
    if let Some(error) = schema.unusable()
        && (schema.source == SchemaSource::Caller || schema.mode == SchemaMode::Strict)
    {
        return Err(format!("the {} output schema is unusable: {error}", schema.source.word()));
    }
    let is_isolated = item.isolated == Some(true);
    if is_isolated && !settings.isolation.enabled {
        return Err(
            "isolation is switched off: leave out `isolated`, or have task.isolation.enabled set"
                .to_owned(),
        );
    }
    let overridden = settings.agent_model_overrides.get(name);
    let models = overridden.filter(|list| !list.is_empty()).unwrap_or(&agent.models).clone();
    Ok(Resolved { item: item.clone(), agent: Arc::clone(agent), schema, models, is_isolated })
}

fn check_policy(name: &str, spawns: &Spawns) -> Result<(), String> {
    match spawns {
        Spawns::All => Ok(()),
        Spawns::Off => Err("this session may not delegate".to_owned()),
        Spawns::Only(_) if spawns.allows(name) => Ok(()),
        Spawns::Only(names) => {
            Err(format!("agent `{name}` may not be used here; allowed: {}", names.join(", ")))
        }
    }
}

fn find<'a>(
    name: &str,
    agents: &'a [Arc<Agent>],
    settings: &Settings,
) -> Result<&'a Arc<Agent>, String> {
    let is_disabled = |name: &str| settings.disabled_agents.iter().any(|known| known == name);
    let list = |wanted: &dyn Fn(&str) -> bool| {
        let names: Vec<_> =
            agents.iter().map(|agent| agent.name()).filter(|name| wanted(name)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let Some(agent) = agents.iter().find(|agent| agent.name() == name) else {
        return Err(format!("there is no agent `{name}`; available: {}", list(&|_| true)));
    };
    if is_disabled(name) {
        let enabled = list(&|name| !is_disabled(name));
        return Err(format!("agent `{name}` is disabled; enabled: {enabled}"));
    }
    Ok(agent)
}

/// Caller before agent before session, by presence of the key (TASK-SPAWN-10).
fn schema_of(item: &Item, agent: &Agent, settings: &Settings) -> OutputSchema {
    let mode = item.schema_mode.or(settings.schema_mode).unwrap_or_default();
    let given = [
        (SchemaSource::Caller, &item.output_schema),
        (SchemaSource::Agent, &agent.output),
        (SchemaSource::Session, &settings.output_schema),
    ];
    let first = given.into_iter().find_map(|(source, value)| Some((source, value.as_ref()?)));
    match first {
        Some((source, value)) => OutputSchema::new(source, mode, value),
        None => {
            let mut none = OutputSchema::none();
            none.mode = mode;
            none
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::general;
    use crate::arguments;
    use crew_base::json::Raw;
    use serde_json::{Value, json};

    fn agent(name: &str) -> Agent {
        let definition = crew_base::definition::Definition {
            name: name.to_owned(),
            ..(*general().definition).clone()
        };
        Agent::plain(Arc::new(definition))
    }

    fn agents() -> Vec<Arc<Agent>> {
        let strict = Agent { output: Some(json!("{broken")), ..agent("mal") };
        let shaped = Agent {
            output: Some(json!({"properties": {"from_agent": {}}})),
            models: vec!["p/own".to_owned()],
            ..agent("shaped")
        };
        [agent("scout"), strict, shaped, general()].into_iter().map(Arc::new).collect()
    }

    fn run(call: Value, spawns: Spawns, settings: &Settings) -> Result<Vec<Resolved>, String> {
        let request = arguments::read(&Raw::of(&call), settings).unwrap();
        preflight(&request, &Standing { depth: 0, spawns }, &agents(), settings)
    }

    fn refused(call: Value, spawns: Spawns, settings: &Settings, words: &[&str]) {
        let error = run(call, spawns, settings).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{error} lacks {word}");
        }
    }

    // DISP-10; task.md 12 row 9.
    #[test]
    fn every_failing_item_has_its_line_and_none_starts() {
        let call = json!({"context": "c", "tasks": [{"name": "fine", "task": "x"},
            {"name": "second", "agent": "nobody", "task": "x"}, {"agent": "no-one", "task": "y"}]});
        let error = run(call, Spawns::All, &Settings::default()).unwrap_err();
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("`second`: ") && lines[0].contains("scout"), "{error}");
        assert!(lines[1].starts_with("task 3: ") && !error.contains("fine"), "{error}");
        let flat = run(json!({"task": "x", "agent": "nobody"}), Spawns::All, &Settings::default());
        assert!(flat.unwrap_err().starts_with("there is no agent `nobody`"));
    }

    // TASK-SPAWN-7 in its order; task.md 12 rows 15, 16, 17, 19, 77.
    #[test]
    fn refusals_say_what_would_be_allowed() {
        let plain = Settings::default();
        let none = Settings { max_recursion_depth: 0, ..plain.clone() };
        refused(
            json!({"task": "x", "agent": "nobody"}),
            Spawns::All,
            &none,
            &["depth 0", "maximum is 0"],
        );
        let only = Spawns::Only(vec!["scout".to_owned(), "worker".to_owned()]);
        refused(json!({"task": "x", "agent": "planner"}), only.clone(), &plain, &["scout, worker"]);
        refused(json!({"task": "x"}), Spawns::Off, &plain, &["may not delegate"]);
        let disabled = Settings { disabled_agents: vec!["scout".to_owned()], ..plain.clone() };
        refused(
            json!({"task": "x", "agent": "scout"}),
            Spawns::All,
            &disabled,
            &["`scout` is disabled", "mal, shaped, task"],
        );
        for mode in ["permissive", "strict"] {
            let call = json!({"task": "x", "outputSchema": false, "schemaMode": mode});
            refused(call, Spawns::All, &plain, &["caller"]);
        }
        refused(
            json!({"task": "x", "agent": "mal", "schemaMode": "strict"}),
            Spawns::All,
            &plain,
            &["agent"],
        );
        refused(
            json!({"task": "x", "isolated": true}),
            Spawns::All,
            &plain,
            &["task.isolation.enabled"],
        );
        assert_eq!(run(json!({"task": "x"}), only, &plain).unwrap()[0].agent.name(), "scout");
        assert!(run(json!({"task": "x", "isolated": false}), Spawns::All, &plain).is_ok());
    }

    // TASK-SPAWN-10; task.md 12 rows 18, 20.
    #[test]
    fn the_schema_is_chosen_by_presence() {
        let session = Settings {
            output_schema: Some(json!({"properties": {"from_session": {}}})),
            schema_mode: Some(SchemaMode::Strict),
            ..Settings::default()
        };
        let check = |call: Value, source: SchemaSource, usable: bool| {
            let resolved = run(call, Spawns::All, &session).unwrap();
            let schema = &resolved[0].schema;
            assert_eq!((schema.source, schema.is_usable()), (source, usable));
            assert_eq!(schema.mode, SchemaMode::Strict);
        };
        check(
            json!({"task": "x", "agent": "shaped", "outputSchema": {}}),
            SchemaSource::Caller,
            true,
        );
        check(
            json!({"task": "x", "agent": "shaped", "outputSchema": null}),
            SchemaSource::Caller,
            false,
        );
        check(json!({"task": "x", "agent": "shaped"}), SchemaSource::Agent, true);
        check(json!({"task": "x"}), SchemaSource::Session, true);
        let plain = run(json!({"task": "x", "agent": "mal"}), Spawns::All, &Settings::default());
        let schema = &plain.unwrap()[0].schema;
        assert_eq!((schema.source, schema.unusable().is_some()), (SchemaSource::Agent, true));
        let none = run(json!({"task": "x"}), Spawns::All, &Settings::default()).unwrap();
        assert_eq!(none[0].schema.source, SchemaSource::None);
    }

    // TASK-SPAWN-13.
    #[test]
    fn models_come_from_override_definition_parent() {
        let mut settings = Settings::default();
        let models = |name: &str, settings: &Settings| {
            let call = json!({"task": "x", "agent": name});
            run(call, Spawns::All, settings).unwrap()[0].models.clone()
        };
        assert_eq!(models("shaped", &settings), ["p/own"]);
        assert_eq!(models("scout", &settings), [""; 0]);
        let list = vec!["p/a".to_owned(), "p/b".to_owned()];
        settings.agent_model_overrides.insert("shaped".to_owned(), list.clone());
        assert_eq!(models("shaped", &settings), list);
    }
}
