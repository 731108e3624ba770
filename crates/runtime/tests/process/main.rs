//! What needs processes of its own: this program runs itself again as a host
//! that dies, as the helper that survives it, and under a file size limit.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]
#![expect(clippy::print_stdout, reason = "it is a test runner")]
#![expect(dead_code, reason = "it shares helpers with the tests of the shell")]

#[cfg(target_os = "linux")]
mod full;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
#[path = "../support/models.rs"]
mod models;
#[cfg(target_os = "linux")]
#[path = "../support/processes.rs"]
mod processes;
#[cfg(target_os = "linux")]
#[path = "../support/world.rs"]
mod world;

use std::process::ExitCode;

/// A test and its name.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(crew_runtime::guard::ARGUMENT) => crew_runtime::guard::run(),
        #[cfg(target_os = "linux")]
        Some("host") => host::run(),
        #[cfg(target_os = "linux")]
        Some("full") => full::run(),
        Some(_) | None => run_tests(&arguments),
    }
}

#[cfg(target_os = "linux")]
const TESTS: [&[Test]; 2] = [&guard::TESTS, &full::TESTS];
#[cfg(not(target_os = "linux"))]
const TESTS: [&[Test]; 0] = [];

/// Runs the tests whose names hold every word that is no option.
fn run_tests(arguments: &[String]) -> ExitCode {
    let is_list = arguments.iter().any(|word| word == "--list");
    let words: Vec<_> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let mut failed = 0;
    for (name, test) in TESTS.iter().copied().flatten() {
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        if is_list {
            println!("{name}: test");
            continue;
        }
        // The message of a panic was printed by then.
        let good = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += usize::from(!good);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
