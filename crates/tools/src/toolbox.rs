//! Finds the tool of a call, checks its arguments, runs it (`host.md` 3.3.4,
//! 3.3.5). Every call ends in exactly one outcome, also after a panic.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use crew_base::json::Raw;
use crew_base::tool::{ToolDefinition, ToolOutcome};
use jsonschema::Validator;
use serde_json::Value;

use crate::arguments;
use crate::bash::Bash;
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::edit::Edit;
use crate::error::{Error, failure};
use crate::find::Find;
use crate::grep::Grep;
use crate::ls::Ls;
use crate::read::Read;
use crate::write::Write;

/// Tools by name, in a fixed order.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[Entry]>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    schema: OnceLock<Schema>,
}

/// A tool's schema, read once with its first call.
struct Schema {
    value: Value,
    /// Absent when the schema is broken.
    validator: Option<Validator>,
}

impl Toolbox {
    /// The seven of `host.md` 4.1.1: read, bash, edit, write, grep, find, ls.
    /// Large images are made to fit.
    pub fn builtin() -> Toolbox {
        Toolbox::with_images(true)
    }

    /// As [`Toolbox::builtin`]; says whether large images are made to fit
    /// (`images.autoResize`).
    pub fn with_images(resizes: bool) -> Toolbox {
        Toolbox::new(vec![
            Arc::new(Read::new(resizes)),
            Arc::new(Bash::new()),
            Arc::new(Edit::new()),
            Arc::new(Write::new()),
            Arc::new(Grep::new()),
            Arc::new(Find::new()),
            Arc::new(Ls::new()),
        ])
    }

    /// Any tools; of two with one name the first counts.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Toolbox {
        let entry = |tool| Entry { tool, schema: OnceLock::new() };
        Toolbox { tools: tools.into_iter().map(entry).collect() }
    }

    /// All names in order.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|entry| entry.tool.definition().name.as_str()).collect()
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// Definitions in the order of `names`; unknown names are left out.
    pub fn definitions<S: AsRef<str>>(&self, names: &[S]) -> Vec<ToolDefinition> {
        names
            .iter()
            .filter_map(|name| self.get(name.as_ref()))
            .map(|tool| tool.definition().clone())
            .collect()
    }

    /// Looks up, repairs, coerces, validates and runs (`host.md` 3.3.5). Does
    /// no work before it is polled; a panic becomes an error outcome.
    pub fn run(&self, context: ToolContext, name: &str, arguments: &Raw) -> ToolFuture {
        let toolbox = self.clone();
        let (name, arguments) = (name.to_owned(), arguments.clone());
        Box::pin(async move {
            let cancel = context.cancel.clone();
            if cancel.is_cancelled() {
                return Error::Aborted.outcome();
            }
            let Some(entry) = toolbox.entry(&name) else {
                let known = toolbox.names().join(", ");
                return failure(format!("There is no tool named {name}. Tools: {known}."));
            };
            match entry.check(&arguments) {
                Ok(arguments) => Caught::new(entry, context, arguments).await,
                Err(text) => failure(text),
            }
        })
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let mut entries = self.tools.iter();
        entries.find(|entry| entry.tool.definition().name == name)
    }
}

impl Entry {
    /// Arguments that fit the schema, or the text of the error.
    fn check(&self, received: &Raw) -> Result<Value, String> {
        let definition = self.tool.definition();
        let schema = self.schema.get_or_init(|| {
            let value = definition.parameters.value();
            Schema { validator: jsonschema::validator_for(&value).ok(), value }
        });
        let repaired = self.tool.repair(received.value());
        let coerced = arguments::coerce(&schema.value, repaired);
        let problems = match &schema.validator {
            Some(validator) => arguments::problems(validator, &coerced),
            None => vec!["(schema): the tool's own schema is broken".to_owned()],
        };
        if problems.is_empty() {
            Ok(coerced)
        } else {
            Err(arguments::refusal(&definition.name, &problems, received))
        }
    }
}

