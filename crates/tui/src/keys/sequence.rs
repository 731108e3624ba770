//! One sequence at the start of a byte string.

use super::{Code, Input, Key};

/// What stands at the start of the bytes.
pub(super) enum Parsed {
    /// More bytes are needed.
    Unfinished,
    /// So many bytes, and what they mean; nothing for reports of the terminal.
    Done(usize, Option<Input>),
}

fn key(length: usize, key: Key) -> Parsed {
    Parsed::Done(length, Some(Input::Key(key)))
}

pub(super) fn parse(bytes: &[u8]) -> Parsed {
    match bytes[0] {
        0x1b => escape(bytes),
        0x00..0x20 | 0x7f => key(1, control(bytes[0])),
        0x20..0x7f => key(1, Key::char(char::from(bytes[0]))),
        0x80.. => letter(bytes),
    }
}

fn control(byte: u8) -> Key {
    match byte {
        0x0d => Key::plain(Code::Enter),
        0x09 => Key::plain(Code::Tab),
        0x7f | 0x08 => Key::plain(Code::Backspace),
        0x00 => Key::ctrl(' '),
        0x1c => Key::ctrl('\\'),
        0x1d => Key::ctrl(']'),
        0x1e => Key::ctrl('^'),
        0x1f => Key::ctrl('_'),
        _ => Key::ctrl(char::from(byte + 0x60)),
    }
}

fn letter(bytes: &[u8]) -> Parsed {
    let length = match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return key(1, Key::char('\u{fffd}')),
    };
    let present = &bytes[..length.min(bytes.len())];
    let well_begun = present[1..].iter().all(|byte| (0x80..0xc0).contains(byte));
    if well_begun && present.len() < length {
        return Parsed::Unfinished;
    }
    match std::str::from_utf8(present).ok().and_then(|text| text.chars().next()) {
        // C1 controls are nobody's key.
        Some(c) if c.is_control() => Parsed::Done(length, None),
        Some(c) => key(length, Key::char(c)),
        None => key(1, Key::char('\u{fffd}')),
    }
}

fn escape(bytes: &[u8]) -> Parsed {
    match bytes.get(1) {
        None => Parsed::Unfinished,
        Some(b'[') if bytes.len() == 2 => Parsed::Unfinished,
        Some(b'[') => control_sequence(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Parsed::Unfinished,
            Some(byte) => Parsed::Done(3, final_key(*byte, Key::plain).map(Input::Key)),
        },
        Some(b']' | b'P' | b'_' | b'^') => string(bytes),
        // Alt with a key that is a sequence itself.
        Some(0x1b) => match parse(&bytes[1..]) {
            Parsed::Unfinished => Parsed::Unfinished,
            Parsed::Done(length, Some(Input::Key(inner))) => key(length + 1, inner.with_alt()),
            Parsed::Done(length, other) => Parsed::Done(length + 1, other),
        },
        Some(_) => match parse(&bytes[1..]) {
            Parsed::Unfinished => Parsed::Unfinished,
            Parsed::Done(length, Some(Input::Key(inner))) => key(length + 1, inner.with_alt()),
            Parsed::Done(length, other) => Parsed::Done(length + 1, other),
        },
    }
}

/// OSC, DCS, APC and PM come from the terminal only, as answers.
fn string(bytes: &[u8]) -> Parsed {
    for (at, byte) in bytes.iter().enumerate().skip(2) {
        match byte {
            0x07 => return Parsed::Done(at + 1, None),
            b'\\' if bytes[at - 1] == 0x1b => return Parsed::Done(at + 1, None),
            _ => {}
        }
    }
    Parsed::Unfinished
}

fn control_sequence(bytes: &[u8]) -> Parsed {
    let Some(end) = bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte)) else {
        let broken = bytes.iter().skip(2).position(|byte| !(0x20..0x40).contains(byte));
        return broken.map_or(Parsed::Unfinished, |at| Parsed::Done(at + 2, None));
    };
    let length = end + 3;
    let body = &bytes[2..length - 1];
    if body.iter().any(|byte| !(0x20..0x40).contains(byte)) {
        // Another sequence begins inside: the first one is lost.
        let at = body.iter().position(|byte| !(0x20..0x40).contains(byte)).unwrap_or(0);
        return Parsed::Done(at + 2, None);
    }
    let body = std::str::from_utf8(body).unwrap_or_default();
    Parsed::Done(length, meaning(body, bytes[length - 1]))
}

