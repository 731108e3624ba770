//! Controls of ours that carry text (TERM-58): copying by OSC 52, whose text is
//! base64 (TERM-48), notifications by OSC 9 (TERM-38) and the title by OSC 2
//! (TERM-39), whose text is clean.

use crew_tui::request::AttentionForm;

/// Bytes above which a file is written instead (TERM-48).
pub(super) const BYTES_MAX: usize = 100 * 1024;

/// Characters of a notification.
const WHY_CHARS_MAX: usize = 120;

/// The sequence that gives a text to the terminal's clipboard.
pub(super) fn sequence(text: &str) -> Vec<u8> {
    format!("\x1b]52;c;{}\x07", base64(text.as_bytes())).into_bytes()
}

/// What calls the person: the bell, or a notification that the terminal passes
/// to the desktop (TERM-38). `why` is clean text.
pub(super) fn attention(form: AttentionForm, why: &str) -> Vec<u8> {
    match form {
        AttentionForm::Bell => b"\x07".to_vec(),
        AttentionForm::Desktop => {
            let why = crew_base::text::excerpt(why, WHY_CHARS_MAX);
            format!("\x1b]9;crew: {why}\x07").into_bytes()
        }
        AttentionForm::Off => Vec::new(),
    }
}

/// Keeps the terminal's title until [`TITLE_BACK`].
pub(super) const TITLE_KEPT: &[u8] = b"\x1b[22;2t";
/// Gives the terminal the title that it had.
pub(super) const TITLE_BACK: &[u8] = b"\x1b[23;2t";

/// The sequence that gives the terminal a title; clean text.
pub(super) fn title(text: &str) -> Vec<u8> {
    format!("\x1b]2;{text}\x07").into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
            } else {
                let letter = (bits >> (18 - 6 * place)) & 63;
                text.push(char::from(LETTERS[letter as usize]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // TERM-38.
    #[test]
    fn the_person_is_called_in_the_form_of_the_setting() {
        let check = |form, expected: &str| {
            assert_eq!(attention(form, "scout-1 needs you"), expected.as_bytes());
        };
        check(AttentionForm::Bell, "\u{7}");
        check(AttentionForm::Desktop, "\u{1b}]9;crew: scout-1 needs you\u{7}");
        check(AttentionForm::Off, "");
    }

    #[test]
    fn texts_are_encoded_as_the_standard_says() {
        let check = |text: &str, expected: &str| assert_eq!(base64(text.as_bytes()), expected);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
    }
}
