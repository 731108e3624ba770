//! What can be typed, in two stages: [`Args`] as clap reads it, [`Options`] as
//! the rest of the program takes it (`host.md` 6.2).
//!
//! Must never read a file or the environment, so that `--version` and `--help`
//! cost nothing. Read `args::words` for what happens before clap, and
//! `args::resolve` for the second stage.

mod help;
mod resolve;
mod words;

use std::ffi::OsString;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use crew_base::model::ThinkingLevel;
use crew_runtime::{PromptWish, ToolWish};

pub(crate) use help::HELP;

/// Options as typed; every word that is no option was taken out before.
#[derive(Debug, Default, Parser)]
#[command(name = "crew", disable_help_flag = true, disable_version_flag = true)]
#[command(disable_help_subcommand = true, args_override_self = true)]
struct Args {
    #[arg(long, short)]
    help: bool,
    #[arg(long, short)]
    version: bool,
    #[arg(long)]
    provider: Option<String>,
    #[arg(long)]
    model: Option<String>,
    #[arg(long)]
    api_key: Option<String>,
    #[arg(long)]
    thinking: Option<String>,
    #[arg(long)]
    models: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    list_models: Option<String>,
    #[arg(long)]
    system_prompt: Option<String>,
    #[arg(long)]
    append_system_prompt: Vec<String>,
    #[arg(long)]
    mode: Option<String>,
    #[arg(long, short)]
    print: bool,
    #[arg(long = "continue", short = 'c')]
    continues: bool,
    #[arg(long, short)]
    resume: bool,
    #[arg(long)]
    session: Option<String>,
    #[arg(long)]
    session_id: Option<String>,
    #[arg(long)]
    fork: Option<String>,
    #[arg(long)]
    session_dir: Option<String>,
    #[arg(long)]
    no_session: bool,
    #[arg(long, short)]
    name: Option<String>,
    #[arg(long, short)]
    tools: Option<String>,
    #[arg(long)]
    exclude_tools: Option<String>,
    #[arg(long)]
    no_tools: bool,
    #[arg(long)]
    no_builtin_tools: bool,
    #[arg(long)]
    skill: Vec<String>,
    #[arg(long)]
    no_skills: bool,
    #[arg(long)]
    prompt_template: Vec<String>,
    #[arg(long)]
    no_prompt_templates: bool,
    #[arg(long)]
    no_context_files: bool,
    #[arg(long, short)]
    approve: bool,
    #[arg(long)]
    no_approve: bool,
    #[arg(long)]
    offline: bool,
    #[arg(long)]
    verbose: bool,
    #[arg(long)]
    crew_wait: Option<String>,
    #[arg(long)]
    plain: bool,
    #[arg(long)]
    export: Option<String>,
    #[arg(long)]
    with_children: bool,
    #[arg(long, short)]
    extension: Vec<String>,
    #[arg(long)]
    no_extensions: bool,
    #[arg(long)]
    no_mcp: bool,
    #[arg(long)]
    theme: Vec<String>,
    #[arg(long)]
    use_theme: Option<String>,
    #[arg(long)]
    no_themes: bool,
    #[arg(long)]
    tui_mode: Option<String>,
}

/// What was asked for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `demo [DIR]` (`product.md` P-2).
    Demo(DemoOptions),
    /// `--list-models [search]`.
    ListModels {
        /// Words that must occur.
        search: Option<String>,
        /// For settings and credentials.
        options: Box<Options>,
    },
    /// `--export FILE [OUT]` (`host.md` 2.8.10).
    Export(Box<ExportRequest>),
    /// Print mode.
    Print(Box<Options>),
    /// `--mode json`.
    Json(Box<Options>),
    /// `--mode rpc`.
    Rpc(Box<Options>),
    /// The interactive mode.
    Terminal(Box<Options>),
}

/// What `--export` asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct ExportRequest {
    /// A session by path or id.
    pub(crate) session: String,
    /// The page; `crew-session-<file>.html` here without it.
    pub(crate) out: Option<String>,
    /// `--with-children`.
    pub(crate) children: bool,
    /// `--session-dir`.
    pub(crate) session_dir: Option<String>,
}

/// Options of `demo`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DemoOptions {
    /// The folder to look at; the working directory without it.
    pub(crate) dir: Option<String>,
}

