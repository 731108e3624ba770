//! `--export FILE [OUT]`: a session as a page of its own (`host.md` 2.8.10).

use std::process::ExitCode;

use crew_store::export::{ExportOptions, default_name, file_to_html};
use crew_store::paths;

use crate::args::ExportRequest;
use crate::config;
use crate::error::Error;
use crate::output;

/// Writes the page and prints where it is.
pub(crate) fn run(request: &ExportRequest) -> Result<ExitCode, Error> {
    let (place, file) = config::find_session(&request.session, request.session_dir.as_deref())?;
    let out = request.out.clone().unwrap_or_else(|| default_name(&file));
    let out = paths::expand(&out, place.home.as_deref(), &place.cwd);
    let options = ExportOptions { children: request.children, leaf: None };
    file_to_html(&file, &options, &out)?;
    output::product(&format!("{}\n", out.display()))
}
