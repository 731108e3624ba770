//! How long a server asks to wait (`host.md` 3.6.9), without a clock.

/// Milliseconds to wait by `retry-after-ms`, else by `retry-after` in seconds
/// or as an HTTP date. A date counts from the response's own `date` header,
/// else from `now` in Unix seconds; `None` when nothing can be read.
pub(crate) fn retry_after_ms(
    headers: &dyn Fn(&str) -> Option<String>,
    now: Option<u64>,
) -> Option<u64> {
    let number = |text: String| text.trim().parse::<f64>().ok();
    let valid = |ms: &f64| ms.is_finite() && *ms >= 0.0;
    if let Some(ms) = headers("retry-after-ms").and_then(number).filter(valid) {
        return Some(ms.ceil() as u64);
    }
    let text = headers("retry-after")?;
    if let Some(seconds) = number(text.clone()).filter(valid) {
        return Some((seconds * 1000.0).ceil() as u64);
    }
    let until = unix_seconds(&text)?;
    let from = headers("date").and_then(|date| unix_seconds(&date)).or(now)?;
    Some(until.saturating_sub(from).saturating_mul(1000))
}

/// Reads a date like `Sun, 06 Nov 1994 08:49:37 GMT`.
fn unix_seconds(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|known| *known == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let known = (1..=31).contains(&day) && (1970..=9999).contains(&year);
    if !known || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01 to a Gregorian date.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March here, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    year * 365 + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_from_either_header_in_every_form() {
        let check = |headers: &[(&str, &str)], now, expected| {
            let get = |name: &str| {
                let found = headers.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(retry_after_ms(&get, now), expected, "{headers:?}");
        };
        check(&[], None, None);
        check(&[("retry-after", "3")], None, Some(3000));
        check(&[("retry-after", "0.5")], None, Some(500));
        check(&[("retry-after", "-1")], None, None);
        check(&[("retry-after", "soon")], None, None);
        check(&[("retry-after-ms", "1250"), ("retry-after", "9")], None, Some(1250));
        let date = ("date", "Wed, 31 Dec 2025 23:59:50 GMT");
        let until = ("retry-after", "Thu, 01 Jan 2026 00:00:05 GMT");
        check(&[until, date], None, Some(15_000));
        check(&[until], Some(1_767_225_600), Some(5000));
        check(&[until], Some(1_800_000_000), Some(0));
        check(&[until], None, None);
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], Some(784_111_770), Some(7000));
    }
}
