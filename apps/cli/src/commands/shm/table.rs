//! A text table, coloured on a terminal.

/// Separator between columns.
const GAP: &str = "  ";

/// Colour of a row's second column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Plain,
    Green,
    Yellow,
    Red,
}

/// Adds the terminal codes of a colour to a text.
pub fn paint(text: &str, colour: Colour) -> String {
    let code = match colour {
        Colour::Plain => return text.to_owned(),
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Rows under a header; the first two columns are left-aligned, the others right-aligned.
pub struct Table {
    rows: Vec<(Colour, Vec<String>)>,
}

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![(Colour::Plain, head.iter().map(ToString::to_string).collect())] }
    }

    pub fn row(&mut self, colour: Colour, cells: Vec<String>) {
        self.rows.push((colour, cells));
    }

    /// Returns the lines without a final line end, each truncated to `width` characters.
    pub fn text(&self, is_terminal: bool, width: usize) -> String {
        let columns = self.rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        let widest = |column: usize| {
            self.rows.iter().filter_map(|(_, cells)| cells.get(column)).map(String::len).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let line = |(colour, cells): &(Colour, Vec<String>)| {
            let (mut text, mut left) = (Vec::with_capacity(cells.len()), width);
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                if left == 0 {
                    break;
                }
                let mut padded =
                    if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                padded.truncate(left);
                left = left.saturating_sub(width + GAP.len());
                text.push(if column == 1 && is_terminal { paint(&padded, *colour) } else { padded });
            }
            text.join(GAP).trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_colours_are_for_terminals() {
        let mut table = Table::new(&["NAME", "STATE", "N"]);
        table.row(Colour::Green, ["a", "alive", "1,000"].map(str::to_owned).to_vec());
        assert_eq!(table.text(false, usize::MAX), "NAME  STATE      N\na     alive  1,000");
        assert_eq!(table.text(true, usize::MAX).lines().last(), Some("a     \x1b[32malive\x1b[0m  1,000"));
        assert_eq!(table.text(false, 16), "NAME  STATE\na     alive  1,0");
        assert_eq!(table.text(true, 13), "NAME  STATE\na     \x1b[32malive\x1b[0m");
        assert_eq!(table.text(false, 9), "NAME  STA\na     ali");
    }
}
