//! Reads results of `task` children under `agent://` (`task.md` ART-8, ART-9).
//!
//! Owns the lookup in the folders that the call may use. What an address means
//! and what it takes out of a result is in `crew_task::address`. Notes nothing
//! for `write`: an address is no file of the project.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crew_base::tool::ToolOutcome;
use crew_task::address::{Address, Refusal, extract};
use serde_json::Value;

use super::{CHUNK_BYTES, ENDLESS_BYTES_MAX, Source, lines, read_text, whole};
use crate::blocking::Stop;
use crate::context::ToolContext;
use crate::error::Error;
use crate::truncate::details;

/// Ids that a refusal names.
const KNOWN_MAX: usize = 100;

/// Reads the text of a child, or a value in its data.
pub(super) fn read(
    context: &ToolContext,
    address: Result<Address, Refusal>,
    arguments: &Value,
    stop: &Stop,
) -> Result<ToolOutcome, Error> {
    let address = address.map_err(|refusal| Error::Address(with_known(context, refusal)))?;
    let folder = find(&context.results, &address.id).map_err(Error::Address)?;
    let name = format!("agent://{}", address.id);
    let text = folder.join(format!("{}.md", address.id));
    if address.path.is_empty() {
        let mut source = Source::open(&name, &text)?;
        let start = source.start(stop)?;
        return read_text(arguments, &start, &mut source, stop);
    }
    let text = all(&name, &text, stop)?;
    // A sidecar that cannot be read counts as broken: the text is asked then.
    let sidecar = all(&name, &folder.join(format!("{}.json", address.id)), stop).ok();
    let value = extract(&address, &text, sidecar.as_deref()).map_err(Error::Address)?;
    let offset = whole(&arguments["offset"]).unwrap_or(1);
    let mut window = lines::Window::new(offset, whole(&arguments["limit"]));
    window.push(value.as_bytes());
    let past = |end: lines::PastEnd| Error::OffsetPastEnd { offset, total: end.total };
    let selected = window.finish().map_err(past)?;
    let fields = selected.truncation.map(|cut| ("truncation", cut.value()));
    Ok(ToolOutcome {
        details: details(fields.into_iter().collect()),
        ..ToolOutcome::text(selected.text)
    })
}

/// The first folder that holds a result of that id; one of a child's child
/// lies below it, in the folder of its parent, also when that has ended.
fn find(folders: &[PathBuf], id: &str) -> Result<PathBuf, Refusal> {
    let holds = |folder: &PathBuf| folder.join(format!("{id}.md")).is_file();
    let direct = folders.iter().find(|folder| holds(folder)).cloned();
    let nested = || folders.iter().map(|folder| below(folder, id)).find(holds);
    match direct.or_else(nested) {
        Some(folder) => Ok(folder),
        None if folders.iter().any(|folder| folder.is_dir()) => {
            Err(Refusal::UnknownId { id: id.to_owned(), known: known(folders) })
        }
        None => Err(Refusal::NoFolder),
    }
}

/// Where `A/A.B` holds the result of `A.B.C` (`task.md` OBS-4).
fn below(folder: &Path, id: &str) -> PathBuf {
    let ends = id.match_indices('.').map(|(at, _)| &id[..at]);
    ends.filter(|parent| !parent.is_empty() && !parent.ends_with('.'))
        .fold(folder.to_owned(), |folder, parent| folder.join(parent))
}

/// An id that cannot be one is as unknown as any other.
fn with_known(context: &ToolContext, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::UnknownId { id, .. } => Refusal::UnknownId { id, known: known(&context.results) },
        Refusal::NoId | Refusal::NoFolder | Refusal::NotJson(_) => refusal,
    }
}

fn known(folders: &[PathBuf]) -> Vec<String> {
    let mut ids = BTreeSet::new();
    for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        let name = PathBuf::from(entry.file_name());
        if name.extension().is_some_and(|ending| ending == "md")
            && let Some(stem) = name.file_stem().and_then(|stem| stem.to_str())
        {
            ids.insert(stem.to_owned());
        }
    }
    ids.into_iter().take(KNOWN_MAX).collect()
}

