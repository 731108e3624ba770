//! `crew demo [DIR]`: the real engine, tools and crew on a folder, led by the
//! scripted model (`product.md` P-2).
//!
//! Writes nothing but its output; sessions stay in memory. Read
//! `demo::timeline` for what is shown.

mod timeline;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crew_base::message::Message;
use crew_base::text::sanitise_block;
use crew_model::catalog::{DEMO_MODEL, DEMO_PROVIDER};
use crew_runtime::PromptWish;

use crate::args::{DemoOptions, Options, SessionChoice};
use crate::drive::{self, Plan};
use crate::error::Error;
use crate::output::Product;
use crate::{config, print, wiring};
use timeline::{Look, Timeline};

/// What the scripted owner is asked.
const PROMPT: &str =
    "Show me this project with a crew: what is it made of, and where would I start?";

/// Runs the demo.
pub(crate) fn run(options: &DemoOptions) -> Result<ExitCode, Error> {
    let dir = folder(options.dir.as_deref().unwrap_or("."))?;
    let config = config::for_demo(dir.clone());
    let wishes = Options {
        model: Some(format!("{DEMO_PROVIDER}/{DEMO_MODEL}")),
        session: SessionChoice::Memory,
        prompt: PromptWish { no_context_files: true, no_skills: true, ..PromptWish::default() },
        ..Options::default()
    };
    let wired = wiring::wire(&config, &wishes, wiring::Person::Absent, &mut Vec::new())?;
    let product = Product::new();
    let environment = &config.place.environment;
    let plain =
        environment.get("NO_COLOR").is_some() || environment.get("TERM").as_deref() == Some("dumb");
    let look = Look { columns: product.columns(), colours: product.is_terminal() && !plain };
    let home = config.place.home.as_ref().map(|home| home.to_string_lossy().into_owned());
    let mut timeline = Timeline::new(product, look, home);
    timeline.begin(&dir, PROMPT).map_err(Error::Output)?;
    let runtime = wiring::runtime()?;
    let outcome = runtime.block_on(async {
        let prompts = vec![Message::user_text(PROMPT, crew_runtime::clock::now())];
        let plan = Plan { prompts, crew_wait: None };
        drive::run(wired, plan, &mut timeline).await.map_err(Error::Runtime)
    });
    wiring::shut_down(runtime);
    let mut outcome = outcome?;
    if let Some(code) = outcome.forced_code() {
        return match outcome.output.take() {
            Some(error) => Err(Error::Output(error)),
            None => Ok(ExitCode::from(code)),
        };
    }
    let answer = print::judge(outcome)?;
    timeline.end(&sanitise_block(&answer.text())).map_err(Error::Output)?;
    Ok(ExitCode::SUCCESS)
}

/// The folder as a path that commands can use; it must be one that can be read.
fn folder(typed: &str) -> Result<PathBuf, Error> {
    let found = fs::canonicalize(typed).and_then(|dir| fs::read_dir(&dir).map(|_| dir));
    found.map_err(|source| Error::DemoFolder { dir: PathBuf::from(typed), source })
}
