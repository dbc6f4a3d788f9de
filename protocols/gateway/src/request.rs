//! Requests: what a client asks of its gateway.

use std::fmt;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::field::{Field, Fields, structures};
use crate::{ExecutionFlags, Fixed, OrderType, RequestKind, Reserved, Side, TimeInForce, Trigger};

/// Bytes of a request's body at most.
pub const REQUEST_BODY_LEN: usize = 72;

/// The highest order id that a client may choose; the lowest is 1.
pub const ORDER_ID_MAX: u64 = i64::MAX as u64;

structures! {
    /// What every request begins with.
    RequestHeader "request" {
        /// What the body is.
        kind: RequestKind,
        /// Zero.
        flags: u16,
        /// The account, by the number that the gateway gave it; 0 where it does not matter.
        account: u16,
        /// Zero.
        reserved: Reserved<2>,
        /// The instrument, by the number that the gateway gave it; 0 where it does not matter.
        symbol: u32,
        /// Zero.
        reserved_too: Reserved<4>,
        /// Of the client's own choosing; acks have it.
        request_id: u64,
        /// The client's id of the order; one above all that it has used. 0 where it is about no order.
        client_order_id: u64,
        /// The gateway's id of the order, for orders of earlier lives of the client; otherwise 0.
        order_id: u64,
        /// When the client made it, by the monotonic clock.
        create_ns: u64,
    }
}

/// One request: 120 bytes, two cache lines with the word of the ring.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Request {
    /// What it is and what about.
    pub header: RequestHeader,
    /// The body; read it by [`Request::body`].
    pub raw: [u64; REQUEST_BODY_LEN / 8],
}

const _: () = assert!(size_of::<RequestHeader>() == 48 && size_of::<Request>() == 120);

/// A body of a request.
pub trait RequestBody: Fields + Copy + FromBytes + IntoBytes + Immutable + KnownLayout {
    /// Its kind.
    const KIND: RequestKind;
}

impl Request {
    /// A request with this body; the rest of its header is zero.
    #[inline]
    #[must_use]
    pub fn of<B: RequestBody>(body: &B) -> Request {
        const { assert!(size_of::<B>() <= REQUEST_BODY_LEN) };
        let mut raw = [0; REQUEST_BODY_LEN / 8];
        raw.as_mut_bytes()[..size_of::<B>()].copy_from_slice(body.as_bytes());
        Request { header: RequestHeader { kind: B::KIND, ..RequestHeader::default() }, raw }
    }

    /// The body, when the request is of that kind. Codes and numbers in it may be anything.
    #[inline]
    #[must_use]
    pub fn body<B: RequestBody>(&self) -> Option<B> {
        const { assert!(size_of::<B>() <= REQUEST_BODY_LEN) };
        if self.header.kind != B::KIND {
            return None;
        }
        B::read_from_prefix(self.raw.as_bytes()).ok().map(|(body, _)| body)
    }

    /// Zeros: a request of no kind.
    #[must_use]
    pub fn empty() -> Request {
        Request::new_zeroed()
    }
}

