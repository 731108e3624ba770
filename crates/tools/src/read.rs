//! The tool `read` (`host.md` 4.2): text by lines, or an image. What was read
//! is noted for `write` (`product.md` P-14). Lines are in `read::lines`,
//! images in `read::image`, results of `task` children in `read::address`.

mod address;
mod image;
mod lines;
mod resize;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crew_base::message::{Block, ImageBlock};
use crew_base::tool::{ToolDefinition, ToolOutcome};
use serde_json::{Value, json};

use crate::blocking::{self, Stop};
use crate::context::{Tool, ToolContext, ToolFuture};
use crate::error::Error;
use crate::path::{real, resolve_existing};
use crate::record::Stamp;
use crate::toolbox::definition;
use crate::truncate::details;

const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes taken from what is no regular file, such as `/dev/zero`.
const ENDLESS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a pipe or device may stay silent.
const SILENCE_MAX: Duration = Duration::from_secs(5);
const SILENCE_POLL: Duration = Duration::from_millis(20);

/// The tool.
pub(crate) struct Read {
    definition: ToolDefinition,
    /// Whether images are made to fit (`images.autoResize`).
    resizes: bool,
}

impl Read {
    pub(crate) fn new(resizes: bool) -> Read {
        let parameters = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "File, absolute or relative to the working directory."},
                "offset": {"type": "number", "description": "First line to show, counted from 1."},
                "limit": {"type": "number", "description": "How many lines to show."}
            }
        });
        let description = "Shows the text of a file, or attaches an image (JPEG, PNG, GIF, WebP, \
            BMP). At most 2000 lines or 50 KB at a time; a note at the end tells how to go on \
            with offset.";
        Read { definition: definition("read", description, &parameters), resizes }
    }
}

impl Tool for Read {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn run(&self, context: ToolContext, arguments: Value) -> ToolFuture {
        let resizes = self.resizes;
        Box::pin(async move {
            let cancel = context.cancel.clone();
            let work = move |stop: &Stop| read(&context, &arguments, resizes, stop);
            match blocking::run(&cancel, work).await {
                Ok(outcome) => outcome,
                Err(error) => error.outcome(),
            }
        })
    }
}

fn read(
    context: &ToolContext,
    arguments: &Value,
    resizes: bool,
    stop: &Stop,
) -> Result<ToolOutcome, Error> {
    let name = arguments["path"].as_str().unwrap_or_default();
    if let Some(address) = crew_task::address::parse(name) {
        return address::read(context, address, arguments, stop);
    }
    let path = resolve_existing(name, &context.cwd, context.home.as_deref());
    let mut source = Source::open(name, &path)?;
    let start = source.start(stop)?;
    let outcome = match image::mime_type(&start) {
        Some(mime) => read_image(context, (mime, resizes), start, &mut source, stop)?,
        None => read_text(arguments, &start, &mut source, stop)?,
    };
    if let Ok(real) = real(&path) {
        let stamp = Stamp::of(&source.data);
        context.host.record.saw(&context.session, real, stamp);
    }
    Ok(outcome)
}

fn read_text(
    arguments: &Value,
    start: &[u8],
    source: &mut Source,
    stop: &Stop,
) -> Result<ToolOutcome, Error> {
    let offset = whole(&arguments["offset"]).unwrap_or(1);
    let mut window = lines::Window::new(offset, whole(&arguments["limit"]));
    window.push(start);
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let bytes = source.next(&mut buffer, stop)?;
        if bytes == 0 {
            break;
        }
        window.push(&buffer[..bytes]);
    }
    let past = |end: lines::PastEnd| Error::OffsetPastEnd { offset, total: end.total };
    let selected = window.finish().map_err(past)?;
    let fields = selected.truncation.map(|cut| ("truncation", cut.value()));
    Ok(ToolOutcome {
        details: details(fields.into_iter().collect()),
        ..ToolOutcome::text(selected.text)
    })
}

/// A count from an argument: fractions are floored, negatives are 0.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().map(|n| n as u64))
}

