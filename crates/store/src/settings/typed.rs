//! The settings as values, every default filled in (table of `host.md` 1.3).

use std::collections::BTreeMap;

use crew_base::definition::Warning;
use crew_base::model::ThinkingLevel;
use serde_json::{Map, Value};

use super::file::merge;
use super::reader::{Layer, Reader, list, whole};

/// How many queued messages enter at a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueMode {
    /// `all`.
    All,
    /// `one-at-a-time`.
    OneAtATime,
}

impl QueueMode {
    /// The word in files and on the wire.
    pub fn word(self) -> &'static str {
        match self {
            QueueMode::All => "all",
            QueueMode::OneAtATime => "one-at-a-time",
        }
    }

    /// The mode of a word.
    pub fn parse(word: &str) -> Option<QueueMode> {
        [QueueMode::All, QueueMode::OneAtATime].into_iter().find(|mode| mode.word() == word)
    }
}

/// Trust for projects without a decision (`host.md` 5.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTrust {
    /// `ask`.
    Ask,
    /// `always`.
    Always,
    /// `never`.
    Never,
}

/// Whether the start is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuietStart {
    /// `false`.
    No,
    /// `header`.
    Header,
    /// `true`.
    Yes,
}

/// A setting whose value cannot be used; an error when it is needed
/// (`host.md` 1.3.8).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting `{key}` must be a whole number from 0, not {value} ({file})")]
pub struct BadNumber {
    /// The dotted key.
    pub key: String,
    /// Its value as JSON.
    pub value: String,
    /// The file that holds it.
    pub file: String,
}

/// A number that is checked when it is used.
pub type Checked = Result<u64, BadNumber>;

/// `compaction`.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// Automatic compaction.
    pub enabled: bool,
    /// Tokens kept free.
    pub reserve_tokens: Checked,
    /// Tokens of recent history that are kept.
    pub keep_recent_tokens: Checked,
    /// By `provider/modelId`: the two values where they differ.
    pub model_overrides: BTreeMap<String, (Option<Checked>, Option<Checked>)>,
}

impl Compaction {
    /// Yields reserve and kept tokens for a model, `provider/modelId`
    /// (`host.md` 1.3.8).
    pub fn tokens(&self, model: &str) -> Result<(u64, u64), BadNumber> {
        let (reserve, keep) = match self.model_overrides.get(model) {
            Some((reserve, keep)) => (reserve.as_ref(), keep.as_ref()),
            None => (None, None),
        };
        let reserve = reserve.unwrap_or(&self.reserve_tokens).clone()?;
        let keep = keep.unwrap_or(&self.keep_recent_tokens).clone()?;
        Ok((reserve, keep))
    }
}

/// `retry`.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Whether runs are retried.
    pub enabled: bool,
    /// Retries of one run.
    pub max_retries: u64,
    /// First delay; each next one doubles.
    pub base_delay_ms: u64,
    /// Longest delay.
    pub max_agent_delay_ms: u64,
    /// Time a request may take; `None` is the idle limit.
    pub provider_timeout_ms: Option<u64>,
    /// Retries of one request.
    pub provider_max_retries: u64,
    /// Longest delay a provider may ask for; `None` is no bound.
    pub provider_max_retry_delay_ms: Option<u64>,
}

/// Lists that both files contribute to (`host.md` 5.7.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Of the user file, relative to the agent directory.
    pub user: Vec<String>,
    /// Of the project file, relative to `.pi`.
    pub project: Vec<String>,
}

/// Below the key `crew`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrewSettings {
    /// Requests under way per provider (`product.md` P-13).
    pub max_concurrent_requests: Option<u64>,
    /// What asks for attention (`terminal.md` TERM-38).
    pub attention: Vec<String>,
    /// How (`terminal.md` TERM-38).
    pub attention_form: String,
    /// Icon set; `None` goes by the locale (`terminal.md` TERM-55).
    pub icons: Option<String>,
    /// Spinners (`terminal.md` TERM-56).
    pub motion: bool,
    /// Key set (`terminal.md` TERM-19).
    pub keys: Option<String>,
    /// The whole merged object, for the keys of `task.md` 1.5.
    pub value: Map<String, Value>,
}

