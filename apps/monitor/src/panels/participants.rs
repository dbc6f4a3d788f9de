//! Each participant in one row, and their totals.
//!
//! Over all participants, positions and P&L sum to zero. But participants publish these values at different
//! times while the market trades, so the totals omit them. The final reconciliation checks the sums.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::data::ParticipantView;
use crate::table::{self, Cell, Column};
use crate::{format, palette};

const COLUMNS: [Column; 8] = [
    Column::text("Participant", 12, 0),
    Column::number("orders", 9, 1),
    Column::number("fills", 9, 2),
    Column::number("volume", 10, 8),
    Column::number("open", 5, 6),
    Column::number("position", 8, 3),
    Column::number("P&L", 11, 0),
    Column::number("refused", 7, 5),
];

/// Indices of the columns without a total: participants publish these values at different times.
const POSITION: usize = 5;
const PNL: usize = 6;

pub fn render(area: Rect, buf: &mut Buffer, participants: &[ParticipantView], is_roomy: bool) {
    if area.is_empty() {
        return;
    }
    let inner = super::section(area, buf, "Participants", is_roomy);
    let total = total(participants);
    let amounts = participants.iter().map(|participant| participant.pnl);
    let decimals = format::price_decimals(amounts);
    let rows_max = usize::from(inner.height.saturating_sub(1));
    let mut rows: Vec<_> = participants.iter().map(|it| row(it, decimals)).collect();
    if is_roomy && !participants.is_empty() {
        rows.push(total_row(&total, decimals));
    }
    if rows.len() > rows_max && rows_max > 0 {
        let left_out = rows.len() - (rows_max - 1);
        rows.truncate(rows_max - 1);
        rows.push(more(left_out));
    }
    table::render(inner, buf, &COLUMNS, &rows);
}

fn row(participant: &ParticipantView, decimals: usize) -> Vec<Cell> {
    let refused = if participant.refused == 0 { palette::LABEL } else { palette::WARN };
    vec![
        (format::printable(&participant.name), palette::ACCENT),
        (format::count(participant.orders), palette::VALUE),
        (format::count(participant.fills), palette::VALUE),
        (format::count(participant.volume), palette::VALUE),
        (participant.open_orders.map_or_else(|| "-".to_owned(), format::count), palette::VALUE),
        (
            format::signed(participant.position),
            palette::signed(participant.position < 0, participant.position == 0),
        ),
        (
            format::money(participant.pnl, decimals),
            palette::signed(participant.pnl < 0, participant.pnl == 0),
        ),
        (format::count(participant.refused), refused),
    ]
}

fn total_row(total: &ParticipantView, decimals: usize) -> Vec<Cell> {
    let mut cells: Vec<Cell> =
        row(total, decimals).into_iter().map(|(text, _)| (text, palette::LABEL)).collect();
    cells[POSITION].0 = "-".to_owned();
    cells[PNL].0 = "-".to_owned();
    cells
}

/// Returns the row that states how many participants do not fit.
fn more(left_out: usize) -> Vec<Cell> {
    let mut cells = vec![(format!("+ {left_out} more"), palette::LABEL)];
    cells.resize(COLUMNS.len(), (String::new(), palette::LABEL));
    cells
}

fn total(participants: &[ParticipantView]) -> ParticipantView {
    let known = |participant: &ParticipantView| participant.open_orders;
    let open_orders =
        participants.iter().map(known).try_fold(0_u64, |sum, open| Some(sum.saturating_add(open?)));
    let mut total = ParticipantView { name: "total".into(), open_orders, ..ParticipantView::default() };
    for participant in participants {
        total.orders = total.orders.saturating_add(participant.orders);
        total.fills = total.fills.saturating_add(participant.fills);
        total.volume = total.volume.saturating_add(participant.volume);
        total.refused = total.refused.saturating_add(participant.refused);
    }
    total
}
