//! The 18 messages of TOPS, DEEP and DEEP+, one table each.
//!
//! Source: IEX TOPS 1.56 and 1.66, DEEP 1.08, DEEP+ 1.04. All integers are little-endian, prices have 4 implied
//! decimals, time stamps are nanoseconds since the Unix epoch. A message may grow at its end without notice: what is
//! longer than its type's length is read as far as it is known.

use tickpath_types::Side;
use tickpath_wire::{Malformed, fields, message, messages};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::codes::*;
use crate::wire::{Alpha, EventTime, LongPrice, OrderNumber, Shares, Ticker, Timestamp, TradeNumber};

/// Declares all messages, and whatever must name each of them once. All have the time at offset 2, and all but those in
/// `system` the security at 10.
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
                /// When it happened, or since when it is so.
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
            /// One message, borrowed from the bytes it came in: for tools, which look at a few messages of every type. A
            /// hot path uses [`decode`].
            enum Message<'a> of u8, type_of, read;
            /// Least length of a message of this type, or `None` when no feed lists it.
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
        /// [`Malformed`] when the message is empty or shorter than its type says; the listener is then not called.
        /// A longer message and an unknown type are no errors.
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

/// The type byte.
#[inline(always)]
fn type_of(message: &[u8]) -> Result<u8, Malformed> {
    message.first().copied().ok_or(Malformed("an empty message"))
}

