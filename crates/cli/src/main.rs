//! The binary `crew`: arguments, configuration, wiring, faces, exit codes.
//!
//! Must never decide what a session does; faces only show and ask. Read `args`
//! for what can be typed, `config` and `wiring` for how the parts come to be,
//! `drive` for the way from the first prompt to the exit code, then the faces
//! `print`, `json`, `rpc` and `demo`.

mod args;
mod config;
mod demo;
mod drive;
mod error;
mod export;
mod herdr;
mod input;
mod json;
mod list;
mod output;
mod print;
mod progress;
mod rpc;
mod tui;
mod wiring;

use std::process::ExitCode;

use args::Invocation;
use error::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.peek().is_some_and(|word| word == crew_runtime::guard::ARGUMENT) {
        return crew_runtime::guard::run();
    }
    match invoke(words.collect()) {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn invoke(words: Vec<std::ffi::OsString>) -> Result<ExitCode, Error> {
    let invocation = args::parse(words, output::terminals())?;
    match invocation {
        Invocation::Help => output::product(args::HELP),
        Invocation::Version => output::product(concat!("crew ", env!("CARGO_PKG_VERSION"), "\n")),
        Invocation::Demo(options) => demo::run(&options),
        Invocation::ListModels { search, options } => list::run(search.as_deref(), &options),
        Invocation::Export(request) => export::run(&request),
        Invocation::Print(options) => print::run(*options),
        Invocation::Json(options) => json::run(*options),
        Invocation::Rpc(options) => rpc::run(*options),
        Invocation::Terminal(options) => tui::run(*options),
    }
}
