//! A recorded event, in the same form for all formats.

use tickpath_types::{Price, Qty, Side, SystemEventCode, TradingState};

/// One order-by-order event of a recording.
///
/// Apply the events in order to rebuild the book: `Add`, `Delete`, `Reduce`, `Modify`, `Replace` and `Clear`
/// change it, and so does `Fill`, which takes its quantity off the resting order. Some recordings repeat the
/// outcome of a fill (a `Modify` to the open quantity, a `Delete` of a removed order); these events then
/// change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Time of the event at the venue, in nanoseconds since [`RecordingInfo::time_base`].
    pub ts_ns: u64,
    /// Index of the instrument's symbol in [`Source::symbols`](crate::Source::symbols).
    pub instrument: u32,
    /// True for the last event of a transaction of the venue. Within a transaction, events are in the order
    /// of the venue's reports, which may differ from the order of execution.
    pub ends_transaction: bool,
    /// True for an event of a book snapshot: its order was entered before the snapshot.
    pub is_snapshot: bool,
    /// Kind and content of the event.
    pub kind: EventKind,
}

impl RecordedEvent {
    /// A placeholder event that a reader overwrites.
    pub const NOTHING: RecordedEvent = RecordedEvent {
        ts_ns: 0,
        instrument: 0,
        ends_transaction: false,
        is_snapshot: false,
        kind: EventKind::Ignored(IgnoredReason::OtherRecord),
    };
}

/// Side and price of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Side of the order.
    pub side: Side,
    /// Price of the order, in the recording's units: see [`RecordingInfo::price_decimals`].
    pub price: Price,
}

/// The kinds of recorded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A new order rests at the tail of its level.
    Add {
        /// The venue's reference of the order.
        order_id: u64,
        /// Side and price of the order.
        level: Level,
        /// Quantity of the order.
        qty: Qty,
    },
    /// A resting order is removed.
    Delete {
        /// Reference of the order.
        order_id: u64,
        /// Side and price of the order, if recorded.
        level: Option<Level>,
        /// The removed quantity, if recorded.
        qty: Option<Qty>,
    },
    /// A resting order is reduced and keeps its priority.
    Reduce {
        /// Reference of the order.
        order_id: u64,
        /// The quantity taken off the order.
        by: Qty,
        /// Side and price of the order, if recorded.
        level: Option<Level>,
    },
    /// New price and quantity of a resting order. At another price or with a larger quantity it moves to the
    /// tail of its level; otherwise it keeps its priority.
    Modify {
        /// Reference of the order.
        order_id: u64,
        /// New side and price of the order.
        level: Level,
        /// New quantity of the order.
        qty: Qty,
    },
    /// A resting order is removed, and a new order of the same side joins the tail of the level at `price`.
    Replace {
        /// Reference of the removed order.
        order_id: u64,
        /// Reference of the new order.
        new_order_id: u64,
        /// Price of the new order.
        price: Price,
        /// Quantity of the new order.
        qty: Qty,
    },
    /// A resting order traded.
    Fill {
        /// Reference of the order.
        order_id: u64,
        /// The executed quantity.
        qty: Qty,
        /// Side of the order, if recorded.
        side: Option<Side>,
        /// Price of the trade; `None` if not recorded: the order then traded at its own price.
        price: Option<Price>,
        /// True for an execution in an auction, which has no incoming order.
        in_auction: bool,
    },
    /// A published trade. It does not change the book; other events report changes of resting orders.
    Trade {
        /// Reference of the incoming order; 0 for none.
        order_id: u64,
        /// The price of the trade.
        price: Price,
        /// The traded quantity.
        qty: Qty,
        /// Side of the incoming order; `None` when there is none or it is not recorded.
        aggressor: Option<Side>,
        /// True when the resting order was hidden: the book never contained it.
        is_hidden: bool,
    },
    /// All orders of the instrument are removed.
    Clear,
    /// The state of the instrument or of the session changes.
    Status(Status),
    /// A record that the replay does not apply, with the reason.
    Ignored(IgnoredReason),
}

impl EventKind {
    /// Side and price of the event's order, if recorded; `None` for a `Replace` and a fill in an auction.
    #[must_use]
    #[inline]
    pub fn level(&self) -> Option<Level> {
        match *self {
            EventKind::Add { level, .. } | EventKind::Modify { level, .. } => Some(level),
            EventKind::Delete { level, .. } | EventKind::Reduce { level, .. } => level,
            EventKind::Fill { side, price, in_auction: false, .. } => {
                side.zip(price).map(|(side, price)| Level { side, price })
            }
            _ => None,
        }
    }
}

/// A new trading state of an instrument, or a system event of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The trading state of the instrument.
    Trading(TradingState),
    /// A system event of the session.
    System(SystemEventCode),
}

/// The reason why the replay does not apply a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IgnoredReason {
    /// A record of another kind, such as a definition, a statistic or an imbalance.
    OtherRecord,
    /// The record's price is undefined.
    PriceNotRepresentable,
    /// A field has a value that the format does not allow.
    InvalidField,
    /// The message's length does not match its type, or its type is unknown.
    MalformedMessage,
    /// A trade break: it cancels a published trade, and the book is unchanged.
    BrokenTrade,
}

/// The epoch of a recording's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBase {
    /// 1970-01-01 UTC.
    UnixEpoch,
    /// Midnight of the venue's day.
    Midnight,
}

/// The part of the book that the recording covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every order.
    Full,
    /// Only events that touch the best levels; deeper orders are added, changed and removed without reports.
    Partial {
        /// Number of covered levels per side, if known.
        levels: Option<u32>,
    },
}

/// The properties of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingInfo {
    /// Epoch of the recording's times.
    pub time_base: TimeBase,
    /// The covered part of the book.
    pub depth: Depth,
    /// True when one `Fill` may sum several displayed slices of one order, so that it may exceed the
    /// displayed quantity.
    pub sums_fills: bool,
    /// Number of decimals of prices: 4, as in [`Price`], or the number that the format defines.
    pub price_decimals: u8,
}

impl RecordingInfo {
    /// Properties of a recording that reports every order, and whose times count from midnight.
    pub const ORDER_BY_ORDER: RecordingInfo = RecordingInfo {
        time_base: TimeBase::Midnight,
        depth: Depth::Full,
        sums_fills: false,
        price_decimals: PRICE_DECIMALS,
    };
}

/// Number of decimals of [`Price`].
pub const PRICE_DECIMALS: u8 = Price::DECIMALS as u8;
