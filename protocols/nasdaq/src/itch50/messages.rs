//! The 23 messages of ITCH 5.0, each declared as a table of fields.
//!
//! Source: Nasdaq TotalView-ITCH 5.0 (editions of 2017 and February 2026, which agree on every layout here).
//! All integers are big-endian. A price has 4 implied decimals unless its comment says otherwise.

use std::hint::select_unpredictable;

use tickpath_wire::{Bits, Malformed, message, messages};
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned, transmute_ref};

use super::codes::*;
use crate::wire::{
    Alpha, IndexLevel, Locate, LongShares, LongTimestamp, MatchNumber, OrderRef, Shares, ShortPrice, Stock,
    Timestamp,
};

/// Declares the message structures, each with the common fields, and `Message`, `Listener`, `decode` and
/// `Checksum` for all of them. The string after a message's handler is its title in the specification.
macro_rules! itch_messages {
    ($(
        $(#[$doc:meta])*
        $name:ident = $type:literal, $len:literal, $handler:ident, $source:literal {
            $( $(#[$field_doc:meta])* $offset:literal $field:ident: $wire:ty, )*
        }
    )*) => {
        $( message! {
            $(#[$doc])*
            #[doc = concat!("\nSource: Nasdaq TotalView-ITCH 5.0, \"", $source, "\"; ", $len, " bytes.")]
            $name = $type, $len {
                /// Index of the symbol, unique within the day; 0 when the message is about the whole system.
                1 stock_locate: Locate,
                /// Tracking number; it has no meaning outside Nasdaq.
                3 tracking_number: U16,
                /// Time of the event, in nanoseconds since midnight Eastern Time.
                5 timestamp: Timestamp,
                $( $(#[$field_doc])* $offset $field: $wire, )*
            }
        } )*

        messages! {
            /// A message of any type, borrowed from the received bytes. It is meant for tools; a hot path
            /// uses [`decode`] instead.
            enum Message<'a> of u8, type_of, read;
            /// Returns the length of a message of this type, or `None` when ITCH 5.0 does not list the type.
            fn message_len = LEN;
            { $( $name(&'a $name) = $type, $handler; )* }
            {
                /// Handles an [`AddOrder`] or an [`OrderDelete`]; by default calls `on_add_order` or
                /// `on_order_delete`.
                ///
                /// Most messages of a day are of these two types, in unpredictable order. A listener that
                /// handles both with the same code avoids branch mispredictions.
                #[inline]
                fn on_add_or_delete(&mut self, message: AddOrDelete<'_>) {
                    match message.get() {
                        Ok(add) => self.on_add_order(add),
                        Err(delete) => self.on_order_delete(delete),
                    }
                }
            }
        }

        /// Decodes one message and calls the listener's method for its type.
        ///
        /// # Errors
        /// [`Malformed`] when the message is empty or its length is wrong for its type; the listener
        /// is then not called. An unknown type is not an error, see [`Listener::on_unknown`].
        #[inline(always)]
        pub fn decode(message: &[u8], listener: &mut impl Listener) -> Result<(), Malformed> {
            match AddOrDelete::new(message) {
                Some(message) => {
                    listener.on_add_or_delete(message);
                    Ok(())
                }
                None => decode_other(message, listener),
            }
        }

        /// Decodes messages other than a valid add or delete; not inlined, to keep the caller's loop short.
        #[inline(never)]
        fn decode_other(message: &[u8], listener: &mut impl Listener) -> Result<(), Malformed> {
            match type_of(message)? {
                $( $name::TYPE => read(message, |message: &$name| listener.$handler(message))?, )*
                unknown => listener.on_unknown(unknown, message),
            }
            Ok(())
        }

        /// A listener that combines every field of every message into one number: a checksum of the decoded
        /// messages. It is also the minimal listener for benchmarks of the decoder.
        ///
        /// The same messages in the same order give the same number on every machine. Every field counts,
        /// including the type and the tracking number. An unknown message counts with its length and bytes.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Checksum(u64);

        impl Listener for Checksum {
            $(
                #[inline]
                fn $handler(&mut self, message: &$name) {
                    self.take_fields([
                        u64::from(message.message_type),
                        message.stock_locate.bits(),
                        message.tracking_number.bits(),
                        message.timestamp.bits(),
                        $( message.$field.bits(), )*
                    ]);
                }
            )*

            /// Gives the same result as `on_add_order` or `on_order_delete`: a field that a delete lacks is
            /// read as 0, which does not change the XOR of the fields.
            #[inline]
            fn on_add_or_delete(&mut self, message: AddOrDelete<'_>) {
                let (head, details) = (message.head, message.details());
                self.take_fields([
                    u64::from(head.message_type),
                    head.stock_locate.bits(),
                    head.tracking_number.bits(),
                    head.timestamp.bits(),
                    head.order_ref.bits(),
                    details.side.bits(),
                    details.shares.bits(),
                    details.stock.bits(),
                    details.price.bits(),
                ]);
            }

            fn on_unknown(&mut self, message_type: u8, message: &[u8]) {
                self.take(u64::from(message_type));
                self.take(message.len() as u64);
                message.iter().for_each(|byte| self.take(u64::from(*byte)));
            }
        }
    };
}

/// Returns the type byte of a message.
#[inline(always)]
fn type_of(message: &[u8]) -> Result<u8, Malformed> {
    message.first().copied().ok_or(Malformed("an empty message"))
}

/// Passes `message` to `take` as an `M`; fails if the message does not have the length of an `M`.
#[inline(always)]
fn read<'a, M, R>(message: &'a [u8], take: impl FnOnce(&'a M) -> R) -> Result<R, Malformed>
where
    M: FromBytes + KnownLayout + Immutable + Unaligned + 'a,
{
    M::ref_from_bytes(message)
        .map(take)
        .map_err(|_| Malformed("a message of another length than its type has"))
}

impl Checksum {
    /// Multiplier with well-distributed bits. It is odd, so that distinct values have distinct products.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Returns the checksum so far.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Adds the fields of a message. Each is rotated by a different number of bits, so that swapping two
    /// values changes the checksum.
    #[inline(always)]
    fn take_fields<const N: usize>(&mut self, fields: [u64; N]) {
        const ROTATION: u32 = 11;
        let rotated =
            fields.iter().zip(0..).map(|(field, place)| field.rotate_left(ROTATION * place % u64::BITS));
        self.take(rotated.fold(0, |sum, field| sum ^ field));
    }

    #[inline(always)]
    const fn take(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(7) ^ value).wrapping_mul(Checksum::FACTOR);
    }
}

/// The last fields of an [`AddOrder`], which an [`OrderDelete`] does not have.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AddDetails {
    side: BuySell,
    shares: Shares,
    stock: Stock,
    price: ShortPrice,
}

const ADD_DETAILS_LEN: usize = AddOrder::LEN - OrderDelete::LEN;
const NO_DETAILS: [u8; ADD_DETAILS_LEN] = [0; ADD_DETAILS_LEN];

/// An [`AddOrder`] or an [`OrderDelete`]; an add begins with the layout of a delete.
#[derive(Clone, Copy)]
pub struct AddOrDelete<'a> {
    message: &'a [u8],
    head: &'a OrderDelete,
    rest: &'a [u8],
}

impl<'a> AddOrDelete<'a> {
    #[inline(always)]
    fn new(message: &'a [u8]) -> Option<AddOrDelete<'a>> {
        let (head, rest) = message.split_first_chunk::<{ OrderDelete::LEN }>()?;
        let kind = |message_type: u8, len: usize| len << u8::BITS | usize::from(message_type);
        const {
            assert!((AddOrder::TYPE ^ OrderDelete::TYPE) & 1 == 1);
        }
        let this = kind(head[0], message.len());
        let from_add = this ^ kind(AddOrder::TYPE, AddOrder::LEN);
        let from_delete = this ^ kind(OrderDelete::TYPE, OrderDelete::LEN);
        // Multiply: two comparisons with zero would compile to two branches. Exactly one factor is odd, so
        // the wrapped product is zero only if a factor is zero.
        if from_add.wrapping_mul(from_delete) != 0 {
            return None;
        }
        Some(AddOrDelete { message, head: transmute_ref!(head), rest })
    }

    /// Returns the fields that only an add has; zeroes for a delete.
    #[inline(always)]
    fn details(self) -> &'a AddDetails {
        let details = self.rest.first_chunk::<ADD_DETAILS_LEN>();
        let details = select_unpredictable(details.is_some(), details.unwrap_or(&NO_DETAILS), &NO_DETAILS);
        transmute_ref!(details)
    }

    /// Returns the message as an [`AddOrder`].
    ///
    /// # Errors
    /// The [`OrderDelete`], if the message is not an add.
    #[inline(always)]
    pub fn get(self) -> Result<&'a AddOrder, &'a OrderDelete> {
        AddOrder::ref_from_bytes(self.message).map_err(|_| self.head)
    }
}

itch_messages! {
    /// System Event (`S`): the session enters a stage.
    SystemEvent = b'S', 12, on_system_event, "System Event Message" {
        /// The stage that the session enters.
        11 event_code: EventCode,
    }

    /// Stock Directory (`R`): a security that may trade today; sent before its first order.
    StockDirectory = b'R', 39, on_stock_directory, "Stock Directory" {
        /// Symbol of the security.
        11 stock: Stock,
        /// Listing market.
        19 market_category: MarketCategory,
        /// Compliance of the issuer with the listing rules.
        20 financial_status: FinancialStatus,
        /// Shares in a round lot.
        21 round_lot_size: Shares,
        /// `Y` if only round lots are accepted.
        25 round_lots_only: YesNo,
        /// Class of the security, e.g. `C` for common stock.
        26 issue_classification: Alpha<1>,
        /// Sub-class of the security.
        27 issue_sub_type: Alpha<2>,
        /// States whether the symbol is live or a test symbol.
        29 authenticity: Authenticity,
        /// `Y` if short sales are subject to mandatory close-out (SEC Rule 203(b)(3)).
        30 short_sale_threshold: YesNo,
        /// States whether the security is set up for an IPO release.
        31 ipo_flag: IpoFlag,
        /// Limit Up - Limit Down (LULD) tier of the security.
        32 luld_tier: LuldTier,
        /// `Y` for an exchange traded product.
        33 etp_flag: YesNo,
        /// Leverage factor of an exchange traded product; 0 when it has none.
        34 etp_leverage: U32,
        /// `Y` if an exchange traded product moves against its index.
        38 inverse: YesNo,
    }

    /// Stock Trading Action (`H`): the trading state of the security.
    StockTradingAction = b'H', 25, on_stock_trading_action, "Stock Trading Action" {
        /// Symbol of the security.
        11 stock: Stock,
        /// The trading state.
        19 trading_state: StockTradingState,
        /// Reserved, a space.
        20 reserved: Alpha<1>,
        /// The reason for the trading state, e.g. `T1`, `LUDP`; spaces when none is given.
        21 reason: Alpha<4>,
    }

    /// Reg SHO Short Sale Price Test Restricted Indicator (`Y`): the short sale restriction of a security.
    RegShoRestriction = b'Y', 20, on_reg_sho_restriction, "Reg SHO Short Sale Price Test Restricted Indicator" {
        /// Symbol of the security.
        11 stock: Stock,
        /// State of the short sale price test.
        19 reg_sho_action: RegShoAction,
    }

    /// Market Participant Position (`L`): a participant's registration in a security.
    MarketParticipantPosition = b'L', 26, on_market_participant_position, "Market Participant Position" {
        /// MPID of the participant.
        11 mpid: Alpha<4>,
        /// Symbol of the security.
        15 stock: Stock,
        /// `Y` for a primary market maker.
        23 primary_market_maker: YesNo,
        /// Quoting mode of the participant.
        24 market_maker_mode: MarketMakerMode,
        /// Registration status of the participant.
        25 participant_state: ParticipantState,
    }

    /// Market Wide Circuit Breaker Decline Level (`V`): today's three breach levels of the S&P 500.
    MwcbDeclineLevel = b'V', 35, on_mwcb_decline_level, "MWCB Decline Level Message" {
        /// Index value at which level 1 is breached, in units of 10^-8.
        11 level_1: IndexLevel,
        /// Index value at which level 2 is breached, in units of 10^-8.
        19 level_2: IndexLevel,
        /// Index value at which level 3 is breached, in units of 10^-8.
        27 level_3: IndexLevel,
    }

    /// Market Wide Circuit Breaker Status (`W`): the S&P 500 breached a level.
    MwcbStatus = b'W', 12, on_mwcb_status, "MWCB Status Message" {
        /// The breached level.
        11 breached_level: BreachedLevel,
    }

    /// IPO Quoting Period Update (`K`): the time at which quotation of an IPO begins.
    IpoQuotingPeriod = b'K', 28, on_ipo_quoting_period, "Quoting Period Update" {
        /// Symbol of the security.
        11 stock: Stock,
        /// Time of the quotation release, in **seconds** since midnight Eastern Time.
        19 release_time: U32,
        /// Status of the quotation release.
        23 release_qualifier: IpoQualifier,
        /// Price of the IPO.
        24 ipo_price: ShortPrice,
    }

    /// Limit Up, Limit Down Auction Collar (`J`): the reference price and the price limits of a security.
    LuldAuctionCollar = b'J', 35, on_luld_auction_collar, "Limit Up - Limit Down (LULD) Auction Collar" {
        /// Symbol of the security.
        11 stock: Stock,
        /// Reference price of the collar.
        19 reference_price: ShortPrice,
        /// Upper price of the collar.
        23 upper_price: ShortPrice,
        /// Lower price of the collar.
        27 lower_price: ShortPrice,
        /// Number of extensions of the auction so far.
        31 extension: U32,
    }

    /// Operational Halt (`h`): trading in a security was halted or resumed on one market.
    OperationalHalt = b'h', 21, on_operational_halt, "Operational Halt" {
        /// Symbol of the security.
        11 stock: Stock,
        /// The market on which trading was halted or resumed.
        19 market_code: MarketCode,
        /// States whether trading was halted or resumed.
        20 action: OperationalHaltAction,
    }

    /// Add Order, no MPID attribution (`A`): an order was added at the tail of its price level.
    AddOrder = b'A', 36, on_add_order, "Add Order - No MPID Attribution" {
        /// Reference of the order, unique within the day.
        11 order_ref: OrderRef,
        /// Side of the order.
        19 side: BuySell,
        /// Number of shares.
        20 shares: Shares,
        /// Symbol of the security.
        24 stock: Stock,
        /// Price of the order.
        32 price: ShortPrice,
    }

    /// Add Order with MPID attribution (`F`): like Add Order (`A`), but names the order's owner.
    AddOrderMpid = b'F', 40, on_add_order_mpid, "Add Order with MPID Attribution" {
        /// Reference of the order, unique within the day.
        11 order_ref: OrderRef,
        /// Side of the order.
        19 side: BuySell,
        /// Number of shares.
        20 shares: Shares,
        /// Symbol of the security.
        24 stock: Stock,
        /// Price of the order.
        32 price: ShortPrice,
        /// MPID of the order's owner.
        36 attribution: Alpha<4>,
    }

    /// Order Executed (`E`): part or all of a resting order traded at its own price.
    OrderExecuted = b'E', 31, on_order_executed, "Order Executed Message" {
        /// Reference of the resting order.
        11 order_ref: OrderRef,
        /// Executed quantity.
        19 executed_shares: Shares,
        /// Match number of the execution.
        23 match_number: MatchNumber,
    }

    /// Order Executed with Price (`C`): part or all of a resting order traded at a price other than its own.
    OrderExecutedWithPrice = b'C', 36, on_order_executed_with_price, "Order Executed With Price Message" {
        /// Reference of the resting order.
        11 order_ref: OrderRef,
        /// Executed quantity.
        19 executed_shares: Shares,
        /// Match number of the execution.
        23 match_number: MatchNumber,
        /// `N` if volume statistics must exclude this execution, because a later bulk print includes it.
        31 printable: YesNo,
        /// Execution price; the order's own price does not change.
        32 execution_price: ShortPrice,
    }

    /// Order Cancel (`X`): a resting order was reduced and keeps its priority.
    OrderCancel = b'X', 23, on_order_cancel, "Order Cancel Message" {
        /// Reference of the order.
        11 order_ref: OrderRef,
        /// Canceled quantity.
        19 canceled_shares: Shares,
    }

    /// Order Delete (`D`): a resting order was removed.
    OrderDelete = b'D', 19, on_order_delete, "Order Delete Message" {
        /// Reference of the order.
        11 order_ref: OrderRef,
    }

    /// Order Replace (`U`): a resting order was removed, and a new order with the same side and symbol was
    /// added at the tail of its price level.
    OrderReplace = b'U', 35, on_order_replace, "Order Replace Message" {
        /// Reference of the removed order.
        11 original_order_ref: OrderRef,
        /// Reference of the new order.
        19 new_order_ref: OrderRef,
        /// Number of shares of the new order.
        27 shares: Shares,
        /// Price of the new order.
        31 price: ShortPrice,
    }

    /// Trade, non-cross (`P`): an execution against an order that is not displayed; no book changes.
    NonCrossTrade = b'P', 44, on_non_cross_trade, "Trade Message (Non-Cross)" {
        /// Reference of the order; always 0 since 2010.
        11 order_ref: OrderRef,
        /// Always `B` since July 2014, regardless of the order's side.
        19 side: BuySell,
        /// Executed quantity.
        20 shares: Shares,
        /// Symbol of the security.
        24 stock: Stock,
        /// Execution price.
        32 price: ShortPrice,
        /// Match number of the execution.
        36 match_number: MatchNumber,
    }

    /// Cross Trade (`Q`): one bulk print for all executions of a cross; no book changes.
    CrossTrade = b'Q', 40, on_cross_trade, "Cross Trade Message" {
        /// Executed quantity; 0 if no orders were crossed.
        11 shares: LongShares,
        /// Symbol of the security.
        19 stock: Stock,
        /// Price of the cross.
        27 cross_price: ShortPrice,
        /// Match number of the execution.
        31 match_number: MatchNumber,
        /// Kind of cross.
        39 cross_type: CrossType,
    }

    /// Broken Trade (`B`): an earlier execution was canceled. Trade statistics change; books do not.
    BrokenTrade = b'B', 19, on_broken_trade, "Broken Trade / Order Execution Message" {
        /// Match number of the canceled execution.
        11 match_number: MatchNumber,
    }

    /// Net Order Imbalance Indicator (`I`): the expected outcome of the next cross.
    NetOrderImbalance = b'I', 50, on_net_order_imbalance, "Net Order Imbalance Indicator (NOII) Message" {
        /// Shares that would match at the current reference price.
        11 paired_shares: LongShares,
        /// Shares that would not match at the current reference price.
        19 imbalance_shares: LongShares,
        /// Side of the imbalance.
        27 imbalance_direction: ImbalanceDirection,
        /// Symbol of the security.
        28 stock: Stock,
        /// Clearing price of the cross orders alone; 0 when not available.
        36 far_price: ShortPrice,
        /// Clearing price of cross and continuous orders; 0 when not available.
        40 near_price: ShortPrice,
        /// Reference price for which the paired and the imbalance shares are calculated.
        44 current_reference_price: ShortPrice,
        /// Kind of cross.
        48 cross_type: CrossType,
        /// Code for the distance of the near price from the reference price, in percent.
        49 price_variation: PriceVariation,
    }

    /// Retail Price Improvement Indicator (`N`): the sides on which a security has retail interest.
    RetailPriceImprovement = b'N', 20, on_retail_price_improvement, "Retail Price Improvement Indicator (RPII)" {
        /// Symbol of the security.
        11 stock: Stock,
        /// Sides with retail interest.
        19 interest_flag: InterestFlag,
    }

    /// Direct Listing with Capital Raise Price Discovery (`O`): the expected opening of a direct listing.
    DirectListing = b'O', 48, on_direct_listing, "Direct Listing with Capital Raise Price Discovery Message" {
        /// Symbol of the security.
        11 stock: Stock,
        /// `Y` if the security may be released for trading.
        19 open_eligibility_status: YesNo,
        /// Lowest price at which the security may open.
        20 minimum_allowable_price: ShortPrice,
        /// Highest price at which the security may open.
        24 maximum_allowable_price: ShortPrice,
        /// Price at which the security would open now.
        28 near_execution_price: ShortPrice,
        /// Calculation time of `near_execution_price`, in nanoseconds since midnight Eastern Time.
        32 near_execution_time: LongTimestamp,
        /// Lower price of the auction collar.
        40 lower_price_range_collar: ShortPrice,
        /// Upper price of the auction collar.
        44 upper_price_range_collar: ShortPrice,
    }
}

#[cfg(test)]
mod tests {
    use super::super::MESSAGE_LEN_MAX;
    use super::*;

    #[test]
    fn lengths_are_those_of_the_specification() {
        let table =
            "S12 R39 H25 Y20 L26 V35 W12 K28 J35 h21 A36 F40 E31 C36 X23 D19 U35 P44 Q40 B19 I50 N20 O48";
        let mut count = 0;
        for entry in table.split(' ') {
            let (message_type, len) = entry.split_at(1);
            assert_eq!(message_len(message_type.as_bytes()[0]), Some(len.parse().unwrap()), "{entry}");
            count += 1;
        }
        assert_eq!(MESSAGE_TYPES.len(), count);
        assert_eq!(MESSAGE_TYPES.iter().filter_map(|kind| message_len(*kind)).max(), Some(MESSAGE_LEN_MAX));
        assert_eq!(message_len(b'z'), None);
    }
}
