//! The 18 message types of TOPS, DEEP and DEEP+. Each is declared as a table of its fields.
//!
//! Source: IEX TOPS 1.56 and 1.66, DEEP 1.08, DEEP+ 1.04. All integers are little-endian, prices have 4
//! implied decimals, timestamps are nanoseconds since the Unix epoch. IEX may append fields to a message
//! without notice: the decoder ignores bytes beyond the length of the message type.

use tickpath_types::Side;
use tickpath_wire::{Malformed, fields, message, messages};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::codes::*;
use crate::wire::{Alpha, EventTime, LongPrice, OrderNumber, Shares, Ticker, Timestamp, TradeNumber};

/// Declares all message types, and `Message`, `Listener` and `decode` for all of them. Every message has its
/// timestamp at offset 2; those in `securities` have the symbol at offset 10.
macro_rules! iex_messages {
    (
        system { $($system:tt)* }
        securities { $(
            $(#[$doc:meta])*
            $name:ident = $first:literal $(| $other:literal)?, $len:literal, $handler:ident {
                $(#[$flag_doc:meta])* 1 $flag:ident: $flag_wire:ty,
                $($own:tt)*
            }
        )* }
    ) => {
        iex_messages! { $($system)* $(
            $(#[$doc])*
            $name = $first $(| $other)?, $len, $handler {
                $(#[$flag_doc])* 1 $flag: $flag_wire,
                /// Time of the event, or time from which the state applies.
                2 timestamp: Timestamp,
                /// The security.
                10 symbol: Ticker,
                $($own)*
            }
        )* }
    };
    ($(
        $(#[$doc:meta])*
        $name:ident = $first:literal $(| $other:literal)?, $len:literal, $handler:ident {
            $( $(#[$field_doc:meta])* $offset:literal $field:ident: $wire:ty, )*
        }
    )*) => {
        $( message! {
            $(#[$doc])*
            $name = $first $(| $other)?, $len {
                $( $(#[$field_doc])* $offset $field: $wire, )*
            }
        } )*

        messages! {
            /// One message of any type, borrowed from the received bytes. For tools; a hot path uses
            /// [`decode`].
            enum Message<'a> of u8, type_of, read;
            /// Returns the minimum length of a message of this type, or `None` when no feed lists it.
            fn message_len_min = LEN;
            { $( $name(&'a $name) = $first $(| $other)?, $handler; )* }
            {}
        }

        fields! {
            u8, message;
            $( $name = message.message_type, $handler { $( $field )* } )*
        }

        /// Calls the listener's method for one message.
        ///
        /// # Errors
        /// [`Malformed`] when the message is empty or shorter than its type's length; the listener is then
        /// not called. A longer message and an unknown type are not errors.
        #[inline(always)]
        pub fn decode(message: &[u8], listener: &mut impl Listener) -> Result<(), Malformed> {
            match type_of(message)? {
                $( $first $(| $other)? => read(message, |message: &$name| listener.$handler(message))?, )*
                unknown => listener.on_unknown(unknown, message),
            }
            Ok(())
        }
    };
}

/// Returns the type byte of a message.
#[inline(always)]
fn type_of(message: &[u8]) -> Result<u8, Malformed> {
    message.first().copied().ok_or(Malformed("an empty message"))
}

/// Passes the structure at the start of `message` to `take`.
#[inline(always)]
fn read<'a, M, R>(message: &'a [u8], take: impl FnOnce(&'a M) -> R) -> Result<R, Malformed>
where
    M: FromBytes + KnownLayout + Immutable + Unaligned + 'a,
{
    match M::ref_from_prefix(message) {
        Ok((message, _)) => Ok(take(message)),
        Err(_) => Err(Malformed("a message shorter than its type")),
    }
}

iex_messages! {
    system {
        /// System Event (`S`): the session entered a stage; each stage is sent once per session.
        SystemEvent = b'S', 10, on_system_event {
            /// The stage that the session entered.
            1 event: SystemEventCode,
            /// Time of the event.
            2 timestamp: Timestamp,
        }
    }
    securities {
        /// Security Directory (`D`): an IEX-listed security. Other securities have no such message.
        SecurityDirectory = b'D', 31, on_security_directory {
            /// Properties of the security.
            1 flags: DirectoryFlags,
            /// Shares in a round lot.
            18 round_lot: Shares,
            /// The previous closing price, adjusted for corporate actions.
            22 adjusted_close: LongPrice,
            /// LULD tier of the security.
            30 luld_tier: LuldTier,
        }
        /// Trading Status (`H`): the trading state of a security.
        TradingStatus = b'H', 22, on_trading_status {
            /// The trading state.
            1 status: TradingCode,
            /// The reason why trading is stopped: `T1`, `IPO1`, `MCB3` or others; `NA` if not IEX-listed.
            18 reason: Alpha<4>,
        }
        /// Retail Liquidity Indicator (`I`): the sides with retail interest.
        RetailLiquidityIndicator = b'I', 18, on_retail_liquidity_indicator {
            /// The sides with retail interest.
            1 interest: RetailInterest,
        }
        /// Operational Halt Status (`O`): IEX itself halted a security, or ended such a halt.
        OperationalHaltStatus = b'O', 18, on_operational_halt_status {
            /// States whether IEX itself halts the security.
            1 halt: OperationalHalt,
        }
        /// Short Sale Price Test Status (`P`): whether SEC Rule 201 restricts short sales.
        ShortSalePriceTestStatus = b'P', 19, on_short_sale_price_test_status {
            /// 1 while a price test is in force, 0 otherwise.
            1 in_effect: u8,
            /// The reason why the price test is in force or not.
            18 detail: PriceTestDetail,
        }
        /// Security Event (`E`): the opening or the closing of a security is complete. IEX sends it after
        /// the price level updates of all earlier changes to the security's book.
        SecurityEvent = b'E', 18, on_security_event {
            /// The completed process.
            1 event: SecurityEventCode,
        }
        /// Quote Update (`Q`) of TOPS: both sides of the best quote. A side of size 0 and price 0 is absent.
        QuoteUpdate = b'Q', 42, on_quote_update {
            /// State of the quote.
            1 flags: QuoteFlags,
            /// Shares at the bid.
            18 bid_size: Shares,
            /// Best bid.
            22 bid_price: LongPrice,
            /// Best ask.
            30 ask_price: LongPrice,
            /// Shares at the ask.
            38 ask_size: Shares,
        }
        /// Price Level Update (`8` buy, `5` sell) of DEEP: shares now displayed at a price, 0 if none.
        PriceLevelUpdate = b'8' | b'5', 30, on_price_level_update {
            /// States whether this is the last update of a book change.
            1 event_flags: EventFlags,
            /// Shares now displayed at the price.
            18 size: Shares,
            /// Price of the level.
            22 price: LongPrice,
        }
        /// Trade Report (`T`): an execution; in DEEP+ between orders that are not displayed. In TOPS 1.5,
        /// 4 reserved bytes follow.
        TradeReport = b'T', 38, on_trade_report {
            /// Conditions of the trade.
            1 flags: SaleFlags,
            /// Executed shares.
            18 size: Shares,
            /// Execution price.
            22 price: LongPrice,
            /// Id of the trade.
            30 trade_id: TradeNumber,
        }
        /// Trade Break (`B`): an execution of the day was broken. Same layout and id as its [`TradeReport`].
        TradeBreak = b'B', 38, on_trade_break {
            /// Conditions of the trade.
            1 flags: SaleFlags,
            /// Shares of the broken execution.
            18 size: Shares,
            /// Price of the broken execution.
            22 price: LongPrice,
            /// Id of the trade.
            30 trade_id: TradeNumber,
        }
        /// Official Price (`X`): opening or closing price of an IEX-listed security; the latest one counts.
        OfficialPrice = b'X', 26, on_official_price {
            /// Kind of official price.
            1 price_type: PriceType,
            /// The official price.
            18 price: LongPrice,
        }
        /// Auction Information (`A`): the expected outcome of an IEX-listed security's auction, once a
        /// second.
        AuctionInformation = b'A', 80, on_auction_information {
            /// Kind of auction.
            1 auction_type: AuctionType,
            /// Shares that would trade at the reference price.
            18 paired_shares: Shares,
            /// Clearing price of orders on the auction book and the continuous book.
            22 reference_price: LongPrice,
            /// Clearing price of all orders.
            30 indicative_clearing_price: LongPrice,
            /// Shares that would remain at the reference price.
            38 imbalance_shares: Shares,
            /// Side with excess shares.
            42 imbalance_side: ImbalanceSide,
            /// Number of extensions of the auction.
            43 extension_number: u8,
            /// Scheduled time of the auction, in seconds since the Unix epoch.
            44 scheduled_time: EventTime,
            /// Clearing price of orders on the auction book alone.
            48 auction_book_clearing_price: LongPrice,
            /// Reference price of the collar.
            56 collar_reference_price: LongPrice,
            /// Lowest price at which the auction may clear; 0 without a collar.
            64 lower_collar: LongPrice,
            /// Highest price at which the auction may clear; 0 without a collar.
            72 upper_collar: LongPrice,
        }
        /// Add Order (`a`) of DEEP+: a displayed order was added at the tail of its level.
        AddOrder = b'a', 38, on_add_order {
            /// Side of the order.
            1 side: SideCode,
            /// Id of the order.
            18 order_id: OrderNumber,
            /// Shares displayed.
            26 size: Shares,
            /// Price of the order.
            30 price: LongPrice,
        }
        /// Order Modify (`M`) of DEEP+: the new size and price of a resting order, whose side never changes.
        OrderModify = b'M', 38, on_order_modify {
            /// Queue position, kept or lost.
            1 flags: ModifyFlags,
            /// Id of the order.
            18 order_id: OrderNumber,
            /// New number of displayed shares (the total, not a difference).
            26 size: Shares,
            /// New price level.
            30 price: LongPrice,
        }
        /// Order Delete (`R`) of DEEP+: a resting order was removed. Its id may be reused.
        OrderDelete = b'R', 26, on_order_delete {
            /// Reserved; without meaning. Real messages have a space.
            1 reserved: u8,
            /// Id of the order.
            18 order_id: OrderNumber,
        }
        /// Order Executed (`L`) of DEEP+: part or all of a resting order traded.
        OrderExecuted = b'L', 46, on_order_executed {
            /// Conditions of the trade.
            1 flags: SaleFlags,
            /// Id of the resting order.
            18 order_id: OrderNumber,
            /// Executed shares.
            26 size: Shares,
            /// Execution price, which may be better than the order's own.
            30 price: LongPrice,
            /// Id of the trade.
            38 trade_id: TradeNumber,
        }
        /// Clear Book (`C`) of DEEP+: all orders of the security were removed.
        ClearBook = b'C', 18, on_clear_book {
            /// Reserved; without meaning.
            1 reserved: u8,
        }
    }
}

impl PriceLevelUpdate {
    /// Creates the update of a price level; `is_complete` marks the last update of a book change.
    #[must_use]
    pub fn of(
        side: Side,
        is_complete: bool,
        timestamp: impl Into<Timestamp>,
        symbol: impl Into<Ticker>,
        size: impl Into<Shares>,
        price: impl Into<LongPrice>,
    ) -> PriceLevelUpdate {
        let flags = EventFlags(u8::from(is_complete));
        let message_type = SideCode::from(side).0;
        PriceLevelUpdate { message_type, ..PriceLevelUpdate::new(flags, timestamp, symbol, size, price) }
    }

    /// Returns the side of the level, from the type byte.
    #[inline]
    #[must_use]
    pub const fn side(&self) -> Side {
        if self.message_type == Self::TYPE { Side::Buy } else { Side::Sell }
    }
}
