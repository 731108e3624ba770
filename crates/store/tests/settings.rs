//! Settings files: layers, wrong values, and writes that leave the rest alone
//! (`host.md` 1.3).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use crew_base::model::ThinkingLevel;
use crew_store::error::Error;
use crew_store::settings::file::{Scope, SettingsFiles, project_session_dir};
use crew_store::settings::typed::{DefaultTrust, QueueMode, QuietStart, Settings};
use serde_json::{Value, json};

struct World {
    _folder: tempfile::TempDir,
    user: PathBuf,
    project: PathBuf,
}

fn world(user: &str, project: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        if !text.is_empty() {
            fs::write(&path, text).unwrap();
        }
        path
    };
    World { user: file("user.json", user), project: file("project.json", project), _folder: folder }
}

impl World {
    fn files(&self) -> SettingsFiles {
        SettingsFiles::load(&self.user, Some(&self.project)).0
    }

    /// The settings, and the warnings as `file: message`.
    fn read(&self) -> (Settings, Vec<String>) {
        let (files, mut warnings) = SettingsFiles::load(&self.user, Some(&self.project));
        let (settings, more) = files.settings();
        warnings.extend(more);
        let name = |path: &str| Path::new(path).file_name().unwrap().display().to_string();
        let told = warnings
            .into_iter()
            .map(|warning| format!("{}: {}", name(&warning.path), warning.message));
        (settings, told.collect())
    }
}

fn settings(user: &str, project: &str) -> Settings {
    let (settings, warnings) = world(user, project).read();
    assert_eq!(warnings, Vec::<String>::new());
    settings
}

#[test]
fn without_files_every_default_of_the_table_holds() {
    // host.md 1.3, table
    let s = settings("", "");
    assert_eq!((s.default_provider, s.default_model), (None, None));
    assert_eq!((s.default_thinking_level, s.enabled_models), (None, None));
    assert_eq!(s.steering_mode, QueueMode::OneAtATime);
    assert_eq!(s.follow_up_mode, QueueMode::OneAtATime);
    assert!(s.compaction.enabled);
    assert_eq!(s.compaction.tokens("p/m"), Ok((16_384, 20_000)));
    let retry = s.retry;
    assert!(retry.enabled);
    assert_eq!(
        (retry.max_retries, retry.base_delay_ms, retry.max_agent_delay_ms),
        (3, 2000, 60_000)
    );
    assert_eq!((retry.provider_timeout_ms, retry.provider_max_retries), (None, 0));
    assert_eq!(retry.provider_max_retry_delay_ms, Some(60_000));
    assert_eq!(s.http_idle_timeout_ms, Some(300_000));
    assert_eq!(s.default_tools, ["read", "bash", "edit", "write"]);
    assert!(s.enable_skill_commands && s.images_auto_resize && !s.block_images);
    assert_eq!(s.default_project_trust, DefaultTrust::Ask);
    assert_eq!(s.terminal.theme, "system");
    assert_eq!(s.terminal.quiet_startup, QuietStart::No);
    assert_eq!(
        (s.terminal.editor_padding_x, s.terminal.output_pad, s.terminal.autocomplete_max_visible),
        (0, 1, 5)
    );
    assert_eq!(s.crew.attention, ["needs_input", "error", "idle"]);
    assert_eq!((s.crew.max_concurrent_requests, s.crew.motion), (None, true));
}

