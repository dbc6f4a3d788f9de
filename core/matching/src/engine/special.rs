//! Special orders: hidden, displayed in part, stop, GTT and GTC orders.

use tickpath_book::OrderHandle;
use tickpath_types::{
    EnterOrder, Liquidity, Nanos, OrderInstructions, Qty, SessionId, TimeInForce, UserRefNum,
};
use xxhash_rust::xxh3::Xxh3;

use crate::codec::{CodecError, Field, FieldReader, FieldWriter, hash_field};

/// Bit set in the index handle of an order that has an entry in [`Specials`].
const TAG: u32 = 1 << 31;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// An open special order: hidden, displayed in part, waiting for its stop price, GTT or GTC.
///
/// Its open quantity is in the books of the layers in which it has a part. The part in the first of these
/// layers also stores its executed quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpecialOrder {
    pub(super) session: SessionId,
    /// The order as entered, under its current `UserRefNum`. Its quantities are in the books instead.
    pub(super) order: EnterOrder,
    /// Entry number: greater than those of all orders entered before.
    pub(super) entry: u64,
    /// Units of `max_special_orders` that the order takes.
    pub(super) parts: u32,
    /// Handle of the order's part in each [`Layer`].
    pub(super) in_layers: [Option<OrderHandle>; 3],
}

/// The three books that a part of an order can rest in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Displayed,
    Hidden,
    /// Orders that wait for their stop price and cannot trade.
    Stop,
}

impl Layer {
    pub(super) const ALL: [Layer; 3] = [Layer::Displayed, Layer::Hidden, Layer::Stop];

    /// Liquidity flag of a resting part that trades.
    pub(super) const fn liquidity(self) -> Liquidity {
        match self {
            Layer::Displayed => Liquidity::Added,
            Layer::Hidden | Layer::Stop => Liquidity::AddedHidden,
        }
    }
}

impl SpecialOrder {
    pub(super) const fn part(&self, layer: Layer) -> Option<OrderHandle> {
        self.in_layers[layer as usize]
    }

    pub(super) const fn set_part(&mut self, layer: Layer, part: Option<OrderHandle>) {
        self.in_layers[layer as usize] = part;
    }

    /// The order's session and `UserRefNum`.
    pub(super) const fn name(&self) -> (SessionId, UserRefNum) {
        (self.session, self.order.user_ref)
    }

    pub(super) fn instructions(&self) -> OrderInstructions {
        self.order.special.unwrap_or_default()
    }

    /// The order as its session would enter it with the intended size `qty`.
    pub(super) fn as_entered(&self, qty: Qty) -> EnterOrder {
        let special = self.order.special.filter(|instructions| *instructions != OrderInstructions::default());
        EnterOrder { qty, min_qty: Qty::ZERO, special, ..self.order }
    }

    fn expiry(&self) -> Option<Nanos> {
        (self.order.time_in_force == TimeInForce::Gtt).then(|| expiry(&self.instructions()))
    }

    /// True for an order whose expiry time is at or before `now`.
    pub(super) fn is_expired(&self, now: Nanos) -> bool {
        self.expiry().is_some_and(|expiry| expiry <= now)
    }
}

/// True when the index handle refers to an entry of [`Specials`] instead of an order in the books.
#[inline(always)]
pub(super) const fn is_special(handle: OrderHandle) -> bool {
    handle.slot() & TAG != 0
}

/// True for an order that gets an entry in [`Specials`] if it rests.
#[inline]
pub(super) const fn needs_entry(order: &EnterOrder) -> bool {
    order.special.is_some() || matches!(order.time_in_force, TimeInForce::Gtt | TimeInForce::Gtc)
}

/// Units of `max_special_orders` that an order takes: one, and one more per part if it is displayed in parts.
pub(super) fn parts_of(order: &EnterOrder) -> u64 {
    match order.special {
        Some(instructions) if !instructions.display_qty.is_zero() => {
            1 + order.qty.0.div_ceil(instructions.display_qty.0)
        }
        _ => 1,
    }
}

/// The time at which an order with these instructions expires.
pub(super) const fn expiry(instructions: &OrderInstructions) -> Nanos {
    Nanos(instructions.expire_at as u64 * NANOS_PER_SECOND)
}

/// Order instructions encoded as in the log. Snapshots and the state hash use the two parts separately.
pub(super) struct InstructionBytes {
    pub(super) leading: [u8; LEADING_LEN],
    pub(super) trailing: [u8; OrderInstructions::LEN - LEADING_LEN],
}

const LEADING_LEN: usize = 20;

