//! The sections of the screen, one module each.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Padding, Widget};

use crate::palette;

pub mod footer;
pub mod header;
pub mod history;
pub mod instruments;
pub mod latency;
pub mod participants;
pub mod rates;
pub mod system;

/// Background of the heading of a section without a box.
const BAND: Color = Color::Indexed(236);

/// Draws a section's frame and returns the area of its table. The frame is a titled box in a roomy view,
/// otherwise a band behind the heading.
fn section(area: Rect, buf: &mut Buffer, title: &str, is_roomy: bool) -> Rect {
    if area.is_empty() {
        return area;
    }
    if !is_roomy {
        buf.set_style(Rect { height: 1, ..area }, BAND_STYLE);
        return Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    }
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(palette::FAINT)
        .padding(Padding::horizontal(1))
        .title(Line::styled(format!(" {title} "), palette::TITLE));
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

const BAND_STYLE: ratatui::style::Style = ratatui::style::Style::new().bg(BAND);

/// Draws a horizontal bar over `area`, filled from the left up to the fraction `part`, 0 to 1.
fn bar(area: Rect, buf: &mut Buffer, part: f64, style: ratatui::style::Style) {
    let full = (crate::format::clamp_part(part) * f64::from(area.width)).round() as u16;
    for x in 0..area.width {
        let (symbol, style) = if x < full { ("━", style) } else { ("─", palette::FAINT) };
        buf[(area.x + x, area.y)].set_symbol(symbol).set_style(style);
    }
}