/// Gives a function the message that these bytes begin with.
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
        /// System Event (`S`): the session reached a stage. One of each in a session.
        SystemEvent = b'S', 10, on_system_event {
            /// The stage.
            1 event: SystemEventCode,
            /// When it was reached.
            2 timestamp: Timestamp,
        }
    }
    securities {
        /// Security Directory (`D`): an IEX-listed security; of others none is sent.
        SecurityDirectory = b'D', 31, on_security_directory {
            /// What kind of security it is.
            1 flags: DirectoryFlags,
            /// Shares in a round lot.
            18 round_lot: Shares,
            /// The previous closing price, adjusted for corporate actions.
            22 adjusted_close: LongPrice,
            /// Tier of its price bands.
            30 luld_tier: LuldTier,
        }
        /// Trading Status (`H`): whether a security trades.
        TradingStatus = b'H', 22, on_trading_status {
            /// The state.
            1 status: TradingCode,
            /// Why it does not trade: `T1`, `IPO1`, `MCB3` and others; `NA` for one that is not IEX-listed.
            18 reason: Alpha<4>,
        }
        /// Retail Liquidity Indicator (`I`): where retail interest is.
        RetailLiquidityIndicator = b'I', 18, on_retail_liquidity_indicator {
            /// The sides.
            1 interest: RetailInterest,
        }
        /// Operational Halt Status (`O`): whether IEX itself halted a security.
        OperationalHaltStatus = b'O', 18, on_operational_halt_status {
            /// The state.
            1 halt: OperationalHalt,
        }
        /// Short Sale Price Test Status (`P`): whether Rule 201 restricts short sales.
        ShortSalePriceTestStatus = b'P', 19, on_short_sale_price_test_status {
            /// 1 while a price test is in force, 0 otherwise.
            1 in_effect: u8,
            /// Why.
            18 detail: PriceTestDetail,
        }
        /// Security Event (`E`): the opening or the closing of a security is complete. Every earlier price level update of
        /// it has been sent before.
        SecurityEvent = b'E', 18, on_security_event {
            /// What is complete.
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
        /// Price Level Update (`8` buy, `5` sell) of DEEP: the shares now displayed at a price, 0 when the level is gone.
        PriceLevelUpdate = b'8' | b'5', 30, on_price_level_update {
            /// Whether the change of the book is complete.
            1 event_flags: EventFlags,
            /// Shares now displayed at the price.
            18 size: Shares,
            /// The price.
            22 price: LongPrice,
        }
        /// Trade Report (`T`): an execution; of DEEP+ between orders that are not displayed. TOPS 1.5 has 4 reserved bytes
        /// behind it.
        TradeReport = b'T', 38, on_trade_report {
            /// Conditions of the trade.
            1 flags: SaleFlags,
            /// Shares that traded.
            18 size: Shares,
            /// At what price.
            22 price: LongPrice,
            /// Number of the trade.
            30 trade_id: TradeNumber,
        }
        /// Trade Break (`B`): an execution of the day is void. Same layout as [`TradeReport`], whose number it names.
        TradeBreak = b'B', 38, on_trade_break {
            /// Conditions of the trade.
            1 flags: SaleFlags,
            /// Shares that had traded.
            18 size: Shares,
            /// At what price.
            22 price: LongPrice,
            /// Number of the trade.
            30 trade_id: TradeNumber,
        }
        /// Official Price (`X`): the opening or closing price of an IEX-listed security; the latest one counts.
        OfficialPrice = b'X', 26, on_official_price {
            /// Which price.
            1 price_type: PriceType,
            /// The price.
            18 price: LongPrice,
        }
        /// Auction Information (`A`): what an auction of an IEX-listed security would do now, once a second.
        AuctionInformation = b'A', 80, on_auction_information {
            /// Which auction.
            1 auction_type: AuctionType,
            /// Shares that would trade at the reference price.
            18 paired_shares: Shares,
            /// Clearing price of orders on the auction book and the continuous book.
            22 reference_price: LongPrice,
            /// Clearing price of all orders.
            30 indicative_clearing_price: LongPrice,
            /// Shares that would be left at the reference price.
            38 imbalance_shares: Shares,
            /// The larger side.
            42 imbalance_side: ImbalanceSide,
            /// Times that the auction was put off.
            43 extension_number: u8,
            /// When it is to be, in seconds since the Unix epoch.
            44 scheduled_time: EventTime,
            /// Clearing price of orders on the auction book alone.
            48 auction_book_clearing_price: LongPrice,
            /// What the collar is around.
            56 collar_reference_price: LongPrice,
            /// Least price of the auction; 0 without a collar.
            64 lower_collar: LongPrice,
            /// Highest price of the auction; 0 without a collar.
            72 upper_collar: LongPrice,
        }
        /// Add Order (`a`) of DEEP+: a displayed order now rests at the tail of its level.
        AddOrder = b'a', 38, on_add_order {
            /// Its side.
            1 side: SideCode,
            /// Number of the order.
            18 order_id: OrderNumber,
            /// Shares displayed.
            26 size: Shares,
            /// Its level.
            30 price: LongPrice,
        }
        /// Order Modify (`M`) of DEEP+: the new size and price of a resting order, whose side never changes.
        OrderModify = b'M', 38, on_order_modify {
            /// Whether the order keeps its place.
            1 flags: ModifyFlags,
            /// Number of the order.
            18 order_id: OrderNumber,
            /// Shares displayed from now on: all of them, not a difference.
            26 size: Shares,
            /// Its level from now on.
            30 price: LongPrice,
        }
        /// Order Delete (`R`) of DEEP+: a resting order went away. Its number may come again.
        OrderDelete = b'R', 26, on_order_delete {
            /// Means nothing; a space has been seen.
            1 reserved: u8,
            /// Number of the order.
            18 order_id: OrderNumber,
        }
        /// Order Executed (`L`) of DEEP+: part or all of a resting order traded.
        OrderExecuted = b'L', 46, on_order_executed {
            /// Conditions of the trade.
            1 flags: SaleFlags,
            /// Number of the resting order.
            18 order_id: OrderNumber,
            /// Shares that traded.
            26 size: Shares,
            /// At what price, which may be better than the order's own.
            30 price: LongPrice,
            /// Number of the trade.
            38 trade_id: TradeNumber,
        }
        /// Clear Book (`C`) of DEEP+: every order of the security went away.
        ClearBook = b'C', 18, on_clear_book {
            /// Means nothing.
            1 reserved: u8,
        }
    }
}

impl PriceLevelUpdate {
    /// Makes the update of a level on one side; `is_complete` with the last of a transaction.
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

    /// Bid or ask: what the type byte says.
    #[inline]
    #[must_use]
    pub const fn side(&self) -> Side {
        if self.message_type == Self::TYPE { Side::Buy } else { Side::Sell }
    }
}