/// `terminal` and the other keys that only the terminal face reads.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalSettings {
    /// Name of the theme.
    pub theme: String,
    /// Whether the start is silent.
    pub quiet_startup: QuietStart,
    /// Command of an editor.
    pub external_editor: Option<String>,
    /// What a double Escape does: `tree`, `fork` or `none`.
    pub double_escape_action: &'static str,
    /// First filter of the tree.
    pub tree_filter_mode: &'static str,
    /// Columns beside the editor, 0 to 3.
    pub editor_padding_x: u64,
    /// Columns beside the output, 0 or 1.
    pub output_pad: u64,
    /// Rows of the completion list, 3 to 20.
    pub autocomplete_max_visible: u64,
    /// Show the terminal's own cursor.
    pub show_hardware_cursor: bool,
    /// Draw images.
    pub show_images: bool,
    /// Their width.
    pub image_width_cells: u64,
    /// Clear when the screen shrinks.
    pub clear_on_shrink: bool,
    /// Show progress in the terminal's frame.
    pub show_terminal_progress: bool,
}

/// All settings that we use.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Provider of new sessions.
    pub default_provider: Option<String>,
    /// Model of new sessions.
    pub default_model: Option<String>,
    /// Level of new sessions; `None` is `medium` (`host.md` 1.7.2).
    pub default_thinking_level: Option<ThinkingLevel>,
    /// Level by `provider/modelId`.
    pub model_thinking_levels: BTreeMap<String, ThinkingLevel>,
    /// Tokens by level name (`host.md` 3.9).
    pub thinking_budgets: BTreeMap<String, u64>,
    /// Patterns; `None` is all.
    pub enabled_models: Option<Vec<String>>,
    /// Hide what models think.
    pub hide_thinking_block: bool,
    /// Of steering messages.
    pub steering_mode: QueueMode,
    /// Of follow-up messages.
    pub follow_up_mode: QueueMode,
    /// `compaction`.
    pub compaction: Compaction,
    /// Tokens kept free when a branch is summarised.
    pub branch_summary_reserve_tokens: u64,
    /// Do not ask before a summary.
    pub branch_summary_skip_prompt: bool,
    /// `retry`.
    pub retry: Retry,
    /// Silence after which a stream is given up; `None` is never.
    pub http_idle_timeout_ms: Option<u64>,
    /// Proxy, where the environment sets none.
    pub http_proxy: Option<String>,
    /// Session folder as written.
    pub session_dir: Option<String>,
    /// Built-in tools, in order (`host.md` 1.3.7).
    pub default_tools: Vec<String>,
    /// Shell of the `bash` tool.
    pub shell_path: Option<String>,
    /// Line before each command.
    pub shell_command_prefix: Option<String>,
    /// Skill paths.
    pub skills: Lists,
    /// Prompt template paths.
    pub prompts: Lists,
    /// Offer `/skill:` in completion.
    pub enable_skill_commands: bool,
    /// Trust without a decision; user file only.
    pub default_project_trust: DefaultTrust,
    /// Shrink large images.
    pub images_auto_resize: bool,
    /// Send no images.
    pub block_images: bool,
    /// For the terminal face.
    pub terminal: TerminalSettings,
    /// Our own key.
    pub crew: CrewSettings,
}

/// Built-in tools without a setting.
const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

impl Settings {
    /// Reads the settings of both files; wrong values give a warning each and
    /// count as not set.
    pub(crate) fn read(user: &Layer, project: Option<&Layer>) -> (Settings, Vec<Warning>) {
        let mut reader = Reader::new(user, project);
        let r = &mut reader;
        let modes = [("all", QueueMode::All), ("one-at-a-time", QueueMode::OneAtATime)];
        let trusts = [
            ("ask", DefaultTrust::Ask),
            ("always", DefaultTrust::Always),
            ("never", DefaultTrust::Never),
        ];
        let mode = |r: &mut Reader<'_>, key| r.word(key, &modes).unwrap_or(QueueMode::OneAtATime);
        let settings = Settings {
            default_provider: r.text("defaultProvider"),
            default_model: r.text("defaultModel"),
            default_thinking_level: r.get("defaultThinkingLevel", LEVELS, level),
            model_thinking_levels: map(r, "modelThinkingLevels", LEVELS, level),
            thinking_budgets: map(r, "thinkingBudgets", "a whole number from 0", whole),
            enabled_models: r.texts("enabledModels"),
            hide_thinking_block: r.flag("hideThinkingBlock", false),
            steering_mode: mode(r, "steeringMode"),
            follow_up_mode: mode(r, "followUpMode"),
            compaction: compaction(r),
            branch_summary_reserve_tokens: r.count("branchSummary.reserveTokens").unwrap_or(16_384),
            branch_summary_skip_prompt: r.flag("branchSummary.skipPrompt", false),
            retry: retry(r),
            http_idle_timeout_ms: idle_timeout(r),
            http_proxy: r.text("httpProxy"),
            session_dir: r.text("sessionDir"),
            default_tools: default_tools(r),
            shell_path: r.text("shellPath"),
            shell_command_prefix: r.text("shellCommandPrefix"),
            skills: lists(r, "skills", user),
            prompts: lists(r, "prompts", user),
            enable_skill_commands: r.flag("enableSkillCommands", true),
            default_project_trust: r
                .word("defaultProjectTrust", &trusts)
                .unwrap_or(DefaultTrust::Ask),
            images_auto_resize: r.flag("images.autoResize", true),
            block_images: r.flag("images.blockImages", false),
            terminal: terminal(r),
            crew: crew(r),
        };
        (settings, reader.warnings)
    }
}

