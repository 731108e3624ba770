//! The settings of the `task` tool and of approvals (`task.md` 1.5, OBS-1,
//! OBS-3, OBS-13), below the key `crew`.
//!
//! Read anew for each dispatch by whoever loads the files. A value of a wrong
//! type gives a warning and counts as not set. Must never decide about a call.

use std::collections::BTreeMap;

use crew_base::definition::Warning;
use crew_task::approval::{Approval, Mode, Policy};
use crew_task::settings::{Backend, Isolation, Merge, SchemaMode, Settings, Spawns};
use serde_json::Value;

use super::reader::{Layer, Reader, list, whole};
use super::typed::{LEVELS, level, map};

/// Everything that a dispatch goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSettings {
    /// `crew.task.*` and `crew.isolation.backend`.
    pub task: Settings,
    /// `crew.approval.*`; nobody can be asked.
    pub approval: Approval,
    /// `crew.worktree.base` as written.
    pub worktree_base: Option<String>,
}

impl TaskSettings {
    pub(crate) fn read(user: &Layer, project: Option<&Layer>) -> (TaskSettings, Vec<Warning>) {
        let mut reader = Reader::new(user, project);
        let r = &mut reader;
        let settings = TaskSettings {
            task: task(r),
            approval: approval(r),
            worktree_base: r.text("crew.worktree.base"),
        };
        (settings, reader.warnings)
    }
}

fn task(r: &mut Reader<'_>) -> Settings {
    let defaults = Settings::default();
    let integer = |r: &mut Reader<'_>, key: &str, default: i64| {
        r.get(key, "a whole number", signed).unwrap_or(default)
    };
    let modes = [SchemaMode::Permissive, SchemaMode::Strict].map(|mode| (mode.word(), mode));
    let positive = |value: &Value| whole(value).filter(|number| *number > 0);
    let items = r.get("crew.task.maxBatchItems", "a whole number from 1", positive);
    let budget = r.count("crew.task.softRequestBudget");
    Settings {
        batch: r.flag("crew.task.batch", defaults.batch),
        enable_effort: r.flag("crew.task.enableEffort", defaults.enable_effort),
        max_effort: r.get("crew.task.maxEffort", LEVELS, level).unwrap_or(defaults.max_effort),
        max_concurrency: integer(r, "crew.task.maxConcurrency", defaults.max_concurrency),
        max_recursion_depth: integer(
            r,
            "crew.task.maxRecursionDepth",
            defaults.max_recursion_depth,
        ),
        max_runtime_ms: r.count("crew.task.maxRuntimeMs").unwrap_or(defaults.max_runtime_ms),
        soft_request_budget: budget
            .map_or(defaults.soft_request_budget, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        soft_request_budget_notice: r
            .flag("crew.task.softRequestBudgetNotice", defaults.soft_request_budget_notice),
        max_batch_items: items
            .map_or(defaults.max_batch_items, |n| usize::try_from(n).unwrap_or(usize::MAX)),
        disabled_agents: r.texts("crew.task.disabledAgents").unwrap_or_default(),
        agent_model_overrides: model_overrides(r),
        spawns: r
            .get("crew.task.spawns", "true, false, \"*\" or names", spawns)
            .unwrap_or(defaults.spawns),
        output_schema: r.get("crew.task.outputSchema", "a schema or text of one", schema),
        schema_mode: r.word("crew.task.schemaMode", &modes),
        isolation: isolation(r),
        output_bytes_max: defaults.output_bytes_max,
        output_lines_max: defaults.output_lines_max,
    }
}

fn isolation(r: &mut Reader<'_>) -> Isolation {
    let defaults = Isolation::default();
    let merges = [("patch", Merge::Patch), ("branch", Merge::Branch)];
    let commits = [("generic", false), ("ai", true)];
    let backends =
        [("auto", Backend::Auto), ("worktree", Backend::Worktree), ("copy", Backend::Copy)];
    Isolation {
        enabled: r.flag("crew.task.isolation.enabled", defaults.enabled),
        apply: r.flag("crew.task.isolation.apply", defaults.apply),
        merge: r.word("crew.task.isolation.merge", &merges).unwrap_or(defaults.merge),
        generated_messages: r
            .word("crew.task.isolation.commits", &commits)
            .unwrap_or(defaults.generated_messages),
        backend: r.word("crew.isolation.backend", &backends).unwrap_or(defaults.backend),
    }
}

fn approval(r: &mut Reader<'_>) -> Approval {
    let modes = [("always-ask", Mode::AlwaysAsk), ("write", Mode::Write), ("yolo", Mode::Yolo)];
    let policy = |value: &Value| match value.as_str()? {
        "allow" => Some(Policy::Allow),
        "deny" => Some(Policy::Deny),
        "prompt" => Some(Policy::Prompt),
        _ => None,
    };
    Approval {
        mode: r.word("crew.approval.mode", &modes).unwrap_or_default(),
        tools: map(r, "crew.approval.tools", "one of allow, deny, prompt", policy),
        can_ask: false,
    }
}

/// A selector or an ordered list of them for each agent.
fn model_overrides(r: &mut Reader<'_>) -> BTreeMap<String, Vec<String>> {
    let selectors = |value: &Value| match value.as_str() {
        Some(selector) => Some(vec![selector.to_owned()]),
        None => list(value),
    };
    map(r, "crew.task.agentModelOverrides", "a model or a list of models", selectors)
}

fn spawns(value: &Value) -> Option<Spawns> {
    let is_known = value.is_boolean() || value.is_string() || list(value).is_some();
    is_known.then(|| Spawns::read(value))
}

/// What can be one at all (`task.md` TASK-SPAWN-11).
fn schema(value: &Value) -> Option<Value> {
    let is_possible = value.is_object() || value.is_boolean() || value.is_string();
    is_possible.then(|| value.clone())
}

fn signed(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| whole(value).and_then(|number| i64::try_from(number).ok()))
}
