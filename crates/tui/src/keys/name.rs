//! Keys as `keybindings.json` writes them and as hints name them.

use std::fmt;

use super::{Code, Key};

/// Names of keys without a character of their own, as written in the file
/// (without regard to case) and as hints say them. The first of several names
/// is no better than the others.
const NAMES: [(&str, Code, &str); 17] = [
    ("escape", Code::Esc, "Esc"),
    ("esc", Code::Esc, "Esc"),
    ("enter", Code::Enter, "Enter"),
    ("return", Code::Enter, "Enter"),
    ("tab", Code::Tab, "Tab"),
    ("space", Code::Char(' '), "Space"),
    ("backspace", Code::Backspace, "Backspace"),
    ("delete", Code::Delete, "Delete"),
    ("insert", Code::Insert, "Insert"),
    ("home", Code::Home, "Home"),
    ("end", Code::End, "End"),
    ("pageup", Code::PageUp, "PgUp"),
    ("pagedown", Code::PageDown, "PgDn"),
    ("up", Code::Up, "Up"),
    ("down", Code::Down, "Down"),
    ("left", Code::Left, "Left"),
    ("right", Code::Right, "Right"),
];

impl Key {
    /// Reads a key such as `ctrl+shift+x`; the error says what is wrong with it.
    pub(crate) fn named(text: &str) -> Result<Key, String> {
        let lower = text.trim().to_lowercase();
        let (modifiers, name) = match lower.strip_suffix("++") {
            Some(modifiers) => (modifiers, "+"),
            None if lower == "+" => ("", "+"),
            None => lower.rsplit_once('+').unwrap_or(("", lower.as_str())),
        };
        let mut key = Key::plain(code(name)?);
        for modifier in modifiers.split('+').filter(|_| !modifiers.is_empty()) {
            let held = match modifier {
                "ctrl" => &mut key.ctrl,
                "alt" => &mut key.alt,
                "shift" => &mut key.shift,
                other => return Err(format!("\"{other}\" is none of ctrl, alt and shift")),
            };
            if std::mem::replace(held, true) {
                return Err(format!("{modifier} is named twice"));
            }
        }
        Ok(key.normal())
    }

    /// The one form of keys that terminals cannot tell apart (TERM-16): a
    /// shifted character is its capital, and Ctrl with `i`, `m`, `[`, `h` is the
    /// key that sends the same byte.
    pub(crate) fn normal(mut self) -> Key {
        if let (Code::Char(c), true, false, false) = (self.code, self.ctrl, self.alt, self.shift) {
            let twin = match c {
                'i' => Some(Code::Tab),
                'm' => Some(Code::Enter),
                '[' => Some(Code::Esc),
                'h' => Some(Code::Backspace),
                _ => None,
            };
            if let Some(code) = twin {
                return Key::plain(code);
            }
        }
        if self.code == Code::Char('-') && self.ctrl {
            self.code = Code::Char('_');
        } else if let (Code::Char(c), false, true) = (self.code, self.ctrl, self.shift) {
            self.code = Code::Char(c.to_uppercase().next().unwrap_or(c));
            self.shift = false;
        }
        self
    }
}

fn code(name: &str) -> Result<Code, String> {
    if let Some((_, code, _)) = NAMES.iter().find(|(known, _, _)| *known == name) {
        return Ok(*code);
    }
    let number = name.strip_prefix('f').and_then(|number| number.parse::<u8>().ok());
    if let Some(number @ 1..=12) = number {
        return Ok(Code::F(number));
    }
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None) if !c.is_control() && !c.is_whitespace() => Ok(Code::Char(c)),
        (None, _) => Err("no key is named".to_owned()),
        (Some(_), _) => Err(format!("\"{name}\" is no key")),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_capital = matches!(self.code, Code::Char(c) if c.is_uppercase());
        for (held, word) in [
            (self.ctrl, "Ctrl+"),
            (self.alt, "Alt+"),
            (self.shift || is_capital && self.alt, "Shift+"),
        ] {
            if held {
                f.write_str(word)?;
            }
        }
        if let Some((_, _, name)) = NAMES.iter().find(|(_, known, _)| *known == self.code) {
            return f.write_str(name);
        }
        if let Code::F(number) = self.code {
            return write!(f, "F{number}");
        }
        let Code::Char(c) = self.code else { return Ok(()) };
        match self.ctrl || self.alt {
            true => write!(f, "{}", c.to_uppercase()),
            false if is_capital => write!(f, "Shift+{c}"),
            false => write!(f, "{c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, key: Key, name: &str) {
        assert_eq!(Key::named(text), Ok(key), "{text}");
        assert_eq!(key.to_string(), name, "{text}");
    }

    // host.md 8.7: the format of Pi; TERM-16: terminal twins.
    #[test]
    fn keys_are_read_and_named() {
        check("escape", Key::plain(Code::Esc), "Esc");
        check("return", Key::plain(Code::Enter), "Enter");
        check("pageUp", Key::plain(Code::PageUp), "PgUp");
        check("f12", Key::plain(Code::F(12)), "F12");
        check("ctrl+p", Key::ctrl('p'), "Ctrl+P");
        check("shift+ctrl+p", Key::ctrl('p').with_shift(), "Ctrl+Shift+P");
        check("alt+ctrl+]", Key::ctrl(']').with_alt(), "Ctrl+Alt+]");
        check("alt+shift+p", Key::char('P').with_alt(), "Alt+Shift+P");
        check("shift+l", Key::char('L'), "Shift+L");
        check("shift+tab", Key::plain(Code::Tab).with_shift(), "Shift+Tab");
        check("alt+Enter", Key::plain(Code::Enter).with_alt(), "Alt+Enter");
        check("ctrl+-", Key::ctrl('_'), "Ctrl+_");
        check("ctrl++", Key::ctrl('+'), "Ctrl++");
        check("+", Key::char('+'), "+");
        check("ctrl+space", Key::ctrl(' '), "Ctrl+Space");
        check("ctrl+h", Key::plain(Code::Backspace), "Backspace");
        check("ctrl+[", Key::plain(Code::Esc), "Esc");
    }

    #[test]
    fn what_is_no_key_is_told() {
        let check = |text: &str, what: &str| {
            assert_eq!(Key::named(text), Err(what.to_owned()), "{text:?}");
        };
        check("", "no key is named");
        check("ctrl+", "no key is named");
        check("hyper+x", "\"hyper\" is none of ctrl, alt and shift");
        check("ctrl+ctrl+x", "ctrl is named twice");
        check("f13", "\"f13\" is no key");
        check("clear", "\"clear\" is no key");
        check("ctrl+x ctrl+e", "\"x ctrl\" is none of ctrl, alt and shift");
    }
}
