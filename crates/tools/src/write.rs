//! The tool `write` (`host.md` 4.5). A file that somebody else changed is not
//! replaced (`product.md` P-14). The file is written in place: its mode, its
//! other names and a link that leads to it stay.

use std::fs;
use std::path::{Path, PathBuf};

use crew_base::tool::{ToolDefinition, ToolOutcome};
use serde_json::{Value, json};

use crate::blocking::{self, Stop};
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::error::Error;
use crate::path::{real, resolve};
use crate::record::Stamp;
use crate::slots::Slot;
use crate::toolbox::definition;
use crate::truncate::size;

/// The tool.
pub(crate) struct Write {
    definition: ToolDefinition,
}

impl Write {
    pub(crate) fn new() -> Write {
        let parameters = json!({
            "type": "object",
            "required": ["path", "content"],
            "properties": {
                "path": {"type": "string", "description": "File, absolute or relative to the working directory."},
                "content": {"type": "string", "description": "The whole text of the file."}
            }
        });
        let description = "Writes a whole file, and the folders above it if they are missing. \
            An existing file is replaced, unless it was changed by somebody else since you \
            last read it. To change parts of a file, use edit.";
        Write { definition: definition("write", description, &parameters) }
    }
}

impl Tool for Write {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
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

async fn run(context: ToolContext, arguments: Value) -> Result<ToolOutcome, Error> {
    let name = arguments["path"].as_str().unwrap_or_default().to_owned();
    let path = resolve(&name, &context.cwd, context.home.as_deref());
    let (real, slot) = turn(&context, &name, path).await?;
    let cancel = context.cancel.clone();
    let work = move |stop: &Stop| {
        let _slot = slot;
        let content = arguments["content"].as_str().unwrap_or_default();
        write(&context, &name, &real, content, stop)
    };
    blocking::run(&cancel, work).await
}

/// Waits for the turn at a file (`host.md` 3.3.11); gives its real path.
pub(crate) async fn turn(
    context: &ToolContext,
    name: &str,
    path: PathBuf,
) -> Result<(PathBuf, Slot), Error> {
    let shown = name.to_owned();
    let find = move |_: &Stop| real(&path).map_err(|source| Error::file(&shown, source));
    let real = blocking::run(&context.cancel, find).await?;
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(Error::Aborted),
        slot = context.host.slots.take(&real) => Ok((real, slot)),
    }
}

fn write(
    context: &ToolContext,
    name: &str,
    real: &Path,
    content: &str,
    stop: &Stop,
) -> Result<ToolOutcome, Error> {
    check_kind(name, real)?;
    let record = &context.host.record;
    if record.changed_by_others(&context.session, real) {
        return Err(Error::Changed { path: name.to_owned() });
    }
    stop.check()?;
    if let Some(folder) = real.parent() {
        fs::create_dir_all(folder).map_err(|source| Error::file(name, source))?;
    }
    put(context, name, real, content.as_bytes())?;
    let bytes = size(content.len() as u64);
    Ok(ToolOutcome::text(format!("Wrote {bytes} to {name}.")))
}

/// Replaces the bytes of a file and notes who did it.
pub(crate) fn put(
    context: &ToolContext,
    name: &str,
    real: &Path,
    bytes: &[u8],
) -> Result<(), Error> {
    fs::write(real, bytes).map_err(|source| Error::file(name, source))?;
    if let Ok(data) = fs::metadata(real) {
        let stamp = Stamp::of(&data);
        context.host.record.wrote(&context.session, real.to_owned(), stamp);
    }
    Ok(())
}

