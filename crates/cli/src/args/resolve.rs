//! From words as typed to options as the program takes them: which face,
//! which session, what excludes what (`host.md` 6.1.1, 6.2, 6.3).

use std::time::Duration;

use crew_base::model::ThinkingLevel;
use crew_runtime::{PromptWish, ToolWish};
use crew_store::paths::is_session_id;

use super::words::Sorted;
use super::{
    Args, DemoOptions, ExportRequest, Invocation, Options, Secret, SessionChoice, Terminals,
    UsageError,
};
use crate::error::Error;

/// First words that later versions take as commands (`host.md` 6.2).
pub(super) const LATER_COMMANDS: [&str; 8] =
    ["install", "remove", "uninstall", "update", "list", "config", "auth", "mcp"];

/// Longest wait that fits the clock.
const CREW_WAIT_SECONDS_MAX: f64 = 1e9;

/// The words behind `demo`.
pub(super) fn demo(words: &[String]) -> Result<Invocation, UsageError> {
    let mut options = DemoOptions::default();
    let mut only_words = false;
    for word in words {
        match word.as_str() {
            "--" if !only_words => only_words = true,
            "-h" | "--help" if !only_words => return Ok(Invocation::Help),
            option if !only_words && option.len() > 1 && option.starts_with('-') => {
                return Err(UsageError::Unknown(vec![word.clone()]));
            }
            _ if options.dir.is_some() => return Err(UsageError::SurplusWord(word.clone())),
            _ => options.dir = Some(word.clone()),
        }
    }
    Ok(Invocation::Demo(options))
}

/// Decides about the face and checks what excludes what.
pub(super) fn resolve(
    args: Args,
    sorted: Sorted,
    terminals: Terminals,
) -> Result<Invocation, Error> {
    if args.help {
        return Ok(Invocation::Help);
    }
    if args.version {
        return Ok(Invocation::Version);
    }
    if !sorted.unknown.is_empty() {
        return Err(UsageError::Unknown(sorted.unknown).into());
    }
    if let Some(session) = args.export.clone() {
        return export(session, args, sorted);
    }
    let face = face(&args, terminals)?;
    if args.resume && !matches!(face, Face::Terminal) {
        return Err(UsageError::Needs { option: "--resume", needed: "a terminal" }.into());
    }
    let search = args.list_models.clone();
    let options = Box::new(options(args, sorted)?);
    if let Some(search) = search {
        let search = Some(search).filter(|words| !words.trim().is_empty());
        return Ok(Invocation::ListModels { search, options });
    }
    match face {
        Face::Print => Ok(Invocation::Print(options)),
        Face::Json => Ok(Invocation::Json(options)),
        Face::Rpc if !options.files.is_empty() => {
            Err(UsageError::Conflict("--mode rpc", "@file").into())
        }
        Face::Rpc => Ok(Invocation::Rpc(options)),
        Face::Terminal => Ok(Invocation::Terminal(options)),
    }
}

/// Who shows and asks (`host.md` 6.1.1).
enum Face {
    Print,
    Json,
    Rpc,
    Terminal,
}

fn face(args: &Args, terminals: Terminals) -> Result<Face, UsageError> {
    Ok(match args.mode.as_deref() {
        Some("rpc") => Face::Rpc,
        Some("json") => Face::Json,
        Some("text") | None if args.print || !terminals.stdin || !terminals.stdout => Face::Print,
        Some("text") | None => Face::Terminal,
        Some(other) => {
            return Err(UsageError::BadValue {
                option: "--mode",
                expected: "text, json or rpc",
                value: other.to_owned(),
            });
        }
    })
}

fn export(session: String, args: Args, sorted: Sorted) -> Result<Invocation, Error> {
    let mut words = sorted.messages.into_iter();
    let out = words.next();
    if let Some(more) = words.next() {
        return Err(UsageError::BadValue {
            option: "--export",
            expected: "a session and at most one page",
            value: more,
        }
        .into());
    }
    Ok(Invocation::Export(Box::new(ExportRequest {
        session,
        out,
        children: args.with_children,
        session_dir: args.session_dir,
    })))
}

