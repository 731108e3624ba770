//! `--list-models`: the models that can be used, as a table (`host.md` 1.5.2).

use std::process::ExitCode;

use crew_base::text::sanitise_inline;
use crew_model::select::{ListRow, list_models};

use crate::args::{Options, SessionChoice};
use crate::config;
use crate::error::Error;
use crate::output;

const HEADINGS: [&str; 6] = ["provider", "model", "context", "output", "thinking", "images"];

/// Prints the table.
pub(crate) fn run(search: Option<&str>, options: &Options) -> Result<ExitCode, Error> {
    // The list belongs to no session.
    let options = Options {
        session: SessionChoice::Memory,
        trust: options.trust,
        warnings: options.warnings.clone(),
        ..Options::default()
    };
    let config = config::load(&options)?;
    config.warnings.iter().for_each(|warning| output::warning(warning));
    let credentials = &config.credentials;
    let usable = |provider: &str| credentials.is_configured(provider);
    let rows = list_models(&config.catalog, &usable, search);
    if rows.is_empty() {
        output::note("no model matches");
        return Ok(ExitCode::SUCCESS);
    }
    let code = output::product(&table(&rows))?;
    if rows.iter().all(|row| row.scripted) {
        output::note("no provider has a key; crew --help says how a model is chosen");
    }
    Ok(code)
}

fn table(rows: &[ListRow]) -> String {
    let mut cells = vec![HEADINGS.map(str::to_owned)];
    cells.extend(rows.iter().map(row));
    let width = |column: usize| {
        let lengths = cells.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(row: &ListRow) -> [String; 6] {
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let scripted = if row.scripted { " (scripted)" } else { "" };
    [
        sanitise_inline(&row.provider),
        format!("{}{scripted}", sanitise_inline(&row.id)),
        tokens(row.context_window),
        tokens(row.max_tokens),
        yes(row.thinking),
        yes(row.images),
    ]
}

/// A count of tokens in thousands or millions.
fn tokens(count: u64) -> String {
    const THOUSAND: u64 = 1000;
    match count {
        0..THOUSAND => count.to_string(),
        THOUSAND..1_000_000 => format!("{}K", count / THOUSAND),
        1_000_000.. => format!("{:.1}M", count as f64 / 1e6).replace(".0M", "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_scripted_model_is_marked() {
        let row = |id: &str, scripted| ListRow {
            provider: "p".into(),
            id: id.into(),
            name: id.into(),
            context_window: 200_000,
            max_tokens: 999,
            thinking: true,
            images: false,
            scripted,
        };
        let text = table(&[row("long-name", false), row("x", true)]);
        let expected = "provider  model         context  output  thinking  images
p         long-name     200K     999     yes       no
p         x (scripted)  200K     999     yes       no
";
        assert_eq!(text, expected);
        assert_eq!(tokens(1_000_000), "1M");
        assert_eq!(tokens(1_050_000), "1.1M");
    }
}
