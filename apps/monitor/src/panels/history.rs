//! Sparklines of the first latency span's p50 and of the message rate, with the newest sample at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline, Widget};

use crate::data::{MarketView, Sample};
use crate::{format, palette};

/// One sparkline: its name, its newest value as text, and its points.
struct Curve {
    name: String,
    newest: String,
    style: Style,
    points: Vec<Option<u64>>,
}

/// Draws the sparklines of p50 and message rate side by side in one row.
pub fn render_row(area: Rect, buf: &mut Buffer, view: &MarketView) {
    if area.is_empty() {
        return;
    }
    let half = area.width / 2;
    let [left, right] = curves(view);
    let inset = |rect: Rect| Rect { x: rect.x + 1, width: rect.width.saturating_sub(2), ..rect };
    for (curve, rect) in [
        (left, Rect { width: half, ..area }),
        (right, Rect { x: area.x + half, width: area.width - half, ..area }),
    ] {
        let rect = inset(rect);
        let (name, newest) = (Span::styled(curve.name, palette::LABEL), format!("{:>8}", curve.newest));
        let (x, _) = buf.set_span(rect.x, rect.y, &name, rect.width);
        let end = rect.right().saturating_sub(newest.len() as u16);
        if end > x + 1 {
            buf.set_string(end, rect.y, newest, palette::VALUE);
            spark(Rect { x: x + 1, width: end - x - 1, ..rect }, buf, &curve.points, curve.style);
        }
    }
}

/// Draws the sparkline of the p50 above that of the message rate.
pub fn render_charts(area: Rect, buf: &mut Buffer, view: &MarketView) {
    let upper = area.height.div_ceil(2);
    let lower = Rect { y: area.y + upper, height: area.height - upper, ..area };
    for (curve, rect) in curves(view).into_iter().zip([Rect { height: upper, ..area }, lower]) {
        if rect.is_empty() {
            continue;
        }
        buf.set_line(rect.x, rect.y, &Line::styled(curve.name, palette::LABEL), rect.width);
        let newest = Line::styled(curve.newest, palette::VALUE).right_aligned();
        newest.render(Rect { height: 1, ..rect }, buf);
        let chart = Rect { y: rect.y + 1, height: rect.height - 1, ..rect };
        spark(chart, buf, &curve.points, curve.style);
    }
}

fn curves(view: &MarketView) -> [Curve; 2] {
    let points = |of: fn(Sample) -> Option<u64>| view.history.newest_first().map(of).collect::<Vec<_>>();
    let p50 = points(|sample| sample.p50_ns);
    // The cast saturates: a negative or NaN rate is drawn as 0.
    let rate = points(|sample| Some(sample.messages_per_s.round() as u64));
    let newest = |points: &[Option<u64>], text: fn(u64) -> String| {
        points.iter().copied().flatten().next().map_or("-".to_owned(), text)
    };
    let span = view.latency.first().map_or("latency", |span| &span.name);
    [
        Curve {
            name: format!("{} p50", format::printable(span)),
            newest: newest(&p50, format::latency),
            style: palette::ACCENT,
            points: p50,
        },
        Curve {
            name: "market messages/s".to_owned(),
            newest: newest(&rate, format::count),
            style: palette::GOOD,
            points: rate,
        },
    ]
}

fn spark(area: Rect, buf: &mut Buffer, points: &[Option<u64>], style: Style) {
    let shown = &points[..points.len().min(area.width.into())];
    Sparkline::default()
        .data(shown.to_vec())
        .direction(RenderDirection::RightToLeft)
        .style(style)
        .render(area, buf);
}
