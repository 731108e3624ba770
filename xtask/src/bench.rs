//! Whole-process measurements of the release program against a local fake
//! provider, beside the budgets of `product.md` 5.
//!
//! Owns the table that is printed. Never fails because something is slow: a
//! budget is judged by a person on a quiet machine, never by a gate. Errors
//! only when the program does not do what a row is about. Read `rows` for
//! what is measured and `provider` for the other side of the wire.

mod process;
mod provider;
mod rows;
mod session;
mod tasks;
mod terminal;
mod world;

use crate::run::{Outcome, cargo, run};
use rows::ROWS;

/// Measures the rows whose name contains one of the arguments, all without
/// any, and prints what was measured beside the budget. `--bin PROGRAM`
/// measures another program than the release build, which is then not built;
/// before it, `--seconds N` says how long the row `terminal` streams.
pub(crate) fn bench(args: &[String]) -> Outcome {
    if !cfg!(target_os = "linux") {
        return Err("memory and CPU time are read from /proc, so this needs Linux".to_owned());
    }
    let args = match args {
        [option, seconds, rest @ ..] if option == "--seconds" => {
            terminal::stream_for(seconds)?;
            rest
        }
        rest => rest,
    };
    let args = match args {
        [option, program, rows @ ..] if option == "--bin" => {
            world::choose(program)?;
            rows
        }
        rows => {
            run(cargo(&["build", "--release", "--locked", "-p", "crew"]))?;
            rows
        }
    };
    let wanted: Vec<_> = ROWS
        .iter()
        .filter(|(name, _)| args.is_empty() || args.iter().any(|arg| name.contains(arg.as_str())))
        .collect();
    if wanted.is_empty() {
        let names: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
        return Err(format!("no row is called so; there are {}", names.join(", ")));
    }
    println!("{}", line("row", "measured", "budget", "ratio"));
    let mut broken = Vec::new();
    for (name, measure) in wanted {
        match measure() {
            Ok(results) => results.iter().for_each(|result| println!("{}", result.shown())),
            Err(error) => {
                println!("{name}: {error}");
                broken.push(*name);
            }
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(format!("not measured: {}", broken.join(", ")))
}

/// One measured value beside its budget.
pub(crate) struct Measured {
    what: String,
    value: f64,
    unit: &'static str,
    /// Same unit; `None` where there is no budget.
    budget: Option<f64>,
}

impl Measured {
    fn new(what: impl Into<String>, value: f64, unit: &'static str, budget: Option<f64>) -> Self {
        Self { what: what.into(), value, unit, budget }
    }

    fn shown(&self) -> String {
        let value = format!("{:.2} {}", self.value, self.unit);
        match self.budget {
            Some(budget) => line(
                &self.what,
                &value,
                &format!("{budget} {}", self.unit),
                &format!("{:.2}", self.value / budget),
            ),
            None => line(&self.what, &value, "-", "-"),
        }
    }
}

fn line(what: &str, value: &str, budget: &str, ratio: &str) -> String {
    format!("{what:<58} {value:>12} {budget:>12} {ratio:>6}")
}

/// Returns the middle value; 0 of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_in_any_order() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }

    #[test]
    fn a_row_shows_value_budget_and_their_ratio() {
        let shown = Measured::new("start", 2.5, "ms", Some(5.0)).shown();
        assert!(shown.contains("2.50 ms") && shown.contains("5 ms"), "{shown}");
        assert!(shown.ends_with("0.50"), "{shown}");
    }
}