#[test]
fn the_project_wins_key_by_key_except_for_user_keys() {
    // host.md 1.3.1, 1.3.5, 0.4
    let user = r#"{"retry":{"maxRetries":1,"baseDelayMs":7},"enabledModels":["a"],"theme":"t","thinkingBudgets":{"low":1,"high":2},"skills":["u"],"crew":{"icons":"ascii","task":{"batch":true,"x":1}}}"#;
    let project = "\u{feff}{\"retry\":{\"maxRetries\":2},\"enabledModels\":[],\"theme\":null,\"thinkingBudgets\":{\"low\":3},\"skills\":[\"p\"],\"defaultProjectTrust\":\"always\",\"httpProxy\":\"http://evil\",\"crew\":{\"task\":{\"batch\":false}}}";
    let w = world(user, project);
    let (s, warnings) = w.read();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((s.retry.max_retries, s.retry.base_delay_ms), (2, 7));
    assert_eq!(s.enabled_models, Some(vec![]));
    assert_eq!(s.terminal.theme, "t");
    assert_eq!((s.thinking_budgets["low"], s.thinking_budgets["high"]), (3, 2));
    assert_eq!((s.skills.user, s.skills.project), (vec!["u".to_owned()], vec!["p".to_owned()]));
    assert_eq!(s.default_project_trust, DefaultTrust::Ask);
    assert_eq!(s.http_proxy, None);
    assert_eq!(s.crew.icons.as_deref(), Some("ascii"));
    assert_eq!(Value::Object(s.crew.value)["task"], json!({"batch":false,"x":1}));
    let merged = w.files().merged();
    assert_eq!(merged["retry"], json!({"maxRetries":2,"baseDelayMs":7}));
    assert_eq!(merged.get("httpProxy"), None);
}

#[test]
fn a_wrong_value_is_told_with_file_and_key_and_the_next_layer_counts() {
    let user = r#"{"steeringMode":"all","retry":true,"hideThinkingBlock":true,"modelThinkingLevels":{"p/m":"high","p/n":"most"}}"#;
    let project = r#"{"steeringMode":"sometimes","hideThinkingBlock":"yes","editorPaddingX":4,"crew":{"maxConcurrentRequests":0}}"#;
    let (s, warnings) = world(user, project).read();
    assert_eq!(s.steering_mode, QueueMode::All);
    assert!(s.hide_thinking_block);
    assert_eq!(s.model_thinking_levels.len(), 1);
    assert_eq!(s.model_thinking_levels["p/m"], ThinkingLevel::High);
    let told = |needle: &str| {
        let count = warnings.iter().filter(|w| w.contains(needle)).count();
        assert_eq!(count, 1, "{needle} in {warnings:#?}");
    };
    told("project.json: setting `steeringMode`");
    told("project.json: setting `hideThinkingBlock`");
    told("user.json: setting `retry` ");
    told("user.json: setting `modelThinkingLevels.p/n`");
    told("project.json: setting `editorPaddingX`");
    told("project.json: setting `crew.maxConcurrentRequests`");
    assert_eq!(warnings.len(), 6);
}

