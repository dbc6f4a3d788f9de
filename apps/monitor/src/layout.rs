//! Distributes the screen's rows to sections. First, each section gets its minimum, in order of importance.
//! In a roomy view (on a large screen), the instruments then get rows up to half of the screen. All sections
//! then get single rows in turn. Last, a roomy view lists the agents if all of them fit.

use ratatui::layout::Rect;

use crate::data::MarketView;

/// Minimum width and height, in characters, of a roomy view, which has boxed sections and larger charts.
const ROOMY_WIDTH: u16 = 100;
const ROOMY_HEIGHT: u16 = 34;
/// Number of rows that the box around a section takes.
const BOX_ROWS: u16 = 2;
/// Maximum number of rows inside the latency box: more would only stretch the sparklines.
const LATENCY_ROWS_MAX: u16 = 14;
/// Maximum number of rows for notes.
const NOTE_ROWS_MAX: u16 = 8;

/// The area of each section; a section that does not fit has height 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// True when sections have boxes.
    pub is_roomy: bool,
    /// Clock, progress, overall state.
    pub header: Rect,
    /// Rates per second.
    pub rates: Rect,
    /// The instruments' markets.
    pub instruments: Rect,
    /// The participants.
    pub participants: Rect,
    /// Latency spans and their distribution; in a roomy plan the history too.
    pub latency: Rect,
    /// The history as sparklines in one row; height 0 in a roomy plan.
    pub history: Rect,
    /// Feed lines and threads.
    pub system: Rect,
    /// The newest notes.
    pub notes: Rect,
    /// Keys and host.
    pub footer: Rect,
}

/// Indices in the array `sections` of [`plan`]: the instruments, and the section with feed and threads.
const MARKET: usize = 2;
const SYSTEM: usize = 6;

/// Rows of one section: given so far, minimum, and wanted.
struct Section {
    rows: u16,
    rows_min: u16,
    rows_wanted: u16,
}

/// Distributes the rows of `area` to the sections.
pub fn plan(area: Rect, view: &MarketView) -> Plan {
    let is_roomy = area.width >= ROOMY_WIDTH && area.height >= ROOMY_HEIGHT;
    let chrome = if is_roomy { BOX_ROWS } else { 0 };
    let table = |rows: usize| Section::new(2 + chrome, heading_and(rows) + chrome);
    // In order of importance: `allocate_minimum` serves the first sections first.
    let mut sections = [
        Section::new(1, 1),
        table(view.latency.len()),
        table(view.instruments.len()),
        Section::new(1, 1),
        Section::new(1, 1),
        // A roomy view has one more row: the participants' totals.
        table(view.participants.len() + usize::from(is_roomy)),
        Section::new(3 + chrome, system_rows(view) + chrome),
        if is_roomy { Section::new(0, 0) } else { Section::new(1, 1) },
        if is_roomy { Section::new(0, note_rows(view, chrome)) } else { Section::new(0, 0) },
    ];
    let mut spare = allocate_minimum(&mut sections, area.height);
    if is_roomy {
        spare -= sections[MARKET].grow(spare, area.height / 2);
    }
    spare = distribute_rest(&mut sections, spare);
    if is_roomy {
        // Show the agents only if all of them fit: an incomplete list would be useless.
        let agents = agent_rows(view, sections[SYSTEM].rows.saturating_sub(chrome));
        if sections[SYSTEM].rows > 0 && agents <= spare {
            sections[SYSTEM].rows += agents;
            spare -= agents;
        }
    }
    let [header, latency, instruments, footer, rates, participants, system, history, notes] =
        sections.map(|section| section.rows);
    let latency = if is_roomy { latency.max((latency + spare).min(LATENCY_ROWS_MAX)) } else { latency };

    let mut y = area.y;
    let mut take = |rows: u16| {
        let rect = Rect { y, height: rows, ..area };
        y += rows;
        rect
    };
    Plan {
        is_roomy,
        header: take(header),
        rates: take(rates),
        instruments: take(instruments),
        participants: take(participants),
        latency: take(latency),
        history: take(history),
        system: take(system),
        notes: take(notes),
        footer: Rect { y: area.bottom() - footer, height: footer, ..area },
    }
}

impl Section {
    fn new(rows_min: u16, rows_wanted: u16) -> Section {
        Section { rows: 0, rows_min, rows_wanted: rows_wanted.max(rows_min) }
    }

