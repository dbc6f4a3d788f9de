//! The full-screen view.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span as Text};
use tickpath_monitor::table::{self, Cell, Column};
use tickpath_monitor::{format, palette};
use tickpath_types::{BookHealth, Nanos, Price, Qty, TradingState};

use super::board::{Board, Move, change, change_percent};
use super::data::TicksView;
use super::keys::KEYS;
use crate::client::{Count, LinkState, MarketRow, Percentiles, Span};

/// Number of rows taken by the title, the counters and the table's heading.
const ROWS_ABOVE: u16 = 3;
/// Number of rows taken by the latencies: a blank one, the heading, and one for each span.
const LATENCY_ROWS: u16 = 2 + Span::ALL.len() as u16;

const COLUMNS: &[Column] = &[
    Column::text(" Symbol", 9, 0),
    Column::number("size", 5, 5),
    Column::number("bid", 8, 0),
    Column::number("ask", 8, 0),
    Column::number("size", 5, 5),
    Column::number("last", 9, 1),
    Column::number("change", 7, 3),
    Column::number("%", 7, 2),
    Column::number("volume", 6, 4),
    Column::number("traded", 6, 8),
    Column::number("ticks/s", 7, 6),
    Column::text("state", 7, 7),
];

/// Draws the view into `area`, which may have any size; `now` is the time since the Unix epoch. Returns the
/// number of symbols shown.
pub fn render(area: Rect, buf: &mut Buffer, view: &TicksView, board: &Board, now: Nanos) -> usize {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return 0;
    }
    let row = |y: u16| Rect { y: area.y + y.min(area.height - 1), height: 1, ..area };
    title(row(0), buf, view);
    if area.height > 2 {
        status(row(1), buf, view, now);
    }
    // A heading without a row below it is useless.
    let has_room = area.height > ROWS_ABOVE + 1;
    let inner = Rect { y: area.y + 2, height: area.height.saturating_sub(ROWS_ABOVE), ..area };
    let count = if has_room { body(inner, buf, view, board) } else { 0 };
    if area.height > 1 {
        footer(row(area.height - 1), buf, view, board, count);
    }
    count
}

/// Draws the area between the counters and the key line; returns the number of symbols shown.
fn body(inner: Rect, buf: &mut Buffer, view: &TicksView, board: &Board) -> usize {
    if board.is_help {
        help(inner, buf);
        return 0;
    }
    let shown = board.shown();
    if let Some(text) = nothing_to_show(view, board) {
        centred(inner, buf, &text);
        return 0;
    }
    let wanted = shown.len() as u16 + 1;
    let has_latencies = inner.height >= wanted + LATENCY_ROWS;
    let table_height = if has_latencies { inner.height - LATENCY_ROWS } else { inner.height };
    let count = shown.len().min(usize::from(table_height) - 1);
    symbols(Rect { height: table_height, ..inner }, buf, view, board, &shown[..count]);
    if has_latencies {
        let below = Rect { y: inner.y + wanted, height: inner.height - wanted, ..inner };
        latencies(below, buf, view);
    }
    count
}