pub(super) const LEVELS: &str = "one of off, minimal, low, medium, high, xhigh, max";

pub(super) fn level(value: &Value) -> Option<ThinkingLevel> {
    value.as_str().and_then(ThinkingLevel::parse)
}

/// Merges an object of values by key, the project's winning.
pub(super) fn map<T>(
    r: &mut Reader<'_>,
    key: &str,
    expected: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut merged = BTreeMap::new();
    for (layer, value) in r.values(key) {
        let Some(object) = value.as_object() else {
            r.warn(layer, key, "an object");
            continue;
        };
        for (name, value) in object {
            match read(value) {
                Some(value) => {
                    merged.entry(name.clone()).or_insert(value);
                }
                None => r.warn(layer, &format!("{key}.{name}"), expected),
            }
        }
    }
    merged
}

fn checked(layer: &Layer, key: &str, value: &Value) -> Checked {
    whole(value).ok_or_else(|| BadNumber {
        key: key.to_owned(),
        value: value.to_string(),
        file: layer.path.to_string_lossy().into_owned(),
    })
}

fn compaction(r: &mut Reader<'_>) -> Compaction {
    let number = |r: &mut Reader<'_>, key: &str, default: u64| match r.values(key).first() {
        Some((layer, value)) => checked(layer, key, value),
        None => Ok(default),
    };
    let mut model_overrides = BTreeMap::new();
    for (layer, value) in r.values("compaction.modelOverrides") {
        let Some(models) = value.as_object() else {
            r.warn(layer, "compaction.modelOverrides", "an object");
            continue;
        };
        for (model, values) in models {
            let read = |name: &str| {
                let value = values.get(name).filter(|value| !value.is_null())?;
                let key = format!("compaction.modelOverrides.{model}.{name}");
                Some(checked(layer, &key, value))
            };
            let (reserve, keep): &mut (Option<Checked>, Option<Checked>) =
                model_overrides.entry(model.clone()).or_default();
            *reserve = reserve.take().or_else(|| read("reserveTokens"));
            *keep = keep.take().or_else(|| read("keepRecentTokens"));
        }
    }
    Compaction {
        enabled: r.flag("compaction.enabled", true),
        reserve_tokens: number(r, "compaction.reserveTokens", 16_384),
        keep_recent_tokens: number(r, "compaction.keepRecentTokens", 20_000),
        model_overrides,
    }
}

fn retry(r: &mut Reader<'_>) -> Retry {
    let delay = r.count("retry.provider.maxRetryDelayMs").unwrap_or(60_000);
    Retry {
        enabled: r.flag("retry.enabled", true),
        max_retries: r.count("retry.maxRetries").unwrap_or(3),
        base_delay_ms: r.count("retry.baseDelayMs").unwrap_or(2000),
        max_agent_delay_ms: r.count("retry.maxAgentDelayMs").unwrap_or(60_000),
        provider_timeout_ms: r.count("retry.provider.timeoutMs"),
        provider_max_retries: r.count("retry.provider.maxRetries").unwrap_or(0),
        provider_max_retry_delay_ms: (delay > 0).then_some(delay),
    }
}

fn idle_timeout(r: &mut Reader<'_>) -> Option<u64> {
    let expected = "a number of milliseconds or \"disabled\"";
    let read = |value: &Value| {
        let is_off = value.as_str() == Some("disabled");
        if is_off { Some(0) } else { whole(value) }
    };
    let ms = r.get("httpIdleTimeoutMs", expected, read);
    Some(ms.unwrap_or(300_000)).filter(|ms| *ms > 0)
}

