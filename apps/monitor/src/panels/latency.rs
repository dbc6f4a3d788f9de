//! Latency spans: p50, p99, maximum, and their positions on a logarithmic scale.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::data::{LatencyView, MarketView};
use crate::table::{self, Cell, Column};
use crate::{format, palette};

const COLUMNS: [Column; 5] = [
    Column::text("Latency", 22, 0),
    Column::number("p50 us", 6, 0),
    Column::number("p99 us", 6, 0),
    Column::number("max us", 7, 1),
    Column::number("count", 9, 2),
];

/// Width of the history beside the table in a roomy view, in characters.
const HISTORY_WIDTH: u16 = 42;
/// Minimum width of the scale, in characters; below it the scale is omitted.
const SCALE_WIDTH_MIN: u16 = 12;

pub fn render(area: Rect, buf: &mut Buffer, view: &MarketView, is_roomy: bool) {
    if area.is_empty() {
        return;
    }
    let mut area = area;
    if is_roomy {
        area.width -= HISTORY_WIDTH;
        let beside = Rect { x: area.right(), width: HISTORY_WIDTH, ..area };
        let inner = super::section(beside, buf, "History", true);
        super::history::render_charts(inner, buf, view);
    }
    let inner = super::section(area, buf, "Latency", is_roomy);
    let rows: Vec<_> = view.latency.iter().map(row).collect();
    let used = table::render(inner, buf, &COLUMNS, &rows) + 2;
    let scale_area = Rect { x: inner.x + used, width: inner.width.saturating_sub(used), ..inner };
    if let Some(scale) = Scale::of(&view.latency).filter(|_| scale_area.width >= SCALE_WIDTH_MIN) {
        render_scale(scale_area, buf, &view.latency, &scale);
    }
}

fn row(span: &LatencyView) -> Vec<Cell> {
    let time = |ns: u64| if span.count == 0 { "-".to_owned() } else { format::micros(ns) };
    vec![
        (format::printable(&span.name), palette::ACCENT),
        (time(span.p50_ns), palette::VALUE),
        (time(span.p99_ns), palette::VALUE),
        (time(span.max_ns), palette::LABEL),
        (format::count(span.count), palette::LABEL),
    ]
}

fn render_scale(area: Rect, buf: &mut Buffer, spans: &[LatencyView], scale: &Scale) {
    let low = format::latency(10_u64.saturating_pow(scale.low));
    let high = format::latency(10_u64.saturating_pow(scale.high));
    buf.set_string(area.x, area.y, &low, palette::LABEL);
    buf.set_string(area.right().saturating_sub(high.len() as u16), area.y, &high, palette::LABEL);
    let rows = (area.y + 1)..area.bottom();
    for (y, span) in rows.zip(spans).filter(|(_, span)| span.count > 0) {
        let to = |ns: u64| scale.column(ns, area.width);
        let (p50, p99, max) = (to(span.p50_ns), to(span.p99_ns), to(span.max_ns));
        let line = Line::from(vec![
            Span::styled("━".repeat(p50), palette::ACCENT),
            Span::styled("─".repeat(p99.saturating_sub(p50)), palette::LABEL),
            Span::styled("·".repeat(max.saturating_sub(p99.max(p50))), palette::FAINT),
        ]);
        buf.set_line(area.x, y, &line, area.width);
    }
}

/// A logarithmic scale of whole decades that covers every span's p50 and maximum.
struct Scale {
    /// Exponent of the left end: it is 10^`low` nanoseconds.
    low: u32,
    /// Exponent of the right end: it is 10^`high` nanoseconds.
    high: u32,
}

impl Scale {
    fn of(spans: &[LatencyView]) -> Option<Scale> {
        let measured = || spans.iter().filter(|span| span.count > 0);
        let least = measured().map(|span| span.p50_ns.max(1)).min()?;
        let most = measured().map(|span| span.max_ns.max(1)).max()?;
        let low = least.ilog10();
        Some(Scale { low, high: (most.ilog10() + 1).max(low + 1) })
    }

    /// Returns the number of the `width` columns that a bar up to `ns` fills; at least one, to be visible.
    fn column(&self, ns: u64, width: u16) -> usize {
        let decades = f64::from(self.high - self.low);
        let part = ((ns.max(1) as f64).log10() - f64::from(self.low)) / decades;
        ((format::clamp_part(part) * f64::from(width)).round() as usize).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(p50_ns: u64, max_ns: u64, count: u64) -> LatencyView {
        LatencyView { p50_ns, p99_ns: p50_ns, max_ns, count, ..LatencyView::default() }
    }

    #[test]
    fn the_scale_spans_whole_decades_of_what_was_measured() {
        assert!(Scale::of(&[]).is_none());
        assert!(Scale::of(&[span(5, 9, 0)]).is_none());
        let scale = Scale::of(&[span(12_000, 900_000, 1), span(600, 2_000, 1)]).unwrap();
        assert_eq!((scale.low, scale.high), (2, 6));
        assert_eq!(scale.column(100, 40), 1);
        assert_eq!(scale.column(10_000, 40), 20);
        assert_eq!(scale.column(u64::MAX, 40), 40);
        assert_eq!(Scale::of(&[span(0, 0, 1)]).map(|scale| scale.high), Some(1));
    }
}
