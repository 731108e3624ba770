//! Reads small text files that people write: definitions, skills, templates.
//!
//! Must never block on a pipe or read without bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crew_base::limits::RESOURCE_BYTES_MAX;

/// Reads a UTF-8 file of at most `RESOURCE_BYTES_MAX` bytes; links are followed.
/// What is no regular file is refused before it is opened.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(RESOURCE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > RESOURCE_BYTES_MAX {
        let reason = format!("it is larger than {RESOURCE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_text_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("good"), "täxt").unwrap();
        std::fs::write(at("bytes"), [0xff, 0xfe]).unwrap();
        std::fs::write(at("large"), vec![b'x'; RESOURCE_BYTES_MAX as usize + 1]).unwrap();
        std::fs::write(at("full"), vec![b'x'; RESOURCE_BYTES_MAX as usize]).unwrap();
        assert_eq!(read(&at("good")).unwrap(), "täxt");
        assert_eq!(read(&at("full")).unwrap().len() as u64, RESOURCE_BYTES_MAX);
        for name in ["bytes", "large", "missing", "."] {
            assert!(read(&at(name)).is_err(), "{name}");
        }
    }
}
