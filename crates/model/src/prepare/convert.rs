//! Messages of the host as text for the model (`host.md` 2.6.6), and the
//! placeholders for images (9.1.6). Wording is ours and never stored.

use std::borrow::Cow;

use crew_base::json::{Raw, mend_surrogates};
use crew_base::message::{BashExecutionMessage, Block};
use crew_base::text::is_blank;

use super::Blocks;

/// Who an image was meant by, for the wording of its placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageOrigin {
    /// The person attached it.
    User,
    /// A tool returned it.
    Tool,
}

/// A shell command of the person; `None` when it is kept from the model.
pub(super) fn shell_run(run: &BashExecutionMessage) -> Option<String> {
    if run.exclude_from_context == Some(true) {
        return None;
    }
    let mut text = format!("I ran this shell command myself:\n\n$ {}\n\n", run.command);
    if is_blank(&run.output) {
        text.push_str("It printed nothing.");
    } else {
        text.push_str("Its output:\n\n");
        text.push_str(run.output.trim_end_matches('\n'));
    }
    if run.cancelled {
        text.push_str("\n\nI stopped it before it ended.");
    } else if let Some(code) = run.exit_code.filter(|code| *code != 0) {
        text.push_str(&format!("\n\nIt ended with exit code {code}."));
    }
    if let (true, Some(path)) = (run.truncated, &run.full_output_path) {
        text.push_str(&format!("\n\nThe output is cut; all of it stands in {path}."));
    }
    Some(text)
}

/// The summary of a branch that was left.
pub(super) fn branch(summary: &str) -> String {
    format!(
        "An earlier line of this conversation was left; this is what happened there.\n\n\
         <branch_summary>\n{summary}\n</branch_summary>"
    )
}

/// The summary of what was compacted away.
pub(super) fn compaction(summary: &str) -> String {
    format!(
        "The conversation before this point was replaced by a summary.\n\n\
         <conversation_summary>\n{summary}\n</conversation_summary>"
    )
}

/// Text and image blocks as the model can take them: without image input each
/// run of images becomes one placeholder; other kinds are dropped.
pub(super) fn readable(blocks: Blocks<'_>, images: bool, origin: ImageOrigin) -> Blocks<'_> {
    let placeholder = match origin {
        ImageOrigin::User => "(an image was attached here; it cannot be shown to this model)",
        ImageOrigin::Tool => "(the tool returned an image; it cannot be shown to this model)",
    };
    let mut kept = Vec::with_capacity(blocks.len());
    let mut in_run = false;
    for block in blocks {
        match &*block {
            Block::Image(_) if !images => {
                if !in_run {
                    kept.push(Cow::Owned(Block::text(placeholder)));
                }
                in_run = true;
                continue;
            }
            Block::Text(_) | Block::Image(_) => kept.push(block),
            Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => {}
        }
        in_run = false;
    }
    kept
}

/// JSON text without escapes of unpaired surrogates (9.1.8, C136).
pub(super) fn mended(raw: &Raw) -> Raw {
    match mend_surrogates(raw.text()) {
        Cow::Borrowed(_) => raw.clone(),
        Cow::Owned(text) => Raw::parse(&text).unwrap_or_else(|| raw.clone()),
    }
}