fn read_image(
    context: &ToolContext,
    (mime, resizes): (&str, bool),
    start: Vec<u8>,
    source: &mut Source,
    stop: &Stop,
) -> Result<ToolOutcome, Error> {
    let readable = if resizes { image::SOURCE_BYTES_MAX } else { image::IMAGE_BYTES_MAX };
    let mut bytes = start;
    let mut buffer = vec![0; CHUNK_BYTES];
    let packed = loop {
        let more = source.next(&mut buffer, stop)?;
        if more == 0 {
            break image::pack(mime, &bytes, resizes, &|| stop.check().is_err());
        }
        bytes.extend_from_slice(&buffer[..more]);
        if bytes.len() as u64 > readable {
            let size = source.data.len().max(bytes.len() as u64);
            break image::Packed::Note(image::too_large(size));
        }
    };
    stop.check()?;
    let (data, mime_type, note) = match packed {
        image::Packed::Image { data, mime, note } => (data, mime, note),
        image::Packed::Note(note) => {
            return Ok(ToolOutcome::text(format!("Image file ({mime}).\n\n[{note}]")));
        }
    };
    let mut text = format!("Image file ({mime}).");
    if let Some(note) = note {
        text.push_str(&format!("\n\n[{note}]"));
    }
    let mut fields = Vec::new();
    if !context.images {
        text.push_str("\n\n[The model in use does not take images.]");
        fields.push(("imageUnsupportedByModel", Value::Bool(true)));
    }
    let image = ImageBlock { data, mime_type };
    Ok(ToolOutcome {
        content: vec![Block::text(text), Block::Image(image)],
        details: details(fields),
        is_error: false,
        terminate: false,
        usage: None,
    })
}

/// An open file that is read up to where it must end (`host.md` 4.2.4).
struct Source {
    name: String,
    file: File,
    data: Metadata,
    /// Bytes that may still be taken.
    left: u64,
}

