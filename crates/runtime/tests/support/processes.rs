//! Looks for processes of a host.

use std::fs;
use std::time::{Duration, Instant};

/// How many processes carry a marker that starts with this in their
/// environment.
pub(crate) fn marked(marker: &str) -> usize {
    let wanted = format!("CREW_COMMAND={marker}");
    let carries = |entry: &std::io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|value| value.starts_with(wanted.as_bytes()))
    };
    fs::read_dir("/proc").unwrap().filter(carries).count()
}

/// Whether something holds within a time, looked at again and again.
pub(crate) fn within(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    while !holds() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
