//! The tool `bash` (`host.md` 4.3): a command, the tail of its output, and why
//! it ended. The process work is in `process`.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use crew_base::message::Block;
use crew_base::text::is_blank;
use crew_base::tool::{ToolDefinition, ToolOutcome, ToolProgress};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::context::{ProgressSink, Tool, ToolContext, ToolFuture};
use crate::error::{Error, TIMEOUT_SECONDS_MAX, failure};
use crate::process::output::Output;
use crate::process::{Cause, Ended, Sink, Spec, run};
use crate::toolbox::definition;
use crate::truncate::details;

/// Least time between two updates (`host.md` 4.3.7).
const UPDATE_EVERY: Duration = Duration::from_millis(100);

/// The tool.
pub(crate) struct Bash {
    definition: ToolDefinition,
}

impl Bash {
    pub(crate) fn new() -> Bash {
        let parameters = json!({
            "type": "object",
            "required": ["command"],
            "properties": {
                "command": {"type": "string", "description": "The command line, run by bash -c."},
                "timeout": {
                    "type": "number",
                    "description": "Seconds after which the command is killed. No limit if absent."
                }
            }
        });
        let description = "Runs a shell command in the working directory and returns what it \
            printed, stdout and stderr together. Standard input is empty. Only the last 2000 \
            lines or 50 KB are returned; the rest is kept in a file that the result names. \
            Processes left in the background go on running, their output is lost unless \
            it is redirected.";
        Bash { definition: definition("bash", description, &parameters) }
    }
}

impl Tool for Bash {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture {
        Box::pin(async move {
            match run_command(&context, &arguments).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(),
            }
        })
    }
}

async fn run_command(context: &ToolContext, arguments: &Value) -> Result<ToolOutcome, Error> {
    let command = arguments["command"].as_str().unwrap_or_default();
    let spec = Spec {
        session: context.session.clone(),
        cwd: context.cwd.clone(),
        command: command.to_owned(),
        shell: context.shell.clone(),
        env: context.env.clone(),
        time_max: time_max(arguments)?,
        cancel: context.cancel.clone(),
    };
    let time_max = spec.time_max;
    let mut shown = Shown::new(&context.host.tmp, context.progress.clone());
    let span = context.host.command_started(&context.session).await;
    let ended = run(&context.host, spec, &mut shown).await;
    span.end().await;
    Ok(outcome(&mut shown.output, &ended?, time_max).await)
}

fn time_max(arguments: &Value) -> Result<Option<Duration>, Error> {
    let Some(seconds) = arguments["timeout"].as_f64() else {
        return Ok(None);
    };
    if !(seconds > 0.0 && seconds <= TIMEOUT_SECONDS_MAX) {
        return Err(Error::Timeout { seconds });
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

async fn outcome(output: &mut Output, ended: &Ended, time_max: Option<Duration>) -> ToolOutcome {
    let view = output.finish().await;
    let mut text = view.content.clone();
    if text.is_empty() {
        text.push_str("(no output)");
    } else if is_blank(&text) {
        text = "(only blank output)".to_owned();
    }
    if let Some(note) = output.note(&view) {
        add(&mut text, &note);
    }
    let reason = match ended.cause {
        Cause::Exit => {
            let code = ended.exit.map_or(0, |(code, _)| code);
            let failed = code != 0;
            if failed {
                add(&mut text, &format!("[The command ended with exit code {code}.]"));
            }
            return ToolOutcome {
                is_error: failed,
                details: details(output.details(&view)),
                ..ToolOutcome::text(text)
            };
        }
        Cause::TimeOut => {
            let seconds = time_max.unwrap_or_default().as_secs_f64();
            format!("The command was killed after its time limit of {seconds} s.")
        }
        Cause::Abort => "The operation was aborted; the command was killed.".to_owned(),
    };
    let shell = ended.exit.map_or(String::new(), |(code, after)| {
        let seconds = after.as_secs_f64();
        format!(
            " The shell itself had ended with exit code {code} after {seconds:.1} s; \
             processes it left in the background went on writing."
        )
    });
    add(&mut text, &format!("[{reason}{shell}]"));
    failure(text)
}

fn add(text: &mut String, note: &str) {
    text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    text.push_str(note);
}

/// Shows the tail while the command runs.
struct Shown {
    output: Output,
    progress: ProgressSink,
    last: Instant,
    is_due: bool,
}

impl Shown {
    fn new(tmp: &Path, progress: ProgressSink) -> Shown {
        progress(ToolProgress { content: Vec::new(), details: None });
        Shown { output: Output::new(tmp), progress, last: Instant::now(), is_due: false }
    }
}

impl Sink for Shown {
    fn chunk<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            self.output.push(bytes).await;
            self.is_due = true;
            if self.last.elapsed() >= UPDATE_EVERY {
                self.tick();
            }
        })
    }

    fn wake(&self) -> Option<Instant> {
        self.is_due.then(|| self.last + UPDATE_EVERY)
    }

    fn tick(&mut self) {
        self.is_due = false;
        self.last = Instant::now();
        let view = self.output.view(false);
        (self.progress)(ToolProgress {
            details: details(self.output.details(&view)),
            content: vec![Block::text(view.content)],
        });
    }
}

#[cfg(test)]
mod tests;