#[test]
fn compaction_numbers_fail_when_they_are_used() {
    // host.md 1.3.8
    let check = |user: &str, model: &str, expected: Option<(u64, u64)>| {
        let tokens = settings(user, "").compaction.tokens(model);
        assert_eq!(tokens.clone().ok(), expected, "{tokens:?}");
    };
    check(r#"{"compaction":{"reserveTokens":5}}"#, "p/m", Some((5, 20_000)));
    check(r#"{"compaction":{"reserveTokens":5.0}}"#, "p/m", Some((5, 20_000)));
    check(r#"{"compaction":{"reserveTokens":-5}}"#, "p/m", None);
    check(r#"{"compaction":{"keepRecentTokens":1.5}}"#, "p/m", None);
    check(r#"{"compaction":{"keepRecentTokens":"3"}}"#, "p/m", None);
    let overrides = r#"{"compaction":{"reserveTokens":-5,"modelOverrides":{"p/m":{"reserveTokens":1},"p/n":{"keepRecentTokens":-1}}}}"#;
    check(overrides, "p/m", Some((1, 20_000)));
    check(overrides, "p/n", None);
}

#[test]
fn tool_lists_replace_or_change_the_inherited_one() {
    // host.md 1.3.7
    let check = |user: &str, project: &str, expected: &[&str]| {
        let text = |list: &str| match list {
            "" => String::new(),
            list => format!(r#"{{"defaultTools":{list}}}"#),
        };
        let s = settings(&text(user), &text(project));
        assert_eq!(s.default_tools, expected, "{user} {project}");
    };
    check(r#"["read","ls"]"#, "", &["read", "ls"]);
    check(r#"["+ls","-write"]"#, "", &["read", "bash", "edit", "ls"]);
    check("[]", "", &[]);
    check(r#"["read"]"#, r#"["+ls"]"#, &["read", "ls"]);
    check(r#"["read"]"#, r#"["ls","-ls","+grep"]"#, &["grep"]);
    check(r#"["read"]"#, "[]", &[]);
    check("[]", r#"["+read"]"#, &["read"]);
}

#[test]
fn the_idle_limit_can_be_switched_off_in_two_ways() {
    // host.md 1.3, table
    let check = |value: &str, expected: Option<u64>| {
        let s = settings(&format!(r#"{{"httpIdleTimeoutMs":{value}}}"#), "");
        assert_eq!(s.http_idle_timeout_ms, expected);
    };
    check("0", None);
    check("\"disabled\"", None);
    check("5", Some(5));
}

#[test]
fn a_write_changes_one_field_of_what_is_on_disk_now() {
    // host.md 1.3.3, 0.3, 0.6, 10.12, 11.94
    let w = world(r#"{"unknown":{"deep":[1.50,null]},"theme":"system"}"#, "");
    let mut one = w.files();
    let mut two = w.files();
    one.update(Scope::User, &["followUpMode"], Some(&json!("all"))).unwrap();
    two.update(Scope::User, &["compaction", "enabled"], Some(&json!(false))).unwrap();
    two.update(Scope::User, &["theme"], None).unwrap();
    let text = fs::read_to_string(&w.user).unwrap();
    assert_eq!(
        text,
        "{\n  \"unknown\": {\n    \"deep\": [\n      1.50,\n      null\n    ]\n  },\n  \"followUpMode\": \"all\",\n  \"compaction\": {\n    \"enabled\": false\n  }\n}"
    );
    assert_eq!(one.settings().0.follow_up_mode, QueueMode::All);
    assert!(!two.settings().0.compaction.enabled);
    assert_eq!(two.settings().0.follow_up_mode, QueueMode::OneAtATime);
    assert!(!w.user.with_file_name("user.json.lock").exists());
}

#[test]
fn a_broken_file_counts_as_empty_and_is_written_once_it_parses_again() {
    // host.md 1.3.2, 11.93
    let broken = r#"{"steeringMode": "all","#;
    for text in [broken, "[1]", "nonsense"] {
        let w = world(text, "");
        let (s, warnings) = w.read();
        assert_eq!(s.steering_mode, QueueMode::OneAtATime);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let mut files = w.files();
        let refused = files.update(Scope::User, &["steeringMode"], Some(&json!("all")));
        assert!(matches!(refused, Err(Error::Invalid { .. })));
        assert_eq!(files.settings().0.steering_mode, QueueMode::All);
        assert_eq!(fs::read_to_string(&w.user).unwrap(), text);
        fs::write(&w.user, "{\"theme\":\"x\"}").unwrap();
        files.update(Scope::User, &["outputPad"], Some(&json!(0))).unwrap();
        let stored: Value = serde_json::from_str(&fs::read_to_string(&w.user).unwrap()).unwrap();
        assert_eq!(stored, json!({"theme":"x","steeringMode":"all","outputPad":0}));
    }
}

#[test]
fn an_untrusted_project_is_neither_read_nor_written_except_for_its_session_folder() {
    // host.md 5.6.5, 1.1.4, 11.100
    let w = world("", r#"{"steeringMode":"all","sessionDir":"s"}"#);
    let (mut files, warnings) = SettingsFiles::load(&w.user, None);
    assert_eq!(warnings, []);
    assert_eq!(files.settings().0.steering_mode, QueueMode::OneAtATime);
    let refused = files.update(Scope::Project, &["theme"], Some(&json!("x")));
    assert!(matches!(refused, Err(Error::Untrusted)));
    assert_eq!(project_session_dir(&w.project).as_deref(), Some("s"));
    assert_eq!(project_session_dir(&w.user), None);
}

#[test]
fn a_new_file_is_private() {
    // product.md P-14a
    let w = world("", "");
    let mut files = w.files();
    files.update(Scope::User, &["theme"], Some(&json!("x"))).unwrap();
    assert_eq!(fs::read_to_string(&w.user).unwrap(), "{\n  \"theme\": \"x\"\n}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&w.user).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