fn title(area: Rect, buf: &mut Buffer, view: &TicksView) {
    let (text, style) = match view.state {
        LinkState::Live => ("live", palette::GOOD),
        LinkState::Waiting | LinkState::Ended => ("NOT CONNECTED", palette::BAD),
        LinkState::Connecting | LinkState::Subscribing => (view.state.label(), palette::WARN),
    };
    let mut right = vec![Text::styled(format!("● {text} "), style)];
    if view.state == LinkState::Live {
        let rate = format!(
            "{} ticks/s  {}B/s  ",
            format::rate(view.ticks_per_s),
            format::short_rate(view.bytes_per_s)
        );
        right.insert(0, Text::styled(rate, Style::new().add_modifier(Modifier::BOLD)));
    }
    let mut right = Line::from(right);
    let planned = view.planned.map_or(String::new(), |planned| format!(" of {}", format::clock(planned)));
    let left = Line::from(vec![
        Text::styled(" tickpath ticks", palette::TITLE),
        Text::raw("  "),
        Text::styled(
            format!("{}{planned}", format::clock(view.elapsed)),
            Style::new().add_modifier(Modifier::BOLD),
        ),
        Text::raw("  "),
        Text::styled(format::printable(&view.address), palette::LABEL),
    ]);
    buf.set_line(area.x, area.y, &left, area.width);
    if left.width() + right.width() > usize::from(area.width) {
        right.spans.drain(..right.spans.len() - 1);
    }
    // On a terminal too narrow for both texts, the right one with the state covers the left one.
    let width = (right.width() as u16).min(area.width);
    buf.set_line(area.right() - width, area.y, &right, width);
}

/// Draws the counters. Without a connection, draws the failure and the time until the next attempt instead.
fn status(area: Rect, buf: &mut Buffer, view: &TicksView, now: Nanos) {
    let is_lost = matches!(view.state, LinkState::Waiting | LinkState::Ended | LinkState::Connecting);
    if let Some(last_error) = view.last_error.as_deref().filter(|_| is_lost) {
        let wait = Nanos(view.retry_at_ns).since(now);
        let again = match view.state {
            LinkState::Waiting => format!("; reconnect in {:.1} s, r: now", wait.as_secs_f64()),
            _ => String::new(),
        };
        let line = Line::styled(format!(" {}{again}", format::printable(last_error)), palette::WARN);
        buf.set_line(area.x, area.y, &line, area.width);
        return;
    }
    let mut line = Line::default();
    let mut add = |name: &str, value: String, is_bad: bool| {
        line.push_span(Text::styled(format!(" {name} "), palette::LABEL));
        line.push_span(Text::styled(value, if is_bad { palette::BAD } else { palette::VALUE }));
        line.push_span(Text::raw(" "));
    };
    let of = |count| view.counts.of(count);
    let total = view.latency(Span::Total);
    add("ticks", format::count(of(Count::Ticks)), false);
    let lost = if of(Count::Lost) > 0 {
        format!(" ({} lost)", format::count(of(Count::Lost)))
    } else {
        String::new()
    };
    add("gaps", format::count(of(Count::Gaps)) + &lost, of(Count::Gaps) > 0);
    add("corrupt", format::count(of(Count::Corrupt)), of(Count::Corrupt) > 0);
    if of(Count::Skipped) > 0 {
        add("skipped", format::count(of(Count::Skipped)), true);
    }
    if of(Count::Missed) > 0 {
        add("missed", format::count(of(Count::Missed)), true);
    }
    if of(Count::Duplicates) > 0 {
        add("duplicates", format::count(of(Count::Duplicates)), true);
    }
    add("reconnects", format::count(view.counts.reconnects()), false);
    if total.count > 0 {
        let both = format!("{}/{}", format::latency(total.p50_ns), format::latency(total.p99_ns));
        add("p50/p99", both, false);
    }
    buf.set_line(area.x, area.y, &line, area.width);
}

fn nothing_to_show(view: &TicksView, board: &Board) -> Option<String> {
    if board.matching() > 0 {
        return None;
    }
    Some(match view.state {
        _ if !board.filter.is_empty() && !view.rows.is_empty() => {
            format!("no symbol contains '{}': Esc shows all", board.filter)
        }
        LinkState::Connecting => format!("connecting to {}", format::printable(&view.address)),
        LinkState::Subscribing => "connected, waiting for the subscription".to_owned(),
        LinkState::Live => "subscribed, waiting for the symbol names".to_owned(),
        LinkState::Waiting | LinkState::Ended => "nothing to show".to_owned(),
    })
}

