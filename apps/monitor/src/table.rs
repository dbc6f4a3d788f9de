//! Tables whose columns are as wide as their contents. A table that is too wide for its area drops the least
//! important columns.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::palette;

/// Number of blanks between columns.
const GAP: usize = 2;

/// A column of a table.
#[derive(Clone, Copy)]
pub struct Column {
    /// The column's heading.
    pub title: &'static str,
    /// Minimum width, so that growing numbers do not move the table.
    pub width_min: usize,
    /// True for left-aligned text, false for right-aligned numbers.
    pub is_text: bool,
    /// The column with the highest rank is dropped first; rank 0 is always kept.
    pub rank: u8,
}

impl Column {
    /// Creates a column of numbers.
    pub const fn number(title: &'static str, width_min: usize, rank: u8) -> Column {
        Column { title, width_min, is_text: false, rank }
    }

    /// Creates a column of text.
    pub const fn text(title: &'static str, width_min: usize, rank: u8) -> Column {
        Column { title, width_min, is_text: true, rank }
    }
}

/// Text and style of a cell.
pub type Cell = (String, Style);

/// Draws the heading into the first row of `area` and `rows` below it; drops the rows and columns that do not
/// fit.
///
/// Returns the width used, so that the caller can draw to the right of the table.
pub fn render(area: Rect, buf: &mut Buffer, columns: &[Column], rows: &[Vec<Cell>]) -> u16 {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let widest = rows.iter().map(|row| row[index].0.chars().count()).max().unwrap_or(0);
            widest.max(column.title.chars().count()).max(column.width_min)
        })
        .collect();
    let kept = fit(columns, &widths, area.width.into());
    let heading: Vec<Cell> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            (column.title.to_owned(), if index == 0 { palette::TITLE } else { palette::LABEL })
        })
        .collect();
    for (y, row) in (area.y..area.bottom()).zip(std::iter::once(&heading).chain(rows)) {
        let line = Line::from_iter(kept.iter().enumerate().flat_map(|(position, &index)| {
            let (text, style) = &row[index];
            let gap = if position == 0 { 0 } else { GAP };
            let width = widths[index];
            let text =
                if columns[index].is_text { format!("{text:<width$}") } else { format!("{text:>width$}") };
            [Span::raw(" ".repeat(gap)), Span::styled(text, *style)]
        }));
        buf.set_line(area.x, y, &line, area.width);
    }
    total(&kept, &widths).min(area.width.into()) as u16
}

/// Returns the indices of the columns that fit into `available` characters.
fn fit(columns: &[Column], widths: &[usize], available: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    while total(&kept, widths) > available {
        match kept.iter().copied().max_by_key(|&index| columns[index].rank) {
            Some(index) if columns[index].rank > 0 => kept.retain(|&other| other != index),
            _ => break,
        }
    }
    kept
}

fn total(kept: &[usize], widths: &[usize]) -> usize {
    kept.iter().map(|&index| widths[index] + GAP).sum::<usize>().saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::text("Name", 6, 0), Column::number("orders", 8, 2), Column::number("open", 4, 1)];

    fn drawn(width: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, 2);
        let mut buf = Buffer::empty(area);
        let row = ["maker", "1,234", "7"].map(|text| (text.to_owned(), palette::VALUE)).to_vec();
        render(area, &mut buf, &COLUMNS, &[row]);
        (0..2).map(|y| (0..width).map(|x| buf[(x, y)].symbol()).collect()).collect()
    }

    #[test]
    fn numbers_are_right_aligned_below_their_heading() {
        assert_eq!(drawn(22), ["Name      orders  open", "maker      1,234     7"]);
    }

    #[test]
    fn the_highest_rank_is_dropped_first_and_rank_0_stays() {
        assert_eq!(drawn(21), ["Name    open         ", "maker      7         "]);
        assert_eq!(drawn(7), ["Name   ", "maker  "]);
        assert_eq!(drawn(3), ["Nam", "mak"]);
    }
}
