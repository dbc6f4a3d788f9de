//! Reading of the messages that are applied in groups.

use std::hint::select_unpredictable;
use std::mem::offset_of;

use tickpath_book::{ChangeKind, OrderChange, OrderMessages};
use tickpath_nyse::{
    AddOrder, CrossCorrection, CrossTrade, DeleteOrder, Imbalance, ModifyOrder, NonDisplayedTrade,
    OrderExecution, PositionChange, PriceScale, ReplaceOrder, RetailPriceImprovement, SecurityStatus, Side,
    SourceTimeReference, TradeCancel,
};
use tickpath_types::{InstrumentId, OrderId, Price, Qty};

use super::state::order_key;

/// The place of the fields in a type of message.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Length of the latest version; 0 for a type that is not applied in a group, since the messages after it
    /// cannot be read before it is applied.
    len: u8,
    /// Offset of the symbol index, which the SymbolSeqNum follows; 0 for a type without them.
    symbol: u8,
    /// Offset of the price, which the volume and one more byte follow; 0 for a type that changes no order.
    window: u8,
    /// Offset of the order id by which later messages name the order.
    new_id: u8,
    kind: ChangeKind,
    effect: Effect,
}

/// The effect of a message, besides its SymbolSeqNum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Its update, if updates are wanted.
    Update,
    None,
    Other,
}

/// Price and volume, and a byte: the side of an add, the position change of a modification.
const WINDOW_LEN: usize = 9;
/// Length of the fields that all order messages begin with.
const HEAD_LEN: usize = 24;
const INDEX: usize = offset_of!(AddOrder, symbol_index);
const SEQ: usize = offset_of!(AddOrder, symbol_seq_num);
pub(super) const ORDER_ID: usize = offset_of!(AddOrder, order_id);

/// The layouts by type.
static LAYOUTS: [Layout; 256] = {
    const NONE: Layout =
        Layout { len: 0, symbol: 0, window: 0, new_id: 0, kind: ChangeKind::Delete, effect: Effect::Other };
    const fn order(kind: ChangeKind, len: usize, window: usize, new_id: usize) -> Layout {
        assert!(window + WINDOW_LEN <= len && new_id + size_of::<u64>() <= len && HEAD_LEN <= len);
        let (len, window, new_id) = (len as u8, window as u8, new_id as u8);
        Layout { len, symbol: INDEX as u8, window, new_id, kind, effect: Effect::Other }
    }
    const fn other(len: usize, symbol: usize, effect: Effect) -> Layout {
        Layout { len: len as u8, symbol: symbol as u8, effect, ..NONE }
    }
    let mut all = [NONE; 256];
    all[AddOrder::TYPE as usize] =
        order(ChangeKind::Add, AddOrder::LEN, offset_of!(AddOrder, price), ORDER_ID);
    all[ModifyOrder::TYPE as usize] =
        order(ChangeKind::ModifyEitherSide, ModifyOrder::LEN, offset_of!(ModifyOrder, price), ORDER_ID);
    // A delete has no price: the window is anywhere.
    all[DeleteOrder::TYPE as usize] =
        order(ChangeKind::Delete, DeleteOrder::LEN, DeleteOrder::LEN - WINDOW_LEN, ORDER_ID);
    all[OrderExecution::TYPE as usize] =
        order(ChangeKind::Reduce, OrderExecution::LEN, offset_of!(OrderExecution, price), ORDER_ID);
    all[ReplaceOrder::TYPE as usize] = order(
        ChangeKind::Replace,
        ReplaceOrder::LEN,
        offset_of!(ReplaceOrder, price),
        offset_of!(ReplaceOrder, new_order_id),
    );
    all[SourceTimeReference::TYPE as usize] = other(SourceTimeReference::LEN, 0, Effect::Other);
    all[SecurityStatus::TYPE as usize] =
        other(SecurityStatus::LEN, offset_of!(SecurityStatus, symbol_index), Effect::Other);
    all[Imbalance::TYPE as usize] = other(Imbalance::LEN, offset_of!(Imbalance, symbol_index), Effect::None);
    all[NonDisplayedTrade::TYPE as usize] = other(NonDisplayedTrade::LEN, INDEX, Effect::Update);
    all[CrossTrade::TYPE as usize] = other(CrossTrade::LEN, INDEX, Effect::Update);
    all[TradeCancel::TYPE as usize] = other(TradeCancel::LEN, INDEX, Effect::None);
    all[CrossCorrection::TYPE as usize] = other(CrossCorrection::LEN, INDEX, Effect::None);
    all[RetailPriceImprovement::TYPE as usize] = other(RetailPriceImprovement::LEN, INDEX, Effect::None);
    all
};

/// Index in [`Side::BOTH`](tickpath_types::Side::BOTH) by the code of a side; 2 for another code.
static SIDES: [u8; 256] = {
    let mut all = [2; 256];
    all[Side::BUY.0 as usize] = 0;
    all[Side::SELL.0 as usize] = 1;
    all
};

