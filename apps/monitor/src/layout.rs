//! Who gets which rows: every section its least first, in order of importance, then what it wants.

use ratatui::layout::Rect;

use crate::data::MarketView;

/// From this size on, sections stand in boxes and the history beside the latencies.
const ROOMY_WIDTH: u16 = 100;
const ROOMY_HEIGHT: u16 = 34;
/// Rows of the box around a section.
const BOX_ROWS: u16 = 2;
/// Rows of the latency box's inside when there is plenty: more would only stretch the sparklines.
const LATENCY_ROWS_MAX: u16 = 14;
/// Rows that notes get at most.
const NOTE_ROWS_MAX: u16 = 4;

/// Where each section goes; a section without room has no rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// True when sections stand in boxes.
    pub is_roomy: bool,
    /// Clock, progress, overall state.
    pub header: Rect,
    /// What happens per second.
    pub rates: Rect,
    /// The instruments' markets.
    pub instruments: Rect,
    /// Who trades.
    pub participants: Rect,
    /// Spans and their distribution; in a roomy plan the history too.
    pub latency: Rect,
    /// Sparklines in one row; not used in a roomy plan.
    pub history: Rect,
    /// Feed and threads.
    pub system: Rect,
    /// The newest notes.
    pub notes: Rect,
    /// Keys and host.
    pub footer: Rect,
}

/// One section while rows are given out.
struct Section {
    rows: u16,
    rows_min: u16,
    rows_wanted: u16,
}

/// Gives out the rows of `area`.
pub fn plan(area: Rect, view: &MarketView) -> Plan {
    let is_roomy = area.width >= ROOMY_WIDTH && area.height >= ROOMY_HEIGHT;
    let chrome = if is_roomy { BOX_ROWS } else { 0 };
    let table = |rows: usize| Section::new(2 + chrome, heading_and(rows) + chrome);
    // In order of importance.
    let mut sections = [
        Section::new(1, 1),
        table(view.latency.len()),
        table(view.instruments.len()),
        Section::new(1, 1),
        Section::new(1, 1),
        // A roomy view adds the line of totals.
        table(view.participants.len() + usize::from(is_roomy)),
        Section::new(3 + chrome, system_rows(view, is_roomy) + chrome),
        if is_roomy { Section::new(0, 0) } else { Section::new(1, 1) },
        if is_roomy { Section::new(0, note_rows(view, chrome)) } else { Section::new(0, 0) },
    ];
    let spare = give_out(&mut sections, area.height);
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
}

/// Gives every section its least while rows last, then rows in turn; returns what nobody wants.
fn give_out(sections: &mut [Section], rows: u16) -> u16 {
    let mut left = rows;
    for section in sections.iter_mut() {
        if section.rows_min <= left {
            section.rows = section.rows_min;
            left -= section.rows_min;
        } else {
            section.rows_wanted = 0;
        }
    }
    while left > 0 {
        let before = left;
        for section in sections.iter_mut().filter(|section| section.rows < section.rows_wanted) {
            if left > 0 {
                section.rows += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    left
}

fn heading_and(rows: usize) -> u16 {
    // A terminal has fewer rows than this; the table shows what fits.
    u16::try_from(rows).unwrap_or(1_000).min(1_000) + 1
}

fn system_rows(view: &MarketView, with_agents: bool) -> u16 {
    let agents: usize = view.threads.iter().map(|thread| thread.agents.len()).sum();
    let threads = view.threads.len() + if with_agents { agents } else { 0 };
    // The feed's table has one more line, about gaps.
    heading_and(threads.max(view.feed.lines.len() + 1))
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
    use crate::data::LatencyView;

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
    fn rows_left_over_stay_with_nobody() {
        let mut sections = [Section::new(1, 2), Section::new(5, 9), Section::new(1, 1)];
        assert_eq!(give_out(&mut sections, 4), 1);
        assert_eq!(sections.map(|section| section.rows), [2, 0, 1]);
    }
}