fn options(args: Args, sorted: Sorted) -> Result<Options, UsageError> {
    let session = session_choice(&args)?;
    // A session that is named or copied goes before the picker (6.3.4).
    let is_open =
        matches!(session, SessionChoice::New | SessionChoice::Latest | SessionChoice::Id(_));
    let resume = args.resume && is_open;
    let mut warnings = Vec::new();
    if args.provider.is_some() && args.model.is_none() {
        return Err(UsageError::Needs { option: "--provider", needed: "--model" });
    }
    if args.api_key.is_some() && args.model.is_none() && args.models.is_none() {
        return Err(UsageError::Needs { option: "--api-key", needed: "--model" });
    }
    if !args.extension.is_empty() {
        warnings.push("extensions are not run; -e has no effect".to_owned());
    }
    let thinking = args.thinking.as_deref().and_then(ThinkingLevel::parse);
    if let Some(text) = args.thinking.as_deref().filter(|_| thinking.is_none()) {
        let levels = ThinkingLevel::ALL.map(ThinkingLevel::word).join(", ");
        warnings.push(format!("--thinking {text} is no level and is ignored; levels: {levels}"));
    }
    let trust = match (args.approve, args.no_approve) {
        (true, true) => return Err(UsageError::Conflict("--approve", "--no-approve")),
        (true, false) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let tools = tools(&args)?;
    let name = name(args.name.as_deref())?;
    Ok(Options {
        provider: args.provider,
        model: args.model,
        api_key: args.api_key.map(Secret),
        thinking,
        models: args.models.as_deref().map(items),
        session,
        session_dir: args.session_dir,
        name,
        tools,
        prompt: PromptWish {
            system: args.system_prompt,
            append: args.append_system_prompt,
            no_context_files: args.no_context_files,
            skills: args.skill,
            no_skills: args.no_skills,
        },
        templates: args.prompt_template,
        no_templates: args.no_prompt_templates,
        trust,
        offline: args.offline,
        verbose: args.verbose,
        plain: args.plain,
        resume,
        crew_wait: args.crew_wait.as_deref().map(crew_wait).transpose()?,
        messages: sorted.messages,
        files: sorted.files,
        warnings,
    })
}

/// Which session, by the precedence of `host.md` 6.3.4; what 6.3.3 excludes is
/// an error.
fn session_choice(args: &Args) -> Result<SessionChoice, UsageError> {
    let others = [
        (args.session.is_some(), "--session"),
        (args.continues, "--continue"),
        (args.no_session, "--no-session"),
    ];
    let excluded = |option, others: &[(bool, &'static str)]| {
        let other = others.iter().find(|(given, _)| *given);
        other.map_or(Ok(()), |(_, other)| Err(UsageError::Conflict(option, other)))
    };
    if args.session_id.is_some() {
        excluded("--session-id", &others[..2])?;
    }
    if let Some(id) = args.session_id.as_ref().filter(|id| !is_session_id(id)) {
        return Err(UsageError::BadValue {
            option: "--session-id",
            expected: "letters, digits and . _ - between them",
            value: id.clone(),
        });
    }
    if let Some(source) = &args.fork {
        excluded("--fork", &others)?;
        let (source, id) = (source.clone(), args.session_id.clone());
        return Ok(SessionChoice::Fork { source, id });
    }
    if args.no_session {
        return Ok(SessionChoice::Memory);
    }
    if let Some(session) = &args.session {
        return Ok(SessionChoice::Named(session.clone()));
    }
    if args.continues {
        return Ok(SessionChoice::Latest);
    }
    Ok(args.session_id.clone().map_or(SessionChoice::New, SessionChoice::Id))
}

/// `--tools` is a list of names and patterns, or of changes (`host.md` 6.2.2).
fn tools(args: &Args) -> Result<ToolWish, UsageError> {
    let mut wish = ToolWish {
        no_tools: args.no_tools,
        no_builtin: args.no_builtin_tools,
        exclude: args.exclude_tools.as_deref().map(items).unwrap_or_default(),
        ..ToolWish::default()
    };
    let Some(list) = args.tools.as_deref() else { return Ok(wish) };
    let (changes, names): (Vec<String>, Vec<String>) =
        items(list).into_iter().partition(|item| item.starts_with(['+', '-']));
    match (changes.is_empty(), names.is_empty()) {
        (false, false) => return Err(UsageError::MixedTools(list.to_owned())),
        (false, true) => wish.changes = changes,
        (true, _) => wish.only = Some(names),
    }
    Ok(wish)
}

fn name(typed: Option<&str>) -> Result<Option<String>, UsageError> {
    match typed.map(str::trim) {
        Some("") => Err(UsageError::BadValue {
            option: "--name",
            expected: "a text that is not blank",
            value: typed.unwrap_or_default().to_owned(),
        }),
        other => Ok(other.map(str::to_owned)),
    }
}

fn crew_wait(text: &str) -> Result<Duration, UsageError> {
    let seconds = text.trim().parse::<f64>().ok();
    let usable = seconds.filter(|seconds| (0.0..=CREW_WAIT_SECONDS_MAX).contains(seconds));
    usable.map(Duration::from_secs_f64).ok_or_else(|| UsageError::BadValue {
        option: "--crew-wait",
        expected: "a number of seconds from 0",
        value: text.to_owned(),
    })
}

fn items(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    const PIPED: Terminals = Terminals { stdin: false, stdout: false };
    const TERMINAL: Terminals = Terminals { stdin: true, stdout: true };

    fn at(terminals: Terminals, line: &str) -> Result<Invocation, Error> {
        parse(line.split(' ').filter(|word| !word.is_empty()).map(Into::into).collect(), terminals)
    }

    fn options(line: &str) -> Options {
        match at(PIPED, line).unwrap() {
            Invocation::Print(options) | Invocation::Json(options) | Invocation::Rpc(options) => {
                *options
            }
            Invocation::ListModels { .. }
            | Invocation::Help
            | Invocation::Version
            | Invocation::Terminal(_)
            | Invocation::Export(_)
            | Invocation::Demo(_) => panic!("{line} is no run"),
        }
    }

    #[test]
    fn the_face_goes_by_mode_print_and_terminals() {
        // host.md 6.1.1
        let check = |terminals, line: &str, expected: &str| {
            let got = match at(terminals, line) {
                Ok(Invocation::Print(_)) => "print",
                Ok(Invocation::Json(_)) => "json",
                Ok(Invocation::Rpc(_)) => "rpc",
                Ok(Invocation::ListModels { .. }) => "list",
                Ok(Invocation::Help) => "help",
                Ok(Invocation::Version) => "version",
                Ok(Invocation::Demo(_)) => "demo",
                Ok(Invocation::Terminal(_)) => "terminal",
                Ok(Invocation::Export(_)) => "export",
                Err(Error::NotBuilt(_)) => "later",
                Err(_) => "error",
            };
            assert_eq!(got, expected, "{line}");
        };
        check(TERMINAL, "x", "terminal");
        check(TERMINAL, "--mode text x", "terminal");
        check(TERMINAL, "-p x", "print");
        check(PIPED, "x", "print");
        check(Terminals { stdin: true, stdout: false }, "x", "print");
        check(Terminals { stdin: false, stdout: true }, "x", "print");
        check(TERMINAL, "--mode json x", "json");
        check(TERMINAL, "--mode rpc", "rpc");
        check(TERMINAL, "--mode yaml x", "error");
        check(PIPED, "--list-models x", "list");
        check(PIPED, "--nope --help", "help");
        check(PIPED, "-v", "version");
        check(PIPED, "demo", "demo");
        check(PIPED, "demo a b", "error");
        check(PIPED, "demo --nope", "error");
        check(PIPED, "x demo", "print");
        check(PIPED, "install x", "later");
        check(PIPED, "--export x", "export");
        check(TERMINAL, "--export x out.html --with-children", "export");
        check(PIPED, "--export x a b", "error");
        check(TERMINAL, "--resume", "terminal");
        check(PIPED, "--resume", "error");
        check(PIPED, "-r", "error");
    }

    #[test]
    fn options_that_exclude_or_need_each_other_are_errors() {
        let check = |line: &str, text: &str| {
            let error = at(PIPED, line).unwrap_err();
            let Error::Usage(error) = error else { panic!("{line}: {error:?}") };
            assert!(error.to_string().contains(text), "{line}: {error}");
        };
        check("--provider p x", "--model");
        check("--api-key k x", "--model");
        check("--session-id a --session b x", "exclude");
        check("--session-id a -c x", "exclude");
        check("--fork a -c x", "exclude");
        check("--fork a --session b x", "exclude");
        check("--fork a --no-session x", "exclude");
        check("--session-id -a x", "--session-id");
        check("-a -na x", "exclude");
        check("-t read,+ls x", "+");
        check("--crew-wait soon x", "seconds");
        check("--crew-wait -1 x", "seconds");
        check("--name= x", "--name");
        check("--mode rpc @f", "exclude");
        check("--nope x -Z", "--nope, -Z");
    }

    #[test]
    fn sessions_are_chosen_in_order_of_precedence() {
        // host.md 6.3.4
        let check = |line: &str, expected: SessionChoice| {
            assert_eq!(options(line).session, expected, "{line}");
        };
        check("x", SessionChoice::New);
        check("-c x", SessionChoice::Latest);
        check("--session s -c x", SessionChoice::Named("s".into()));
        check("--no-session --session s x", SessionChoice::Memory);
        check("--session-id a.b x", SessionChoice::Id("a.b".into()));
        let fork = |id: Option<&str>| SessionChoice::Fork {
            source: "s".into(),
            id: id.map(str::to_owned),
        };
        check("--fork s x", fork(None));
        check("--fork s --session-id a x", fork(Some("a")));
    }

    #[test]
    fn lists_and_numbers_are_read() {
        let got =
            options("-t read,crew_* -xt a,,b --models x/*,y --crew-wait 1.5 --thinking silly m n");
        assert_eq!(got.tools.only, Some(vec!["read".to_owned(), "crew_*".to_owned()]));
        assert_eq!(got.tools.exclude, ["a", "b"]);
        assert_eq!(got.models, Some(vec!["x/*".to_owned(), "y".to_owned()]));
        assert_eq!(got.crew_wait, Some(Duration::from_millis(1500)));
        assert_eq!((got.thinking, got.warnings.len()), (None, 1));
        assert_eq!(got.messages, ["m", "n"]);
        assert_eq!(options("-t -bash,+ls x").tools.changes, ["-bash", "+ls"]);
        assert_eq!(options("--tools= x").tools.only, Some(Vec::new()));
    }

    #[test]
    fn a_key_is_never_shown() {
        // C113
        let got = options("--model m --api-key sk-very-secret x");
        assert!(!format!("{got:?}").contains("sk-very"));
    }
}
