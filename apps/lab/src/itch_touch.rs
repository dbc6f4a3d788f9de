//! The memory that the messages of an ITCH day need.

use anyhow::ensure;
use tickpath_types::{Nanos, Price, Qty};

use crate::itch_books::frames;
use crate::itch_orders::{self, Order, OrderListener};
use crate::touch::{Recorder, side_index};

/// Prepares a loop that touches the memory that the messages of a day's file need, see [`Recorder::finish`].
/// `live` orders must rest at the end.
pub(crate) fn prepare(file: &[u8], live: u32) -> anyhow::Result<Box<dyn FnMut() -> u64>> {
    let mut recorder = Recorder::default();
    for message in frames(file) {
        itch_orders::apply(message, &mut recorder)?;
    }
    let found = recorder.order_count();
    ensure!(found == live as usize, "{found} orders with recorded memory rest at the end, and {live} should");
    Ok(recorder.finish())
}

impl OrderListener for Recorder {
    fn add(&mut self, _: Nanos, order: Order) -> anyhow::Result<()> {
        let Order { id, instrument, side, price, qty } = order;
        self.add(id, side_index(instrument, side), price, qty);
        Ok(())
    }

    fn remove(&mut self, _: Nanos, id: u64) -> anyhow::Result<()> {
        self.remove(id);
        Ok(())
    }

    fn reduce(&mut self, _: Nanos, id: u64, by: Qty) -> anyhow::Result<()> {
        self.reduce(id, by);
        Ok(())
    }

    fn replace(&mut self, _: Nanos, id: u64, new_id: u64, price: Price, qty: Qty) -> anyhow::Result<()> {
        self.replace(id, new_id, price, qty);
        Ok(())
    }
}