impl Source {
    fn open(name: &str, path: &Path) -> Result<Source, Error> {
        let failed = |source| Error::file(name, source);
        // A pipe without a writer must not hold the call at its opening.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        if data.is_dir() {
            return Err(Error::IsDirectory { path: name.to_owned() });
        }
        let sized = data.is_file() && data.len() > 0;
        let left = if sized { data.len() } else { ENDLESS_BYTES_MAX };
        Ok(Source { name: name.to_owned(), file, data, left })
    }

    /// The first bytes, as many as tell an image.
    fn start(&mut self, stop: &Stop) -> Result<Vec<u8>, Error> {
        let mut start = vec![0; image::SNIFF_BYTES];
        let mut filled = 0;
        while filled < start.len() {
            match self.next(&mut start[filled..], stop)? {
                0 => break,
                bytes => filled += bytes,
            }
        }
        start.truncate(filled);
        Ok(start)
    }

    fn next(&mut self, buffer: &mut [u8], stop: &Stop) -> Result<usize, Error> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let room = room.min(buffer.len());
        let silent_until = Instant::now() + SILENCE_MAX;
        loop {
            stop.check()?;
            match self.file.read(&mut buffer[..room]) {
                Ok(bytes) => {
                    self.left -= bytes as u64;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(silent_until)?,
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn wait(&self, silent_until: Instant) -> Result<(), Error> {
        if Instant::now() >= silent_until {
            return Err(Error::Silent { path: self.name.clone(), seconds: SILENCE_MAX.as_secs() });
        }
        std::thread::sleep(SILENCE_POLL);
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::file(&self.name, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x02IHDRxxxxxx\0\0\0\0IDAT";

    #[tokio::test]
    async fn text_comes_raw_and_errors_name_the_file() {
        let world = World::new();
        world.file("a.txt", "l1\nl2\n");
        let outcome = world.call("read", json!({"path": "a.txt"})).await;
        assert_eq!(outcome, ToolOutcome::text("l1\nl2\n"));
        let check = async |path: &str, part: &str| {
            let outcome = world.call("read", json!({"path": path})).await;
            assert!(outcome.is_error && outcome.joined_text().contains(part), "{outcome:?}");
        };
        check("none.txt", "none.txt: ENOENT").await;
        check(".", "is a directory").await;
        let past = json!({"path": "a.txt", "offset": 9.7});
        let outcome = world.call("read", past).await;
        assert!(outcome.is_error && outcome.joined_text().contains("3 lines"));
    }

    #[tokio::test]
    async fn an_image_follows_a_text_that_names_its_type() {
        // host.md 4.2.5, 4.2.7
        let world = World::new();
        world.file("shot.txt", PNG);
        let outcome = world.call("read", json!({"path": "shot.txt"})).await;
        assert!(outcome.joined_text().contains("image/png"));
        let Block::Image(image) = &outcome.content[1] else {
            panic!("{outcome:?}");
        };
        assert_eq!(image.data, image::base64(PNG));
        assert_eq!(outcome.details, None);
        let mut context = world.context();
        context.images = false;
        let outcome = world.call_in(context, "read", json!({"path": "shot.txt"})).await;
        assert_eq!(outcome.content.len(), 2, "it stays in the session");
        let details = outcome.details.unwrap().value();
        assert_eq!(details["imageUnsupportedByModel"], true);
    }

    #[tokio::test]
    async fn a_wide_image_is_sent_smaller_unless_the_setting_says_not() {
        // host.md 4.2.6
        let world = World::new();
        let wide = ::image::RgbImage::from_pixel(2_500, 10, ::image::Rgb([1, 2, 3]));
        wide.save(world.cwd().join("wide.png")).unwrap();
        let outcome = world.call("read", json!({"path": "wide.png"})).await;
        let text = outcome.joined_text();
        assert!(text.starts_with("Image file (image/png)."), "{text}");
        assert!(text.contains("[Shown at 2000x8; the file has 2500x10 pixels."), "{text}");
        let plain = Read::new(false).run(world.context(), json!({"path": "wide.png"})).await;
        assert!(!plain.joined_text().contains("Shown at"), "{plain:?}");
        let sent = |outcome: &ToolOutcome| {
            let Block::Image(image) = &outcome.content[1] else { panic!("{outcome:?}") };
            image.data.clone()
        };
        let file = std::fs::read(world.cwd().join("wide.png")).unwrap();
        assert_eq!(sent(&plain), image::base64(&file));
        assert_ne!(sent(&outcome), sent(&plain));
    }

    #[tokio::test]
    async fn a_huge_image_is_a_note() {
        let world = World::new();
        let mut bytes = PNG[..8].to_vec();
        bytes.resize(image::IMAGE_BYTES_MAX as usize + 1, 0);
        world.file("big.png", bytes);
        let outcome = world.call("read", json!({"path": "big.png"})).await;
        assert_eq!(outcome.content.len(), 1);
        assert!(outcome.joined_text().contains("not attached"));
    }

    #[tokio::test]
    async fn special_files_end() {
        // host.md 4.2.4
        let world = World::new();
        let outcome = world.call("read", json!({"path": "/proc/self/status"})).await;
        assert!(outcome.joined_text().contains("Name:"));
        let outcome = world.call("read", json!({"path": "/dev/null"})).await;
        assert_eq!(outcome.joined_text(), "[The file is empty.]");
        let pipe = world.cwd().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let outcome = world.call("read", json!({"path": "pipe"})).await;
        assert!(!outcome.is_error, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_growing_file_is_read_up_to_its_size_at_open() {
        // host.md 4.2.4
        let world = World::new();
        let path = world.file("log", "one\n");
        let mut source = Source::open("log", &path).unwrap();
        world.file("log", "one\ntwo\n");
        assert_eq!(source.start(&Stop::never()).unwrap(), b"one\n");
    }

    #[tokio::test]
    async fn a_cancelled_call_says_so() {
        // host.md 4.1.8
        let world = World::new();
        world.cancel.cancel();
        let outcome = world.call("read", json!({"path": "x"})).await;
        assert!(outcome.is_error && outcome.joined_text().contains("aborted"));
    }
}
