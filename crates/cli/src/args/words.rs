//! Sorts the words before clap sees them: short forms of several letters,
//! values that begin with `-`, `-p`, `@file`, `--`, unknown options
//! (`host.md` 6.2, 6.2.1). What clap gets is `--name` and `--name=value` only.
//!
//! Which options exist is asked of clap, so that each stands in one place.

use std::collections::BTreeMap;

use super::UsageError;

/// Short forms that clap cannot express.
const SHORT_FORMS: [(&str, &str); 8] = [
    ("-xt", "exclude-tools"),
    ("-nt", "no-tools"),
    ("-nbt", "no-builtin-tools"),
    ("-ns", "no-skills"),
    ("-np", "no-prompt-templates"),
    ("-nc", "no-context-files"),
    ("-na", "no-approve"),
    ("-ne", "no-extensions"),
];

/// How many values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arity {
    None,
    Optional,
    One,
}

/// All options.
pub(super) struct Table {
    long: BTreeMap<String, Arity>,
    short: BTreeMap<String, String>,
}

impl Table {
    /// Reads the options of a clap command.
    pub(super) fn of(command: &clap::Command) -> Table {
        let mut table = Table { long: BTreeMap::new(), short: BTreeMap::new() };
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else { continue };
            let arity = match argument.get_num_args() {
                Some(range) if range.min_values() == 0 && range.takes_values() => Arity::Optional,
                _ if argument.get_action().takes_values() => Arity::One,
                _ => Arity::None,
            };
            table.long.insert(long.to_owned(), arity);
            if let Some(short) = argument.get_short() {
                table.short.insert(format!("-{short}"), long.to_owned());
            }
        }
        for (short, long) in SHORT_FORMS {
            table.short.insert(short.to_owned(), long.to_owned());
        }
        table
    }

    /// All long names.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.long.keys().map(String::as_str)
    }
}

/// The words by kind, each kind in order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sorted {
    /// For clap.
    pub(super) options: Vec<String>,
    /// Prompts.
    pub(super) messages: Vec<String>,
    /// With their `@`.
    pub(super) files: Vec<String>,
    /// Options that do not exist, as typed.
    pub(super) unknown: Vec<String>,
}

/// Sorts the words; an error only for a value that is missing or too many.
pub(super) fn sort(words: Vec<String>, table: &Table) -> Result<Sorted, UsageError> {
    let mut sorted = Sorted::default();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            words.by_ref().for_each(|word| sorted.plain(word));
            break;
        }
        let (name, inline) = match word.strip_prefix("--") {
            Some(rest) => match rest.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (rest.to_owned(), None),
            },
            None if word.len() > 1 && word.starts_with('-') => match table.short.get(&word) {
                Some(long) => (long.clone(), None),
                None => {
                    sorted.unknown.push(word);
                    continue;
                }
            },
            None => {
                sorted.plain(word);
                continue;
            }
        };
        match (table.long.get(&name), inline) {
            (None, inline) => {
                sorted.unknown.push(format!("--{name}"));
                if inline.is_none() {
                    words.next_if(|next| is_free(next));
                }
            }
            (Some(Arity::None), Some(_)) => return Err(UsageError::UnexpectedValue(word)),
            (Some(Arity::None), None) => {
                if name == "print"
                    && let Some(prompt) =
                        words.next_if(|next| is_free(next) || next.starts_with("---"))
                {
                    sorted.messages.push(prompt);
                }
                sorted.options.push(format!("--{name}"));
            }
            (Some(Arity::Optional), inline) => {
                let value = inline.or_else(|| words.next_if(|next| is_free(next)));
                let value = value.map_or_else(String::new, |value| format!("={value}"));
                sorted.options.push(format!("--{name}{value}"));
            }
            (Some(Arity::One), inline) => {
                let value = inline.or_else(|| words.next());
                let value = value.ok_or(UsageError::MissingValue(word))?;
                sorted.options.push(format!("--{name}={value}"));
            }
        }
    }
    Ok(sorted)
}

/// Whether a word is neither an option nor a file.
fn is_free(word: &str) -> bool {
    !word.starts_with(['-', '@'])
}

impl Sorted {
    fn plain(&mut self, word: String) {
        if word.len() > 1 && word.starts_with('@') {
            self.files.push(word);
        } else {
            self.messages.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    fn sorted(line: &str) -> Result<Sorted, UsageError> {
        let words = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
        sort(words.collect(), &Table::of(&Args::command()))
    }

    fn check(line: &str, options: &str, messages: &str, files: &str, unknown: &str) {
        let got = sorted(line).unwrap();
        let got = [&got.options, &got.messages, &got.files, &got.unknown].map(|v| v.join(" "));
        assert_eq!(got, [options, messages, files, unknown], "{line}");
    }

    #[test]
    fn words_are_sorted_by_kind() {
        // host.md 6.2
        check("-p hi @f there", "--print", "hi there", "@f", "");
        check("-p ---x y", "--print", "---x y", "", "");
        check("-p -c hi", "--print --continue", "hi", "", "");
        check("-p @f", "--print", "", "@f", "");
        check(
            "-nt -nbt -xt bash",
            "--no-tools --no-builtin-tools --exclude-tools=bash",
            "",
            "",
            "",
        );
        check("-t -bash,+ls x", "--tools=-bash,+ls", "x", "", "");
        check("--tools=read", "--tools=read", "", "", "");
        check("--model m --name a", "--model=m --name=a", "", "", "");
        check("--list-models", "--list-models", "", "", "");
        check("--list-models son -p", "--list-models=son --print", "", "", "");
        check("-- --model @f x", "", "--model x", "@f", "");
        check("- @ x", "", "- @ x", "", "");
        check("--system-prompt --model", "--system-prompt=--model", "", "", "");
    }

    #[test]
    fn unknown_options_take_the_next_word_with_them() {
        // host.md 6.2.1
        check("--nope val hi", "", "hi", "", "--nope");
        check("--nope=v hi", "", "hi", "", "--nope");
        check("--nope -p hi", "--print", "hi", "", "--nope");
        check("--nope @f", "", "", "@f", "--nope");
        check("-Z hi", "", "hi", "", "-Z");
        check("-pc hi", "", "hi", "", "-pc");
        check("---x", "", "", "", "---x");
    }

    #[test]
    fn values_are_neither_missing_nor_surplus() {
        assert_eq!(sorted("--model").unwrap_err(), UsageError::MissingValue("--model".into()));
        assert_eq!(sorted("-n").unwrap_err(), UsageError::MissingValue("-n".into()));
        let surplus = sorted("--print=x").unwrap_err();
        assert_eq!(surplus, UsageError::UnexpectedValue("--print=x".into()));
    }
}
