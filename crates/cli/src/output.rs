//! The standard streams: what may be written where, and how it is made safe.
//!
//! The only place that writes to them. Standard output carries the product of
//! the face and nothing else (`host.md` 6.1.2). Text from outside is sanitised
//! before it reaches a terminal.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::process::ExitCode;

use crew_base::text::{sanitise_block, sanitise_inline};

use crate::args::Terminals;
use crate::error::Error;

/// Columns where there is no terminal to ask.
const COLUMNS: usize = 100;
/// Bytes kept back until the next flush.
const BUFFER_BYTES: usize = 64 * 1024;

/// Which standard streams are terminals.
pub(crate) fn terminals() -> Terminals {
    Terminals { stdin: io::stdin().is_terminal(), stdout: io::stdout().is_terminal() }
}

/// Whether standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes a text of our own as the whole product.
pub(crate) fn product(text: &str) -> Result<ExitCode, Error> {
    let mut stdout = Product::new();
    stdout.write(text).and_then(|()| stdout.flush()).map_err(Error::Output)?;
    Ok(ExitCode::SUCCESS)
}

/// Tells an error and its hints.
pub(crate) fn error(error: &Error) {
    if let Error::Output(source) = error
        && source.kind() == io::ErrorKind::BrokenPipe
    {
        // The reader has gone, and knows.
        return;
    }
    let words = error.words();
    let mut text = format!("crew: {}\n", sanitise_inline(&words.text));
    for hint in &words.hints {
        text.push_str(&format!("  {}\n", sanitise_inline(hint)));
    }
    stderr(&text);
}

/// Tells a problem that stopped nothing.
pub(crate) fn warning(text: &str) {
    stderr(&format!("crew: warning: {}\n", sanitise_inline(text)));
}

/// Tells what is going on.
pub(crate) fn note(text: &str) {
    stderr(&format!("crew: {}\n", sanitise_inline(text)));
}

/// One call for the whole text, so that lines of parallel writers stay whole.
fn stderr(text: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Standard output, buffered.
pub(crate) struct Product {
    out: BufWriter<Stdout>,
    is_terminal: bool,
}

impl Product {
    /// Takes standard output.
    pub(crate) fn new() -> Product {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        Product { out: BufWriter::with_capacity(BUFFER_BYTES, stdout), is_terminal }
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes text that is ours, or that no terminal sees.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes text from outside: as it is into a pipe or file, made safe for a
    /// terminal.
    pub(crate) fn write_outside(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal { self.write(&sanitise_block(text)) } else { self.write(text) }
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Columns of the terminal, 100 without one.
    pub(crate) fn columns(&self) -> usize {
        let size = self.is_terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()));
        let columns = size.and_then(Result::ok).map(|size| usize::from(size.ws_col));
        columns.filter(|columns| *columns > 0).unwrap_or(COLUMNS)
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // What a failed write left behind must not be tried again by the
        // buffer's own drop; errors were told by `flush`.
        let _ = self.out.flush();
    }
}
