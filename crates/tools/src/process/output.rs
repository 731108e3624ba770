//! What a command printed: the tail in memory, everything in a private file
//! once it is more than a result may hold (`host.md` 4.3.6, 4.3.7).
//!
//! Invariant: memory stays at about twice the byte limit whatever comes.

use std::path::{Path, PathBuf};

use crew_base::limits::{TOOL_BYTES_MAX, TOOL_LINES_MAX};
use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::host::create_log;
use crate::truncate::{Limit, Totals, Truncation, size};

/// The tail is cut back to this when it has grown to twice the byte limit. The
/// surplus makes room for a character that is cut in the middle.
const TAIL_BYTES_KEPT: usize = TOOL_BYTES_MAX + 16;

/// Collects the output of one command.
pub(crate) struct Output {
    tmp: PathBuf,
    tail: Vec<u8>,
    /// The tail does not start at the start of the output.
    dropped: bool,
    bytes: u64,
    line_feeds: u64,
    /// Bytes since the last line feed, and of the line before it.
    line_bytes: u64,
    line_bytes_before: u64,
    file: FullOutput,
}

enum FullOutput {
    NotNeeded,
    Open(File, PathBuf),
    Closed(PathBuf),
    /// It could not be written; the result says so.
    Lost,
}

impl Output {
    /// Starts empty; `tmp` takes the file.
    pub(crate) fn new(tmp: &Path) -> Output {
        Output {
            tmp: tmp.to_owned(),
            tail: Vec::new(),
            dropped: false,
            bytes: 0,
            line_feeds: 0,
            line_bytes: 0,
            line_bytes_before: 0,
            file: FullOutput::NotNeeded,
        }
    }

    /// Takes the next bytes.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        self.count(bytes);
        let over = self.bytes > TOOL_BYTES_MAX as u64 || self.line_feeds >= TOOL_LINES_MAX as u64;
        if over && matches!(self.file, FullOutput::NotNeeded) {
            self.open_file().await;
        }
        self.write(bytes).await;
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 2 * TOOL_BYTES_MAX {
            let surplus = self.tail.len() - TAIL_BYTES_KEPT;
            self.tail.drain(..surplus);
            self.dropped = true;
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let feeds = bytes.iter().filter(|b| **b == b'\n').count() as u64;
        let Some(last) = bytes.iter().rposition(|b| *b == b'\n') else {
            self.line_bytes += bytes.len() as u64;
            return;
        };
        let start = bytes[..last].iter().rposition(|b| *b == b'\n');
        self.line_bytes_before = match start {
            Some(start) => (last - start - 1) as u64,
            None => self.line_bytes + last as u64,
        };
        self.line_feeds += feeds;
        self.line_bytes = (bytes.len() - last - 1) as u64;
    }

    /// Until here the tail holds everything.
    async fn open_file(&mut self) {
        self.file = match create_log(&self.tmp, "crew-bash") {
            Ok((file, path)) => FullOutput::Open(File::from_std(file), path),
            Err(_) => FullOutput::Lost,
        };
        let so_far = std::mem::take(&mut self.tail);
        self.write(&so_far).await;
        self.tail = so_far;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let FullOutput::Open(file, path) = &mut self.file else {
            return;
        };
        if file.write_all(bytes).await.is_err() {
            // A part must not pass for the whole.
            let _ = tokio::fs::remove_file(&*path).await;
            self.file = FullOutput::Lost;
        }
    }

    /// Closes the file and gives the final view.
    pub(crate) async fn finish(&mut self) -> Truncation {
        let view = self.view(true);
        if view.is_cut() && matches!(self.file, FullOutput::NotNeeded) {
            self.open_file().await;
        }
        if let FullOutput::Open(file, path) = &mut self.file {
            let path = path.clone();
            self.file = if file.flush().await.is_ok() {
                FullOutput::Closed(path)
            } else {
                let _ = tokio::fs::remove_file(&path).await;
                FullOutput::Lost
            };
        }
        if !view.is_cut()
            && let FullOutput::Closed(path) = &self.file
        {
            let _ = tokio::fs::remove_file(path).await;
            self.file = FullOutput::NotNeeded;
        }
        view
    }

    /// The tail as it stands. While more may come, an unfinished character at
    /// the end is held back.
    pub(crate) fn view(&self, finished: bool) -> Truncation {
        let mut bytes = self.tail.as_slice();
        if self.dropped {
            let continuation = bytes.iter().take(3).take_while(|b| **b & 0xC0 == 0x80);
            bytes = &bytes[continuation.count()..];
        }
        if !finished {
            bytes = &bytes[..bytes.len() - unfinished(bytes)];
        }
        let text = String::from_utf8_lossy(bytes);
        // Invalid bytes become a longer character.
        let growth = text.len().saturating_sub(bytes.len()) as u64;
        let totals = Totals {
            lines: self.line_feeds + u64::from(self.line_bytes > 0),
            bytes: self.bytes + growth,
        };
        Truncation::tail(&text, totals)
    }

    /// Where everything stands, if it is more than was kept.
    pub(crate) fn full_path(&self) -> Option<String> {
        match &self.file {
            FullOutput::Open(_, path) | FullOutput::Closed(path) => {
                Some(path.display().to_string())
            }
            FullOutput::NotNeeded | FullOutput::Lost => None,
        }
    }

