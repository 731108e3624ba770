//! The end of a long session, read from its file before the host has opened it:
//! the person sees where it stands while the rest is being read (TERM-34).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crew_base::json::Raw;
use crew_tui::request::Reply;
use crew_tui::transcript::entries;

use super::moves::{read, walk};

/// Sessions below this are opened before anybody could wait.
const FILE_BYTES_MIN: u64 = 1024 * 1024;
/// How much of the end is read.
const TAIL_BYTES: u64 = 512 * 1024;

/// The end of a session file; nothing for a short one, or when a line is longer
/// than what is read.
pub(super) fn of(path: &Path) -> Option<Reply> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    if length < FILE_BYTES_MIN {
        return None;
    }
    let before = messages_until(&mut file, length - TAIL_BYTES)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length - TAIL_BYTES)).ok()?;
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line is cut.
    let lines: Vec<Raw> = text.lines().skip(1).filter_map(Raw::parse).collect();
    let leaf = read(&lines).pop()?.id;
    let items = entries::items(&walk(&lines, Some(&leaf)));
    (!items.is_empty()).then_some(Reply::Preview { items, before })
}

/// Lines of messages that begin before a place.
fn messages_until(file: &mut File, end: u64) -> Option<usize> {
    const MARK: &[u8] = b"\n{\"type\":\"message\",";
    let mut chunk = vec![0; 256 * 1024];
    let (mut kept, mut at, mut count) = (0, 0, 0);
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(chunk.len() - kept);
        let got = file.read(&mut chunk[kept..kept + wanted]).ok().filter(|got| *got > 0)?;
        at += got as u64;
        let filled = kept + got;
        let ends = chunk[..filled].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        count += ends.filter(|(place, _)| chunk[*place..filled].starts_with(MARK)).count();
        // A mark may begin in what is kept.
        kept = MARK.len().saturating_sub(1).min(filled);
        chunk.copy_within(filled - kept..filled, 0);
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crew_tui::transcript::item::Item;
    use std::io::Write;

    fn session(turns: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, r#"{{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}}"#)
            .unwrap();
        let filler = "words ".repeat(100);
        for turn in 0..turns {
            let parent = match turn {
                0 => "null".to_owned(),
                turn => format!("\"{:08x}\"", turn - 1),
            };
            writeln!(
                file,
                r#"{{"type":"message","id":"{turn:08x}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"turn {turn}. {filler}"}}}}"#
            )
            .unwrap();
        }
        file
    }

    // TERM-26, TERM-34.
    #[test]
    fn the_end_of_a_long_session_is_read_first() {
        const TURNS: usize = 4_000;
        let file = session(TURNS);
        let Some(Reply::Preview { items, before }) = of(file.path()) else { panic!("no end") };
        assert!(items.len() > 500 && items.len() < TURNS, "{}", items.len());
        // The line that is cut counts as one before.
        assert_eq!(before + items.len(), TURNS);
        let Some(Item::User(last)) = items.last() else { panic!("{:?}", items.last()) };
        assert!(last.starts_with("turn 3999."), "{last}");
    }

    #[test]
    fn a_short_session_has_no_preview() {
        assert!(of(session(10).path()).is_none());
        assert!(of(Path::new("/no/such/file")).is_none());
    }
}
