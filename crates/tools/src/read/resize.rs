//! Makes an image file small enough to be sent, as its camera held it
//! (`host.md` 4.2.6). Pure, and slow: runs where blocking work runs.
//!
//! Must never allocate more than its bounds, whatever a file claims to hold.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageReader, Limits, imageops};

use super::image::{BASE64_BYTES_MAX, base64_bytes};

/// Pixels of either side of an image that is sent.
const SIDE_MAX: u32 = 2_000;
/// Pixels of either side that are decoded.
const SOURCE_SIDE_MAX: u32 = 30_000;
/// Memory that decoding may take.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// First try beside PNG, then those that follow.
const FIRST_QUALITY: u8 = 80;
const QUALITIES: [u8; 4] = [85, 70, 55, 40];

/// What became of an image.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fitted {
    /// It can be sent as it is.
    AsIs,
    /// Another file is sent in its place.
    Changed {
        /// The file.
        bytes: Vec<u8>,
        /// Its type.
        mime: &'static str,
        /// What was done, for the model.
        note: String,
    },
    /// It cannot be decoded, or never gets small enough.
    Impossible,
}

/// Fits an image into the bounds. `stop` is asked between the steps; true ends
/// them.
pub(super) fn fit(mime: &str, bytes: &[u8], stop: &dyn Fn() -> bool) -> Fitted {
    let Some((picture, orientation)) = decoded(bytes) else { return Fitted::Impossible };
    let is_small = picture.width() <= SIDE_MAX
        && picture.height() <= SIDE_MAX
        && base64_bytes(bytes.len()) < BASE64_BYTES_MAX;
    let is_sendable = mime != "image/bmp" && orientation == Orientation::NoTransforms;
    if is_small && is_sendable {
        return Fitted::AsIs;
    }
    let mut picture = picture;
    picture.apply_orientation(orientation);
    shrunk(mime, &picture, stop).unwrap_or(Fitted::Impossible)
}

/// A bitmap as PNG, at its own size.
pub(super) fn to_png(bytes: &[u8]) -> Option<Vec<u8>> {
    png(&decoded(bytes)?.0)
}

fn decoded(bytes: &[u8]) -> Option<(DynamicImage, Orientation)> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(SOURCE_SIDE_MAX);
    limits.max_image_height = Some(SOURCE_SIDE_MAX);
    limits.max_alloc = Some(MEMORY_BYTES_MAX);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    if decoder.total_bytes() > MEMORY_BYTES_MAX {
        return None;
    }
    Some((DynamicImage::from_decoder(decoder).ok()?, orientation))
}

fn shrunk(mime: &str, picture: &DynamicImage, stop: &dyn Fn() -> bool) -> Option<Fitted> {
    let (width, height) = (picture.width(), picture.height());
    let (mut w, mut h) = bounded(width, height);
    loop {
        let smaller;
        let shown = if (w, h) == (width, height) {
            picture
        } else {
            smaller = picture.resize_exact(w, h, imageops::FilterType::CatmullRom);
            &smaller
        };
        if let Some((bytes, sent)) = encoded(shown, stop) {
            let note = note(mime, sent, (width, height), (w, h));
            return Some(Fitted::Changed { bytes, mime: sent, note });
        }
        if stop() || (w, h) == (1, 1) {
            return None;
        }
        (w, h) = ((w * 3 / 4).max(1), (h * 3 / 4).max(1));
    }
}

/// The largest size within the bounds with the same proportions.
fn bounded(width: u32, height: u32) -> (u32, u32) {
    let long = width.max(height).max(1);
    if long <= SIDE_MAX {
        return (width, height);
    }
    let scaled = |side: u32| {
        let exact = u64::from(side) * u64::from(SIDE_MAX) / u64::from(long);
        u32::try_from(exact).unwrap_or(SIDE_MAX).max(1)
    };
    (scaled(width), scaled(height))
}

/// The smaller of PNG and JPEG; then JPEG of less and less quality.
fn encoded(picture: &DynamicImage, stop: &dyn Fn() -> bool) -> Option<(Vec<u8>, &'static str)> {
    let fits = |bytes: &Vec<u8>| base64_bytes(bytes.len()) < BASE64_BYTES_MAX;
    let first = [
        png(picture).map(|bytes| (bytes, "image/png")),
        jpeg(picture, FIRST_QUALITY).map(|bytes| (bytes, "image/jpeg")),
    ];
    let smallest = first.into_iter().flatten().min_by_key(|(bytes, _)| bytes.len());
    if let Some(found) = smallest.filter(|(bytes, _)| fits(bytes)) {
        return Some(found);
    }
    let rest = QUALITIES.into_iter().take_while(|_| !stop());
    let mut tries = rest.filter_map(|quality| jpeg(picture, quality));
    tries.find(fits).map(|bytes| (bytes, "image/jpeg"))
}

fn png(picture: &DynamicImage) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder =
        PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
    // Eight bits for each colour are enough to look at.
    let write = if picture.color().has_alpha() {
        let pixels = picture.to_rgba8();
        let (width, height) = pixels.dimensions();
        encoder.write_image(&pixels, width, height, image::ExtendedColorType::Rgba8)
    } else {
        let pixels = picture.to_rgb8();
        let (width, height) = pixels.dimensions();
        encoder.write_image(&pixels, width, height, image::ExtendedColorType::Rgb8)
    };
    write.ok().map(|()| bytes)
}

fn jpeg(picture: &DynamicImage, quality: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let pixels = on_white(picture);
    JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&pixels).ok()?;
    Some(bytes)
}

