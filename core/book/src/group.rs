//! Groups of order changes that are applied together, so that their cache misses overlap.

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// A change of an order, as a message states it.
#[derive(Clone, Copy, Debug)]
pub struct OrderChange {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The order's id; for a replacement, that of the old order.
    pub id: OrderId,
    /// The instrument in whose book the order rests.
    pub instrument: InstrumentId,
    /// Side of an added order, and of the order of a [`ChangeKind::Modify`].
    pub side: Side,
    /// Price of an added, new or modified order.
    pub price: Price,
    /// Quantity of an added, new or modified order; for a reduction, the quantity by which the order is reduced.
    pub qty: Qty,
}

/// The kind of an [`OrderChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChangeKind {
    /// A new order.
    Add = Operation::ADDS,
    /// An order loses a part of its quantity, or all of it and is removed.
    Reduce = Operation::REDUCES,
    /// An order is removed.
    Delete = 0,
    /// An order is removed, and a new one of the same side is added.
    Replace = Operation::REPLACES,
    /// An order gets another price or quantity. With the same price and at most the same quantity it keeps its
    /// place in the queue. With another price it moves to the tail of the level there, under the id that
    /// [`OrderMessages::new_id`] returns. Venues differ in the rule for a larger quantity at the same price, so
    /// that is an exception, as is an order on the other side.
    Modify = Operation::MODIFIES | Operation::REPLACES | Operation::STATES_SIDE,
    /// As `Modify`, by a message without the side of the order.
    ModifyEitherSide = Operation::MODIFIES | Operation::REPLACES,
}

/// Decodes the messages `M` of a protocol for [`BooksById::prepare`](crate::BooksById::prepare).
pub trait OrderMessages<M> {
    /// The change that a message makes to an order; `None` for a message that makes no such change.
    fn change(&self, message: &M) -> Option<OrderChange>;

    /// True if a message without a change of an order changes nothing else either. It is then no exception: no
    /// step names it.
    #[inline]
    fn is_without_effect(&self, message: &M) -> bool {
        let _ = message;
        false
    }

    /// Id of the new order of a [`ChangeKind::Replace`], or of a modified order.
    fn new_id(&self, message: &M) -> OrderId;
}

/// The reason why [`BooksById::advance`](crate::BooksById::advance) stopped. `index` is the number of the
/// message in its group, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All changes were applied.
    Done,
    /// This change needs care and has not been applied: the caller applies it by the methods for single
    /// orders, which also find its errors.
    Exception {
        /// Number of the change.
        index: usize,
    },
    /// The old order of this replacement was removed, or the modified order; the caller adds the new one on this
    /// side.
    NewOrderException {
        /// Number of the change.
        index: usize,
        /// Side of the old order.
        side: Side,
    },
    /// This change was applied. Stops here only for a caller that wants reports, and after an add that crosses
    /// the book.
    Applied {
        /// Number of the change.
        index: usize,
        /// Side of the order.
        side: Side,
        /// Price of the order.
        price: Price,
        /// Quantity added, or removed.
        qty: Qty,
        /// True if an order was added, also as a replacement or at a new price.
        is_added: bool,
        /// True if an added order would trade with the best order of the opposite side. Also true for one of the
        /// best price there is: the caller checks whether the opposite side has an order.
        crosses: bool,
    },
}

impl Step {
    /// The number of the change that the step is about; `None` if all are done.
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> Option<usize> {
        match self {
            Step::Done => None,
            Step::Exception { index }
            | Step::NewOrderException { index, .. }
            | Step::Applied { index, .. } => Some(index),
        }
    }
}

/// A decoded change and the places in the books that it probably needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// Key of an added or modified order; the price of a replacement's new order while its side is unknown.
    pub(crate) key: i64,
    /// Tag of the order's id.
    pub(crate) tag: u32,
    /// First slot of the order's home bucket; NIL for a change that is not ordinary.
    pub(crate) home: u32,
    pub(crate) qty: u32,
    /// Record of an added order's cell, or `NO_LEVEL` for another change, or if the side is unknown. If the order's
    /// level is outside the cells, its record after the second pass, or NIL.
    pub(crate) level: u32,
    /// Side index of an added order; for other changes that of either side of the instrument.
    pub(crate) side: u32,
    /// Lower bits of the number of grid steps to an added order, see [`Cell`](crate::levels::Cell).
    pub(crate) steps: u16,
    /// Bits of the kind.
    pub(crate) kind: u8,
    /// Number of its message in the group.
    pub(crate) message: u8,
}

