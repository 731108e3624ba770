//! One `@file` (`host.md` 6.1.7): text in a tag with its path, or an image.
//!
//! What is an image, and what may be sent of it, is decided by the tool `read`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crew_base::json::Raw;
use crew_base::limits::ATTACHMENT_BYTES_MAX;
use crew_base::message::Block;
use unicode_normalization::UnicodeNormalization;

use crate::config::Config;
use crate::error::Error;
use crate::wiring::Wired;

/// What a file adds to the first prompt.
#[derive(Debug, Default)]
pub(super) struct Attachment {
    /// Goes into the text; empty for an empty file.
    pub(super) text: String,
    /// Goes behind the text.
    pub(super) image: Option<Block>,
}

/// Reads the file a word with `@` names, relative to the directory the program
/// was started in; a missing file is an error.
pub(super) async fn read(word: &str, config: &Config, wired: &Wired) -> Result<Attachment, Error> {
    let path = locate(word, &config.start_dir, config.place.home.as_deref());
    let bytes = bounded(&path).map_err(|source| Error::File { path: path.clone(), source })?;
    if bytes.is_empty() {
        return Ok(Attachment::default());
    }
    let name = path.display();
    if looks_like_image(&bytes) {
        let arguments = Raw::of(&serde_json::json!({"path": path.to_string_lossy()}));
        let outcome = wired.read_tool(arguments).await;
        let text = outcome.joined_text();
        if outcome.is_error {
            return Err(Error::Image { path, reason: text });
        }
        let image = outcome.content.into_iter().find(|block| matches!(block, Block::Image(_)));
        if image.is_some() || text.starts_with(IMAGE_LEAD) {
            let notes: String = text.lines().filter(|line| line.starts_with('[')).collect();
            return Ok(Attachment {
                text: format!("<file name=\"{name}\">{notes}</file>\n"),
                image,
            });
        }
    }
    let content = String::from_utf8_lossy(&bytes);
    Ok(Attachment { text: format!("<file name=\"{name}\">\n{content}\n</file>\n"), image: None })
}

/// How the tool `read` begins its words about an image.
const IMAGE_LEAD: &str = "Image file (";

/// A first look, so that texts are not read twice; the tool decides.
fn looks_like_image(bytes: &[u8]) -> bool {
    let starts: [&[u8]; 5] = [b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM"];
    starts.iter().any(|start| bytes.starts_with(start))
}

fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(ATTACHMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > ATTACHMENT_BYTES_MAX {
        let text = format!("it is larger than {} MB", ATTACHMENT_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// The path, or when that is missing a file of its folder whose name differs
/// only in kinds of spaces, quotes and composed letters (`host.md` 4.1.7).
fn locate(word: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = crew_tools::resolve(word, cwd, home);
    if fs::symlink_metadata(&path).is_ok() {
        return path;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path };
    let wanted = plain_name(&name.to_string_lossy());
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names = entries.map(|entry| entry.file_name());
    let found = names.find(|name| plain_name(&name.to_string_lossy()) == wanted);
    found.map_or_else(|| path.clone(), |name| folder.join(name))
}

fn plain_name(name: &str) -> String {
    name.nfc()
        .map(|c| match c {
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_spite_of_spaces_quotes_and_accents() {
        // host.md 4.1.7
        let folder = tempfile::tempdir().unwrap();
        let check = |stored: &str, typed: &str| {
            fs::write(folder.path().join(stored), "x").unwrap();
            let found = locate(&format!("@{typed}"), folder.path(), None);
            assert_eq!(found, folder.path().join(stored), "{typed}");
        };
        check("Shot 9.41\u{202f}PM.png", "Shot 9.41 PM.png");
        check("it\u{2019}s.txt", "it's.txt");
        check("cafe\u{301}.md", "caf\u{e9}.md");
        let missing = locate("@nothing", folder.path(), None);
        assert_eq!(missing, folder.path().join("nothing"));
    }
}
