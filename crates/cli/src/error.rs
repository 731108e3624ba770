//! Turns everything that can go wrong into words: one message, hints on lines
//! of their own, an exit code (`style.md` 6, `host.md` 6.1.8).
//!
//! The only place that words errors. Values from outside stay as they are here;
//! `output` makes them safe to print.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use crew_engine::api::Refusal;
use crew_model::select::SelectError;

use crate::args::UsageError;

/// Why the program cannot go on, or ends with a bad exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error("{0} is not built yet")]
    NotBuilt(String),
    #[error("the terminal cannot be used")]
    Terminal(#[source] io::Error),
    #[error("the current directory cannot be used")]
    NoWorkingDirectory(#[source] io::Error),
    #[error("there is no home directory: HOME is not set")]
    NoHome,
    #[error("{} is not a folder that can be looked at", dir.display())]
    DemoFolder { dir: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] crew_store::error::Error),
    #[error("{error}")]
    Model { error: SelectError, near: Vec<String> },
    #[error("no session matches `{0}`")]
    NoSuchSession(String),
    #[error("the session {} belongs to {cwd}", path.display())]
    SessionElsewhere { path: PathBuf, cwd: String },
    #[error("the session {} works in {}, which is no longer there", path.display(), cwd.display())]
    SessionFolderGone { path: PathBuf, cwd: PathBuf, here: PathBuf },
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot attach {}: {reason}", path.display())]
    Image { path: PathBuf, reason: String },
    #[error("cannot read standard input")]
    Input(#[source] io::Error),
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    #[error("the session could not be opened: {0}")]
    Open(String),
    #[error("the prompt was refused: {}", refusal(.0))]
    Refused(Refusal),
    #[error("the run stopped: {error}")]
    RunFailed { error: String, kept: Kept },
    #[error("{}", answer_text(.0))]
    Answer(Box<BadAnswer>),
}

/// The last answer of a print run was none.
#[derive(Debug)]
pub(crate) struct BadAnswer {
    /// What was wrong.
    pub(crate) kind: BadAnswerKind,
    /// `provider/id`.
    pub(crate) model: String,
    /// Requests made for it, retries included.
    pub(crate) tries: u32,
    /// Where the conversation is.
    pub(crate) kept: Kept,
    /// Whether a part of the answer had arrived.
    pub(crate) partial: bool,
}

/// What was wrong with an answer.
#[derive(Debug)]
pub(crate) enum BadAnswerKind {
    /// Provider or transport failed; the cause.
    Failed(String),
    /// It was stopped.
    Aborted(String),
    /// It held thoughts and neither text nor calls (C094).
    ThoughtsOnly,
    /// There was none at all.
    Missing,
}

/// What is left of the conversation (C106).
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// The session file.
    File(PathBuf),
    /// Nothing was to be kept, or nothing could be.
    Nothing,
}

/// How an error is told.
pub(crate) struct Words {
    /// One line, maybe long.
    pub(crate) text: String,
    /// What to do, one line each.
    pub(crate) hints: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Configuration,
    Provider,
    Internal,
}

impl Error {
    /// The exit code (`host.md` 6.1.8, 6.3.2).
    pub(crate) fn exit_code(&self) -> u8 {
        // Nobody was there to say yes to a fork, which counts as no.
        u8::from(!matches!(self, Error::SessionElsewhere { .. }))
    }

