//! What a session holds at a moment, to be read while the session goes on.
//!
//! A copy costs nothing until the session grows while the copy is alive. Never
//! writes: that is `log`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crew_base::entry::{Entry, read_line};
use crew_base::id::EntryId;

use super::index::{Index, Indexed};
use super::project::{Projection, project};
use super::read::{Lines, Source};
use crate::error::{Error, Result, io_error};

/// The entries of a session at a moment, and where their lines are.
#[derive(Clone, Debug)]
pub struct Snapshot {
    path: Option<PathBuf>,
    index: Arc<Index>,
    /// The bytes of the file to be, while there is none.
    image: Option<Arc<Vec<u8>>>,
}

impl Snapshot {
    pub(crate) fn new(path: Option<PathBuf>, index: Index, image: Option<Vec<u8>>) -> Snapshot {
        Snapshot { path, index: Arc::new(index), image: image.map(Arc::new) }
    }

    /// The file, also while it is only planned; `None` in memory
    /// (`host.md` 7.3.1).
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What stands where.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The last entry of the file, the leaf after loading (`host.md` 2.2.7).
    pub fn last(&self) -> Option<&EntryId> {
        self.index.entries().last().map(|entry| &entry.id)
    }

    /// The context at a leaf (`host.md` 2.6); `None` is the place before
    /// everything.
    pub fn project(&self, leaf: Option<&EntryId>) -> Result<Projection> {
        let Some(leaf) = leaf else {
            return Ok(Projection::default());
        };
        let path = self.index.path(leaf);
        project(self.index.entries(), &path, &mut self.lines()?).map_err(self.read_error())
    }

    /// One entry, read from its line.
    pub fn entry(&self, id: &EntryId) -> Result<Entry> {
        let unknown = || Error::UnknownEntry { id: id.as_str().to_owned() };
        let at = self.index.position(id).ok_or_else(unknown)?;
        let mut lines = self.lines()?;
        let text = lines.text(&self.index.entries()[at]).map_err(self.read_error())?;
        read_line(&text).map_err(|_| unknown())
    }

    /// Calls a function with the entries from a place on, in file order, each
    /// with its line as it stands (`host.md` 2.6.7).
    pub fn each_line(&self, from: usize, mut visit: impl FnMut(&Indexed, &str)) -> Result<()> {
        let mut lines = self.lines()?;
        for entry in self.index.entries().iter().skip(from) {
            visit(entry, &lines.text(entry).map_err(self.read_error())?);
        }
        Ok(())
    }

    /// A reader over the lines.
    pub(crate) fn lines(&self) -> Result<Lines<'_>> {
        Ok(Lines::new(match (&self.image, &self.path) {
            (Some(image), _) => Source::Image(image),
            (None, Some(path)) => Source::File(File::open(path).map_err(io_error("read", path))?),
            (None, None) => return Err(Error::NotSaved),
        }))
    }

    /// Names the file in an error of reading it.
    pub(crate) fn read_error(&self) -> impl FnOnce(std::io::Error) -> Error {
        io_error("read", self.path.as_deref().unwrap_or(Path::new("")))
    }

    pub(crate) fn push(&mut self, indexed: Indexed, entry: impl FnOnce() -> Option<Entry>) {
        Arc::make_mut(&mut self.index).push(indexed, entry);
    }

    /// Lines that are not on disk.
    pub(crate) fn image(&self) -> Option<&[u8]> {
        self.image.as_ref().map(|image| image.as_slice())
    }

    /// Adds a line in memory; yields the place of its first byte.
    pub(crate) fn push_line(&mut self, line: &str) -> usize {
        let Some(image) = &mut self.image else { return 0 };
        let image = Arc::make_mut(image);
        let start = image.len();
        image.extend_from_slice(line.as_bytes());
        image.push(b'\n');
        start
    }

    /// Takes back what was added in memory from a byte on.
    pub(crate) fn cut_image(&mut self, from: usize) {
        if let Some(image) = &mut self.image {
            Arc::make_mut(image).truncate(from);
        }
    }

    /// The lines are on disk now.
    pub(crate) fn drop_image(&mut self) {
        self.image = None;
    }
}
