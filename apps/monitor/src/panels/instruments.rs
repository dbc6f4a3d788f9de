//! Each instrument's market in one row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tickpath_types::{Price, Qty};

use crate::data::InstrumentView;
use crate::table::{self, Cell, Column};
use crate::{format, palette};

const COLUMNS: [Column; 10] = [
    Column::text("Symbol", 8, 0),
    Column::number("bid qty", 7, 2),
    Column::number("bid", 8, 0),
    Column::number("ask", 8, 0),
    Column::number("ask qty", 7, 2),
    Column::number("last", 8, 1),
    Column::number("last qty", 8, 9),
    Column::number("trades", 7, 5),
    Column::number("volume", 11, 7),
    Column::text("book", 10, 0),
];

/// Number of blanks after the last column's heading: the column's width less the heading's length.
const HEADING_PADDING: u16 = 6;

/// Draws the table without the first `scroll` instruments; skips fewer if a row would be empty otherwise.
pub fn render(area: Rect, buf: &mut Buffer, instruments: &[InstrumentView], scroll: usize, is_roomy: bool) {
    if area.is_empty() {
        return;
    }
    let chrome = if is_roomy { 3 } else { 1 };
    let shown = usize::from(area.height.saturating_sub(chrome));
    let first = scroll.min(instruments.len().saturating_sub(shown));
    let last = instruments.len().min(first + shown);
    let title = if last - first < instruments.len() {
        format!("Instruments {}-{} of {}", first + 1, last, instruments.len())
    } else {
        "Instruments".to_owned()
    };
    let inner = super::section(area, buf, &title, is_roomy);
    let decimals = format::price_decimals(instruments.iter().flat_map(prices).map(|price| price.0.into()));
    let rows: Vec<_> = instruments[first..last].iter().map(|it| row(it, decimals)).collect();
    let used = table::render(inner, buf, &COLUMNS, &rows);
    if !is_roomy && rows.len() < instruments.len() {
        let (from, of) = (first + 1, instruments.len());
        // The last column's heading is shorter than its cells, so the text may start above them.
        let available = usize::from((inner.width.saturating_sub(used) + HEADING_PADDING).min(inner.width));
        let more = [format!("{from}-{last} of {of}"), format!("{from}-{last}/{of}")];
        if let Some(more) = more.iter().find(|more| more.len() < available) {
            buf.set_string(inner.right() - more.len() as u16, inner.y, more, palette::LABEL);
        }
    }
}

fn prices(instrument: &InstrumentView) -> impl Iterator<Item = Price> {
    [instrument.bid, instrument.ask, instrument.last].into_iter().flatten().map(|(price, _)| price)
}

fn row(instrument: &InstrumentView, decimals: usize) -> Vec<Cell> {
    let price = |pair: Option<(Price, Qty)>| match pair {
        Some((price, _)) => format::price(price, decimals),
        None => "-".to_owned(),
    };
    let qty = |pair: Option<(Price, Qty)>| match pair {
        Some((_, qty)) => format::count(qty.0),
        None => "-".to_owned(),
    };
    let (health, health_style) = palette::health(instrument.health);
    vec![
        (format::printable(instrument.symbol.as_str()), palette::ACCENT),
        (qty(instrument.bid), palette::LABEL),
        (price(instrument.bid), palette::BID),
        (price(instrument.ask), palette::ASK),
        (qty(instrument.ask), palette::LABEL),
        (price(instrument.last), palette::VALUE),
        (qty(instrument.last), palette::LABEL),
        (format::count(instrument.trades), palette::VALUE),
        (format::count(instrument.volume), palette::VALUE),
        (health.to_owned(), health_style),
    ]
}
