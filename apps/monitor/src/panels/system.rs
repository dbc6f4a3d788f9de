//! Two tables side by side: the feed's lines and gaps, and the threads' utilisation.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::data::{FeedLine, FeedView, MarketView, ThreadView};
use crate::table::{self, Cell, Column};
use crate::{format, palette};

const FEED_COLUMNS: [Column; 5] = [
    Column::text("Feed line", 9, 0),
    Column::number("packets", 10, 0),
    Column::number("lost", 6, 0),
    Column::number("first copies", 12, 2),
    Column::number("share", 5, 1),
];

const THREAD_COLUMNS: [Column; 3] =
    [Column::text("Thread", 12, 0), Column::number("core", 4, 1), Column::number("busy", 4, 0)];

/// Maximum width of a utilisation bar, in characters.
const BAR_WIDTH_MAX: u16 = 30;
/// Utilisation above which a thread has little capacity left for a burst.
const BUSY_WARN: f64 = 0.9;

pub fn render(area: Rect, buf: &mut Buffer, view: &MarketView, is_roomy: bool) {
    if area.is_empty() {
        return;
    }
    let left_width = area.width * 58 / 100;
    let left = Rect { width: left_width, ..area };
    let right = Rect { x: left.right(), width: area.width - left_width, ..area };
    render_feed(super::section(left, buf, "Feed", is_roomy), buf, &view.feed);
    render_threads(super::section(right, buf, "Threads", is_roomy), buf, &view.threads);
}

fn render_feed(area: Rect, buf: &mut Buffer, feed: &FeedView) {
    let first_arrivals: f64 = feed.lines.iter().map(|line| line.first_arrivals as f64).sum();
    let rows: Vec<_> = feed.lines.iter().map(|line| feed_row(line, first_arrivals)).collect();
    let below = area.y + 1 + rows.len() as u16;
    // Always show the row of gaps; if the area is too short, it covers the last feed lines.
    let y = below.min(area.bottom().saturating_sub(1));
    table::render(Rect { height: y - area.y, ..area }, buf, &FEED_COLUMNS, &rows);
    buf.set_line(area.x, y, &gaps(feed), area.width);
}

fn feed_row(line: &FeedLine, all_first_arrivals: f64) -> Vec<Cell> {
    let share = match all_first_arrivals > 0.0 {
        true => format::percent(line.first_arrivals as f64 / all_first_arrivals),
        false => "-".to_owned(),
    };
    let lost = if line.lost_messages == 0 { palette::LABEL } else { palette::WARN };
    vec![
        (format::printable(&line.name), palette::ACCENT),
        (format::count(line.packets), palette::VALUE),
        (format::count(line.lost_messages), lost),
        (format::count(line.first_arrivals), palette::LABEL),
        (share, palette::LABEL),
    ]
}

fn gaps(feed: &FeedView) -> Line<'static> {
    let mut line = Line::default();
    if feed.lost_messages > 0 {
        line.push_span(Span::styled(
            format!("{} messages LOST, ", format::count(feed.lost_messages)),
            palette::BAD,
        ));
    }
    line.push_span(match feed.gap_open {
        true => Span::styled("gap OPEN", palette::WARN),
        false => Span::styled("no gap open", palette::GOOD),
    });
    let recovered = format!(
        ", {} seen: {} by line, {} resent",
        format::count(feed.gaps),
        format::count(feed.recovered_by_line),
        format::count(feed.recovered_by_retransmit)
    );
    line.push_span(Span::styled(recovered, palette::LABEL));
    line
}

fn render_threads(area: Rect, buf: &mut Buffer, threads: &[ThreadView]) {
    let agents: usize = threads.iter().map(|thread| thread.agents.len()).sum();
    let with_agents = threads.len() + agents < usize::from(area.height);
    let mut rows = Vec::new();
    let mut parts = Vec::new();
    for thread in threads {
        let core = thread.core.map_or("-".to_owned(), |core| core.to_string());
        rows.push(thread_row(format::printable(&thread.name), core, thread.utilisation, palette::ACCENT));
        parts.push(thread.utilisation);
        for agent in thread.agents.iter().filter(|_| with_agents) {
            let name = format!("  {}", format::printable(&agent.role));
            rows.push(thread_row(name, String::new(), agent.utilisation, palette::LABEL));
            parts.push(agent.utilisation);
        }
    }
    let used = table::render(area, buf, &THREAD_COLUMNS, &rows) + 2;
    let width = area.width.saturating_sub(used).min(BAR_WIDTH_MAX);
    for (y, part) in (area.y + 1..area.bottom()).zip(parts) {
        let style = if part > BUSY_WARN { palette::WARN } else { palette::ACCENT };
        super::bar(Rect { x: area.x + used, y, width, height: 1 }, buf, part, style);
    }
}

fn thread_row(name: String, core: String, utilisation: f64, style: Style) -> Vec<Cell> {
    vec![(name, style), (core, palette::LABEL), (format::percent(utilisation), palette::VALUE)]
}
