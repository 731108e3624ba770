//! The task runner: every check and chore of this repository behind one
//! command, `cargo xtask NAME`.
//!
//! Owns the gate (`ci`), the repository's own rules (`tidy`), the checks beside
//! a stock Pi (`interop`), the measurements (`bench`) and the release archive
//! (`dist`). Must never depend on a product crate, so that it builds when they
//! do not. Read `ci` for the order of the gate and `tidy` for the rules.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the task runner speaks to the person who started it"
)]

mod bench;
mod ci;
mod deny;
mod dist;
mod http;
mod interop;
mod kit;
mod run;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask NAME

  ci [--no-tests]        the whole gate; --no-tests leaves out the test run
  tidy                   the repository's own rules
  deny                   licences, bans and sources of all dependencies
  sim --seeds N          simulate N seeds (also: --seed S, to replay one)
  bless                  run all tests and accept the new golden files
  kit [--all] [--update] [RUNNER OPTIONS]
                         black-box scenarios: those listed as passing, all of
                         them, or all of them and list what newly passes
  interop [--bin PROGRAM] [CHECK]...
                         the release program, or another one, beside a stock
                         Pi 1.6: same files, same wire (needs npm once)
  bench [--bin PROGRAM] [ROW]...
                         measure the release program, or another one, against
                         the budgets
  dist                   build the release archive and its checksum
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match args.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let result = match name {
        "ci" => ci::ci(rest),
        "tidy" => tidy::tidy(),
        "deny" => deny::deny(),
        "sim" => ci::sim(rest),
        "bless" => ci::bless(rest),
        "kit" => kit::kit(rest),
        "interop" => interop::interop(rest),
        "bench" => bench::bench(rest),
        "dist" => dist::dist(),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no task is called {other}\n\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}