const _: () = {
    assert!(offset_of!(ModifyOrder, order_id) == ORDER_ID && offset_of!(DeleteOrder, order_id) == ORDER_ID);
    assert!(offset_of!(OrderExecution, order_id) == ORDER_ID);
    assert!(offset_of!(ReplaceOrder, order_id) == ORDER_ID);
    assert!(ORDER_ID + size_of::<u64>() == HEAD_LEN && SEQ == INDEX + 4);
    assert!(offset_of!(SecurityStatus, symbol_seq_num) == offset_of!(SecurityStatus, symbol_index) + 4);
    assert!(offset_of!(Imbalance, symbol_seq_num) == offset_of!(Imbalance, symbol_index) + 4);
    assert!(offset_of!(AddOrder, side) == offset_of!(AddOrder, price) + WINDOW_LEN - 1);
    assert!(offset_of!(ModifyOrder, position_change) == offset_of!(ModifyOrder, price) + WINDOW_LEN - 1);
    assert!(offset_of!(OrderExecution, volume) == offset_of!(OrderExecution, price) + 4);
    assert!(offset_of!(ReplaceOrder, volume) == offset_of!(ReplaceOrder, price) + 4);
};

impl Layout {
    /// Returns the layout of a message that can be applied in a group. A message of an earlier version or of
    /// another length than its header states cannot.
    #[inline(always)]
    pub(super) fn of(message: &[u8]) -> Option<Layout> {
        let &[len_low, len_high, message_type, high, ..] = message else { return None };
        let layout = LAYOUTS[usize::from(message_type)];
        let len = usize::from(u16::from_le_bytes([len_low, len_high]));
        let is_usual = layout.len != 0 && len >= usize::from(layout.len) && high == 0 && len == message.len();
        is_usual.then_some(layout)
    }

    /// Returns the layout of a message for which [`of`](Self::of) has found one.
    #[inline(always)]
    pub(super) fn of_usual(message: &[u8]) -> Option<Layout> {
        Some(LAYOUTS[usize::from(*message.get(2)?)])
    }

    /// False for a message that has no effect but its SymbolSeqNum.
    #[inline(always)]
    pub(super) const fn has_effect(self, wants_updates: bool) -> bool {
        match self.effect {
            Effect::Other => true,
            Effect::Update => wants_updates,
            Effect::None => false,
        }
    }

    /// Returns the symbol index and the SymbolSeqNum of a message; `None` for a type without them.
    #[inline(always)]
    pub(super) fn symbol(self, message: &[u8]) -> Option<(u32, u32)> {
        let at = usize::from(self.symbol);
        let fields: &[[u8; 4]; 2] = message.get(at..at + 8)?.as_chunks().0.first_chunk()?;
        (at != 0).then(|| (u32::from_le_bytes(fields[0]), u32::from_le_bytes(fields[1])))
    }

    /// Returns the change that an order message makes; `None` for another message, or one with a value that no
    /// order can have. `scale` is that of the symbol's prices.
    ///
    /// No branch depends on the type, since a CPU cannot predict the order of types: every field is read from
    /// every message, and the layout tells where.
    #[inline(always)]
    pub(super) fn change(
        self,
        message: &[u8],
        instrument: InstrumentId,
        scale: PriceScale,
    ) -> Option<Decoded> {
        if self.window == 0 {
            return None;
        }
        let head = message.first_chunk::<HEAD_LEN>()?;
        let (window, new_id) = (usize::from(self.window), usize::from(self.new_id));
        let window: &[u8; WINDOW_LEN] = message.get(window..window + WINDOW_LEN)?.first_chunk()?;
        let new_id: &[u8; 8] = message.get(new_id..new_id + 8)?.first_chunk()?;
        let [p0, p1, p2, p3, v0, v1, v2, v3, byte] = *window;
        let (is_add, is_modify) = (self.kind == ChangeKind::Add, self.kind == ChangeKind::ModifyEitherSide);
        // Only an added order states its side.
        let side = SIDES[usize::from(select_unpredictable(is_add, byte, Side::BUY.0))];
        let price = scale.price(u32::from_le_bytes([p0, p1, p2, p3]));
        let needs_price = is_add | is_modify | (self.kind == ChangeKind::Replace);
        let is_refused = select_unpredictable(needs_price, price.is_none(), false);
        let side = *tickpath_types::Side::BOTH.get(usize::from(side)).filter(|_| !is_refused)?;
        // A modified order that loses its place is added again.
        let is_lost = is_modify & (byte == PositionChange::LOST.0);
        let order_id = u64::from_le_bytes(*head.last_chunk()?);
        let change = OrderChange {
            kind: select_unpredictable(is_lost, ChangeKind::Replace, self.kind),
            id: order_key(OrderId(order_id)),
            instrument,
            side,
            price: price.unwrap_or(Price(0)),
            qty: Qty(u32::from_le_bytes([v0, v1, v2, v3]).into()),
        };
        Some(Decoded { change, new_id: *new_id })
    }
}

/// An order message. Orders are named by their keys, see [`order_key`].
pub(super) struct Decoded {
    pub(super) change: OrderChange,
    /// The order's id after the message.
    new_id: [u8; 8],
}

impl Decoded {
    /// The key of the order after the message.
    #[inline(always)]
    pub(super) const fn new_key(&self) -> OrderId {
        order_key(OrderId(u64::from_le_bytes(self.new_id)))
    }
}

/// The protocol of decoded messages.
pub(super) struct XdpOrders;

impl OrderMessages<Option<Decoded>> for XdpOrders {
    #[inline(always)]
    fn change(&self, message: &Option<Decoded>) -> Option<OrderChange> {
        message.as_ref().map(|decoded| decoded.change)
    }

    #[inline(always)]
    fn new_id(&self, message: &Option<Decoded>) -> OrderId {
        message.as_ref().map_or(OrderId(0), Decoded::new_key)
    }
}
