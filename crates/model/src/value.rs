//! Configured values: literal text, `$NAME` placeholders and `!command` lines
//! (`host.md` 1.6).
//!
//! Owns the syntax and the resolution of one value. Must never keep a resolved
//! value, and never put one into an error. Read [`command`] for how a command
//! runs and `auth` for who asks.

mod command;

use std::collections::BTreeMap;
use std::sync::Arc;

/// Looks a variable of the process environment up.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Why a value has no text now. Names the variable or the command, never what
/// they yielded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ValueError {
    /// A placeholder names a variable that is unset or empty.
    #[error("the environment variable {name} is not set")]
    UnsetVariable {
        /// The variable.
        name: String,
    },
    /// The shell could not be started or its output could not be read.
    #[error("the command `{command}` could not be run")]
    CommandIo {
        /// The command line.
        command: String,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
    /// The command ended with a status other than zero, or by a signal.
    #[error("the command `{command}` failed with {}", status_words(*.code))]
    CommandFailed {
        /// The command line.
        command: String,
        /// Exit status; `None` after a signal.
        code: Option<i32>,
    },
    /// The command took too long and was killed.
    #[error("the command `{command}` did not end within {} s", limit_ms / 1000)]
    CommandTimeout {
        /// The command line.
        command: String,
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// The command wrote nothing but blanks.
    #[error("the command `{command}` printed nothing")]
    CommandSilent {
        /// The command line.
        command: String,
    },
    /// The command wrote more than a value may hold, or no UTF-8.
    #[error("the command `{command}` printed no usable text (at most {bytes_max} bytes of UTF-8)")]
    CommandUnusable {
        /// The command line.
        command: String,
        /// The limit in bytes.
        bytes_max: usize,
    },
}

fn status_words(code: Option<i32>) -> String {
    code.map_or("a signal".to_owned(), |code| format!("status {code}"))
}

/// The variables that one provider's values see: those of its credential over
/// those of the process (`host.md` 1.4.5). Has no `Debug`: it may hold secrets.
#[derive(Clone)]
pub struct Environment {
    process: Lookup,
    own: BTreeMap<String, String>,
}

impl Environment {
    /// Lays `own` over the environment of the process.
    pub fn new(process: Lookup, own: BTreeMap<String, String>) -> Environment {
        Environment { process, own }
    }

    /// A variable's value unless unset or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let own = self.own.get(name).filter(|value| !value.is_empty());
        own.cloned().or_else(|| (self.process)(name).filter(|value| !value.is_empty()))
    }
}

/// A configured value, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A shell command whose output is the value.
    Command(String),
    /// Text and placeholders in turn.
    Template(Vec<Part>),
}

/// A piece of a [`Value::Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it stands.
    Text(String),
    /// The value of a variable.
    Variable(String),
}

impl Value {
    /// Reads the syntax of `host.md` 1.6; every text is a valid value.
    pub fn parse(text: &str) -> Value {
        match text.strip_prefix('!') {
            Some(command) => Value::Command(command.trim().to_owned()),
            None => Value::Template(parse_template(text)),
        }
    }

    /// Whether the text stands for itself: no command, no placeholder.
    pub fn is_literal(&self) -> bool {
        match self {
            Value::Command(_) => false,
            Value::Template(parts) => parts.iter().all(|part| match part {
                Part::Text(_) => true,
                Part::Variable(_) => false,
            }),
        }
    }

    /// Whether it would resolve as far as can be told without running a
    /// command (`host.md` 1.5.9): all variables are set.
    pub fn is_resolvable(&self, environment: &Environment) -> bool {
        match self {
            Value::Command(command) => !command.is_empty(),
            Value::Template(parts) => fill(parts, environment).is_ok_and(|text| !text.is_empty()),
        }
    }

    /// The text now; runs the command if it is one (`host.md` 1.6.1, at most
    /// 10 s, killed with its children when the future is dropped).
    pub async fn resolve(&self, environment: &Environment) -> Result<String, ValueError> {
        match self {
            Value::Command(command) => command::run(command, &environment.own).await,
            Value::Template(parts) => fill(parts, environment),
        }
    }
}

fn fill(parts: &[Part], environment: &Environment) -> Result<String, ValueError> {
    let mut filled = String::new();
    for part in parts {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Variable(name) => {
                let value = environment.get(name);
                let value =
                    value.ok_or_else(|| ValueError::UnsetVariable { name: name.clone() })?;
                filled.push_str(&value);
            }
        }
    }
    Ok(filled)
}

fn parse_template(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some((name, behind)) = placeholder(after) {
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = behind;
        } else if after.starts_with(['$', '!']) {
            plain.push_str(&after[..1]);
            rest = &after[1..];
        } else {
            plain.push('$');
            rest = after;
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    parts
}

/// The name of a placeholder behind its `$`, and what follows it.
fn placeholder(after: &str) -> Option<(&str, &str)> {
    if let Some(braced) = after.strip_prefix('{') {
        let (name, behind) = braced.split_once('}')?;
        return (name_bytes(name) == name.len() && !name.is_empty()).then_some((name, behind));
    }
    let bytes = name_bytes(after);
    (bytes > 0).then(|| after.split_at(bytes))
}

/// How many bytes at the start of a text form a variable name.
fn name_bytes(text: &str) -> usize {
    let fits = |(at, byte): &(usize, u8)| {
        byte.is_ascii_alphabetic() || *byte == b'_' || (*at > 0 && byte.is_ascii_digit())
    };
    text.bytes().enumerate().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        let process: Lookup = Arc::new(|name| match name {
            "A" => Some("one".into()),
            "B_2" => Some("two".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        });
        Environment::new(process, BTreeMap::from([("OWN".into(), "mine".into())]))
    }

    #[tokio::test]
    async fn placeholders_are_filled_and_other_dollars_stay() {
        // host.md 1.6.2, 1.6.3.
        let check = async |text: &str, expected: &str| {
            let value = Value::parse(text).resolve(&environment()).await;
            assert_eq!(value.unwrap(), expected, "{text}");
        };
        check("plain", "plain").await;
        check("A", "A").await;
        check("$A", "one").await;
        check("x${B_2}y$A", "xtwoyone").await;
        check("$OWN-$A", "mine-one").await;
        check("$$A", "$A").await;
        check("$!x", "!x").await;
        check("a!b", "a!b").await;
        check("${A", "${A").await;
        check("${bad name}", "${bad name}").await;
        check("${}", "${}").await;
        check("$1", "$1").await;
        check("cost: 5$", "cost: 5$").await;
        check("$-ü", "$-ü").await;
    }

    #[tokio::test]
    async fn an_unset_or_empty_variable_leaves_the_whole_value_unresolved() {
        let check = async |text: &str, name: &str| {
            let value = Value::parse(text);
            assert!(!value.is_resolvable(&environment()), "{text}");
            let error = value.resolve(&environment()).await.unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        };
        check("pre-$MISSING", "MISSING").await;
        check("${EMPTY}", "EMPTY").await;
        check("$A$NOPE_1", "NOPE_1").await;
    }

    #[test]
    fn only_text_without_placeholders_is_literal() {
        let check = |text: &str, expected: bool| {
            assert_eq!(Value::parse(text).is_literal(), expected, "{text}");
        };
        check("sk-123", true);
        check("$$x", true);
        check("$X", false);
        check("!cat key", false);
    }
}
