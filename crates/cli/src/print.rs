//! Print mode: the text of the last answer on standard output, everything else
//! on standard error (`host.md` 6.1.3, `product.md` P-6 to P-8).

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use crew_base::message::{AssistantMessage, Block, StopReason};
use crew_runtime::Notice;

use crate::args::{Options, UsageError};
use crate::config::{self, models};
use crate::drive::{self, Cut, Face, Failure, Outcome, Plan};
use crate::error::{BadAnswer, BadAnswerKind, Error, Kept};
use crate::output::{self, Product};
use crate::progress::Progress;
use crate::{input, wiring};

/// Runs the prompts and prints the last answer.
pub(crate) fn run(options: Options) -> Result<ExitCode, Error> {
    let progress = Progress::new(output::stderr_is_terminal() || options.verbose, options.verbose);
    let mut face = Print { progress };
    let outcome = drive(&options, &mut face)?;
    let code = finish(outcome)?;
    Ok(ExitCode::from(code))
}

/// From options to the end of the run; shared with the JSON face.
pub(crate) fn drive(options: &Options, face: &mut dyn Face) -> Result<Outcome, Error> {
    let stdin_is_terminal = output::terminals().stdin;
    if stdin_is_terminal && options.messages.is_empty() && options.files.is_empty() {
        return Err(UsageError::NoPrompt.into());
    }
    let mut config = config::load(options)?;
    let mut warnings = std::mem::take(&mut config.warnings);
    let wired = wiring::wire(&config, options, wiring::Person::Absent, &mut warnings);
    warnings.iter().for_each(|warning| output::warning(warning));
    let wired = wired?;
    let has_prompt = !options.messages.is_empty() || !options.files.is_empty();
    let piped = input::piped(stdin_is_terminal, has_prompt)?;
    let runtime = wiring::runtime()?;
    let outcome = runtime.block_on(async {
        let prompts = input::messages(options, &config, piped, &wired).await?;
        let plan = Plan { prompts, crew_wait: options.crew_wait };
        drive::run(wired, plan, face).await.map_err(Error::Runtime)
    });
    wiring::shut_down(runtime);
    outcome
}

/// Prints the answer and tells the exit code (`host.md` 6.1.3, 6.1.8).
fn finish(outcome: Outcome) -> Result<u8, Error> {
    if let Some(code) = outcome.forced_code() {
        if let Some(error) = outcome.output {
            return Err(Error::Output(error));
        }
        let whole = outcome.answer.as_deref().filter(|answer| answer.error_message.is_none());
        if outcome.cut == Some(drive::CutCause::WaitBound) {
            whole.map_or(Ok(()), print)?;
        }
        return Ok(code);
    }
    let answer = judge(outcome)?;
    print(&answer)?;
    if answer.stop_reason == StopReason::Length {
        output::warning("the answer was cut off: the model's output limit was reached");
        return Ok(1);
    }
    if answer.content.is_empty() {
        output::note("the run ended without any text");
    }
    Ok(0)
}

/// The last answer of a run that ended by itself, unless it is none.
pub(crate) fn judge(outcome: Outcome) -> Result<Arc<AssistantMessage>, Error> {
    let kept = kept(&outcome);
    if let Some(failure) = outcome.failure {
        return Err(worded(failure, kept));
    }
    let tries = outcome.tries;
    let bad = |kind, model, partial| {
        Err(Error::Answer(Box::new(BadAnswer { kind, model, tries, kept, partial })))
    };
    let Some(answer) = outcome.answer else {
        return bad(BadAnswerKind::Missing, String::new(), false);
    };
    let model = models::shown(&format!("{}/{}", answer.provider, answer.model));
    let partial = !answer.text().is_empty();
    let cause = answer.error_message.clone();
    let cause = cause.unwrap_or_else(|| "no reason was given".to_owned());
    match answer.stop_reason {
        StopReason::Error => bad(BadAnswerKind::Failed(cause), model, partial),
        StopReason::Aborted => bad(BadAnswerKind::Aborted(cause), model, partial),
        StopReason::Length
        | StopReason::Stop
        | StopReason::ToolUse
        | StopReason::Pending
        | StopReason::Deferred => {
            if is_thoughts_only(&answer) {
                return bad(BadAnswerKind::ThoughtsOnly, model, partial);
            }
            Ok(answer)
        }
    }
}

/// What is left of the conversation.
pub(crate) fn kept(outcome: &Outcome) -> Kept {
    let exists = outcome.file.clone().filter(|file| file.exists());
    exists.map_or(Kept::Nothing, Kept::File)
}

/// The error of a failure.
pub(crate) fn worded(failure: Failure, kept: Kept) -> Error {
    match failure {
        Failure::Open(reason) => Error::Open(reason),
        Failure::Refused(refusal) => Error::Refused(refusal),
        Failure::Run(error) => Error::RunFailed { error, kept },
    }
}

/// Thoughts and nothing else (C094).
fn is_thoughts_only(answer: &AssistantMessage) -> bool {
    let is_thought = |block: &Block| matches!(block, Block::Thinking(_));
    let is_blank = |block: &Block| block.as_text().is_some_and(str::is_empty);
    answer.content.iter().any(is_thought)
        && answer.content.iter().all(|block| is_thought(block) || is_blank(block))
}

fn print(answer: &AssistantMessage) -> Result<(), Error> {
    let mut product = Product::new();
    let mut texts = answer.content.iter().filter_map(Block::as_text);
    let written = texts.try_for_each(|text| {
        product.write_outside(text)?;
        product.write("\n")
    });
    written.and_then(|()| product.flush()).map_err(Error::Output)
}

struct Print {
    progress: Progress,
}

impl Face for Print {
    fn show(&mut self, notice: &Notice) -> io::Result<()> {
        self.progress.show(notice);
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, cut: &Cut) {
        self.progress.cut(cut);
    }
}
