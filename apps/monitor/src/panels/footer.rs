//! The last row, which shows the keys and either a note or the host; and the notes of a roomy view.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::data::MarketView;
use crate::{format, palette};

/// Time for which the last row shows a note before the next one, in seconds.
const NOTE_SECONDS: u64 = 3;
/// Keys and their functions, as shown.
const KEYS: [(&str, &str); 3] = [("q", "quit"), ("space", "freeze"), ("↑↓", "scroll")];

/// Draws the last row; `with_note` shows the current note, if any, in place of the host.
pub fn render(area: Rect, buf: &mut Buffer, view: &MarketView, with_note: bool) {
    if area.is_empty() {
        return;
    }
    let mut keys = Line::raw(" ");
    for (key, effect) in KEYS {
        keys.push_span(Span::styled(key, palette::TITLE));
        keys.push_span(Span::styled(format!(" {effect}  "), palette::LABEL));
    }
    let (x, _) = buf.set_line(area.x, area.y, &keys, area.width);
    let available = usize::from(area.right().saturating_sub(x + 1));
    let (text, style) = match current_note(view).filter(|_| with_note) {
        Some(note) => (format!("! {}", format::printable(note)), palette::WARN),
        None => (format::printable(&view.host), palette::LABEL),
    };
    let text = shorten(&text, available);
    let width = Line::raw(text.as_str()).width() as u16;
    buf.set_string((area.right() - 1).saturating_sub(width).max(x), area.y, text, style);
}

/// Returns the note to show now: the notes take turns, because the row has space for one.
fn current_note(view: &MarketView) -> Option<&String> {
    let index = view.elapsed.as_secs() / NOTE_SECONDS;
    view.notes.get(usize::try_from(index).unwrap_or(0) % view.notes.len().max(1))
}

/// Draws the newest notes that fit, the newest at the bottom.
pub fn render_notes(area: Rect, buf: &mut Buffer, notes: &[String]) {
    if area.is_empty() {
        return;
    }
    let inner = super::section(area, buf, "Notes", true);
    let first = notes.len().saturating_sub(inner.height.into());
    for (y, note) in (inner.y..inner.bottom()).zip(&notes[first..]) {
        let text = shorten(&format::printable(note), inner.width.into());
        buf.set_stringn(inner.x, y, text, inner.width.into(), palette::WARN);
    }
}

/// Truncates to at most `available` characters; an ellipsis marks the cut.
fn shorten(text: &str, available: usize) -> String {
    if text.chars().count() <= available {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(available.saturating_sub(1)).collect();
    if available > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        assert_eq!(
            (shorten("abc", 3), shorten("abcd", 3), shorten("abcd", 0)),
            ("abc".into(), "ab…".into(), "".into())
        );
    }
}
