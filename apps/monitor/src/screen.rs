//! The full-screen view: lays out the screen and draws each section into its area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::data::MarketView;
use crate::{layout, panels};

/// State that the user sets by keys: the scroll position, and whether the view is frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Number of instruments skipped at the top; if too large, the table ends with the last instrument.
    pub scroll: usize,
    /// True while the user has frozen the view.
    pub is_frozen: bool,
}

/// Draws `view` into `area` of any size.
///
/// [`View`](crate::View) passes a terminal's buffer; tests pass their own.
pub fn render(area: Rect, buf: &mut Buffer, view: &MarketView, screen: Screen) {
    let area = area.intersection(buf.area);
    let plan = layout::plan(area, view);
    panels::header::render(plan.header, buf, view, screen);
    panels::rates::render(plan.rates, buf, &view.rates);
    panels::instruments::render(plan.instruments, buf, &view.instruments, screen.scroll, plan.is_roomy);
    panels::participants::render(plan.participants, buf, &view.participants, plan.is_roomy);
    panels::latency::render(plan.latency, buf, view, plan.is_roomy);
    panels::history::render_row(plan.history, buf, view);
    panels::system::render(plan.system, buf, view, plan.is_roomy);
    panels::footer::render_notes(plan.notes, buf, &view.notes);
    panels::footer::render(plan.footer, buf, view, plan.notes.is_empty());
}
