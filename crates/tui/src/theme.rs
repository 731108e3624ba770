//! Roles of text, the icons of statuses, and how both look on a terminal.
//!
//! Owns the mapping of `terminal.md` TERM-53 and TERM-55. Must never be the
//! only way in which something is told: each role also has a word, a sign or a
//! place.

use crew_base::model::ThinkingLevel;
use crew_engine::api::Status;
use ratatui::style::{Color, Modifier, Style as CellStyle};

/// What a text is for (TERM-53).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Plain text: no colour.
    #[default]
    Text,
    /// What matters less.
    Muted,
    /// What is chosen, and who speaks.
    Accent,
    /// Ended well.
    Success,
    /// Wants attention.
    Warning,
    /// Failed.
    Error,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
    /// Code and commands.
    Code,
    /// A part of code in a language that is known.
    Token(Token),
    /// The rule above the editor, by thinking level.
    Rule(ThinkingLevel),
}

/// What a part of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A comment, and the head of a diff.
    Comment,
    /// A word of the language.
    Keyword,
    /// A string.
    Text,
    /// A number or another constant.
    Number,
    /// A type or another name that is declared.
    Type,
    /// A function that is declared or called.
    Function,
}

/// How one cell looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Its colour.
    pub role: Role,
    /// Heavier.
    pub bold: bool,
    /// Slanted.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub strike: bool,
    /// Foreground and background swapped.
    pub reverse: bool,
}

impl Style {
    /// The style of a role.
    pub const fn role(role: Role) -> Style {
        Style { role, bold: false, italic: false, underline: false, strike: false, reverse: false }
    }

    /// The same, bold.
    pub const fn bold(mut self) -> Style {
        self.bold = true;
        self
    }

    /// The same, italic.
    pub const fn italic(mut self) -> Style {
        self.italic = true;
        self
    }

    /// The same, reversed.
    pub const fn reverse(mut self) -> Style {
        self.reverse = true;
        self
    }
}

/// Plain text.
pub const TEXT: Style = Style::role(Role::Text);
/// What matters less.
pub const MUTED: Style = Style::role(Role::Muted);
/// What is chosen, and who speaks.
pub const ACCENT: Style = Style::role(Role::Accent);
/// Ended well.
pub const SUCCESS: Style = Style::role(Role::Success);
/// Wants attention.
pub const WARNING: Style = Style::role(Role::Warning);
/// Failed.
pub const ERROR: Style = Style::role(Role::Error);
/// Code and commands.
pub const CODE: Style = Style::role(Role::Code);

/// Sets of icons (TERM-55).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icons {
    /// Two columns each (`crew.md` WID-3).
    Emoji,
    /// One column each.
    Symbols,
    /// Letters and signs of ASCII, and nothing else anywhere.
    Ascii,
}

/// How everything looks in this terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether the 16 palette colours are used (TERM-53).
    pub colours: bool,
    /// The icons.
    pub icons: Icons,
    /// Whether anything moves by itself (TERM-56).
    pub motion: bool,
}

impl Default for Theme {
    fn default() -> Theme {
        Theme { colours: true, icons: Icons::Emoji, motion: true }
    }
}

/// Milliseconds of one spinner frame (`crew.md` WID-4).
pub const SPINNER_MS: u64 = 80;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPINNER_ASCII: [&str; 4] = ["-", "\\", "|", "/"];