fn symbols(area: Rect, buf: &mut Buffer, view: &TicksView, board: &Board, shown: &[usize]) {
    let rows: Vec<&MarketRow> = shown.iter().filter_map(|index| view.rows.get(*index)).collect();
    let prices = rows.iter().flat_map(|row| [row.attributes.tick_size.0, row.attributes.reference_price.0]);
    let decimals = format::price_decimals(prices.map(i128::from));
    let cells: Vec<Vec<Cell>> = rows.iter().map(|row| symbol_cells(row, board, decimals)).collect();
    table::render(area, buf, COLUMNS, &cells);
}

fn symbol_cells(row: &MarketRow, board: &Board, decimals: usize) -> Vec<Cell> {
    let (top, moves) = (&row.top, board.moves(row));
    let (mark, state_text, state_style) = state(row);
    let is_live = top.health() == BookHealth::Live;
    let value = if is_live { palette::VALUE } else { palette::LABEL };
    let moved = |direction: Move| match direction {
        _ if !is_live => palette::LABEL,
        Move::None => palette::VALUE,
        Move::Up => palette::BID,
        Move::Down => palette::ASK,
    };
    let none = || ("-".to_owned(), palette::FAINT);
    let price_cell = |side: Option<(Price, Qty)>, direction| {
        side.map_or_else(none, |(price, _)| (format::price(price, decimals), moved(direction)))
    };
    let qty_cell = |side: Option<(Price, Qty)>| side.map_or_else(none, |(_, qty)| (quantity(qty), value));
    let arrow = match moves.last {
        Move::None => "  ",
        Move::Up => "▲ ",
        Move::Down => "▼ ",
    };
    let last = top.last().map_or_else(none, |(price, _)| {
        (format!("{arrow}{}", format::price(price, decimals)), moved(moves.last))
    });
    let signed = |value: i128| if is_live { palette::signed(value < 0, value == 0) } else { palette::LABEL };
    let change_cell = change(row).map_or_else(none, |change| {
        (format::money(i128::from(change.0), decimals), signed(i128::from(change.0)))
    });
    let percent_cell = change_percent(row).map_or_else(none, |hundredths| {
        // `money` expects units of 10^-4, and here shows two decimals.
        (format::money(hundredths * 100, 2) + "%", signed(hundredths))
    });
    vec![
        (format!("{mark}{}", format::printable(row.attributes.symbol.as_str())), palette::ACCENT),
        qty_cell(top.bid()),
        price_cell(top.bid(), moves.bid),
        price_cell(top.ask(), moves.ask),
        qty_cell(top.ask()),
        last,
        change_cell,
        percent_cell,
        (format::short_rate(row.volume as f64), value),
        qty_cell(top.last()),
        (format::rate(moves.ticks_per_s), value),
        (state_text.to_owned(), state_style),
    ]
}

/// Formats a quantity in at most five characters: exact below 10,000, abbreviated from there on.
fn quantity(qty: Qty) -> String {
    if qty.0 < 10_000 { format::count(qty.0) } else { format::short_rate(qty.0 as f64) }
}

/// Returns a mark for the front of the row, the state as a word, and the word's colour.
fn state(row: &MarketRow) -> (char, &'static str, Style) {
    match (row.top.health(), row.top.trading_state()) {
        _ if row.top.ts_event == 0 => (' ', "no data", palette::LABEL),
        (BookHealth::Live, Some(TradingState::Halted)) => ('H', "halted", palette::WARN),
        (BookHealth::Live, Some(TradingState::Paused)) => ('P', "paused", palette::WARN),
        (BookHealth::Live, Some(TradingState::QuotationOnly)) => ('Q', "quotes", palette::WARN),
        (BookHealth::Live, _) => (' ', "live", palette::GOOD),
        _ => ('~', "STALE", palette::BAD),
    }
}

