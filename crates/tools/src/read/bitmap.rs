//! Bitmap files as PNG (`host.md` 4.2.6): providers do not take BMP. Pure.
//! Only what screenshots and drawing programs write: 24 and 32 bits for each
//! pixel, not compressed.

/// Pixels of a picture that is converted, so that memory stays bounded.
const PIXELS_MAX: usize = 16_000_000;

/// A PNG of the same pixels; `None` for other kinds of bitmap.
pub(super) fn to_png(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| {
        let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(i32::from_le_bytes(bytes))
    };
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let pixels_at = usize::try_from(number(10)?).ok()?;
    let (width, rows) = (number(18)?, number(22)?);
    let plain = number(14)? >= 40 && number(30)? == 0;
    let depth = usize::from(half(28)?) / 8;
    if !plain || !(depth == 3 || depth == 4) {
        return None;
    }
    let width = usize::try_from(width).ok().filter(|w| *w > 0)?;
    let height = usize::try_from(rows.unsigned_abs()).ok().filter(|h| *h > 0)?;
    if width.checked_mul(height)? > PIXELS_MAX {
        return None;
    }
    let stride = (width * depth).next_multiple_of(4);
    let pixels = bytes.get(pixels_at..pixels_at.checked_add(stride * height)?)?;
    let mut raw = Vec::with_capacity((width * 3 + 1) * height);
    for row in 0..height {
        // A positive number of rows means that the lowest comes first.
        let at = if rows > 0 { height - 1 - row } else { row };
        raw.push(0);
        for pixel in pixels[at * stride..][..width * depth].chunks(depth) {
            raw.extend([pixel[2], pixel[1], pixel[0]]);
        }
    }
    Some(encode(width as u32, height as u32, &raw))
}

/// Eight bits for each of red, green and blue; stored, not compressed.
fn encode(width: u32, height: u32, raw: &[u8]) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::from(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &header);
    chunk(&mut png, b"IDAT", &stored(raw));
    chunk(&mut png, b"IEND", &[]);
    png
}

fn stored(raw: &[u8]) -> Vec<u8> {
    let mut data = vec![0x78, 0x01];
    let mut blocks = raw.chunks(0xFFFF).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        data.push(u8::from(blocks.peek().is_none()));
        data.extend(length.to_le_bytes());
        data.extend((!length).to_le_bytes());
        data.extend_from_slice(block);
    }
    let (low, high) = raw.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    data.extend((high << 16 | low).to_be_bytes());
    data
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let start = png.len();
    png.extend_from_slice(kind);
    png.extend_from_slice(data);
    let sum = checksum(&png[start..]);
    png.extend(sum.to_be_bytes());
}

fn checksum(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            let mask = (sum & 1).wrapping_neg();
            sum >> 1 ^ (0xEDB8_8320 & mask)
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pixels_keep_their_colours_and_their_order() {
        let mut bitmap = b"BM".to_vec();
        bitmap.extend([0; 8]);
        bitmap.extend([54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 24, 0]);
        bitmap.extend([0; 24]);
        bitmap.extend([1, 2, 3, 0, 4, 5, 6, 0]);
        let png = to_png(&bitmap).unwrap();
        assert_eq!(super::super::image::mime_type(&png), Some("image/png"));
        let data = png.windows(8).position(|w| w == [0, 6, 5, 4, 0, 3, 2, 1]);
        assert!(data.is_some(), "rows from the top, red first: {png:?}");
        assert!(to_png(&bitmap[..60]).is_none(), "cut off");
    }

    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
        assert!(stored(b"Wikipedia").ends_with(&0x11E6_0398u32.to_be_bytes()));
    }
}