/// Folders cannot be written; opening a pipe would wait for its reader.
pub(crate) fn check_kind(name: &str, real: &Path) -> Result<(), Error> {
    use std::os::unix::fs::FileTypeExt;
    let path = name.to_owned();
    match fs::metadata(real).map(|data| data.file_type()) {
        Ok(kind) if kind.is_dir() => Err(Error::IsDirectory { path }),
        Ok(kind) if kind.is_file() || kind.is_char_device() => Ok(()),
        Ok(_) => Err(Error::NotRegular { path }),
        // Missing, or the system says why when it is opened.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    async fn write_as(world: &World, session: &str, text: &str) -> ToolOutcome {
        let mut context = world.context();
        context.session = session.into();
        let arguments = json!({"path": "f", "content": text});
        world.call_in(context, "write", arguments).await
    }

    async fn read_as(world: &World, session: &str) {
        let mut context = world.context();
        context.session = session.into();
        world.call_in(context, "read", json!({"path": "f"})).await;
    }

    #[tokio::test]
    async fn bytes_are_written_as_given_below_new_folders() {
        // host.md 4.5.1
        let world = World::new();
        let text = "a\r\nb\tc é😀 no newline";
        let arguments = json!({"path": "x/y/z.txt", "content": text});
        let outcome = world.call("write", arguments).await;
        assert_eq!((world.text("x/y/z.txt").as_str(), outcome.is_error), (text, false));
        assert!(outcome.joined_text().contains("x/y/z.txt"));
        assert_eq!(outcome.details, None);
        world.file("old.txt", "previous");
        world.call("write", json!({"path": "old.txt", "content": ""})).await;
        assert_eq!(world.text("old.txt"), "");
    }

    #[tokio::test]
    async fn the_second_of_two_writers_from_old_reads_is_told() {
        // product.md P-14, C139
        let world = World::new();
        world.file("f", "start");
        read_as(&world, "a").await;
        read_as(&world, "b").await;
        assert!(!write_as(&world, "a", "by a").await.is_error);
        let refused = write_as(&world, "b", "by b").await;
        assert!(refused.is_error && refused.joined_text().contains("Read the file again"));
        assert_eq!(world.text("f"), "by a");
        read_as(&world, "b").await;
        assert!(!write_as(&world, "b", "by b").await.is_error);
    }

    #[tokio::test]
    async fn the_own_command_between_reading_and_writing_is_no_stranger() {
        let world = World::new();
        world.file("f", "start");
        read_as(&world, "s").await;
        world.call("bash", json!({"command": "echo more >> f"})).await;
        assert!(!write_as(&world, "s", "mine").await.is_error);
        world.file("f", "by a person");
        assert!(write_as(&world, "s", "mine again").await.is_error);
    }

    #[tokio::test]
    async fn a_link_is_followed_and_stays() {
        // C112: there is no fence, a link leads where it leads
        let world = World::new();
        let target = world.file("outside/target", "old");
        std::os::unix::fs::symlink(&target, world.cwd().join("notes.md")).unwrap();
        world.call("write", json!({"path": "notes.md", "content": "new"})).await;
        assert_eq!(world.text("outside/target"), "new");
        assert!(world.cwd().join("notes.md").is_symlink());
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_an_error_with_its_name() {
        let world = World::new();
        world.file("file", "x");
        let check = async |path: &str, part: &str| {
            let arguments = json!({"path": path, "content": "y"});
            let outcome = world.call("write", arguments).await;
            let text = outcome.joined_text();
            assert!(outcome.is_error && text.contains(part), "{text}");
        };
        check(".", "is a directory").await;
        check("file/below", "file/below: ENOTDIR").await;
        let made = std::process::Command::new("mkfifo").arg(world.cwd().join("p")).status();
        assert!(made.unwrap().success());
        check("p", "not a regular file").await;
    }

    #[tokio::test]
    async fn a_write_waiting_for_its_turn_can_be_aborted() {
        // host.md 3.3.11, 4.1.8
        let world = World::new();
        let path = world.file("f", "old");
        let _held = world.host.slots.take(&path).await;
        let cancel = world.cancel.clone();
        let call = world.call("write", json!({"path": "f", "content": "new"}));
        let (outcome, ()) = tokio::join!(call, async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
        assert!(outcome.is_error && outcome.joined_text().contains("aborted"));
        assert_eq!(world.text("f"), "old");
    }
}
