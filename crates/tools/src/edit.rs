//! The tool `edit` (`host.md` 4.4). Works on the text now on disk, whoever
//! wrote it (`product.md` P-14). Matching is in `edit::plan`, positions in
//! `edit::view`, the loose text in `edit::fuzzy`, the details in `edit::diff`.

mod diff;
mod fuzzy;
mod plan;
mod view;

use std::fs;
use std::path::Path;

use crew_base::json::Raw;
use crew_base::tool::{ToolDefinition, ToolOutcome};
use serde_json::{Value, json};

use crate::blocking::{self, Stop};
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::error::{EditError, Error};
use crate::path::{resolve, resolve_existing};
use crate::toolbox::definition;
use crate::write::{check_kind, put, turn};
use plan::{Change, plan};
use view::{View, normal_breaks};

/// Largest file that is edited.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The tool.
pub(crate) struct Edit {
    definition: ToolDefinition,
}

impl Edit {
    pub(crate) fn new() -> Edit {
        let parameters = json!({
            "type": "object",
            "required": ["path", "edits"],
            "properties": {
                "path": {"type": "string", "description": "File, absolute or relative to the working directory."},
                "edits": {
                    "type": "array",
                    "description": "Replacements, all judged on the file as it is now. They must not overlap.",
                    "items": {
                        "type": "object",
                        "required": ["oldText", "newText"],
                        "properties": {
                            "oldText": {"type": "string", "description": "Text of the file that occurs exactly once."},
                            "newText": {"type": "string", "description": "What stands there afterwards."}
                        }
                    }
                }
            }
        });
        let description = "Replaces parts of a file. Each oldText must occur exactly once; give \
            as few lines as make it unique. Several changes of one file go into one call. \
            Either all edits are made or none.";
        Edit { definition: definition("edit", description, &parameters) }
    }
}

impl Tool for Edit {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repair(&self, arguments: Value) -> Value {
        repair(arguments)
    }

    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture {
        Box::pin(async move {
            match run(context, arguments).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(),
            }
        })
    }
}

/// Mends the usual slips (`host.md` 4.4.1): `edits` as JSON text or as one
/// object, `oldText` and `newText` beside it.
fn repair(mut arguments: Value) -> Value {
    let Some(map) = arguments.as_object_mut() else {
        return arguments;
    };
    if let Some(text) = map.get("edits").and_then(Value::as_str)
        && let Ok(parsed) = crew_base::json::from_text::<Value>(text)
        && (parsed.is_array() || parsed.is_object())
    {
        map.insert("edits".to_owned(), parsed);
    }
    if map.get("edits").is_some_and(Value::is_object) {
        let one = map.remove("edits").unwrap_or_default();
        map.insert("edits".to_owned(), Value::Array(vec![one]));
    }
    let both = map.get("oldText").is_some_and(Value::is_string)
        && map.get("newText").is_some_and(Value::is_string);
    let room = map.get("edits").is_none_or(|edits| edits.is_array() || edits.is_null());
    if both && room {
        let old = map.remove("oldText").unwrap_or_default();
        let new = map.remove("newText").unwrap_or_default();
        let one = json!({"oldText": old, "newText": new});
        let mut edits = match map.get_mut("edits").and_then(Value::as_array_mut) {
            Some(edits) => std::mem::take(edits),
            None => Vec::new(),
        };
        edits.push(one);
        map.insert("edits".to_owned(), Value::Array(edits));
    }
    arguments
}

async fn run(context: ToolContext, arguments: Value) -> Result<ToolOutcome, Error> {
    let name = arguments["path"].as_str().unwrap_or_default().to_owned();
    let changes = changes(&arguments["edits"]);
    if changes.is_empty() {
        return Err(refused(&name, EditError::None));
    }
    let path = resolve(&name, &context.cwd, context.home.as_deref());
    let fallback = (name.clone(), context.cwd.clone(), context.home.clone());
    let find = move |_: &Stop| {
        let (name, cwd, home) = fallback;
        let exists = fs::symlink_metadata(&path).is_ok();
        Ok(if exists { path } else { resolve_existing(&name, &cwd, home.as_deref()) })
    };
    let path = blocking::run(&context.cancel, find).await?;
    let (real, slot) = turn(&context, &name, path).await?;
    let cancel = context.cancel.clone();
    let work = move |stop: &Stop| {
        let _slot = slot;
        edit(&context, &name, &real, &changes, stop)
    };
    blocking::run(&cancel, work).await
}

fn changes(edits: &Value) -> Vec<Change> {
    let text = |edit: &Value, key: &str| {
        let text = edit[key].as_str().unwrap_or_default();
        normal_breaks(text).into_owned()
    };
    edits
        .as_array()
        .into_iter()
        .flatten()
        .map(|edit| Change { old: text(edit, "oldText"), new: text(edit, "newText") })
        .collect()
}