fn all(name: &str, path: &Path, stop: &Stop) -> Result<String, Error> {
    let mut source = Source::open(name, path)?;
    if !source.data.is_file() {
        return Err(Error::NotRegular { path: name.to_owned() });
    }
    let (bytes, bytes_max) = (source.data.len(), ENDLESS_BYTES_MAX);
    if bytes > bytes_max {
        return Err(Error::TooLarge { path: name.to_owned(), bytes, bytes_max });
    }
    let mut bytes = Vec::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let more = source.next(&mut buffer, stop)?;
        if more == 0 {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        bytes.extend_from_slice(&buffer[..more]);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use serde_json::json;

    /// Two folders of results; what each holds is relative to the world.
    async fn read(world: &World, path: &str) -> (bool, String) {
        let mut context = world.context();
        context.results = ["near", "far"].map(|name| world.cwd().join(name)).to_vec();
        let outcome = world.call_in(context, "read", json!({"path": path})).await;
        (outcome.is_error, outcome.joined_text())
    }

    // ART-8; task.md 12 row 75.
    #[tokio::test]
    async fn texts_and_values_are_read_by_address() {
        let world = World::new();
        world.file("near/Ann.md", "{\"list\": [\"zero\", {\"k v\": 5}]}\nsecond line\n");
        world.file("near/Ann.json", "{\"list\": [\"zero\", {\"k v\": 5}]}\n");
        let check = async |path: &str, expected: &str| {
            let (is_error, text) = read(&world, path).await;
            assert!(!is_error && text.contains(expected), "{path}: {text}");
        };
        check("agent://Ann", "second line").await;
        check("agent://Ann/list/1/k%20v", "5").await;
        check("agent://Ann/list/7", "null").await;
        world.file("near/Ann.md", "{\"list\": [\"from the text\"]}");
        world.file("near/Ann.json", "{broken");
        check("agent://Ann/list/0", "from the text").await;
    }

    // ART-9; task.md 12 row 76.
    #[tokio::test]
    async fn the_first_folder_with_the_id_gives_text_and_data() {
        let world = World::new();
        world.file("near/W.md", "{\"v\": \"near\"}");
        world.file("far/W.md", "{\"v\": \"far\"}");
        world.file("far/W.json", "{\"v\": \"far\"}");
        world.file("far/Only.md", "text of Only");
        assert!(read(&world, "agent://W/v").await.1.starts_with("near"));
        assert!(read(&world, "agent://Only").await.1.contains("text of Only"));
    }

    // ART-9, OBS-4: children of children that have ended.
    #[tokio::test]
    async fn results_of_nested_children_are_found_below_their_parents() {
        let world = World::new();
        world.file("far/A/A.B.md", "text of A.B");
        world.file("far/A/A.B/A.B.C.md", "{\"v\": \"deep\"}");
        assert!(read(&world, "agent://A.B").await.1.contains("text of A.B"));
        assert!(read(&world, "agent://A.B.C/v").await.1.starts_with("deep"));
        world.file("near/A.B.md", "nearer");
        assert!(read(&world, "agent://A.B").await.1.contains("nearer"));
        for unknown in ["agent://A.X", "agent://.A.B", "agent://A..B", "agent://..A"] {
            assert!(read(&world, unknown).await.0, "{unknown}");
        }
    }

    // ART-8; task.md 12 row 72.
    #[tokio::test]
    async fn what_cannot_be_read_is_said_with_what_there_is() {
        let world = World::new();
        let check = async |path: &str, words: &[&str]| {
            let (is_error, text) = read(&world, path).await;
            assert!(is_error && words.iter().all(|word| text.contains(word)), "{path}: {text}");
        };
        check("agent://Nobody", &["no results"]).await;
        world.file("far/Ann.md", "prose");
        world.file("near/Bob.md", "prose");
        check("agent://Nobody", &["Nobody", "Ann", "Bob"]).await;
        check("agent://..%2Fx", &["Ann", "Bob"]).await;
        check("agent://", &["names no child"]).await;
        check("agent://all", &["names no child"]).await;
        check("agent://Ann/key", &["no JSON"]).await;
    }

    #[tokio::test]
    async fn lines_of_a_result_can_be_chosen() {
        let world = World::new();
        world.file("near/Ann.md", "l1\nl2\nl3\n");
        let mut context = world.context();
        context.results = vec![world.cwd().join("near")];
        let arguments = json!({"path": "agent://Ann", "offset": 2, "limit": 1});
        let outcome = world.call_in(context, "read", arguments).await;
        assert!(outcome.joined_text().starts_with("l2\n"), "{outcome:?}");
    }
}