    /// The bracketed note about what is missing (`host.md` 4.3.6).
    pub(crate) fn note(&self, view: &Truncation) -> Option<String> {
        let by = view.by?;
        let last = view.totals.lines;
        let shown = if view.last_line_partial {
            let line_bytes = match self.line_bytes {
                0 => self.line_bytes_before,
                bytes => bytes,
            };
            format!(
                "Only the last {} of line {last} are shown; that line has {}.",
                size(view.content.len() as u64),
                size(line_bytes)
            )
        } else {
            let first = last + 1 - view.output_lines;
            let cause = match by {
                Limit::Lines => String::new(),
                Limit::Bytes => format!(" (limit {})", size(TOOL_BYTES_MAX as u64)),
            };
            format!("Lines {first}-{last} of {last} are shown{cause}.")
        };
        let rest = match self.full_path() {
            Some(path) => format!("Full output: {path}"),
            None => "The full output could not be kept.".to_owned(),
        };
        Some(format!("[{shown} {rest}]"))
    }

    /// Details of a result (`host.md` 4.3.6); empty when nothing is missing.
    pub(crate) fn details(&self, view: &Truncation) -> Vec<(&'static str, Value)> {
        let mut fields = Vec::new();
        if view.is_cut() {
            fields.push(("truncation", view.value()));
            if let Some(path) = self.full_path() {
                fields.push(("fullOutputPath", Value::String(path)));
            }
        }
        fields
    }
}

/// How many bytes at the end are the start of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for (at, byte) in tail.iter().enumerate() {
        if *byte >= 0xC0 {
            let rest = &tail[at..];
            return match std::str::from_utf8(rest) {
                Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => rest.len(),
                Ok(_) | Err(_) => continue,
            };
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn collect(chunks: &[&[u8]]) -> (Output, Truncation, tempfile::TempDir) {
        let tmp = tempfile::tempdir().unwrap();
        let mut output = Output::new(tmp.path());
        for chunk in chunks {
            output.push(chunk).await;
        }
        let view = output.finish().await;
        (output, view, tmp)
    }

    fn files(tmp: &tempfile::TempDir) -> usize {
        std::fs::read_dir(tmp.path()).unwrap().count()
    }

    #[tokio::test]
    async fn small_output_leaves_no_file() {
        let (output, view, tmp) = collect(&[b"a\n", b"b"]).await;
        assert_eq!((view.content.as_str(), view.totals.lines), ("a\nb", 2));
        assert_eq!((output.note(&view), files(&tmp)), (None, 0));
        let whole = "1\n".repeat(TOOL_LINES_MAX);
        let (_, view, tmp) = collect(&[whole.as_bytes()]).await;
        assert_eq!((view.is_cut(), files(&tmp)), (false, 0));
    }

    #[tokio::test]
    async fn everything_is_in_the_file_and_the_tail_in_the_result() {
        // host.md 4.3.6, C086
        let mut whole = String::new();
        let mut chunks = Vec::new();
        for n in 0..30_000 {
            whole.push_str(&format!("line number {n}\n"));
        }
        chunks.extend(whole.as_bytes().chunks(777));
        let (output, view, _tmp) = collect(&chunks).await;
        assert!(output.tail.capacity() < 5 * TOOL_BYTES_MAX);
        assert!(view.content.ends_with("line number 29999\n"));
        assert_eq!(view.output_lines, 2000);
        assert_eq!(view.totals.lines, 30_000);
        let path = output.full_path().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        let note = output.note(&view).unwrap();
        assert!(note.contains("28001-30000 of 30000") && note.contains(&path));
    }

    #[tokio::test]
    async fn a_giant_last_line_shows_its_end_and_its_size() {
        // host.md 4.3.6, 11.66
        let line = vec![b'z'; 200_000];
        let (output, view, _tmp) = collect(&[&line, b"END\n"]).await;
        assert!(view.last_line_partial && view.content.ends_with("zEND\n"));
        let note = output.note(&view).unwrap();
        assert!(note.contains("195.3KB"), "{note}");
    }

    #[tokio::test]
    async fn characters_split_between_chunks_are_whole() {
        // C100
        let text = "aé😀";
        let tmp = tempfile::tempdir().unwrap();
        let mut output = Output::new(tmp.path());
        for byte in text.as_bytes() {
            output.push(&[*byte]).await;
            assert!(!output.view(false).content.contains('\u{fffd}'));
        }
        assert_eq!(output.finish().await.content, text);
    }

    #[tokio::test]
    async fn invalid_bytes_never_exceed_the_limit() {
        // C136
        let bytes = vec![0xFF; TOOL_BYTES_MAX];
        let (_, view, _tmp) = collect(&[&bytes]).await;
        assert!(view.is_cut() && view.content.len() <= TOOL_BYTES_MAX);
        assert!(view.content.chars().all(|c| c == '\u{fffd}'));
    }

    #[tokio::test]
    async fn a_folder_that_takes_no_file_is_said_and_not_fatal() {
        let mut output = Output::new(Path::new("/no/such/folder"));
        output.push(&vec![b'x'; 3 * TOOL_BYTES_MAX]).await;
        let view = output.finish().await;
        assert!(output.note(&view).unwrap().contains("could not be kept"));
    }
}
