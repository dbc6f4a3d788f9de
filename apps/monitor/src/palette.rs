//! Styles with few, muted colours. No information is shown by colour alone.
//!
//! Colours are indexed, so that 256-colour and true-colour terminals show the same. With `NO_COLOR` set, the
//! terminal backend omits them.

use ratatui::style::{Color, Modifier, Style};
use tickpath_types::BookHealth;

const TEAL: Color = Color::Indexed(79);
const ROSE: Color = Color::Indexed(174);
const BLUE: Color = Color::Indexed(110);
const AMBER: Color = Color::Indexed(179);
const RED: Color = Color::Indexed(203);
const GREY: Color = Color::Indexed(245);
const DARK: Color = Color::Indexed(239);

/// Style of values.
pub const VALUE: Style = Style::new();
/// Style of labels, and of amounts that are zero.
pub const LABEL: Style = Style::new().fg(GREY);
/// Style of rules, borders and the empty part of a bar.
pub const FAINT: Style = Style::new().fg(DARK);
/// Style of section headings.
pub const TITLE: Style = Style::new().fg(BLUE).add_modifier(Modifier::BOLD);
/// Style of row names and of the full part of a bar.
pub const ACCENT: Style = Style::new().fg(BLUE);
/// Style of bids and of rising values.
pub const BID: Style = Style::new().fg(TEAL);
/// Style of asks and of falling values.
pub const ASK: Style = Style::new().fg(ROSE);
/// Style of a normal state.
pub const GOOD: Style = Style::new().fg(TEAL);
/// Style of a warning.
pub const WARN: Style = Style::new().fg(AMBER);
/// Style of lost data and of books that must not be trusted.
pub const BAD: Style = Style::new().fg(RED).add_modifier(Modifier::BOLD);

/// Returns the style of an amount by its sign: profit, loss or zero.
pub fn signed(is_negative: bool, is_zero: bool) -> Style {
    match (is_negative, is_zero) {
        (_, true) => LABEL,
        (true, _) => ASK,
        (false, _) => BID,
    }
}

/// Returns the word and the style for a book's health.
pub fn health(health: BookHealth) -> (&'static str, Style) {
    match health {
        BookHealth::Live => ("live", GOOD),
        BookHealth::Recovering => ("recovering", WARN),
        BookHealth::Stale => ("STALE", BAD),
        BookHealth::Suspect => ("SUSPECT", BAD),
    }
}
