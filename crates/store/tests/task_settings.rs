//! Settings of the `task` tool and of approvals (`task.md` 1.5, OBS-1, OBS-3).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;

use crew_base::model::ThinkingLevel;
use crew_store::settings::file::SettingsFiles;
use crew_store::settings::task::TaskSettings;
use crew_task::approval::{Approval, Mode, Policy};
use crew_task::settings::{Backend, Isolation, Merge, SchemaMode, Settings, Spawns};
use serde_json::{Value, json};

/// The settings of a user and a project file, and the warnings.
fn read(user: &Value, project: &Value) -> (TaskSettings, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, crew: &Value| {
        let path = folder.path().join(name);
        fs::write(&path, json!({"crew": crew}).to_string()).unwrap();
        path
    };
    let (user, project) = (file("user.json", user), file("project.json", project));
    let (settings, warnings) = SettingsFiles::load(&user, Some(&project)).0.task();
    (settings, warnings.into_iter().map(|warning| warning.message).collect())
}

fn task(user: &Value, project: &Value) -> Settings {
    let (settings, warnings) = read(&json!({"task": user}), &json!({"task": project}));
    assert_eq!(warnings, Vec::<String>::new());
    settings.task
}

#[test]
fn without_keys_every_default_of_the_table_holds() {
    let (settings, warnings) = read(&json!({}), &json!({}));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(settings.task, Settings::default());
    assert_eq!((settings.approval, settings.worktree_base), (Approval::default(), None));
}

#[test]
fn every_key_is_read() {
    let user = json!({
        "batch": false, "enableEffort": true, "maxEffort": "low", "maxConcurrency": -1,
        "maxRecursionDepth": -1, "maxRuntimeMs": 7, "softRequestBudget": 0,
        "softRequestBudgetNotice": false, "maxBatchItems": 3, "disabledAgents": ["a"],
        "agentModelOverrides": {"a": "p/m", "b": ["p/1", "p/2"]}, "spawns": "scout, worker",
        "outputSchema": {"type": "object"}, "schemaMode": "strict",
        "isolation": {"enabled": true, "apply": false, "merge": "branch", "commits": "ai"},
    });
    let overrides = [
        ("a".to_owned(), vec!["p/m".to_owned()]),
        ("b".to_owned(), vec!["p/1".to_owned(), "p/2".to_owned()]),
    ];
    let expected = Settings {
        batch: false,
        enable_effort: true,
        max_effort: ThinkingLevel::Low,
        max_concurrency: -1,
        max_recursion_depth: -1,
        max_runtime_ms: 7,
        soft_request_budget: 0,
        soft_request_budget_notice: false,
        max_batch_items: 3,
        disabled_agents: vec!["a".to_owned()],
        agent_model_overrides: overrides.into(),
        spawns: Spawns::Only(vec!["scout".to_owned(), "worker".to_owned()]),
        output_schema: Some(json!({"type": "object"})),
        schema_mode: Some(SchemaMode::Strict),
        isolation: Isolation {
            enabled: true,
            apply: false,
            merge: Merge::Branch,
            generated_messages: true,
            backend: Backend::Auto,
        },
        ..Settings::default()
    };
    assert_eq!(task(&user, &json!({})), expected);
    let others = json!({
        "isolation": {"backend": "copy"}, "worktree": {"base": "~/trees"},
        "approval": {"mode": "always-ask", "tools": {"bash": "prompt", "read": "allow"}},
    });
    let (settings, warnings) = read(&others, &json!({}));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(settings.task.isolation.backend, Backend::Copy);
    assert_eq!(settings.worktree_base.as_deref(), Some("~/trees"));
    let tools = [("bash".to_owned(), Policy::Prompt), ("read".to_owned(), Policy::Allow)];
    let approval = Approval { mode: Mode::AlwaysAsk, tools: tools.into(), can_ask: false };
    assert_eq!(settings.approval, approval);
}

#[test]
fn the_project_comes_before_the_user_key_by_key() {
    let settings = task(
        &json!({"batch": false, "maxConcurrency": 4, "agentModelOverrides": {"a": "u/1", "b": "u/2"}}),
        &json!({"batch": true, "agentModelOverrides": {"a": "p/1"}}),
    );
    assert_eq!((settings.batch, settings.max_concurrency), (true, 4));
    let overrides: Vec<_> = settings.agent_model_overrides.into_values().flatten().collect();
    assert_eq!(overrides, ["p/1", "u/2"]);
}

#[test]
fn a_value_of_a_wrong_type_is_told_and_the_next_one_counts() {
    let check = |user: Value, project: Value, key: &str| {
        let (_, warnings) = read(&user, &project);
        assert!(warnings.len() == 1 && warnings[0].contains(key), "{key}: {warnings:?}");
    };
    check(json!({"task": 7}), json!({}), "crew.task");
    check(json!({"task": {"batch": "no"}}), json!({}), "crew.task.batch");
    check(json!({"task": {"maxConcurrency": 1.5}}), json!({}), "maxConcurrency");
    check(json!({"task": {"maxRuntimeMs": -1}}), json!({}), "maxRuntimeMs");
    check(json!({"task": {"maxBatchItems": 0}}), json!({}), "maxBatchItems");
    check(json!({"task": {"spawns": 3}}), json!({}), "spawns");
    check(json!({"task": {"schemaMode": "loose"}}), json!({}), "schemaMode");
    check(json!({"task": {"agentModelOverrides": {"a": 7}}}), json!({}), "agentModelOverrides.a");
    check(json!({"task": {"isolation": {"merge": "rebase"}}}), json!({}), "isolation.merge");
    check(json!({}), json!({"isolation": {"backend": "zfs"}}), "crew.isolation.backend");
    check(json!({"approval": {"tools": {"bash": "maybe"}}}), json!({}), "approval.tools.bash");
    let (settings, _) = read(
        &json!({"task": {"maxRecursionDepth": 5}}),
        &json!({"task": {"maxRecursionDepth": []}}),
    );
    assert_eq!(settings.task.max_recursion_depth, 5);
}
