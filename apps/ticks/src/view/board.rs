//! Filters and sorts the rows of the symbol table, and finds the values that changed since the last frame.

use std::cmp::Ordering;
use std::time::Duration;

use tickpath_types::{Price, TopOfBook};

use super::data::TicksView;
use crate::client::MarketRow;

/// The sort order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Quantity traded, the largest first.
    #[default]
    Volume,
    /// Change from the reference price in percent, the largest first.
    Change,
    /// Ticks per second, the highest rate first.
    Ticks,
    /// Name, in alphabetical order.
    Symbol,
}

impl Sort {
    /// Returns the next sort order; after the last, the first.
    #[must_use]
    pub const fn next(self) -> Sort {
        match self {
            Sort::Volume => Sort::Change,
            Sort::Change => Sort::Ticks,
            Sort::Ticks => Sort::Symbol,
            Sort::Symbol => Sort::Volume,
        }
    }

    /// Returns the sort order's name, for display.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Sort::Volume => "volume",
            Sort::Change => "change",
            Sort::Ticks => "ticks/s",
            Sort::Symbol => "symbol",
        }
    }
}

/// Direction of a value's change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Move {
    /// Unchanged.
    #[default]
    None,
    /// Higher.
    Up,
    /// Lower.
    Down,
}

impl Move {
    fn between(before: i64, now: i64) -> Move {
        match now.cmp(&before) {
            Ordering::Greater => Move::Up,
            Ordering::Less => Move::Down,
            Ordering::Equal => Move::None,
        }
    }
}

/// The directions in which a row's values moved, and its tick rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moves {
    /// Direction of the bid's change since the previous frame.
    pub bid: Move,
    /// Direction of the ask's change since the previous frame.
    pub ask: Move,
    /// Direction of the latest change of the last trade's price.
    pub last: Move,
    /// Ticks per second between the previous frame and this one.
    pub ticks_per_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct DrawnRow {
    top: TopOfBook,
    ticks: u64,
    moves: Moves,
    /// Time of the latest tick that a drawn frame has shown in this row.
    drawn_ts: u64,
}

/// The user's view settings, the values of the last frame, and the order of the rows.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The sort order of the rows.
    pub sort: Sort,
    /// True for the reverse order.
    pub is_reversed: bool,
    /// Text that the names of the shown symbols contain, in capitals; empty: all symbols are shown.
    pub filter: String,
    /// True while the user types the filter.
    pub is_typing: bool,
    /// True while the help is shown.
    pub is_help: bool,
    /// Number of rows that are scrolled off at the top.
    pub scroll: usize,
    /// Maximum number of rows shown.
    pub rows_max: usize,
    session: u64,
    drawn: Vec<DrawnRow>,
    drawn_at: Duration,
    order: Vec<usize>,
}

impl Board {
    /// Creates a board with at most this number of rows, sorted by volume.
    #[must_use]
    pub fn new(rows_max: usize) -> Board {
        Board { rows_max, ..Board::default() }
    }

    /// Computes each row's changes from the previous frame to `view`, and arranges the rows.
    pub fn observe(&mut self, view: &TicksView) {
        let end = view.rows.last().map_or(0, |row| usize::from(row.instrument) + 1);
        if self.session != view.session || self.drawn.len() != end {
            self.session = view.session;
            self.drawn = vec![DrawnRow::default(); end];
        }
        let seconds = view.elapsed.saturating_sub(self.drawn_at).as_secs_f64();
        self.drawn_at = view.elapsed;
        for row in &view.rows {
            let drawn = &mut self.drawn[usize::from(row.instrument)];
            let (before, now) = (drawn.top, row.top);
            drawn.moves.bid = Move::between(before.bid.price, now.bid.price);
            drawn.moves.ask = Move::between(before.ask.price, now.ask.price);
            if before.last_qty != 0 && before.last_price != now.last_price {
                drawn.moves.last = Move::between(before.last_price, now.last_price);
            }
            if before.ts_event == 0 {
                drawn.moves = Moves::default();
            }
            if seconds > 0.0 {
                drawn.moves.ticks_per_s = row.ticks.saturating_sub(drawn.ticks) as f64 / seconds;
            }
            (drawn.top, drawn.ticks) = (now, row.ticks);
        }
        self.arrange(view);
    }

    /// Filters and sorts the rows again.
    pub fn arrange(&mut self, view: &TicksView) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..view.rows.len()).filter(|index| self.shows(&view.rows[*index])));
        // Rows that compare equal stay in the order of their instrument numbers, also if reversed.
        order.sort_by(|a, b| {
            let compared = self.compare(&view.rows[*a], &view.rows[*b]);
            if self.is_reversed { compared.reverse() } else { compared }
        });
        self.order = order;
        self.scroll = self.scroll.min(self.order.len().saturating_sub(1));
    }

    fn shows(&self, row: &MarketRow) -> bool {
        self.filter.is_empty() || row.attributes.symbol.as_str().to_ascii_uppercase().contains(&self.filter)
    }

    fn compare(&self, a: &MarketRow, b: &MarketRow) -> Ordering {
        match self.sort {
            Sort::Volume => b.volume.cmp(&a.volume),
            Sort::Change => change_percent(b).cmp(&change_percent(a)),
            Sort::Ticks => self.moves(b).ticks_per_s.total_cmp(&self.moves(a).ticks_per_s),
            Sort::Symbol => a.attributes.symbol.cmp(&b.attributes.symbol),
        }
    }

    /// Returns the rows to show, in display order, as indices into `TicksView::rows`.
    #[must_use]
    pub fn shown(&self) -> &[usize] {
        let shown = &self.order[self.scroll.min(self.order.len())..];
        &shown[..shown.len().min(self.rows_max)]
    }

    /// Returns the number of rows that match the filter.
    #[must_use]
    pub fn matching(&self) -> usize {
        self.order.len()
    }

    /// Returns the directions in which a row's values moved, and its tick rate.
    #[must_use]
    pub fn moves(&self, row: &MarketRow) -> Moves {
        self.drawn.get(usize::from(row.instrument)).map_or_else(Moves::default, |drawn| drawn.moves)
    }

    /// Among the first `rows` rows shown, finds those whose latest tick was not drawn yet. Returns the times
    /// of these ticks, and marks them as drawn.
    pub fn newly_drawn(&mut self, view: &TicksView, rows: usize) -> Vec<u64> {
        let shown: Vec<usize> = self.shown().iter().copied().take(rows).collect();
        let mut times = Vec::with_capacity(shown.len());
        for row in shown.into_iter().filter_map(|index| view.rows.get(index)) {
            let Some(drawn) = self.drawn.get_mut(usize::from(row.instrument)) else { continue };
            if row.top.ts_event > drawn.drawn_ts {
                drawn.drawn_ts = row.top.ts_event;
                times.push(row.top.ts_event);
            }
        }
        times
    }
}

/// Returns the change of the last price from the reference price; `None` before the first trade.
#[must_use]
pub fn change(row: &MarketRow) -> Option<Price> {
    let (last, _) = row.top.last()?;
    Some(Price(last.0.saturating_sub(row.attributes.reference_price.0)))
}

/// Returns the [`change`] in hundredths of a percent; `None` before the first trade or without a positive
/// reference price.
#[must_use]
pub fn change_percent(row: &MarketRow) -> Option<i128> {
    let reference = i128::from(row.attributes.reference_price.0);
    change(row).filter(|_| reference > 0).map(|change| i128::from(change.0) * 10_000 / reference)
}