    /// The words.
    pub(crate) fn words(&self) -> Words {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(deeper) = cause {
            let deeper_text = deeper.to_string();
            if !text.contains(&deeper_text) {
                text = format!("{text}: {deeper_text}");
            }
            cause = deeper.source();
        }
        let lead = match self.kind() {
            Kind::User => "",
            Kind::Configuration => "configuration: ",
            Kind::Provider => "provider: ",
            Kind::Internal => "internal error: ",
        };
        Words { text: format!("{lead}{text}"), hints: self.hints() }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::Usage(_)
            | Error::NotBuilt(_)
            | Error::Terminal(_)
            | Error::NoWorkingDirectory(_)
            | Error::DemoFolder { .. }
            | Error::Model { .. }
            | Error::NoSuchSession(_)
            | Error::SessionElsewhere { .. }
            | Error::SessionFolderGone { .. }
            | Error::File { .. }
            | Error::Image { .. }
            | Error::Input(_)
            | Error::Output(_)
            | Error::Open(_)
            | Error::RunFailed { .. } => Kind::User,
            Error::NoHome | Error::Store(_) => Kind::Configuration,
            Error::Refused(Refusal::NoModel) => Kind::Configuration,
            Error::Answer(answer) => match answer.kind {
                BadAnswerKind::Failed(_) | BadAnswerKind::ThoughtsOnly => Kind::Provider,
                BadAnswerKind::Aborted(_) => Kind::User,
                BadAnswerKind::Missing => Kind::Internal,
            },
            Error::Runtime(_) | Error::Refused(_) => Kind::Internal,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hints: &[&str] = match self {
            Error::Usage(UsageError::NoPrompt) => {
                &["give one: crew -p \"PROMPT\", or pipe text into it"]
            }
            Error::Usage(_) => &["crew --help lists all options"],
            Error::NotBuilt(_) => &["crew --help lists what there is"],
            Error::Terminal(_) => &[
                "one answer on stdout: crew -p \"PROMPT\"",
                "events as JSON lines: crew --mode json \"PROMPT\"",
                "a crew at work, without key: crew demo",
            ],
            Error::NoWorkingDirectory(_) => &["go to a directory that exists and try again"],
            Error::NoHome => &["set HOME or CREW_CODING_AGENT_DIR, or use --no-session"],
            Error::DemoFolder { .. } => &["name a folder: crew demo DIR"],
            Error::Model { error, near } => return model_hints(error, near),
            Error::NoSuchSession(_) => {
                &["give a path, an id or its beginning; --continue takes the last session"]
            }
            Error::SessionElsewhere { .. } => {
                &["nothing was run; start crew in that directory, or give the path of the file"]
            }
            Error::SessionFolderGone { here, .. } => {
                return vec![format!(
                    "nothing was run; make that folder again, or start a new session in {}",
                    here.display()
                )];
            }
            Error::Open(_) => {
                &["nothing was changed; start without --session or -c for a new session"]
            }
            Error::Refused(Refusal::NoModel) => &NO_MODEL_HINTS,
            Error::RunFailed { kept, .. } => return vec![kept.words()],
            Error::Answer(answer) => return answer.hints(),
            Error::Store(error) => return store_hints(error),
            Error::File { .. }
            | Error::Image { .. }
            | Error::Input(_)
            | Error::Output(_)
            | Error::Runtime(_)
            | Error::Refused(_) => &[],
        };
        hints.iter().map(|hint| (*hint).to_owned()).collect()
    }
}

/// The three ways on without a usable model (`product.md` P-4).
const NO_MODEL_HINTS: [&str; 4] = [
    "looked for keys in the environment, in auth.json and in models.json",
    "a key: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or another provider's variable",
    "a local server: describe it in models.json with baseUrl, api and apiKey",
    "without either: --model demo/crew, the scripted model, or crew demo",
];

/// A refusal in words.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::UnknownSession => "the session is not open".to_owned(),
        Refusal::NotAttached => "the session is not shown".to_owned(),
        Refusal::Busy => "the session is busy".to_owned(),
        Refusal::NoModel => "there is no model that can be used".to_owned(),
        Refusal::OpenFailed(reason) => reason.clone(),
        Refusal::MoveCancelled => "the move in the tree was cancelled".to_owned(),
        Refusal::MoveFailed(reason) => reason.clone(),
        Refusal::Subagent(refusal) => refusal.to_string(),
        Refusal::Ending => "the program is ending".to_owned(),
    }
}

fn model_hints(error: &SelectError, near: &[String]) -> Vec<String> {
    let mut hints = Vec::new();
    if !near.is_empty() {
        hints.push(format!("close to it: {}", near.join(", ")));
    }
    hints.push(match error {
        SelectError::Ambiguous { .. } => "name the provider too: --model provider/id".to_owned(),
        SelectError::UnknownProvider { .. } | SelectError::NotFound { .. } => {
            "crew --list-models shows the models that can be used".to_owned()
        }
    });
    hints
}

