//! The remote face: commands as JSON lines on standard input, responses and
//! events as JSON lines on standard output (`host.md` 7; for users
//! `docs/rpc.md`).
//!
//! Owns the protocol and nothing else: whatever a command does is done by the
//! engine. Standard output is written by one thread, standard input read by
//! another. Read `rpc::request` for what can be asked, `rpc::face` for the
//! loop, `rpc::wire` for the events, which the JSON face shares.

mod act;
mod dialog;
#[cfg(test)]
mod docs;
mod face;
mod lines;
mod look;
mod moves;
mod output;
mod request;
mod response;
mod shell;
pub(crate) mod wire;

use std::process::ExitCode;
use std::sync::Arc;

use crew_base::id::Ids;
use crew_model::select::scope;

use crate::args::Options;
use crate::config::{self, Config};
use crate::drive::signals::Signals;
use crate::error::Error;
use crate::wiring::{self, Wired};

/// Serves one client until its input ends or a signal comes.
pub(crate) fn run(options: Options) -> Result<ExitCode, Error> {
    let mut config = config::load(&options)?;
    let mut warnings = std::mem::take(&mut config.warnings);
    if !options.messages.is_empty() {
        warnings.push("prompts of the command line are not used in RPC mode".to_owned());
    }
    let wired = wiring::wire(&config, &options, wiring::Person::Present, &mut warnings);
    warnings.iter().for_each(|warning| crate::output::warning(warning));
    let wired = wired?;
    let runtime = wiring::runtime()?;
    let code = runtime.block_on(async {
        let start = start(wired, config, options).map_err(Error::Runtime)?;
        face::serve(start).await
    });
    // What still blocks a thread is not waited for.
    wiring::shut_down(runtime);
    code.map(ExitCode::from)
}

fn start(wired: Wired, config: Config, options: Options) -> std::io::Result<face::Start> {
    let signals = Signals::listen(Arc::clone(&wired.host))?;
    let patterns = options.models.as_deref().or(config.settings.enabled_models.as_deref());
    let patterns = patterns.unwrap_or_default().iter().map(String::as_str);
    let usable = |provider: &str| config.credentials.is_configured(provider);
    let scope = scope(patterns, &config.catalog, &usable).models;
    let (session, source) = (wired.session.clone(), wired.source.clone());
    let (handle, updates) = wired.start();
    Ok(face::Start {
        handle,
        updates,
        scope,
        // The engine's own generator is out of reach once it runs.
        ids: Ids::new(wiring::seed()),
        session,
        source,
        signals,
        lines: lines::start()?,
        writer: output::Writer::start()?,
        config,
        options,
    })
}
