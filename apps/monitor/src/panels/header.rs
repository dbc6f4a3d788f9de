//! The first row: name, clock, progress, and the market's state.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::data::MarketView;
use crate::screen::Screen;
use crate::{format, palette, state};

/// Width of the progress bar, in characters.
const PROGRESS_WIDTH: u16 = 20;

pub fn render(area: Rect, buf: &mut Buffer, view: &MarketView, screen: Screen) {
    if area.is_empty() {
        return;
    }
    let (text, style) = state::of(view);
    let mut state = Line::default();
    if screen.is_frozen {
        state.push_span(Span::styled(" FROZEN ", palette::WARN.add_modifier(Modifier::REVERSED)));
        state.push_span("  ");
    }
    state.push_span(Span::styled(format!("● {text} "), style));
    let state_width = (state.width() as u16).min(area.width);
    let state_x = area.right() - state_width;

    let clock = Line::from(vec![
        Span::styled(" tickpath", palette::TITLE),
        Span::raw("  "),
        Span::styled(format::clock(view.elapsed), Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(
            view.planned.map_or(String::new(), |planned| format!(" of {}", format::clock(planned))),
            palette::LABEL,
        ),
        Span::raw("  "),
    ]);
    let (x, _) = buf.set_line(area.x, area.y, &clock, area.width);
    if let Some(planned) = view.planned.filter(|_| x + PROGRESS_WIDTH + 2 <= state_x) {
        let part = view.elapsed.as_secs_f64() / planned.as_secs_f64();
        super::bar(Rect { x, width: PROGRESS_WIDTH, ..area }, buf, part, palette::ACCENT);
    }
    // Draw the state last: on a terminal too narrow for clock and state, it then covers the clock.
    buf.set_line(state_x, area.y, &state, state_width);
}