/// JPEG knows no transparency: what shines through is white.
fn on_white(picture: &DynamicImage) -> image::RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let pixels = picture.to_rgba8();
    image::RgbImage::from_fn(pixels.width(), pixels.height(), |x, y| {
        let image::Rgba([r, g, b, alpha]) = *pixels.get_pixel(x, y);
        let over = |colour: u8| {
            let alpha = u32::from(alpha);
            ((u32::from(colour) * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        image::Rgb([over(r), over(g), over(b)])
    })
}

fn note(mime: &str, sent: &str, from: (u32, u32), to: (u32, u32)) -> String {
    let converted = if mime == sent { String::new() } else { format!("Converted to {sent}.") };
    if from == to {
        return if converted.is_empty() { "Turned upright.".to_owned() } else { converted };
    }
    let factor = f64::from(from.0) / f64::from(to.0);
    let space = if converted.is_empty() { "" } else { " " };
    format!(
        "{converted}{space}Shown at {}x{}; the file has {}x{} pixels. Multiply coordinates by \
         {factor:.3} to find them in the file.",
        to.0, to.1, from.0, from.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: u32, height: u32) -> DynamicImage {
        let pixel = |x: u32, y: u32| image::Rgb([(x % 251) as u8, (y % 241) as u8, 7]);
        DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, pixel))
    }

    fn as_type(picture: &DynamicImage, format: image::ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn size(bytes: &[u8]) -> (u32, u32) {
        let picture = decoded(bytes).unwrap().0;
        (picture.width(), picture.height())
    }

    fn changed(mime: &str, bytes: &[u8]) -> (Vec<u8>, &'static str, String) {
        let fitted = fit(mime, bytes, &|| false);
        let Fitted::Changed { bytes, mime, note } = fitted else { panic!("{fitted:?}") };
        (bytes, mime, note)
    }

    #[test]
    fn an_image_within_the_bounds_stays_as_it_is() {
        for format in [image::ImageFormat::Png, image::ImageFormat::Jpeg, image::ImageFormat::Gif] {
            let bytes = as_type(&drawn(20, 10), format);
            let mime = format.to_mime_type();
            assert_eq!(fit(mime, &bytes, &|| false), Fitted::AsIs, "{mime}");
        }
    }

    #[test]
    fn a_large_one_is_made_smaller_with_its_proportions_and_the_factor() {
        // host.md 4.2.6
        let check = |from: (u32, u32), to: (u32, u32), factor: &str| {
            let bytes = as_type(&drawn(from.0, from.1), image::ImageFormat::Png);
            let (sent, mime, note) = changed("image/png", &bytes);
            assert_eq!(super::super::image::mime_type(&sent), Some(mime));
            assert_eq!(size(&sent), to);
            assert!(note.contains(&format!("Multiply coordinates by {factor} ")), "{note}");
            assert!(note.contains(&format!("{}x{} pixels", from.0, from.1)), "{note}");
        };
        check((4_000, 1_000), (2_000, 500), "2.000");
        check((50, 2_500), (40, 2_000), "1.250");
    }

    #[test]
    fn one_of_many_bytes_becomes_a_jpeg_that_fits() {
        // Noise does not compress: as PNG it is far above the bound.
        let mut state = 1u32;
        let noise = image::RgbImage::from_fn(1_150, 1_150, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [r, g, b, _] = state.to_le_bytes();
            image::Rgb([r, g, b])
        });
        let bytes = as_type(&DynamicImage::ImageRgb8(noise), image::ImageFormat::Png);
        assert!(base64_bytes(bytes.len()) > BASE64_BYTES_MAX);
        let (sent, mime, _) = changed("image/png", &bytes);
        assert_eq!(mime, "image/jpeg");
        assert!(base64_bytes(sent.len()) < BASE64_BYTES_MAX);
    }

    #[test]
    fn a_camera_that_was_turned_is_turned_back() {
        let mut bytes = as_type(&drawn(30, 10), image::ImageFormat::Jpeg);
        // Orientation 6 in an EXIF segment behind the start mark.
        let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01".to_vec();
        exif.extend(b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0");
        let length = (exif.len() as u16 + 2).to_be_bytes();
        let segment = [&[0xFF, 0xE1, length[0], length[1]], exif.as_slice()].concat();
        bytes.splice(2..2, segment);
        let (sent, _, note) = changed("image/jpeg", &bytes);
        assert_eq!(size(&sent), (10, 30));
        assert!(!note.is_empty());
    }

    #[test]
    fn a_bitmap_becomes_a_png_and_transparency_white() {
        let bytes = as_type(&drawn(3, 2), image::ImageFormat::Bmp);
        let (sent, mime, note) = changed("image/bmp", &bytes);
        assert_eq!(decoded(&sent).unwrap().0.to_rgb8(), drawn(3, 2).to_rgb8());
        assert!(mime == "image/png" && note.contains("Converted to image/png."), "{mime} {note}");
        assert_eq!(to_png(&bytes).map(|png| size(&png)), Some((3, 2)));
        let clear = image::RgbaImage::from_pixel(1, 1, image::Rgba([9, 9, 9, 0]));
        let white = on_white(&DynamicImage::ImageRgba8(clear));
        assert_eq!(white.get_pixel(0, 0), &image::Rgb([255, 255, 255]));
    }

    #[test]
    fn what_cannot_be_decoded_or_claims_too_much_is_refused() {
        let mut huge = as_type(&drawn(1, 1), image::ImageFormat::Bmp);
        huge[18..26].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F]);
        for bytes in [b"\x89PNG\r\n\x1a\nrest".as_slice(), &huge, b""] {
            assert_eq!(fit("image/png", bytes, &|| false), Fitted::Impossible);
        }
        let bytes = as_type(&drawn(2_100, 10), image::ImageFormat::Png);
        assert!(matches!(fit("image/png", &bytes, &|| true), Fitted::Changed { .. }));
    }
}
