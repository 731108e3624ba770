//! The black-box scenarios that stand beside the repository, and the list of
//! those the program passes (`.ci/kit-passing.txt`).
//!
//! Owns that list: sorted, one name per line, it only grows, so that what once
//! worked stays working. Must never edit the kit. Where the kit is absent (a
//! checkout of this repository alone) the task says so and passes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{Outcome, cargo, root, run};

/// Runs scenarios: those listed as passing, with `--all` every one, with
/// `--update` every one and adds what newly passes to the list. Other options
/// go to the runner. Errors when a scenario that should pass fails twice.
pub(crate) fn kit(args: &[String]) -> Outcome {
    let options = Options::parse(args);
    let root = root();
    let runner = root.join(RUNNER);
    if !runner.is_file() {
        println!("kit: skipped, there is no {RUNNER} beside this repository");
        return Ok(());
    }
    let list = root.join(LIST);
    let listed = parse_list(&fs::read_to_string(&list).unwrap_or_default());
    if listed.is_empty() && !options.everything {
        println!("kit: no scenario is listed in {LIST} yet");
        return Ok(());
    }
    run(cargo(&["build", "--release", "--locked", "-p", "crew"]))?;

    let mut report = scenarios(&runner, &options.selection(&listed))?;
    if !options.everything {
        report.retry(&runner)?;
        return report.judge(&listed);
    }
    if options.update {
        let new: BTreeSet<String> = report.passed.difference(&listed).cloned().collect();
        let added = confirmed(&runner, new)?;
        let grown: BTreeSet<String> = listed.union(&added).cloned().collect();
        fs::write(&list, render_list(&grown))
            .map_err(|error| format!("cannot write {LIST}: {error}"))?;
        println!("kit: {} added, {} listed", added.len(), grown.len());
    }
    let broken: Vec<&String> = report.failed.intersection(&listed).collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(format!("listed as passing but failed: {broken:?}"))
}

/// What the caller asked for.
#[derive(Default)]
struct Options {
    everything: bool,
    update: bool,
    passed_on: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Self {
        let mut options = Self::default();
        for arg in args {
            match arg.as_str() {
                "--all" => options.everything = true,
                "--update" => options.update = true,
                other => options.passed_on.push(other.to_owned()),
            }
        }
        options.everything |= options.update || !options.passed_on.is_empty();
        options
    }

    /// Returns the runner's arguments.
    fn selection(&self, listed: &BTreeSet<String>) -> Vec<String> {
        let mut args = vec!["-j".to_owned(), JOBS.to_owned()];
        if self.everything {
            args.extend(self.passed_on.iter().cloned());
        } else {
            args.extend(only(listed));
        }
        args
    }
}

/// Names of the scenarios that ended one way or the other.
#[derive(Default, Debug)]
struct Report {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Report {
    /// Takes one line of the runner's output.
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let (verdict, _group, name) = (words.next(), words.next(), words.next());
        let Some(name) = name else { return };
        match verdict {
            Some("PASS") => self.passed.insert(name.to_owned()),
            Some("FAIL") => self.failed.insert(name.to_owned()),
            _ => false,
        };
    }

    /// Runs what failed once more, alone: scenarios have time limits, and a
    /// busy machine must not look like a fault.
    fn retry(&mut self, runner: &Path) -> Outcome {
        if self.failed.is_empty() {
            return Ok(());
        }
        println!("kit: {} failed, once more, one by one", self.failed.len());
        let mut args = vec!["-j".to_owned(), "1".to_owned()];
        args.extend(only(&self.failed));
        let second = scenarios(runner, &args)?;
        if !second.passed.is_empty() {
            println!("kit: passed only the second time: {:?}", second.passed);
        }
        self.failed.retain(|name| !second.passed.contains(name));
        self.passed.extend(second.passed);
        Ok(())
    }