structures! {
    /// Enter an order.
    CreateOrder "create_order" {
        /// Its price; 0 where the type has none.
        price: Fixed,
        /// Its quantity.
        quantity: Fixed,
        /// Price that wakes it, or the distance of a trailing stop; 0 where the type has none.
        stop_price: Fixed,
        /// Quantity that is shown; 0 for all of it.
        max_show: Fixed,
        /// Its side.
        side: Side,
        /// Its type.
        order_type: OrderType,
        /// How long it rests.
        time_in_force: TimeInForce,
        /// Whose price wakes it.
        trigger: Trigger,
        /// What it must or must not do.
        execution: ExecutionFlags,
        /// Zero.
        reserved: Reserved<2>,
    }

    /// Change price or quantity of an order, named by the header's client order id or, where that is 0, its order id.
    ModifyOrder "modify_order" {
        /// Its new price.
        price: Fixed,
        /// Its new quantity, what has traded included.
        quantity: Fixed,
        /// Its new stop price; 0 to leave it.
        stop_price: Fixed,
        /// What it must or must not do.
        execution: ExecutionFlags,
        /// Zero.
        reserved: Reserved<6>,
    }

    /// Cancel an order, named as above.
    CancelOrder "cancel_order" {
        /// Zero.
        reserved: Reserved<8>,
    }

    /// Cancel all orders of the header's account; of its instrument, unless that is 0.
    CancelAll "cancel_all" {
        /// Of one side alone; 0 for both.
        side: Side,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Enter or replace a bid and an ask in the header's instrument. A quantity of 0 leaves the side out.
    MassQuote "mass_quote" {
        /// The client's id of the quotes.
        quote_set: u64,
        /// The bid.
        bid_price: Fixed,
        /// Its quantity.
        bid_quantity: Fixed,
        /// The ask.
        ask_price: Fixed,
        /// Its quantity.
        ask_quantity: Fixed,
        /// What both must or must not do.
        execution: ExecutionFlags,
        /// Zero.
        reserved: Reserved<6>,
    }

    /// Cancel quotes of the header's account; of its instrument, unless that is 0.
    CancelQuotes "cancel_quotes" {
        /// The client's id of the quotes; 0 for all.
        quote_set: u64,
    }

    /// The answer to a ping.
    Pong "pong" {
        /// Number of the ping.
        number: u64,
        /// When the gateway sent it, as it said.
        ping_ns: u64,
        /// When the client had it; the header says when it answered.
        received_ns: u64,
    }

    /// Send market data anew: reference data, states, books.
    DownloadMarketData "download_market_data" {
        /// Zero.
        reserved: Reserved<8>,
    }

    /// Publish the limits of the header's account, beside those that the gateway's configuration has: for users that are
    /// risk managers. They replace what was published before.
    SetRiskLimits "set_risk_limits" {
        /// Largest quantity of one order.
        max_order_quantity: Fixed,
        /// Largest notional of one order in the quote currency.
        max_order_notional: Fixed,
        /// Open orders at most.
        max_open_orders: u32,
        /// Which of the three are meant: 1, 2 and 4; 8 to withdraw what was published.
        caps: u16,
        /// Zero.
        reserved: Reserved<2>,
    }

    /// Something for the other clients.
    CustomRequest "custom_message" {
        /// What it is, as the clients agreed.
        topic: u16,
        /// Bytes of `data` that are meant, up to 64.
        len: u16,
        /// Zero.
        reserved: Reserved<4>,
        /// What is said.
        data: [u64; 8],
    }
}

macro_rules! kinds {
    ($($body:ident = $kind:ident,)*) => {
        $(
            impl RequestBody for $body {
                const KIND: RequestKind = RequestKind::$kind;
            }
        )*

        /// Fields of the body of a kind of request; `None` for a kind that this version does not know.
        #[must_use]
        pub fn request_fields(kind: RequestKind) -> Option<&'static [Field]> {
            $(if kind == RequestKind::$kind { return Some(<$body as Fields>::FIELDS); })*
            None
        }

        /// Shows the body; nothing for a kind that is not known.
        fn show_body(request: &Request, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            $(if let Some(body) = request.body::<$body>() { return body.show(f); })*
            Ok(())
        }
    };
}

kinds! {
    CreateOrder = CREATE_ORDER,
    ModifyOrder = MODIFY_ORDER,
    CancelOrder = CANCEL_ORDER,
    CancelAll = CANCEL_ALL,
    MassQuote = MASS_QUOTE,
    CancelQuotes = CANCEL_QUOTES,
    Pong = PONG,
    DownloadMarketData = DOWNLOAD_MARKET_DATA,
    CustomRequest = CUSTOM_MESSAGE,
    SetRiskLimits = SET_RISK_LIMITS,
}

impl fmt::Display for Request {
    /// One line: the kind, the header's fields that are not zero, those of the body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        write!(f, "{}", header.kind)?;
        for (name, value) in [
            ("symbol", u64::from(header.symbol)),
            ("account", u64::from(header.account)),
            ("request_id", header.request_id),
            ("client_order_id", header.client_order_id),
            ("order_id", header.order_id),
            ("create_ns", header.create_ns),
        ] {
            if value != 0 {
                write!(f, " {name}={value}")?;
            }
        }
        show_body(self, f)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
