//! `sim --seeds N [--from S]` runs seeds; `sim --seed S` replays one and
//! prints its trace.

use std::process::ExitCode;

use crew_testkit::sim;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line program")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(seed) = value("--seed") {
        let (trace, result) = sim::replay(seed);
        for line in trace {
            println!("{line}");
        }
        return match result {
            Ok(summary) => {
                println!("seed {seed}: {summary}");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("seed {seed}: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    let Some(seeds) = value("--seeds") else {
        eprintln!("usage: sim --seeds N [--from S] | --seed S");
        return ExitCode::FAILURE;
    };
    let from = value("--from").unwrap_or(0);
    let mut total = sim::Summary::default();
    for seed in from..from + seeds {
        match sim::run(seed) {
            Ok(summary) => total.add(&summary),
            Err(failure) => {
                eprintln!("seed {seed} failed: {failure}\nreplay: cargo xtask sim --seed {seed}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{seeds} seeds clean: {total}");
    ExitCode::SUCCESS
}