impl InstructionBytes {
    pub(super) fn of(instructions: OrderInstructions) -> InstructionBytes {
        let mut bytes = [0; OrderInstructions::LEN];
        OrderInstructions::write(instructions, &mut FieldWriter(&mut bytes));
        let mut parts = FieldReader(&bytes);
        InstructionBytes { leading: parts.take(), trailing: parts.take() }
    }

    pub(super) fn instructions(&self) -> Result<OrderInstructions, CodecError> {
        let mut bytes = [0; OrderInstructions::LEN];
        let mut parts = FieldWriter(&mut bytes);
        parts.put(self.leading);
        parts.put(self.trailing);
        OrderInstructions::read("terms", &mut FieldReader(&bytes))
    }
}

/// The entries of special orders, in slots that do not move.
#[derive(Clone, Debug)]
pub(super) struct Specials {
    orders: Vec<Option<SpecialOrder>>,
    free: Vec<u32>,
    /// Units of `max_special_orders` in use.
    parts: u64,
    max_parts: u64,
    pub(super) last_entry: u64,
    /// Lower bound of the next expiry of a GTT order.
    next_expiry: Nanos,
}

impl Specials {
    pub(super) fn new(max_parts: u32) -> Specials {
        Specials {
            orders: vec![None; max_parts as usize],
            free: (0..max_parts).rev().collect(),
            parts: 0,
            max_parts: u64::from(max_parts),
            last_entry: 0,
            next_expiry: Nanos(u64::MAX),
        }
    }

    pub(super) fn has_capacity(&self, parts: u64) -> bool {
        parts <= self.max_parts - self.parts
    }

    /// Adds an entry for the order, under a new entry number.
    pub(super) fn insert(&mut self, mut order: SpecialOrder) -> OrderHandle {
        self.last_entry += 1;
        order.entry = self.last_entry;
        self.restore(order)
    }

    /// As `insert`, but keeps the order's entry number.
    pub(super) fn restore(&mut self, order: SpecialOrder) -> OrderHandle {
        self.next_expiry = order.expiry().unwrap_or(Nanos(u64::MAX)).min(self.next_expiry);
        self.parts += u64::from(order.parts);
        let place = self.free.pop().expect("room was checked on entry");
        self.orders[place as usize] = Some(order);
        OrderHandle::new(TAG | place).expect("the tag is not zero")
    }

    pub(super) fn remove(&mut self, handle: OrderHandle) -> SpecialOrder {
        let place = handle.slot() & !TAG;
        let order = self.orders[place as usize].take().expect("the index knows only open orders");
        self.parts -= u64::from(order.parts);
        self.free.push(place);
        order
    }

    pub(super) fn order(&self, handle: OrderHandle) -> &SpecialOrder {
        self.orders[(handle.slot() & !TAG) as usize].as_ref().expect("the index knows only open orders")
    }

    pub(super) fn order_mut(&mut self, handle: OrderHandle) -> &mut SpecialOrder {
        self.orders[(handle.slot() & !TAG) as usize].as_mut().expect("the index knows only open orders")
    }

    /// All entries, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (OrderHandle, &SpecialOrder)> {
        let handle = |place: usize| OrderHandle::new(TAG | place as u32).expect("the tag is not zero");
        let orders = self.orders.iter().enumerate();
        orders.filter_map(move |(place, order)| Some((handle(place), order.as_ref()?)))
    }

    /// False when no order can have expired by `now`.
    pub(super) fn may_expire(&self, now: Nanos) -> bool {
        now >= self.next_expiry
    }

    /// Recomputes `next_expiry` from all entries.
    pub(super) fn update_expiry(&mut self) {
        let expiries = self.iter().filter_map(|(_, order)| order.expiry());
        self.next_expiry = expiries.min().unwrap_or(Nanos(u64::MAX));
    }

    /// Adds all entries to the digest in the order of entry, whatever their slots. Allocates.
    pub(super) fn hash(&self, hasher: &mut Xxh3) {
        let mut orders: Vec<&SpecialOrder> = self.iter().map(|(_, order)| order).collect();
        orders.sort_unstable_by_key(|order| order.entry);
        hash_field(self.last_entry, hasher);
        for special in orders {
            let order = &special.order;
            hash_field(special.entry, hasher);
            hash_field(special.session, hasher);
            hash_field(order.user_ref, hasher);
            hash_field(order.instrument, hasher);
            hash_field(order.price, hasher);
            hasher.update(&[order.side as u8, order.time_in_force as u8, u8::from(order.post_only)]);
            let instructions = InstructionBytes::of(special.instructions());
            hasher.update(&instructions.trailing);
            hasher.update(&instructions.leading);
            hash_field(special.parts, hasher);
            hash_field(order.client_order_id, hasher);
            hash_field(order.attributes, hasher);
            hasher.update(&special.in_layers.map(|part| u8::from(part.is_some())));
        }
    }
}
