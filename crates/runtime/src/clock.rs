//! The one clock of the process: wall time at the start, monotonic from there.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crew_base::time::Time;
use tokio::time::Instant;

static START: OnceLock<(Instant, u64)> = OnceLock::new();

/// Unix milliseconds; never goes back.
pub fn now() -> Time {
    let (start, wall) = START.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        (Instant::now(), wall.as_millis() as u64)
    });
    Time(wall + start.elapsed().as_millis() as u64)
}

/// The moment of the async clock that a time means.
pub(crate) fn instant(time: Time) -> Instant {
    Instant::now() + Duration::from_millis(time.since(now()))
}