impl Operation {
    /// An order is entered.
    pub(crate) const ADDS: u8 = 1;
    /// An order loses `qty`, which may be less than it has.
    pub(crate) const REDUCES: u8 = 2;
    /// A replacement's old order is removed; the next operation adds the new one.
    pub(crate) const REPLACES: u8 = 4;
    /// With [`ADDS`](Operation::ADDS): the new order of a replacement.
    pub(crate) const IS_NEW: u8 = 8;
    /// With [`REPLACES`](Operation::REPLACES): an order at the same price keeps its place and gets `qty`.
    pub(crate) const MODIFIES: u8 = 16;
    /// With [`MODIFIES`](Operation::MODIFIES): the order is on `side`, not on either side of the instrument.
    pub(crate) const STATES_SIDE: u8 = 32;

    /// Tag for an order whose id is in [`OrderGroup::ids`].
    pub(crate) const TAG_OF_ID: u32 = u32::MAX - 1;
    /// Another null record than NIL.
    pub(crate) const NO_LEVEL: u32 = 1;

    pub(crate) const NONE: Operation = Operation {
        key: 0,
        tag: u32::MAX,
        home: 0,
        qty: 0,
        level: Operation::NO_LEVEL,
        side: 0,
        steps: 0,
        kind: 0,
        message: 0,
    };
}

/// Maximum number of operations of a group: a replacement or modification has two, any other message one.
pub(crate) const OPERATIONS_MAX: usize = 2 * OrderGroup::LEN_MAX;

/// Up to 32 changes of orders for [`BooksById::prepare`](crate::BooksById::prepare) and
/// [`BooksById::advance`](crate::BooksById::advance). Reuse a group, since creating one takes time.
#[derive(Clone, Debug)]
pub struct OrderGroup {
    pub(crate) operations: Box<[Operation; OPERATIONS_MAX]>,
    pub(crate) len: usize,
    /// Index of the next operation.
    pub(crate) at: usize,
    /// Ids of operations on orders whose ids are too large for an exact tag.
    pub(crate) ids: Box<[u64; OPERATIONS_MAX]>,
    /// Identifies the tables of the books that prepared the group: the places of its operations exist only there.
    pub(crate) shape: [u64; 4],
    /// True if the last operation was applied outside the cells.
    pub(crate) is_outside: bool,
    /// Number of grid changes when the cells were computed.
    pub(crate) grid_changes: u32,
}

impl Default for OrderGroup {
    fn default() -> OrderGroup {
        OrderGroup {
            operations: Box::new([Operation::NONE; OPERATIONS_MAX]),
            len: 0,
            at: 0,
            ids: Box::new([0; OPERATIONS_MAX]),
            shape: [0; 4],
            is_outside: false,
            grid_changes: 0,
        }
    }
}

impl OrderGroup {
    /// Maximum number of changes: enough to overlap their cache misses, few enough that prefetched data stays
    /// in the nearest cache until it is used.
    pub const LEN_MAX: usize = 32;

    /// Makes each change that is not applied yet an exception. Call this between two steps.
    pub fn except_rest(&mut self) {
        // No books have this shape.
        self.shape = [u64::MAX; 4];
    }

    /// Makes each message an exception.
    pub(crate) fn fill_with_exceptions<M>(&mut self, messages: impl Iterator<Item = M>) {
        (self.len, self.at) = (messages.take(OrderGroup::LEN_MAX).count(), 0);
    }

    /// The next of the exceptions of [`fill_with_exceptions`](Self::fill_with_exceptions).
    #[inline]
    pub(crate) const fn next_exception(&mut self) -> Step {
        if self.at == self.len {
            return Step::Done;
        }
        self.at += 1;
        Step::Exception { index: self.at - 1 }
    }
}