/// The project's list follows the user's when it only adds and removes, else it
/// replaces it (`host.md` 1.3.7).
fn default_tools(r: &mut Reader<'_>) -> Vec<String> {
    let mut layers = Vec::new();
    for (layer, value) in r.values("defaultTools") {
        match list(value) {
            Some(items) => layers.push(items),
            None => r.warn(layer, "defaultTools", "a list of texts"),
        }
    }
    let mut tools: Vec<String> = DEFAULT_TOOLS.map(str::to_owned).to_vec();
    for items in layers.iter().rev() {
        let is_change = |item: &String| item.starts_with(['+', '-']);
        if items.is_empty() || !items.iter().all(is_change) {
            tools.clear();
        }
        for item in items {
            let name = item.trim_start_matches(['+', '-']);
            tools.retain(|tool| !item.starts_with('-') || tool != name);
            if !item.starts_with('-') && !tools.iter().any(|tool| tool == name) {
                tools.push(name.to_owned());
            }
        }
    }
    tools
}

fn lists(r: &mut Reader<'_>, key: &str, user: &Layer) -> Lists {
    let mut lists = Lists::default();
    for (layer, value) in r.values(key) {
        match list(value) {
            Some(items) if std::ptr::eq(layer, user) => lists.user = items,
            Some(items) => lists.project = items,
            None => r.warn(layer, key, "a list of texts"),
        }
    }
    lists
}

fn terminal(r: &mut Reader<'_>) -> TerminalSettings {
    let quiet = |value: &Value| match (value.as_bool(), value.as_str()) {
        (Some(true), _) => Some(QuietStart::Yes),
        (Some(false), _) => Some(QuietStart::No),
        (None, Some("header")) => Some(QuietStart::Header),
        (None, _) => None,
    };
    let same = |words: &[&'static str]| -> Vec<(&'static str, &'static str)> {
        words.iter().map(|word| (*word, *word)).collect()
    };
    let filters = same(&["default", "no-tools", "user-only", "labeled-only", "all"]);
    let escapes = same(&["tree", "fork", "none"]);
    TerminalSettings {
        theme: r.text("theme").unwrap_or_else(|| "system".into()),
        quiet_startup: r
            .get("quietStartup", "true, false or \"header\"", quiet)
            .unwrap_or(QuietStart::No),
        external_editor: r.text("externalEditor"),
        double_escape_action: r.word("doubleEscapeAction", &escapes).unwrap_or("tree"),
        tree_filter_mode: r.word("treeFilterMode", &filters).unwrap_or("default"),
        editor_padding_x: r.bounded("editorPaddingX", 0, 3, 0),
        output_pad: r.bounded("outputPad", 0, 1, 1),
        autocomplete_max_visible: r.bounded("autocompleteMaxVisible", 3, 20, 5),
        show_hardware_cursor: r.flag("showHardwareCursor", false),
        show_images: r.flag("terminal.showImages", true),
        image_width_cells: r.bounded("terminal.imageWidthCells", 1, 1000, 60),
        clear_on_shrink: r.flag("terminal.clearOnShrink", false),
        show_terminal_progress: r.flag("terminal.showTerminalProgress", false),
    }
}

fn crew(r: &mut Reader<'_>) -> CrewSettings {
    const ATTENTION: [&str; 4] = ["needs_input", "error", "result", "idle"];
    let attention = |value: &Value| {
        let known = |items: &Vec<String>| items.iter().all(|i| ATTENTION.contains(&i.as_str()));
        list(value).filter(known)
    };
    let forms = [("bell", "bell"), ("desktop", "desktop"), ("off", "off")];
    let icons = [("emoji", "emoji"), ("symbols", "symbols"), ("ascii", "ascii")];
    let positive = |value: &Value| whole(value).filter(|number| *number > 0);
    let mut value = Map::new();
    for (_, layer) in r.values("crew").into_iter().rev() {
        if let Some(layer) = layer.as_object() {
            merge(&mut value, layer);
        }
    }
    CrewSettings {
        max_concurrent_requests: r.get(
            "crew.maxConcurrentRequests",
            "a whole number from 1",
            positive,
        ),
        attention: r
            .get("crew.attention", "a list of needs_input, error, result, idle", attention)
            .unwrap_or_else(|| ["needs_input", "error", "idle"].map(str::to_owned).to_vec()),
        attention_form: r.word("crew.attentionForm", &forms).unwrap_or("bell").to_owned(),
        icons: r.word("crew.icons", &icons).map(str::to_owned),
        motion: r.flag("crew.motion", true),
        keys: r.text("crew.keys"),
        value,
    }
}
