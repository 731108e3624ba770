//! Numbers, times and money as people read them (`crew.md` WID-10, WID-11).

/// Tokens: `999`, `1.2k`, `12.4k`, `1.2M` (`crew.md` WID-10).
pub fn tokens(count: u64) -> String {
    let scaled = |unit: u64, sign: &str| {
        let tenths = (count * 10 + unit / 2) / unit;
        format!("{}.{}{sign}", tenths / 10, tenths % 10)
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..999_950 => scaled(1_000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

/// Tokens without a zero after the point: `200k`, `12.4k`.
pub fn tokens_short(count: u64) -> String {
    tokens(count).replace(".0", "")
}

/// US dollars: two decimals when zero or at least a cent, else four.
pub fn cost(dollars: f64) -> String {
    if dollars == 0.0 || dollars >= 0.01 {
        format!("${dollars:.2}")
    } else {
        format!("${dollars:.4}")
    }
}

/// Working time: `18s`, `2m`, `2m 4s` (`crew.md` WID-11).
pub fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m {seconds}s"),
    }
}

/// How long ago, in the largest unit: `41s`, `3m`, `2h`, `5d`.
pub fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `1 line`, `2 lines`.
pub fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number if one.ends_with("ch") => format!("{number} {one}es"),
        number => format!("{number} {one}s"),
    }
}

/// The model id without its provider.
pub fn model_id(reference: &str) -> &str {
    reference.split_once('/').map_or(reference, |(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_widget_rules() {
        let check = |number, text: &str| assert_eq!(tokens(number), text);
        check(0, "0");
        check(999, "999");
        check(1_000, "1.0k");
        check(12_400, "12.4k");
        check(999_949, "999.9k");
        check(999_950, "1.0M");
        check(1_234_567, "1.2M");
        assert_eq!(tokens_short(200_000), "200k");
        assert_eq!(
            (cost(0.0), cost(0.0049), cost(0.079)),
            ("$0.00".into(), "$0.0049".into(), "$0.08".into())
        );
        assert_eq!(
            (time(18_900), time(120_000), time(124_000)),
            ("18s".into(), "2m".into(), "2m 4s".into())
        );
        assert_eq!((ago(41_000), ago(7_300_000)), ("41s".into(), "2h".into()));
        assert_eq!((count(1, "match"), count(2, "match")), ("1 match".into(), "2 matches".into()));
    }
}