/// Options as the program takes them.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// `--provider`.
    pub(crate) provider: Option<String>,
    /// `--model`.
    pub(crate) model: Option<String>,
    /// `--api-key`; in memory only, never shown.
    pub(crate) api_key: Option<Secret>,
    /// `--thinking`.
    pub(crate) thinking: Option<ThinkingLevel>,
    /// `--models`, its items.
    pub(crate) models: Option<Vec<String>>,
    /// Which session.
    pub(crate) session: SessionChoice,
    /// `--session-dir`.
    pub(crate) session_dir: Option<String>,
    /// `--name`, trimmed.
    pub(crate) name: Option<String>,
    /// Tool options.
    pub(crate) tools: ToolWish,
    /// Prompt and skill options.
    pub(crate) prompt: PromptWish,
    /// `--prompt-template`.
    pub(crate) templates: Vec<String>,
    /// `--no-prompt-templates`.
    pub(crate) no_templates: bool,
    /// `--approve` or `--no-approve`.
    pub(crate) trust: Option<bool>,
    /// `--offline`.
    pub(crate) offline: bool,
    /// `--verbose`.
    pub(crate) verbose: bool,
    /// `--resume`: the session is chosen first (`host.md` 6.3.4).
    pub(crate) resume: bool,
    /// `--plain` (`terminal.md` TERM-57).
    pub(crate) plain: bool,
    /// `--crew-wait` (`product.md` P-7).
    pub(crate) crew_wait: Option<Duration>,
    /// Words that are no options, in order.
    pub(crate) messages: Vec<String>,
    /// Words with a leading `@`, which they keep.
    pub(crate) files: Vec<String>,
    /// What the person should know.
    pub(crate) warnings: Vec<String>,
}

/// Which session is used (`host.md` 6.3.4).
#[derive(Debug, Default, PartialEq)]
pub(crate) enum SessionChoice {
    /// A new one.
    #[default]
    New,
    /// `--no-session`.
    Memory,
    /// `--session`.
    Named(String),
    /// A file whose own directory is gone, in the present one: what a person
    /// chose when asked (`host.md` 2.3.3).
    Here(std::path::PathBuf),
    /// `--continue`.
    Latest,
    /// `--session-id`.
    Id(String),
    /// `--fork`, with the id that `--session-id` gives the copy.
    Fork {
        /// Path, id or beginning of one.
        source: String,
        /// The copy's id.
        id: Option<String>,
    },
}

/// A text that is never shown.
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

/// Which of the standard streams are terminals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminals {
    /// Standard input.
    pub(crate) stdin: bool,
    /// Standard output.
    pub(crate) stdout: bool,
}

/// Why the words make no sense; exit code 1 (`host.md` 6.1.8).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("unknown option {}", .0.join(", "))]
    Unknown(Vec<String>),
    #[error("{0} needs a value")]
    MissingValue(String),
    #[error("{0} takes no value")]
    UnexpectedValue(String),
    #[error("{option} must be {expected}, not `{value}`")]
    BadValue { option: &'static str, expected: &'static str, value: String },
    #[error("{0} and {1} exclude each other")]
    Conflict(&'static str, &'static str),
    #[error("{option} needs {needed}")]
    Needs { option: &'static str, needed: &'static str },
    #[error("--tools takes either names or changes with + and -, not both: `{0}`")]
    MixedTools(String),
    #[error("there is no prompt")]
    NoPrompt,
    #[error("demo takes one folder, not `{0}` as well")]
    SurplusWord(String),
    #[error("an argument is not UTF-8: {0}")]
    NotText(String),
    #[error("the options cannot be read: {0}")]
    Unreadable(String),
}

/// Reads the command line (`host.md` 6.1.1, 6.2).
pub(crate) fn parse(
    words: Vec<OsString>,
    terminals: Terminals,
) -> Result<Invocation, crate::error::Error> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| UsageError::NotText(word.to_string_lossy().into_owned()))
    };
    let words = words.into_iter().map(text).collect::<Result<Vec<String>, _>>()?;
    if let Some((first, rest)) = words.split_first() {
        if first == "demo" {
            return Ok(resolve::demo(rest)?);
        }
        if resolve::LATER_COMMANDS.contains(&first.as_str()) {
            return Err(crate::error::Error::NotBuilt(format!("the command {first}")));
        }
    }
    let table = words::Table::of(&Args::command());
    let sorted = words::sort(words, &table)?;
    let program = std::iter::once("crew".to_owned());
    let args = Args::try_parse_from(program.chain(sorted.options.iter().cloned()))
        .map_err(|error| UsageError::Unreadable(error.kind().to_string()))?;
    resolve::resolve(args, sorted, terminals)
}