fn meaning(body: &str, last: u8) -> Option<Input> {
    match (body, last) {
        ("", b'I') => return Some(Input::Focus(true)),
        ("", b'O') => return Some(Input::Focus(false)),
        (_, b'u') if body.starts_with('?') => return Some(Input::Enhanced),
        _ => {}
    }
    if body.starts_with(['?', '>', '<', '=']) || body.contains(['$', ' ', '"', '\'']) {
        return None;
    }
    let mut fields = body.split(';');
    let number = |field: Option<&str>| {
        field.and_then(|field| field.split(':').next()).and_then(|text| text.parse::<u32>().ok())
    };
    let first = number(fields.next());
    let second = fields.next();
    let (mut bits, event) = modifiers(second);
    let mut code = first;
    if last == b'~' && first == Some(27) {
        code = number(fields.next());
    }
    if event == 3 {
        return None;
    }
    let plain = match last {
        b'u' => enhanced(code?)?,
        b'~' if first == Some(27) => enhanced(code?)?,
        b'~' => Key::plain(numbered(first?)?),
        b'Z' => {
            bits |= 1;
            Key::plain(Code::Tab)
        }
        // A cursor position report, not F3.
        b'R' => return None,
        other => final_key(other, Key::plain)?,
    };
    Some(Input::Key(modified(plain, bits)))
}

/// Modifier bits (1 Shift, 2 Alt, 4 Ctrl) and the kind of event.
fn modifiers(field: Option<&str>) -> (u32, u32) {
    let mut parts = field.unwrap_or_default().split(':');
    let bits = parts.next().and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
    let event = parts.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    (bits.saturating_sub(1), event)
}

fn modified(mut key: Key, bits: u32) -> Key {
    key.shift |= bits & 1 != 0;
    key.alt |= bits & 2 != 0;
    key.ctrl |= bits & 4 != 0;
    if let Code::Char(c) = key.code {
        if key.ctrl {
            key.code = Code::Char(c.to_ascii_lowercase());
        } else if key.shift {
            // The shifted character arrives as text where it matters.
            key.code = Code::Char(c.to_uppercase().next().unwrap_or(c));
            key.shift = key.alt;
        }
    }
    key
}

fn enhanced(code: u32) -> Option<Key> {
    Some(match code {
        9 => Key::plain(Code::Tab),
        13 | 57414 => Key::plain(Code::Enter),
        27 => Key::plain(Code::Esc),
        8 | 127 => Key::plain(Code::Backspace),
        57417 => Key::plain(Code::Left),
        57418 => Key::plain(Code::Right),
        57419 => Key::plain(Code::Up),
        57420 => Key::plain(Code::Down),
        57421 => Key::plain(Code::PageUp),
        57422 => Key::plain(Code::PageDown),
        57423 => Key::plain(Code::Home),
        57424 => Key::plain(Code::End),
        57425 => Key::plain(Code::Insert),
        57426 => Key::plain(Code::Delete),
        57399..=57408 => Key::char(char::from_digit(code - 57399, 10)?),
        // The rest of the private range: locks, media keys, modifiers alone.
        57344..=63743 => return None,
        code => Key::char(char::from_u32(code).filter(|c| !c.is_control())?),
    })
}

fn numbered(number: u32) -> Option<Code> {
    Some(match number {
        1 | 7 => Code::Home,
        2 => Code::Insert,
        3 => Code::Delete,
        4 | 8 => Code::End,
        5 => Code::PageUp,
        6 => Code::PageDown,
        11..=15 => Code::F(u8::try_from(number - 10).ok()?),
        17..=21 => Code::F(u8::try_from(number - 11).ok()?),
        23 | 24 => Code::F(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

fn final_key(byte: u8, plain: fn(Code) -> Key) -> Option<Key> {
    Some(plain(match byte {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'P' => Code::F(1),
        b'Q' => Code::F(2),
        b'S' => Code::F(4),
        b'M' => Code::Enter,
        _ => return None,
    }))
}