fn latencies(area: Rect, buf: &mut Buffer, view: &TicksView) {
    const HOPS: &[Column] = &[
        Column::text(" Latency", 9, 0),
        Column::text("", 18, 4),
        Column::number("p50 us", 8, 0),
        Column::number("p99 us", 8, 0),
        Column::number("p99.9 us", 8, 1),
        Column::number("max us", 8, 2),
        Column::number("count", 12, 3),
    ];
    let rows: Vec<Vec<Cell>> = view
        .latencies
        .iter()
        .map(|(span, found)| {
            let Percentiles { count, p50_ns, p99_ns, p999_ns, max_ns } = *found;
            let time = |ns| match count {
                0 => ("-".to_owned(), palette::FAINT),
                _ => (format::micros(ns), palette::VALUE),
            };
            vec![
                (format!(" {}", span.name()), palette::ACCENT),
                (span.meaning().to_owned(), palette::LABEL),
                time(p50_ns),
                time(p99_ns),
                time(p999_ns),
                time(max_ns),
                (format::count(count), palette::LABEL),
            ]
        })
        .collect();
    let area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    table::render(area, buf, HOPS, &rows);
}

fn footer(area: Rect, buf: &mut Buffer, view: &TicksView, board: &Board, shown: usize) {
    let (first, last) = (board.scroll + usize::from(shown > 0), board.scroll + shown);
    let right = match board.matching() {
        _ if board.is_help => String::new(),
        _ if shown == 0 => String::new(),
        matching if matching == view.rows.len() => format!(" {first}-{last} of {matching} "),
        matching => format!(" {first}-{last} of {matching} with '{}' ", board.filter),
    };
    let left = if board.is_typing {
        Line::from(vec![
            Text::styled(" filter: ", palette::LABEL),
            Text::styled(format!("{}_", board.filter), palette::VALUE.add_modifier(Modifier::BOLD)),
            Text::styled("   Enter keeps it, Esc shows all", palette::LABEL),
        ])
    } else {
        let order = if board.is_reversed { " reversed" } else { "" };
        let sorted = format!("by {}{order}", board.sort.label());
        keys_line(&[("q", "quit"), ("s", &sorted), ("/", "filter"), ("r", "reconnect"), ("?", "help")])
    };
    buf.set_line(area.x, area.y, &left, area.width);
    let width = (right.chars().count() as u16).min(area.width);
    if left.width() as u16 + width < area.width {
        buf.set_line(area.right() - width, area.y, &Line::styled(right, palette::LABEL), width);
    }
}

fn keys_line(keys: &[(&str, &str)]) -> Line<'static> {
    Line::from_iter(keys.iter().flat_map(|(key, what)| {
        [Text::styled(format!(" {key}"), palette::ACCENT), Text::styled(format!(" {what} "), palette::LABEL)]
    }))
}

fn centred(area: Rect, buf: &mut Buffer, text: &str) {
    let line = Line::styled(text.to_owned(), palette::LABEL);
    let width = (line.width() as u16).min(area.width);
    buf.set_line(area.x + (area.width - width) / 2, area.y + area.height / 2, &line, width);
}

fn help(area: Rect, buf: &mut Buffer) {
    const MARKS: &[(&str, &str)] = &[
        ("~", "stale: messages were lost; live after the next tick"),
        ("H P Q", "halted, paused, quotes only"),
        ("▲ ▼", "the last price rose, fell; colours show the same for bid and ask"),
        ("p50/p99", "latency from a tick's creation to its cache update (T0_T5)"),
    ];
    let lines = KEYS.iter().chain(MARKS).map(|(key, what)| {
        Line::from(vec![
            Text::styled(format!("  {key:<9}"), palette::ACCENT),
            Text::styled((*what).to_owned(), palette::VALUE),
        ])
    });
    let heading = Line::styled("  Keys and marks; any key closes this help", palette::TITLE);
    for (y, line) in (area.y..area.bottom()).zip([heading, Line::default()].into_iter().chain(lines)) {
        buf.set_line(area.x, y, &line, area.width);
    }
}
