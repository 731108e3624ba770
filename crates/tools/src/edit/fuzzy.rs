//! The loose view in which typographic variants are equal (`host.md` 4.4.4).
//! Pure. Invariant: it has exactly the lines of the text it is made from.

use unicode_normalization::{UnicodeNormalization, is_nfkc};

use crate::path::is_odd_space;

/// NFKC, no blanks at line ends, plain quotes, dashes and spaces.
pub(super) fn fuzzy(text: &str) -> String {
    let mut view = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            view.push('\n');
        }
        if line.is_ascii() {
            view.push_str(line.trim_end());
        } else if is_nfkc(line) {
            view.extend(line.trim_end().chars().map(plain));
        } else {
            let composed: String = line.nfkc().collect();
            view.extend(composed.trim_end().chars().map(plain));
        }
    }
    view
}

fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        _ if is_odd_space(c) => ' ',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typographic_variants_become_plain() {
        let check = |text: &str, expected: &str| assert_eq!(fuzzy(text), expected, "{text:?}");
        check("a  \nb\t\n", "a\nb\n");
        check("say \u{201c}hi\u{201d} \u{2013} it\u{2019}s\u{a0}", "say \"hi\" - it's");
        check("\u{ff21}\u{3000}x", "A x");
        check("cafe\u{301}", "caf\u{e9}");
        check("\u{2026}", "...");
        check("", "");
        check("\n", "\n");
    }
}