fn store_hints(error: &crew_store::error::Error) -> Vec<String> {
    use crew_store::error::Error as Store;
    let hint = match error {
        Store::NotASession { .. } => "the file was left as it is",
        Store::InUse { .. } => "end the other program, or start a new session",
        Store::Invalid { .. } => "mend the file or move it away; it was left as it is",
        Store::Locked { .. } => "another program holds it; try again in a moment",
        Store::Io { .. } => "check that it exists and that you may use it",
        Store::Exists { .. } | Store::NotSaved | Store::UnknownEntry { .. } | Store::Untrusted => {
            return Vec::new();
        }
    };
    vec![hint.to_owned()]
}

fn answer_text(answer: &BadAnswer) -> String {
    let model = &answer.model;
    match &answer.kind {
        BadAnswerKind::Failed(cause) if answer.tries > 1 => {
            format!("the request to {model} failed after {} tries: {cause}", answer.tries)
        }
        BadAnswerKind::Failed(cause) => format!("the request to {model} failed: {cause}"),
        BadAnswerKind::Aborted(cause) => format!("the answer of {model} was stopped: {cause}"),
        BadAnswerKind::ThoughtsOnly => {
            format!("{model} ended its answer with thoughts only, without any text")
        }
        BadAnswerKind::Missing => "the run ended without any answer".to_owned(),
    }
}

impl BadAnswer {
    fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        let is_credential = match &self.kind {
            BadAnswerKind::Failed(cause) => is_about_credentials(cause),
            BadAnswerKind::Aborted(_) | BadAnswerKind::ThoughtsOnly | BadAnswerKind::Missing => {
                false
            }
        };
        if is_credential {
            hints.push("check the key in the environment, auth.json or models.json".to_owned());
        }
        if self.partial {
            hints.push("a part of the answer had arrived; it is not printed".to_owned());
        }
        hints.push(self.kept.words());
        hints
    }
}

/// A refusal of the key, by its status.
fn is_about_credentials(cause: &str) -> bool {
    let words = cause.split(|c: char| !c.is_ascii_alphanumeric());
    words.take(12).any(|word| word == "401" || word == "403")
}

impl Kept {
    fn words(&self) -> String {
        match self {
            Kept::File(path) => format!(
                "all before it is kept in {}; go on with: crew -c -p \"go on\"",
                path.display()
            ),
            Kept::Nothing => "nothing was kept; run the same command again".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: BadAnswerKind, tries: u32) -> Error {
        Error::Answer(Box::new(BadAnswer {
            kind,
            model: "p/m".into(),
            tries,
            kept: Kept::File("/s/x.jsonl".into()),
            partial: true,
        }))
    }

    #[test]
    fn a_failed_request_says_cause_tries_what_is_kept_and_how_to_go_on() {
        // C106
        let words = answer(BadAnswerKind::Failed("connection reset".into()), 4).words();
        assert_eq!(
            words.text,
            "provider: the request to p/m failed after 4 tries: connection reset"
        );
        let hints = words.hints.join("\n");
        assert!(hints.contains("/s/x.jsonl") && hints.contains("crew -c -p"), "{hints}");
    }

    #[test]
    fn causes_follow_the_message_once() {
        let source = io::Error::new(io::ErrorKind::PermissionDenied, "no entry");
        let error = Error::File { path: "/x".into(), source };
        assert_eq!(error.words().text, "cannot read /x: no entry");
        assert_eq!(error.exit_code(), 1);
        let elsewhere = Error::SessionElsewhere { path: "/x".into(), cwd: "/y".into() };
        assert_eq!(elsewhere.exit_code(), 0);
    }

    #[test]
    fn a_refused_key_is_told_as_such() {
        let check = |cause: &str, expected: bool| {
            assert_eq!(is_about_credentials(cause), expected, "{cause}");
        };
        check("401 {\"error\":1}", true);
        check("HTTP 403: no", true);
        check("400 request req4011", false);
    }
}
