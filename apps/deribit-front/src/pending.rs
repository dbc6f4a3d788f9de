//! In-flight requests, not yet in the log.

use tickpath_deribit::codes::CancelReason;
use tickpath_deribit::envelope::Id;
use tickpath_deribit::text::Text;
use tickpath_fix::Decimal as FixDecimal;
use tickpath_fix::deribit::SideCode;
use tickpath_types::{OrderRequest, Price, Qty, Side};

use crate::fault::Fault;
use crate::order::{Extra, Terms, UserTrade};

/// An owned request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestId {
    Number(i64),
    Text(String),
    /// A FIX request.
    Fix(Box<FixRequest>),
}

/// The fields of a FIX request that its reply repeats.
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
    /// Creates a request without fields.
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

/// Kind of a FIX request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixKind {
    Enter,
    Replace,
    Cancel,
    /// With its MassCancelRequestType.
    MassCancel(u64),
    Quote,
    /// With its QuoteCancelType.
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

    /// ClOrdID of a new order; empty if there is none.
    pub(crate) fn client_order_id(&self) -> &str {
        match self {
            RequestId::Fix(asked) => &asked.client_id,
            _ => "",
        }
    }
}

/// Immediate outcome of a request on one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The reply follows once the log confirms the request.
    Later,
    /// Done; the number of the order.
    Order(u64),
}

/// Destination of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) connection: u64,
    pub(crate) id: RequestId,
    /// Arrival time of the request, in microseconds since 1970.
    pub(crate) us_in: u64,
}

/// Request to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A new order.
    Place(Intent),
    /// A new price or amount of an order.
    Edit { number: u64, intent: Intent },
    /// The cancel of an order, with its reason.
    Cancel { number: u64, reason: CancelReason },
}

/// Parameters of an order to enter, possibly again at another price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) listing: usize,
    pub(crate) side: Side,
    pub(crate) qty: Qty,
    pub(crate) price: Price,
    pub(crate) terms: Terms,
    pub(crate) display: Qty,
    /// Number of times its price was moved because it would have taken.
    pub(crate) moves: u8,
}

/// An in-flight request.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) request: OrderRequest,
    pub(crate) work: Work,
    /// Connection of the request.
    pub(crate) connection: Option<u64>,
    /// Destination of the reply.
    pub(crate) reply: Option<ReplyTo>,
    /// Number of its group, if it is part of one.
    pub(crate) group: Option<u64>,
    /// Sending time, in microseconds since 1970.
    pub(crate) sent_us: u64,
    /// Sequence number among all sent requests, from 1; 0 before it is sent.
    pub(crate) turn: u64,
    /// Additional properties of the order.
    pub(crate) extra: Option<Box<Extra>>,
}

/// Origin of a new order.
#[derive(Default)]
pub(crate) struct Origin {
    pub(crate) connection: Option<u64>,
    pub(crate) reply: Option<ReplyTo>,
    pub(crate) group: Option<u64>,
    pub(crate) extra: Option<Box<Extra>>,
    /// Sequence number of the request that it continues; 0 for a new one.
    pub(crate) turn: u64,
    /// True for orders of the venue itself, which no user limit applies to.
    pub(crate) is_forced: bool,
}

/// A group of requests with one reply: cancels or quotes.
pub(crate) struct Group {
    pub(crate) reply: ReplyTo,
    /// Number of requests not yet in the log.
    pub(crate) waiting: usize,
    pub(crate) cancelled: Vec<u64>,
    /// True if the reply lists the orders instead of their number.
    pub(crate) is_detailed: bool,
    pub(crate) account: usize,
    /// Outcome of quotes.
    pub(crate) quoting: Option<Quoting>,
}

/// Outcome of a mass quote.
#[derive(Default)]
pub(crate) struct Quoting {
    pub(crate) errors: Vec<QuoteError>,
    /// Numbers of the current quotes.
    pub(crate) orders: Vec<u64>,
    pub(crate) trades: Vec<UserTrade>,
}

/// Rejection of a quote.
pub(crate) struct QuoteError {
    pub(crate) instrument: String,
    pub(crate) side: Side,
    pub(crate) set_id: String,
    /// The client's FIX id of the quote.
    pub(crate) entry_id: String,
    pub(crate) fault: Fault,
}
