//! Requests: messages from a client to its gateway.

use std::fmt;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::field::{Field, Fields, structures};
use crate::{ExecutionFlags, Fixed, OrderType, RequestKind, Reserved, Side, TimeInForce, Trigger};

/// Maximum length of a request's body in bytes.
pub const REQUEST_BODY_LEN: usize = 72;

/// The highest order id that a client may choose; the lowest is 1.
pub const ORDER_ID_MAX: u64 = i64::MAX as u64;

structures! {
    /// The header of every request.
    RequestHeader "request" {
        /// Kind of the body.
        kind: RequestKind,
        /// Zero.
        flags: u16,
        /// The account, by the number that the gateway assigned; 0 where it does not matter.
        account: u16,
        /// Zero.
        reserved: Reserved<2>,
        /// The instrument, by the number that the gateway assigned; 0 where it does not matter.
        symbol: u32,
        /// Zero.
        reserved_too: Reserved<4>,
        /// The client's id of the request; acks repeat it.
        request_id: u64,
        /// The client's id of the order, above all that it has used; 0 if the request concerns no order.
        client_order_id: u64,
        /// The gateway's id of the order, for orders of earlier instances of the client; otherwise 0.
        order_id: u64,
        /// Time when the client created the request, by the monotonic clock.
        create_ns: u64,
    }
}

/// One request: 120 bytes, two cache lines with the word of the ring.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Request {
    /// Kind and subject.
    pub header: RequestHeader,
    /// The body; [`Request::body`] reads it.
    pub raw: [u64; REQUEST_BODY_LEN / 8],
}

const _: () = assert!(size_of::<RequestHeader>() == 48 && size_of::<Request>() == 120);

/// A body of a request.
pub trait RequestBody: Fields + Copy + FromBytes + IntoBytes + Immutable + KnownLayout {
    /// Kind of request that has this body.
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

    /// Returns the body if the request is of that kind. Codes and numbers in it are unchecked.
    #[inline]
    #[must_use]
    pub fn body<B: RequestBody>(&self) -> Option<B> {
        const { assert!(size_of::<B>() <= REQUEST_BODY_LEN) };
        if self.header.kind != B::KIND {
            return None;
        }
        B::read_from_prefix(self.raw.as_bytes()).ok().map(|(body, _)| body)
    }

    /// A request without a kind, all zeros.
    #[must_use]
    pub fn empty() -> Request {
        Request::new_zeroed()
    }
}

structures! {
    /// Enter an order.
    CreateOrder "create_order" {
        /// Limit price; 0 if the order type has none.
        price: Fixed,
        /// Quantity of the order.
        quantity: Fixed,
        /// Trigger price, or the distance of a trailing stop; 0 if the order type has neither.
        stop_price: Fixed,
        /// Displayed quantity; 0 for all of it.
        max_show: Fixed,
        /// Side of the order.
        side: Side,
        /// Order type.
        order_type: OrderType,
        /// Time in force.
        time_in_force: TimeInForce,
        /// Price that triggers a stop order.
        trigger: Trigger,
        /// Order instructions.
        execution: ExecutionFlags,
        /// Zero.
        reserved: Reserved<2>,
    }

    /// Modify the order named by the header's client order id or, if that is 0, by its order id.
    ModifyOrder "modify_order" {
        /// New price.
        price: Fixed,
        /// New total quantity, including what has traded.
        quantity: Fixed,
        /// New stop price; 0 keeps the current one.
        stop_price: Fixed,
        /// Order instructions.
        execution: ExecutionFlags,
        /// Zero.
        reserved: Reserved<6>,
    }

    /// Cancel an order, named as in [`ModifyOrder`].
    CancelOrder "cancel_order" {
        /// Zero.
        reserved: Reserved<8>,
    }

    /// Cancel all orders of the header's account, or only those of the header's instrument if it is not 0.
    CancelAll "cancel_all" {
        /// Side whose orders are canceled; 0 for both.
        side: Side,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Enter or replace a bid and an ask in the header's instrument. A quantity of 0 omits the side.
    MassQuote "mass_quote" {
        /// The client's id of the quotes.
        quote_set: u64,
        /// Price of the bid.
        bid_price: Fixed,
        /// Quantity of the bid.
        bid_quantity: Fixed,
        /// Price of the ask.
        ask_price: Fixed,
        /// Quantity of the ask.
        ask_quantity: Fixed,
        /// Order instructions for both sides.
        execution: ExecutionFlags,
        /// Zero.
        reserved: Reserved<6>,
    }

    /// Cancel quotes of the header's account, or only those of the header's instrument if it is not 0.
    CancelQuotes "cancel_quotes" {
        /// The client's id of the quotes; 0 for all.
        quote_set: u64,
    }

    /// The answer to a ping.
    Pong "pong" {
        /// Number of the ping.
        number: u64,
        /// Time when the gateway sent the ping, copied from it.
        ping_ns: u64,
        /// Time when the client received the ping; the header has the time of the answer.
        received_ns: u64,
    }

    /// Send all market data again: reference data, states, books.
    DownloadMarketData "download_market_data" {
        /// Zero.
        reserved: Reserved<8>,
    }

    /// Publish the limits of the header's account, in addition to those of the gateway's configuration. Only
    /// users who are risk managers may. They replace the limits published before.
    SetRiskLimits "set_risk_limits" {
        /// Largest quantity of one order.
        max_order_quantity: Fixed,
        /// Largest notional of one order in the quote currency.
        max_order_notional: Fixed,
        /// Maximum number of open orders.
        max_open_orders: u32,
        /// Bits of the limits that apply: 1, 2 and 4 in the order above; 8 withdraws what was published.
        caps: u16,
        /// Zero.
        reserved: Reserved<2>,
    }

    /// A message to the other clients.
    CustomRequest "custom_message" {
        /// Topic, as the clients have agreed.
        topic: u16,
        /// Bytes of `data` that are used, up to 64.
        len: u16,
        /// Zero.
        reserved: Reserved<4>,
        /// Payload.
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

        /// Returns the fields of the body of a kind of request; `None` for an unknown kind.
        #[must_use]
        pub fn request_fields(kind: RequestKind) -> Option<&'static [Field]> {
            $(if kind == RequestKind::$kind { return Some(<$body as Fields>::FIELDS); })*
            None
        }

        /// Writes the body; nothing for an unknown kind.
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
    /// One line: the kind, the header's nonzero fields, the body's fields.
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
