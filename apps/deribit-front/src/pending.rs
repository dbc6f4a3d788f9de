//! Requests that wait for the log.

use tickpath_deribit::codes::CancelReason;
use tickpath_deribit::envelope::Id;
use tickpath_deribit::text::Text;
use tickpath_fix::Decimal as FixDecimal;
use tickpath_fix::deribit::SideCode;
use tickpath_types::{OrderRequest, Price, Qty, Side};

use crate::fault::Fault;
use crate::order::{Extra, Terms, UserTrade};

/// A request's id, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestId {
    Number(i64),
    Text(String),
    /// By FIX.
    Fix(Box<FixRequest>),
}

/// A request by FIX, as far as its answer repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FixRequest {
    /// MsgSeqNum.
    pub(crate) sequence: u64,
    pub(crate) kind: FixKind,
    /// ClOrdID; empty for none.
    pub(crate) client_id: String,
    /// OrigClOrdID; empty for none.
    pub(crate) order_id: String,
    /// DeribitLabel; empty for none.
    pub(crate) label: String,
    pub(crate) symbol: String,
    pub(crate) side: SideCode,
    pub(crate) qty: FixDecimal,
    pub(crate) price: Option<FixDecimal>,
}

impl FixRequest {
    /// A request of nothing yet.
    pub(crate) fn of(sequence: u64, kind: FixKind) -> FixRequest {
        FixRequest {
            sequence,
            kind,
            client_id: String::new(),
            order_id: String::new(),
            label: String::new(),
            symbol: String::new(),
            side: SideCode::BUY,
            qty: FixDecimal::ZERO,
            price: None,
        }
    }
}

/// What is asked by FIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixKind {
    Enter,
    Replace,
    Cancel,
    /// Of so many types (MassCancelRequestType).
    MassCancel(u64),
    Quote,
    /// Of so many types (QuoteCancelType).
    CancelQuotes(u64),
}

impl From<Id<'_>> for RequestId {
    fn from(id: Id<'_>) -> RequestId {
        match id {
            Id::Number(number) => RequestId::Number(number),
            Id::Text(text) => RequestId::Text(text.to_cow().into_owned()),
        }
    }
}

impl RequestId {
    pub(crate) fn as_id(&self) -> Id<'_> {
        match self {
            RequestId::Number(number) => Id::Number(*number),
            RequestId::Text(text) => Id::Text(Text::new(text)),
            RequestId::Fix(asked) => Id::Number(asked.sequence as i64),
        }
    }

    /// What the client calls an order that it enters, beside its label; empty for who has no such name.
    pub(crate) fn client_order_id(&self) -> &str {
        match self {
            RequestId::Fix(asked) => &asked.client_id,
            _ => "",
        }
    }
}

/// What became of a request about one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The log's word is waited for.
    Later,
    /// It is done: the order as it is now.
    Order(u64),
}

/// Whom a reply goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) connection: u64,
    pub(crate) id: RequestId,
    /// When the request came in, in microseconds since 1970.
    pub(crate) us_in: u64,
}

/// What was asked of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A new order.
    Place(Intent),
    /// Another price or amount for an order.
    Edit { number: u64, intent: Intent },
    /// The end of an order, and why.
    Cancel { number: u64, reason: CancelReason },
}

/// An order as it is wanted, for who enters it again at another price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) listing: usize,
    pub(crate) side: Side,
    pub(crate) qty: Qty,
    pub(crate) price: Price,
    pub(crate) terms: Terms,
    pub(crate) display: Qty,
    /// How often its price was moved because it would have taken.
    pub(crate) moves: u8,
}

/// A request that is not in the log yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) request: OrderRequest,
    pub(crate) work: Work,
    /// Whose connection it came by.
    pub(crate) connection: Option<u64>,
    /// Who is answered when it is done.
    pub(crate) reply: Option<ReplyTo>,
    /// The many that it is one of.
    pub(crate) group: Option<u64>,
    /// When it was sent, in microseconds since 1970.
    pub(crate) sent_us: u64,
    /// Its place among all that were sent, from 1; 0 before it is.
    pub(crate) turn: u64,
    /// What the order has that few have.
    pub(crate) extra: Option<Box<Extra>>,
}

/// Where a new order comes from.
#[derive(Default)]
pub(crate) struct Origin {
    pub(crate) connection: Option<u64>,
    pub(crate) reply: Option<ReplyTo>,
    pub(crate) group: Option<u64>,
    pub(crate) extra: Option<Box<Extra>>,
    /// The turn of the request that it goes on with; 0 where it is new.
    pub(crate) turn: u64,
    /// The venue's own order: no limit of the user holds it back.
    pub(crate) is_forced: bool,
}

/// Many requests that are answered as one: cancels, or quotes.
pub(crate) struct Group {
    pub(crate) reply: ReplyTo,
    /// Those that are not in the log yet.
    pub(crate) waiting: usize,
    pub(crate) cancelled: Vec<u64>,
    /// The answer names the orders, not their number.
    pub(crate) is_detailed: bool,
    pub(crate) account: usize,
    /// Of quotes.
    pub(crate) quoting: Option<Quoting>,
}

/// What market makers asked for at once.
#[derive(Default)]
pub(crate) struct Quoting {
    pub(crate) errors: Vec<QuoteError>,
    /// Numbers of the quotes that are there now.
    pub(crate) orders: Vec<u64>,
    pub(crate) trades: Vec<UserTrade>,
}

/// Why a quote was refused.
pub(crate) struct QuoteError {
    pub(crate) instrument: String,
    pub(crate) side: Side,
    pub(crate) set_id: String,
    /// The client's id of the quote, by FIX.
    pub(crate) entry_id: String,
    pub(crate) fault: Fault,
}