    /// Adds at most `left` rows, until the section has `rows_wanted` or `rows_max` rows. Returns the number
    /// of rows added.
    fn grow(&mut self, left: u16, rows_max: u16) -> u16 {
        let more = self.rows_wanted.min(rows_max).saturating_sub(self.rows).min(left);
        self.rows += more;
        more
    }
}

/// In order, gives each section its minimum if that many rows are left, else none. Returns the number of rows
/// that remain.
fn allocate_minimum(sections: &mut [Section], rows: u16) -> u16 {
    let mut left = rows;
    for section in sections.iter_mut() {
        if section.rows_min <= left {
            section.rows = section.rows_min;
            left -= section.rows_min;
        } else {
            section.rows_wanted = 0;
        }
    }
    left
}

/// Adds single rows in turn to sections below `rows_wanted`; returns the number of rows that remain.
fn distribute_rest(sections: &mut [Section], rows: u16) -> u16 {
    let mut left = rows;
    while left > 0 {
        let before = left;
        for section in sections.iter_mut() {
            left -= section.grow(left.min(1), section.rows + 1);
        }
        if left == before {
            break;
        }
    }
    left
}

fn heading_and(rows: usize) -> u16 {
    // Limit the number: no terminal has more rows, and the table shows only the rows that fit.
    u16::try_from(rows).unwrap_or(1_000).min(1_000) + 1
}

fn system_rows(view: &MarketView) -> u16 {
    // The feed's table has one row for each line of the feed, and one for the gaps.
    heading_and(view.threads.len().max(view.feed.lines.len() + 1))
}

/// Returns the number of rows, beyond `rows`, that the table of threads needs to list the agents too.
fn agent_rows(view: &MarketView, rows: u16) -> u16 {
    let agents: usize = view.threads.iter().map(|thread| thread.agents.len()).sum();
    heading_and(view.threads.len() + agents).saturating_sub(rows)
}

fn note_rows(view: &MarketView, chrome: u16) -> u16 {
    match view.notes.len() {
        0 => 0,
        notes => NOTE_ROWS_MAX.min(notes.try_into().unwrap_or(NOTE_ROWS_MAX)) + chrome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{InstrumentView, LatencyView};

    fn instrument() -> InstrumentView {
        InstrumentView {
            symbol: tickpath_types::Symbol::new("ALPHA").unwrap(),
            bid: None,
            ask: None,
            last: None,
            trades: 0,
            volume: 0,
            health: tickpath_types::BookHealth::Live,
        }
    }

    fn rows(plan: &Plan) -> u16 {
        [
            plan.header,
            plan.rates,
            plan.instruments,
            plan.participants,
            plan.latency,
            plan.history,
            plan.system,
            plan.notes,
            plan.footer,
        ]
        .iter()
        .map(|rect| rect.height)
        .sum()
    }

    #[test]
    fn every_size_is_filled_without_overlap_or_overflow() {
        let view = MarketView {
            latency: vec![LatencyView::default(); 6],
            notes: vec!["note".into(); 9],
            ..MarketView::default()
        };
        for width in [0, 20, 80, 100, 300] {
            for height in 0..120 {
                let area = Rect::new(0, 0, width, height);
                let plan = plan(area, &view);
                assert!(rows(&plan) <= height, "{area:?}: {plan:?}");
                assert!(
                    plan.notes.bottom() <= plan.footer.y || plan.footer.height == 0,
                    "{area:?}: {plan:?}"
                );
            }
        }
    }

    #[test]
    fn the_least_important_section_gives_way_first() {
        let small = plan(Rect::new(0, 0, 80, 7), &MarketView::default());
        assert_eq!((small.header.height, small.latency.height, small.instruments.height), (1, 2, 2));
        assert_eq!((small.footer.height, small.rates.height, small.participants.height), (1, 1, 0));
    }

    #[test]
    fn the_market_grows_first_and_leaves_half_of_the_rows() {
        let mut view = MarketView::default();
        for count in 0..60 {
            view.instruments = vec![instrument(); count];
            let wanted = heading_and(count) + BOX_ROWS;
            let height = plan(Rect::new(0, 0, 120, 40), &view).instruments.height;
            assert!(height == wanted.max(4) || height >= 20, "{count} instruments in {height} rows");
        }
    }

    #[test]
    fn surplus_rows_stay_unassigned() {
        let mut sections = [Section::new(1, 2), Section::new(5, 9), Section::new(1, 1)];
        let left = allocate_minimum(&mut sections, 4);
        assert_eq!((left, distribute_rest(&mut sections, left)), (2, 1));
        assert_eq!(sections.map(|section| section.rows), [2, 0, 1]);
    }
}