    /// Errors unless every wanted scenario passed.
    fn judge(&self, wanted: &BTreeSet<String>) -> Outcome {
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|name| !self.passed.contains(*name) && !self.failed.contains(*name))
            .collect();
        println!("{} passed, {} failed", self.passed.len(), self.failed.len());
        if !self.failed.is_empty() {
            return Err(format!("listed as passing but failed: {:?}", self.failed));
        }
        if !missing.is_empty() {
            return Err(format!("listed as passing but not run: {missing:?}"));
        }
        Ok(())
    }
}

/// Keeps of the newly passing scenarios those that pass again, repeatedly.
fn confirmed(runner: &Path, new: BTreeSet<String>) -> Outcome<BTreeSet<String>> {
    if new.is_empty() {
        return Ok(new);
    }
    let mut args = vec!["-j".to_owned(), JOBS.to_owned()];
    args.extend(["--repeat".to_owned(), CONFIRMATIONS.to_owned()]);
    args.extend(only(&new));
    let again = scenarios(runner, &args)?;
    Ok(new
        .into_iter()
        .filter(|name| again.passed.contains(name) && !again.failed.contains(name))
        .collect())
}

/// Runs the kit with these arguments, showing its output as it comes.
fn scenarios(runner: &Path, args: &[String]) -> Outcome<Report> {
    let mut child = Command::new("python3")
        .arg(runner)
        .arg("--bin")
        .arg(root().join("target").join("release").join("crew"))
        .args(args)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the kit: {error}"))?;
    let mut report = Report::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| format!("cannot read the kit's output: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            report.line(&line);
        }
    }
    let status = child.wait().map_err(|error| format!("cannot wait for the kit: {error}"))?;
    if report.passed.is_empty() && report.failed.is_empty() {
        return Err(format!("the kit ran no scenario ({status})"));
    }
    Ok(report)
}

fn only(names: &BTreeSet<String>) -> impl Iterator<Item = String> {
    names.iter().flat_map(|name| ["--only".to_owned(), name.clone()])
}

fn parse_list(text: &str) -> BTreeSet<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn render_list(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("{name}\n")).collect()
}

const RUNNER: &str = "../shared/conformance/run.py";
const LIST: &str = ".ci/kit-passing.txt";
const JOBS: &str = "2";
/// How often a scenario must pass again before it is listed.
const CONFIRMATIONS: &str = "2";

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn report(output: &str) -> Report {
        let mut report = Report::default();
        output.lines().for_each(|line| report.line(line));
        report
    }

    const OUTPUT: &str = "PASS host   a_file (0.1s)\nFAIL crew   a_spawn (2.0s)\n   rules: X-1\n1 passed, 1 failed\n";

    #[test]
    fn verdict_lines_are_read_and_others_are_not() {
        let report = report(OUTPUT);
        assert_eq!(report.passed, set(&["a_file"]));
        assert_eq!(report.failed, set(&["a_spawn"]));
    }

    #[test]
    fn a_listed_scenario_must_pass_and_must_have_run() {
        let report = report(OUTPUT);
        assert!(report.judge(&set(&["a_file"])).unwrap_err().contains("a_spawn"));
        let clean = Report { passed: set(&["a_file"]), failed: set(&[]) };
        assert_eq!(clean.judge(&set(&["a_file"])), Ok(()));
        let error = clean.judge(&set(&["a_file", "removed"])).unwrap_err();
        assert!(error.contains("removed"), "{error}");
    }

    #[test]
    fn the_list_is_sorted_and_survives_a_round_trip() {
        let names = parse_list("b\n\n a \nb\n");
        assert_eq!(render_list(&names), "a\nb\n");
    }

    #[test]
    fn runner_options_choose_scenarios_instead_of_the_list() {
        let args = ["--group".to_owned(), "crew".to_owned()];
        let options = Options::parse(&args);
        assert_eq!(options.selection(&set(&["a"])), ["-j", "2", "--group", "crew"]);
        let listed = Options::parse(&[]);
        assert_eq!(listed.selection(&set(&["a"])), ["-j", "2", "--only", "a"]);
    }
}
