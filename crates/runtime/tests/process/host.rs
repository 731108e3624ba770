//! The host that dies: runs the commands it reads, one for each line.

use std::io::{self, BufRead, Write};
use std::process::{Command as Process, ExitCode};

use crew_base::message::Message;
use crew_runtime::guard;
use serde_json::json;

use crate::guard::helper_of;
use crate::models::{Fake, calls, text};
use crate::processes::within;
use crate::world::{LONG, World};

/// `start COMMAND` starts a command in a prompt, `run COMMAND` waits for the
/// end of the prompt too, `quit` ends in order. The first line told is the
/// marker, once the helper is there.
pub(crate) fn run() -> ExitCode {
    let mut helper = Process::new(std::env::current_exe().unwrap());
    helper.arg(guard::ARGUMENT);
    let guard = guard::start_with(helper);
    let mut world = World::new();
    world.guard = Some(guard.clone());
    let model = Fake::replies(|asked| match asked.request.messages.last().map(|last| &**last) {
        Some(Message::User(user)) => calls(&[("bash", json!({"command": user.content.text()}))]),
        _ => text("end"),
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async move {
        let mut running = world.open(model).await;
        guard.arm(&running.host);
        drop(guard);
        assert!(within(LONG, || helper_of(std::process::id()).is_some()));
        tell(running.host.marker());
        for line in io::stdin().lock().lines() {
            let line = line.unwrap();
            match line.split_once(' ') {
                Some(("start", command)) => running.prompt(command).await,
                Some(("run", command)) => {
                    running.prompt(command).await;
                    running.until_rest().await;
                }
                _ => {
                    running.quit().await;
                    break;
                }
            }
            tell("done");
        }
    });
    ExitCode::SUCCESS
}

fn tell(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
