//! The gate and the test-shaped tasks: what must pass before a change lands,
//! in the order that finds the cheapest fault first.
//!
//! Must never change a file of the tree, except `bless`, which exists for it.
//! Read `tidy`, `deny` and `kit` for the parts.

use crate::run::{Outcome, cargo, run};
use crate::{deny, kit, tidy};

/// Runs the gate (`style.md` 10); `--no-tests` leaves out the test run for a
/// caller that has just done it. Stops at the first part that fails.
pub(crate) fn ci(args: &[String]) -> Outcome {
    let mut with_tests = true;
    for arg in args {
        match arg.as_str() {
            "--no-tests" => with_tests = false,
            other => return Err(format!("unknown option {other}")),
        }
    }
    run(cargo(&["fmt", "--all", "--check"]))?;
    tidy::tidy()?;
    run(cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    if with_tests {
        let mut tests = cargo(&["test", "--workspace", "--locked"]);
        tests.env("INSTA_UPDATE", "no");
        run(tests)?;
    }
    deny::deny()?;
    sim(&["--seeds".into(), GATE_SEEDS.into()])?;
    kit::kit(&[])
}

/// Runs the simulation of the whole engine; arguments go to it unchanged
/// (`--seeds N`, `--seed S`).
pub(crate) fn sim(args: &[String]) -> Outcome {
    if args.is_empty() {
        return sim(&["--seeds".into(), GATE_SEEDS.into()]);
    }
    let mut command =
        cargo(&["run", "--release", "--locked", "-p", "crew-testkit", "--bin", "sim", "--"]);
    command.args(args);
    run(command)
}

/// Runs the tests and accepts what golden files and snapshots hold now;
/// arguments go to `cargo test` (`-p crew-model`). Read the diff afterwards.
pub(crate) fn bless(args: &[String]) -> Outcome {
    let mut command = cargo(&["test"]);
    if args.is_empty() {
        command.arg("--workspace");
    }
    command.args(args).env("INSTA_UPDATE", "always").env("CREW_BLESS", "1");
    run(command)
}

/// Seeds of the short simulation that is part of the gate.
const GATE_SEEDS: &str = "10000";
