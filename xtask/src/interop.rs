//! The interop checks of `host.md` 10: the program and a stock Pi 1.6 read
//! and write the same files and are driven by the same client, against a fake
//! provider on loopback.
//!
//! Owns the list of checks and the verdicts that are printed. Must never touch
//! the real agent folder: each check has folders of its own. Where Pi cannot
//! be installed the task says so and passes. Read `checks` for what is
//! checked and `world` for the surroundings.

mod checks;
mod host;
mod install;
mod log;
mod rpc;
mod server;
mod terminal;
mod world;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::run::{Outcome, cargo, root, run};
use checks::CHECKS;
use install::Installed;

/// Runs the checks whose number is an argument, all without any, and prints
/// one verdict each. `--bin PROGRAM` checks another program than the release
/// build, which is then not built. Errors when a check fails.
pub(crate) fn interop(args: &[String]) -> Outcome {
    let (program, wanted) = match args {
        [option, program, wanted @ ..] if option == "--bin" => (Some(program), wanted),
        wanted => (None, wanted),
    };
    let wanted: Vec<_> = CHECKS
        .iter()
        .filter(|check| wanted.is_empty() || wanted.iter().any(|number| number == check.number))
        .collect();
    if wanted.is_empty() {
        let numbers: Vec<&str> = CHECKS.iter().map(|check| check.number).collect();
        return Err(format!("no check has this number; there are {}", numbers.join(", ")));
    }
    let Some(pi) = Installed::find_or_install()? else {
        return Ok(());
    };
    let setup = Setup { crew: program_path(program)?, pi };
    println!("interop: {} with Node {}", setup.pi.version()?, setup.pi.node_version()?);
    let mut failed = Vec::new();
    for check in wanted {
        let start = Instant::now();
        let verdict = (check.run)(&setup);
        let seconds = start.elapsed().as_secs_f64();
        match verdict {
            Ok(()) => println!("PASS {:<6} {} ({seconds:.1} s)", check.number, check.title),
            Err(reason) => {
                println!("FAIL {:<6} {} ({seconds:.1} s)", check.number, check.title);
                reason.lines().for_each(|line| println!("            {line}"));
                failed.push(check.number);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// The two programs.
pub(crate) struct Setup {
    pub(crate) crew: PathBuf,
    pub(crate) pi: Installed,
}

/// One check of `host.md` 10.
pub(crate) struct Check {
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    /// Errors with what was found instead.
    pub(crate) run: fn(&Setup) -> Outcome,
}

fn program_path(chosen: Option<&String>) -> Outcome<PathBuf> {
    let path = match chosen {
        Some(program) => PathBuf::from(program),
        None => {
            run(cargo(&["build", "--release", "--locked", "-p", "crew"]))?;
            root().join("target").join("release").join("crew")
        }
    };
    fs::canonicalize(&path).map_err(|error| format!("no {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_number_of_its_own_and_unknown_ones_are_refused() {
        let mut numbers: Vec<&str> = CHECKS.iter().map(|check| check.number).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        let error = interop(&["11.1".to_owned()]).unwrap_err();
        assert!(error.contains("10.1") && error.contains("10.14"), "{error}");
    }
}
