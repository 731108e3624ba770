//! JSON mode: the session header, then every event as one line
//! (`host.md` 6.1.4, 7.4).

use std::io;
use std::process::ExitCode;

use crew_engine::api::Update;
use crew_runtime::Notice;

use crate::args::Options;
use crate::drive::{Cut, Face, Outcome};
use crate::error::Error;
use crate::output::Product;
use crate::print;
use crate::progress::Progress;
use crate::rpc::wire::{self, Wire};

/// Runs the prompts and prints the events.
pub(crate) fn run(options: Options) -> Result<ExitCode, Error> {
    let progress = Progress::new(options.verbose, options.verbose);
    let mut face = Json { product: Product::new(), wire: Wire::default(), progress };
    let outcome = print::drive(&options, &mut face)?;
    face.product.flush().map_err(Error::Output)?;
    finish(outcome)
}

/// Failed answers are events and change no exit code (`host.md` 6.1.4).
fn finish(outcome: Outcome) -> Result<ExitCode, Error> {
    if let Some(code) = outcome.forced_code() {
        return match outcome.output {
            Some(error) => Err(Error::Output(error)),
            None => Ok(ExitCode::from(code)),
        };
    }
    let kept = print::kept(&outcome);
    match outcome.failure {
        Some(failure) => Err(print::worded(failure, kept)),
        None => Ok(ExitCode::SUCCESS),
    }
}

struct Json {
    product: Product,
    wire: Wire,
    progress: Progress,
}

impl Face for Json {
    fn show(&mut self, notice: &Notice) -> io::Result<()> {
        self.progress.show(notice);
        let line = match notice {
            Notice::Opened { header, .. } => Some(wire::header(header)),
            Notice::Update(Update::Session { update, .. }) => self.wire.session(update),
            Notice::Update(Update::Crew(update)) => Some(wire::crew(update)),
            Notice::Update(Update::Task(update)) => Some(format!("{}\n", update.json())),
            Notice::Update(
                Update::Answered { .. } | Update::RunFailed { .. } | Update::AtRest(_),
            )
            | Notice::Question(_)
            | Notice::QuestionOver(_)
            | Notice::Warning(_) => None,
        };
        line.map_or(Ok(()), |line| self.product.write(&line))
    }

    fn pause(&mut self) -> io::Result<()> {
        self.product.flush()
    }

    fn cut(&mut self, cut: &Cut) {
        self.progress.cut(cut);
    }
}
