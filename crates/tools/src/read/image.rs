//! Recognises images by their first bytes (`host.md` 4.2.5) and packs them.
//!
//! Pure. [`pack`] is the one place that decides what is sent for an image file;
//! see `read::resize` for how one is made to fit.

use super::resize::{self, Fitted};

/// Bytes looked at.
pub(crate) const SNIFF_BYTES: usize = 4100;
/// Base64 of one image that providers take (`host.md` 4.2.6).
pub(super) const BASE64_BYTES_MAX: u64 = 4_718_592;
/// Image file that can be sent.
pub(crate) const IMAGE_BYTES_MAX: u64 = BASE64_BYTES_MAX / 4 * 3;
/// Image file that is read to be made smaller.
pub(crate) const SOURCE_BYTES_MAX: u64 = 64 << 20;

/// The mime type, when these first bytes are those of a supported image:
/// JPEG but not lossless, PNG but not animated, GIF, WebP, BMP.
pub(crate) fn mime_type(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        return (!is_animated(start)).then_some("image/png");
    }
    if start.starts_with(b"\xff\xd8\xff") {
        return (!is_lossless(start)).then_some("image/jpeg");
    }
    if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    is_bitmap(start).then_some("image/bmp")
}

/// An animated PNG says so in a chunk before the first image data.
fn is_animated(start: &[u8]) -> bool {
    let mut at = 8;
    while let (Some(length), Some(kind)) = (start.get(at..at + 4), start.get(at + 4..at + 8)) {
        if kind == b"acTL" {
            return true;
        }
        if kind == b"IDAT" {
            return false;
        }
        let length = length.iter().fold(0usize, |sum, b| sum << 8 | usize::from(*b));
        at = at.saturating_add(length).saturating_add(12);
    }
    false
}

/// Frame headers C3, C7, CB and CF are the lossless ones; F7 is JPEG-LS.
fn is_lossless(start: &[u8]) -> bool {
    let mut at = 2;
    while let Some(segment) = start.get(at..at + 4) {
        if segment[0] != 0xFF {
            return false;
        }
        match segment[1] {
            0xC3 | 0xC7 | 0xCB | 0xCF | 0xF7 => return true,
            0xC0..=0xC2 | 0xC5 | 0xC6 | 0xC9 | 0xCA | 0xCD | 0xCE | 0xDA => return false,
            // Padding, and marks that have no length.
            0xFF => at += 1,
            0x01 | 0xD0..=0xD7 => at += 2,
            _ => at += 2 + usize::from(segment[2]) * 256 + usize::from(segment[3]),
        }
    }
    false
}

/// `BM` alone would also fit a text, so the header must make sense.
fn is_bitmap(start: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes: Option<[u8; 4]> = start.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map(u32::from_le_bytes)
    };
    start.starts_with(b"BM")
        && number(6) == Some(0)
        && matches!(number(14), Some(12 | 40 | 52 | 56 | 64 | 108 | 124))
}

/// What is sent for an image file.
pub(crate) enum Packed {
    /// The file in base64, its type, and what was done to it.
    Image { data: String, mime: String, note: Option<String> },
    /// Not possible, and why.
    Note(String),
}

/// Decides about a whole image file; with `resizes` it is made to fit.
pub(crate) fn pack(mime: &str, bytes: &[u8], resizes: bool, stop: &dyn Fn() -> bool) -> Packed {
    let fitted = match (resizes, mime) {
        (true, _) => resize::fit(mime, bytes, stop),
        (false, "image/bmp") => match resize::to_png(bytes) {
            Some(bytes) => {
                let note = "Converted to image/png.".to_owned();
                Fitted::Changed { bytes, mime: "image/png", note }
            }
            None => Fitted::Impossible,
        },
        (false, _) => Fitted::AsIs,
    };
    let (bytes, mime, note) = match &fitted {
        // What cannot be decoded here may still be readable to a provider.
        Fitted::Impossible if mime == "image/bmp" || bytes.len() as u64 > IMAGE_BYTES_MAX => {
            return Packed::Note(impossible(bytes.len() as u64));
        }
        Fitted::AsIs | Fitted::Impossible => (bytes, mime, None),
        Fitted::Changed { bytes, mime, note } => (bytes.as_slice(), *mime, Some(note.clone())),
    };
    if bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Packed::Note(too_large(bytes.len() as u64));
    }
    Packed::Image { data: base64(bytes), mime: mime.to_owned(), note }
}

/// Why an image that cannot be made to fit is not sent.
fn impossible(bytes: u64) -> String {
    format!(
        "The image is not attached: it has {} and could not be made smaller. Convert it to a \
         small PNG or JPEG.",
        crate::truncate::size(bytes)
    )
}

/// Why an image of that size is not sent.
pub(crate) fn too_large(bytes: u64) -> String {
    format!(
        "The image is not attached: it has {}, at most {} can be sent. Make a smaller copy.",
        crate::truncate::size(bytes),
        crate::truncate::size(IMAGE_BYTES_MAX)
    )
}

/// Bytes that so many take in base64.
pub(super) fn base64_bytes(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64 * 4
}

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= group.len() {
                let index = bits >> (18 - 6 * digit) & 63;
                text.push(char::from(DIGITS[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(chunks: &[&[u8; 4]]) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        for kind in chunks {
            bytes.extend([0, 0, 0, 2]);
            bytes.extend_from_slice(*kind);
            bytes.extend([9; 6]);
        }
        bytes
    }

    #[test]
    fn images_are_known_by_their_content() {
        // host.md 4.2.5, 11.79
        let check = |bytes: &[u8], expected| assert_eq!(mime_type(bytes), expected);
        check(&png(&[b"IHDR", b"IDAT"]), Some("image/png"));
        check(&png(&[b"IHDR", b"acTL", b"IDAT"]), None);
        check(&png(&[b"IHDR", b"IDAT", b"acTL"]), Some("image/png"));
        check(b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x04", Some("image/jpeg"));
        check(b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc3\x00\x04", None);
        check(b"\xff\xd8\xff", Some("image/jpeg"));
        check(b"GIF89a..", Some("image/gif"));
        check(b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp"));
        check(b"RIFF\0\0\0\0WAVE", None);
        check(b"BM\x40\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", Some("image/bmp"));
        check(b"BMW is a maker of cars and more", None);
        check(b"", None);
    }

    #[test]
    fn base64_is_padded() {
        let check = |bytes: &[u8], expected| assert_eq!(base64(bytes), expected);
        check(b"", "");
        check(b"f", "Zg==");
        check(b"fo", "Zm8=");
        check(b"foo", "Zm9v");
        check(b"\xff\xfe\xfd\xfc", "//79/A==");
    }
}
