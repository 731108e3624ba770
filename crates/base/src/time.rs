//! Time as the pure crates see it: a number handed in, never read.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A moment in Unix milliseconds. The shell guarantees it never goes back.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// Milliseconds since an earlier moment, zero if that is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// ISO 8601 UTC with three fraction digits and `Z` (`host.md` 0.5).
    pub fn iso(self) -> String {
        let (days, ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days as i64);
        let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
        let (second, milli) = (ms / 1000 % 60, ms % 1000);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl Add<u64> for Time {
    type Output = Time;
    fn add(self, ms: u64) -> Time {
        Time(self.0.saturating_add(ms))
    }
}

impl Sub<u64> for Time {
    type Output = Time;
    fn sub(self, ms: u64) -> Time {
        Time(self.0.saturating_sub(ms))
    }
}

/// Gregorian year, month and day of a day number counted from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_iso_with_three_digits() {
        let check = |ms, text| assert_eq!(Time(ms).iso(), text);
        check(0, "1970-01-01T00:00:00.000Z");
        check(1_796_046_183_871, "2026-11-30T13:43:03.871Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
    }
}