/// A call whose panics end as its outcome.
struct Caught(Option<ToolFuture>);

impl Caught {
    fn new(entry: &Entry, context: ToolContext, arguments: Value) -> Caught {
        let started = catch_unwind(AssertUnwindSafe(|| entry.tool.run(context, arguments)));
        Caught(started.ok())
    }
}

impl Future for Caught {
    type Output = ToolOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ToolOutcome> {
        let Some(future) = self.0.as_mut() else {
            return Poll::Ready(Error::Internal.outcome());
        };
        let polled: Result<Poll<ToolOutcome>, Box<dyn Any + Send>> =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            self.0 = None;
            Poll::Ready(Error::Internal.outcome())
        })
    }
}

/// Builds a definition from hand-written JSON.
pub(crate) fn definition(name: &str, description: &str, parameters: &Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Raw::of(parameters),
        constrained_sampling: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    struct Broken(ToolDefinition, bool);

    impl Tool for Broken {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }

        fn run(&self, _: ToolContext, _: Value) -> ToolFuture {
            assert!(self.1, "before the first poll");
            Box::pin(async { panic!("while it runs") })
        }
    }

    fn broken(name: &str, late: bool) -> Arc<dyn Tool> {
        Arc::new(Broken(definition(name, "", &json!({"type": "object"})), late))
    }

    #[tokio::test]
    async fn a_panicking_tool_ends_as_an_error() {
        let toolbox = Toolbox::new(vec![broken("early", false), broken("late", true)]);
        for name in ["early", "late"] {
            let context = World::new().context();
            let outcome = toolbox.run(context, name, &Raw::empty_object()).await;
            assert!(outcome.is_error, "{name}");
        }
    }

    #[tokio::test]
    async fn an_unknown_tool_is_named() {
        // host.md 3.3.4, 11.43
        let outcome = World::new().call("no_such_tool", json!({"x": 1})).await;
        assert!(outcome.is_error && outcome.joined_text().contains("no_such_tool"));
    }

    #[tokio::test]
    async fn slips_in_arguments_are_coerced_or_named_with_their_path() {
        // host.md 3.3.5, 11.42
        let world = World::new();
        world.file("a.txt", "l1\nl2\nl3\n");
        let arguments = json!({"path": "a.txt", "offset": "2", "limit": null});
        let outcome = world.call("read", arguments).await;
        assert!(outcome.joined_text().starts_with("l2"), "{outcome:?}");
        let check = async |name, arguments: Value, path: &str| {
            let outcome = world.call(name, arguments.clone()).await;
            let text = outcome.joined_text();
            assert!(outcome.is_error && text.contains(path), "{text}");
            assert!(text.contains(&arguments.to_string()), "{text}");
        };
        check("read", json!({"offset": 1}), "path: ").await;
        check("read", json!({"path": {"deep": 1}}), "path: ").await;
        let edits = json!({"path": "a.txt", "edits": [{"oldText": 7}]});
        check("edit", edits, "edits.0.newText: ").await;
    }

    #[test]
    fn names_and_parameters_are_those_of_the_contract() {
        // host.md 4.1.1
        let toolbox = Toolbox::builtin();
        let check = |name: &str, parameters: &[&str]| {
            let definition = toolbox.definitions(&[name]).remove(0);
            assert!(!definition.description.is_empty());
            let schema = definition.parameters.value();
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.keys().collect::<Vec<_>>(), parameters, "{name}");
            assert!(jsonschema::validator_for(&schema).is_ok());
        };
        let names = ["read", "bash", "edit", "write", "grep", "find", "ls"];
        assert_eq!(toolbox.names(), names);
        check("read", &["path", "offset", "limit"]);
        check("bash", &["command", "timeout"]);
        check("edit", &["path", "edits"]);
        check("write", &["path", "content"]);
        let grep = ["pattern", "path", "glob", "ignoreCase", "literal", "context", "limit"];
        check("grep", &grep);
        check("find", &["pattern", "path", "limit"]);
        check("ls", &["path", "limit"]);
    }
}
