//! The memory that the messages of an ITCH day need.

use anyhow::Context as _;
use tickpath_nasdaq::itch50::Message;

use crate::itch_books::frames;
use crate::touch::{Recorder, side_index};

/// Prepares a loop that touches the memory that the messages of a day's file need, see [`Recorder::finish`].
pub(crate) fn prepare(file: &[u8]) -> anyhow::Result<Box<dyn FnMut() -> u64>> {
    let mut recorder = Recorder::default();
    for message in frames(file) {
        match Message::parse(message).context("a message of a day")? {
            Message::AddOrder(add) => {
                let side = side_index(add.stock_locate.get().0, add.side.side().context("a side")?);
                recorder.add(add.order_ref.get().0, side, add.price.get(), add.shares.get());
            }
            Message::AddOrderMpid(add) => {
                let side = side_index(add.stock_locate.get().0, add.side.side().context("a side")?);
                recorder.add(add.order_ref.get().0, side, add.price.get(), add.shares.get());
            }
            Message::OrderDelete(delete) => {
                recorder.remove(delete.order_ref.get().0);
            }
            Message::OrderReplace(replace) => recorder.replace(
                replace.original_order_ref.get().0,
                replace.new_order_ref.get().0,
                replace.price.get(),
                replace.shares.get(),
            ),
            Message::OrderExecuted(executed) => {
                recorder.reduce(executed.order_ref.get().0, executed.executed_shares.get());
            }
            Message::OrderExecutedWithPrice(executed) => {
                recorder.reduce(executed.order_ref.get().0, executed.executed_shares.get());
            }
            Message::OrderCancel(cancel) => {
                recorder.reduce(cancel.order_ref.get().0, cancel.canceled_shares.get());
            }
            _ => {}
        }
    }
    recorder.finish()
}
