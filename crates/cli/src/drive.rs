//! The way from opened session to exit: prompts one after the other, the crew
//! awaited after the last, then everything closed (`host.md` 6.1.3, 6.1.6;
//! `product.md` P-6 to P-8). Shared by all faces that end by themselves.
//!
//! Must never print; faces show, and learn the [`Outcome`]. Read `drive::course`
//! for the states, `drive::roster` for what is known of the crew.

mod course;
mod roster;
pub(crate) mod signals;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crew_base::message::{AssistantMessage, Message};
use crew_engine::api::Refusal;
use crew_runtime::Notice;
use tokio::time::{Instant, sleep_until};

use crate::wiring::Wired;
use course::Course;
pub(crate) use roster::Child;
use signals::Signals;
pub(crate) use signals::Stop;

/// What is to be done.
pub(crate) struct Plan {
    /// Prompts in order.
    pub(crate) prompts: Vec<Message>,
    /// Bound of the wait for the crew (`product.md` P-7).
    pub(crate) crew_wait: Option<Duration>,
}

/// Shows what happens.
pub(crate) trait Face {
    /// One notice, in order. An error means that nobody reads any more.
    fn show(&mut self, notice: &Notice) -> io::Result<()>;
    /// Nothing more is there at the moment.
    fn pause(&mut self) -> io::Result<()>;
    /// Work is being cut short.
    fn cut(&mut self, cut: &Cut);
}

/// Work that is cut short, and why.
pub(crate) struct Cut {
    /// The reason.
    pub(crate) cause: CutCause,
    /// Whether the owner was running.
    pub(crate) owner_runs: bool,
    /// Subagents with open work.
    pub(crate) children: Vec<Child>,
}

/// Why work is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutCause {
    /// A signal.
    Signal(Stop),
    /// The bound of `--crew-wait`.
    WaitBound,
    /// Standard output is closed.
    Output,
}

/// How it went.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The last complete answer of the owner.
    pub(crate) answer: Option<Arc<AssistantMessage>>,
    /// Requests made for the last failed answer.
    pub(crate) tries: u32,
    /// The session's file, planned or existing.
    pub(crate) file: Option<PathBuf>,
    /// The first thing that went wrong outside the model's answers.
    pub(crate) failure: Option<Failure>,
    /// The first reason why work was cut short.
    pub(crate) cut: Option<CutCause>,
    /// Why standard output could not be written.
    pub(crate) output: Option<io::Error>,
}

/// What can go wrong outside the model's answers.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The session could not be opened.
    Open(String),
    /// A prompt was refused.
    Refused(Refusal),
    /// A run ended because the host failed.
    Run(String),
}

/// Runs a plan to its end; returns when every session is closed and nothing
/// that was started is left.
pub(crate) async fn run(wired: Wired, plan: Plan, face: &mut dyn Face) -> io::Result<Outcome> {
    let host = Arc::clone(&wired.host);
    let (session, source) = (wired.session.clone(), wired.source.clone());
    let mut signals = Signals::listen(Arc::clone(&host))?;
    let (handle, mut updates) = wired.start();
    let mut course = Course::open(handle, session, source, plan);
    let mut shown = false;
    loop {
        let deadline = course.deadline();
        tokio::select! {
            biased;
            Some(stop) = signals.next() => {
                let cut = course.interrupt(CutCause::Signal(stop));
                cut.iter().for_each(|cut| face.cut(cut));
            }
            notice = updates.next() => {
                let Some(notice) = notice else { break };
                if course.outcome.output.is_none() && let Err(error) = face.show(&notice) {
                    course.outcome.output = Some(error);
                    let cut = course.interrupt(CutCause::Output);
                    cut.iter().for_each(|cut| face.cut(cut));
                }
                course.take(&notice);
                shown = true;
            }
            () = std::future::ready(()), if shown => {
                shown = false;
                pause(face, &mut course);
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                let cut = course.expire();
                cut.iter().for_each(|cut| face.cut(cut));
            }
        }
    }
    pause(face, &mut course);
    Ok(course.outcome)
}

fn pause(face: &mut dyn Face, course: &mut Course) {
    if course.outcome.output.is_none()
        && let Err(error) = face.pause()
    {
        course.outcome.output = Some(error);
        let cut = course.interrupt(CutCause::Output);
        cut.iter().for_each(|cut| face.cut(cut));
    }
}

impl Outcome {
    /// The exit code of an end that was forced, if it was (`product.md` P-7,
    /// P-8).
    pub(crate) fn forced_code(&self) -> Option<u8> {
        self.cut.map(|cause| match cause {
            CutCause::Signal(stop) => stop.exit_code(),
            CutCause::WaitBound | CutCause::Output => 1,
        })
    }
}