fn edit(
    context: &ToolContext,
    name: &str,
    real: &Path,
    changes: &[Change],
    stop: &Stop,
) -> Result<ToolOutcome, Error> {
    let failed = |source| Error::file(name, source);
    check_kind(name, real)?;
    let data = fs::metadata(real).map_err(failed)?;
    if data.len() > FILE_BYTES_MAX {
        return Err(Error::TooLarge {
            path: name.to_owned(),
            bytes: data.len(),
            bytes_max: FILE_BYTES_MAX,
        });
    }
    let bytes = fs::read(real).map_err(failed)?;
    let view = View::of(&bytes);
    let plan = plan(&view, changes).map_err(|problem| refused(name, problem))?;
    let diff = diff::diff(&view.text, &plan.splices, name);
    stop.check()?;
    put(context, name, real, &plan.bytes)?;
    let details = json!({
        "diff": diff.display,
        "patch": diff.patch,
        "firstChangedLine": diff.first_changed_line,
    });
    let made = match changes.len() {
        1 => "1 replacement".to_owned(),
        count => format!("{count} replacements"),
    };
    Ok(ToolOutcome {
        details: Some(Raw::of(&details)),
        ..ToolOutcome::text(format!("Made {made} in {name}."))
    })
}

fn refused(path: &str, problem: EditError) -> Error {
    Error::Edit { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[test]
    fn the_usual_slips_are_mended() {
        // host.md 4.4.1, 11.41
        let one = json!({"oldText": "a", "newText": "b"});
        let two = json!({"oldText": "c", "newText": "d"});
        let check = |input: Value, edits: Value| {
            assert_eq!(repair(input)["edits"], edits);
        };
        check(json!({"edits": [one]}), json!([one]));
        check(json!({"edits": one}), json!([one]));
        check(json!({"edits": json!([one]).to_string()}), json!([one]));
        check(json!({"edits": one.to_string()}), json!([one]));
        check(one.clone(), json!([one]));
        check(json!({"edits": [two], "oldText": "a", "newText": "b"}), json!([two, one]));
        check(json!({"edits": "no json"}), json!("no json"));
        assert_eq!(repair(json!([1])), json!([1]));
    }

    #[tokio::test]
    async fn a_good_edit_is_confirmed_with_its_diff() {
        // host.md 4.4.7
        let world = World::new();
        world.file("f.txt", b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n");
        let edits = json!([{"oldText": "one\r\ntwo", "newText": "ONE\nextra\nTWO"}]);
        let outcome = world.call("edit", json!({"path": "f.txt", "edits": edits})).await;
        assert!(!outcome.is_error, "{outcome:?}");
        assert_eq!(world.bytes("f.txt"), b"\xef\xbb\xbfONE\r\nextra\r\nTWO\r\nthree\r\n");
        assert_eq!(outcome.joined_text(), "Made 1 replacement in f.txt.");
        let details = outcome.details.unwrap().value();
        assert_eq!(details["firstChangedLine"], 1);
        assert!(details["patch"].as_str().unwrap().starts_with("--- f.txt\n+++ f.txt\n@@"));
        assert!(details["diff"].as_str().unwrap().contains("+2 extra"));
    }

    #[tokio::test]
    async fn a_refused_edit_names_the_file_and_writes_nothing() {
        // host.md 4.4.3, 4.4.8
        let world = World::new();
        world.file("f.txt", "aaa\nbbb\naaa\n");
        let check = async |arguments: Value, part: &str| {
            let outcome = world.call("edit", arguments).await;
            let text = outcome.joined_text();
            assert!(outcome.is_error && text.contains(part), "{text}");
            assert_eq!(world.text("f.txt"), "aaa\nbbb\naaa\n");
        };
        let twice = json!([{"oldText": "bbb", "newText": "B"}, {"oldText": "aaa", "newText": "x"}]);
        check(json!({"path": "f.txt", "edits": twice}), "f.txt: edits[1]: ").await;
        check(json!({"path": "f.txt", "edits": []}), "f.txt").await;
        let gone = json!({"path": "gone.txt", "oldText": "a", "newText": "b"});
        check(gone, "gone.txt: ENOENT").await;
        check(json!({"path": ".", "oldText": "a", "newText": "b"}), "directory").await;
    }

    #[tokio::test]
    async fn parallel_edits_of_one_file_are_all_made() {
        // host.md 3.3.11, 11.75
        let world = World::new();
        let letters: Vec<char> = ('a'..='p').collect();
        let text: String = letters.iter().map(|c| format!("{c}\n")).collect();
        world.file("f", text.clone());
        let mut calls = tokio::task::JoinSet::new();
        for letter in letters {
            let context = world.context();
            let new = letter.to_ascii_uppercase();
            let arguments = json!({"path": "f", "oldText": letter, "newText": new});
            let arguments = Raw::of(&arguments);
            let toolbox = crate::toolbox::Toolbox::builtin();
            calls.spawn(async move { toolbox.run(context, "edit", &arguments).await });
        }
        assert!(calls.join_all().await.iter().all(|outcome| !outcome.is_error));
        assert_eq!(world.text("f"), text.to_uppercase());
    }

    #[tokio::test]
    async fn an_edit_works_on_the_text_now_on_disk() {
        // product.md P-14
        let world = World::new();
        world.file("f", "a\nb\n");
        world.call("read", json!({"path": "f"})).await;
        world.file("f", "a\nb\nb\n");
        let outcome =
            world.call("edit", json!({"path": "f", "oldText": "b\n", "newText": "B\n"})).await;
        assert!(outcome.is_error, "b stands twice now");
        world.call("edit", json!({"path": "f", "oldText": "a\n", "newText": "A\n"})).await;
        assert_eq!(world.text("f"), "A\nb\nb\n");
    }
}
