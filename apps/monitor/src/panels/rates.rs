//! The rates per second, in one row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::data::Rates;
use crate::{format, palette};

pub fn render(area: Rect, buf: &mut Buffer, rates: &Rates) {
    if area.is_empty() {
        return;
    }
    let values = [rates.orders, rates.commands, rates.messages, rates.packets, rates.fills];
    let long = ["orders/s", "commands/s", "market messages/s", "packets/s", "fills/s"];
    let short = ["orders/s", "cmds/s", "msgs/s", "pkts/s", "fills/s"];
    let width = usize::from(area.width);
    let shorter = (1..=values.len()).rev().map(|kept| line(&short[..kept], &values, format::short_rate, 2));
    let form = [line(&long, &values, format::rate, 4), line(&short, &values, format::rate, 3)]
        .into_iter()
        .chain(shorter)
        .find(|line| line.width() <= width)
        .unwrap_or_default();
    buf.set_line(area.x, area.y, &form, area.width);
}

fn line(names: &[&'static str], values: &[f64], number: fn(f64) -> String, gap: usize) -> Line<'static> {
    let mut line = Line::raw(" ");
    for (index, (&name, &value)) in names.iter().zip(values).enumerate() {
        if index > 0 {
            line.push_span(" ".repeat(gap));
        }
        line.push_span(Span::styled(number(value), palette::VALUE));
        line.push_span(Span::styled(format!(" {name}"), palette::LABEL));
    }
    line
}