impl Theme {
    /// The spinner at a moment in milliseconds.
    pub fn spinner(self, ms: u64) -> &'static str {
        let step = usize::try_from(ms / SPINNER_MS).unwrap_or(0);
        match (self.motion, self.icons) {
            (false, _) => "*",
            (true, Icons::Ascii) => SPINNER_ASCII[step % SPINNER_ASCII.len()],
            (true, Icons::Emoji | Icons::Symbols) => SPINNER[step % SPINNER.len()],
        }
    }

    /// The icon of a status; running is the spinner (`crew.md` WID-3, TERM-55).
    pub fn icon(self, status: Status, ms: u64) -> &'static str {
        let of = |emoji, symbol, ascii| match self.icons {
            Icons::Emoji => emoji,
            Icons::Symbols => symbol,
            Icons::Ascii => ascii,
        };
        match status {
            Status::Running => self.spinner(ms),
            Status::Completed => of("✅", "✓", "ok"),
            Status::NeedsInput => of("❓", "?", "??"),
            Status::Error => of("❌", "✗", "!!"),
            Status::Aborted => of("⏹️", "■", "--"),
        }
    }

    /// The colour of a status (`crew.md` WID-16).
    pub fn status_style(self, status: Status) -> Style {
        match status {
            Status::Running | Status::NeedsInput => WARNING,
            Status::Completed => SUCCESS,
            Status::Error => ERROR,
            Status::Aborted => MUTED,
        }
    }

    /// The sign of an error line.
    pub fn error_sign(self) -> &'static str {
        if self.icons == Icons::Ascii { "!!" } else { "✗" }
    }

    /// What stands in a cell: with ASCII icons nothing but ASCII, as many
    /// columns wide (TERM-55).
    pub fn symbol(self, symbol: &str) -> &str {
        if self.icons != Icons::Ascii || symbol.is_ascii() {
            return symbol;
        }
        match symbol {
            "─" | "−" | "–" | "—" => "-",
            "│" | "├" | "└" => "|",
            "·" | "•" | "●" => "*",
            "…" => "~",
            "↑" => "^",
            "↓" => "v",
            "←" | "‹" => "<",
            "→" | "›" | "▸" | "↳" => ">",
            "▾" => "v",
            "✓" => "+",
            "⋮" => ":",
            _ if super::cells::width(symbol) == 2 => "??",
            _ => "?",
        }
    }

    /// The style of a cell of this terminal: palette colours only, no
    /// background (TERM-53).
    pub fn cell(self, style: Style) -> CellStyle {
        let mut cell = CellStyle::default();
        let mut modifier = Modifier::empty();
        modifier.set(Modifier::BOLD, style.bold);
        modifier.set(Modifier::ITALIC, style.italic);
        modifier.set(Modifier::UNDERLINED, style.underline);
        modifier.set(Modifier::CROSSED_OUT, style.strike);
        modifier.set(Modifier::REVERSED, style.reverse);
        let (colour, plain) = match style.role {
            Role::Text => (None, Modifier::empty()),
            Role::Muted => (Some(Color::DarkGray), Modifier::DIM),
            Role::Accent => (Some(Color::Cyan), Modifier::BOLD),
            Role::Success | Role::Added => (Some(Color::Green), Modifier::empty()),
            Role::Warning => (Some(Color::Yellow), Modifier::BOLD),
            Role::Error | Role::Removed => (Some(Color::Red), Modifier::BOLD),
            Role::Code => (Some(Color::Cyan), Modifier::empty()),
            Role::Token(token) => (Some(token_colour(token)), Modifier::empty()),
            Role::Rule(level) => (Some(rule_colour(level)), Modifier::DIM),
        };
        match (self.colours, colour) {
            (true, Some(colour)) => cell = cell.fg(colour),
            (true, None) => {}
            (false, _) => modifier |= plain,
        }
        cell.add_modifier(modifier)
    }
}

fn token_colour(token: Token) -> Color {
    match token {
        Token::Comment => Color::DarkGray,
        Token::Keyword => Color::Magenta,
        Token::Text => Color::Green,
        Token::Number => Color::Yellow,
        Token::Type => Color::LightYellow,
        Token::Function => Color::LightBlue,
    }
}

fn rule_colour(level: ThinkingLevel) -> Color {
    match level {
        ThinkingLevel::Off => Color::DarkGray,
        ThinkingLevel::Minimal => Color::Gray,
        ThinkingLevel::Low => Color::Blue,
        ThinkingLevel::Medium => Color::Cyan,
        ThinkingLevel::High => Color::Magenta,
        ThinkingLevel::Xhigh => Color::LightMagenta,
        ThinkingLevel::Max => Color::LightRed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_are_those_of_the_rules() {
        let check = |icons, status, expected: &str| {
            let theme = Theme { icons, ..Theme::default() };
            assert_eq!(theme.icon(status, 160), expected);
        };
        check(Icons::Emoji, Status::Running, "⠹");
        check(Icons::Emoji, Status::NeedsInput, "❓");
        check(Icons::Symbols, Status::Aborted, "■");
        check(Icons::Ascii, Status::Running, "|");
        check(Icons::Ascii, Status::Error, "!!");
        let still = Theme { motion: false, ..Theme::default() };
        assert_eq!(still.icon(Status::Running, 160), "*");
    }

    // TERM-53: roles differ without colour, plain text never has any.
    #[test]
    fn without_colours_only_modifiers_tell_roles() {
        let theme = Theme { colours: false, ..Theme::default() };
        assert_eq!(theme.cell(ERROR).fg, None);
        assert!(theme.cell(ERROR).add_modifier.contains(Modifier::BOLD));
        assert!(theme.cell(MUTED).add_modifier.contains(Modifier::DIM));
        assert_eq!(Theme::default().cell(TEXT), CellStyle::default());
    }

    // Case 36: locale C.
    #[test]
    fn ascii_stays_ascii_and_as_wide() {
        let theme = Theme { icons: Icons::Ascii, ..Theme::default() };
        for symbol in ["─", "…", "é", "日", "✅", "a"] {
            let shown = theme.symbol(symbol);
            assert!(shown.is_ascii());
            assert_eq!(shown.len(), crate::cells::width(symbol).max(1));
        }
    }
}
