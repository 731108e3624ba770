//! The interactive mode: a terminal around the face of `crew_tui`
//! (`terminal.md`; for what is shown read that crate).
//!
//! Owns the terminal's modes, its input and output threads, the pace of
//! drawing, and the serving of the face's requests. Must never wait for a
//! terminal that takes no bytes (TERM-32), and must leave every mode reset on
//! every way out (TERM-27). Read `tui::terminal` for the device, `tui::face`
//! for the loop, `tui::serve` for requests, `tui::moves` for other sessions.

mod asks;
mod clipboard;
mod colours;
mod coming;
mod export;
mod face;
mod facts;
mod files;
mod login;
mod moves;
mod news;
mod outside;
mod paste;
mod preview;
mod reload;
mod send;
mod serve;
mod sessions;
mod settings;
mod start;
mod terminal;

use std::process::ExitCode;

use crate::args::Options;
use crate::error::Error;
use crate::wiring;

/// Runs the face until the person leaves.
pub(crate) fn run(options: Options) -> Result<ExitCode, Error> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let terminal = match options.plain || is_dumb {
        true => terminal::Terminal::plain(),
        false => terminal::Terminal::open(),
    };
    let terminal = terminal.map_err(Error::Terminal)?;
    let runtime = wiring::runtime()?;
    let code = runtime.block_on(face::show(options, terminal));
    // What still blocks a thread is not waited for.
    wiring::shut_down(runtime);
    code.map(ExitCode::from)
}
