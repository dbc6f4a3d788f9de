//! The messages of XDP, one table each.
//!
//! Source: NYSE XDP Common Client Specification 2.3c and XDP Integrated Feed Client Specification 2.3a; what Pillar 2.5
//! changed stands with its field. All integers are little-endian. A price is in units of 10^-PriceScaleCode of its symbol,
//! see [`PriceScale`](crate::PriceScale).

use std::hint::cold_path;

use tickpath_wire::{Malformed, fields, layout, message, messages};
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codes::*;
use crate::{Firm, SourceId, XdpSymbol};

layout! {
    /// What every message begins with.
    MessageHeader, 4 => {
        /// Length of the message with this header, in bytes.
        0 msg_size: U16,
        /// Its type.
        2 msg_type: U16,
    }
}

impl MessageHeader {
    /// The header of a message of this length and type.
    #[inline]
    #[must_use]
    pub const fn new(msg_size: u16, msg_type: u16) -> MessageHeader {
        MessageHeader { msg_size: U16::new(msg_size), msg_type: U16::new(msg_type) }
    }
}

/// The specification that describes a message.
macro_rules! specification {
    (Common) => {
        "XDP Common Client Specification"
    };
    (Integrated) => {
        "XDP Integrated Feed Client Specification"
    };
}

/// Declares all messages and whatever must name each of them once. Behind its handler a message has its specification and
/// its title there. Those in `timed`, and those in `events`, begin alike.
macro_rules! xdp_messages {
    (
        control { $($control:tt)* }
        timed { $(
            $(#[$timed_doc:meta])*
            $timed:ident = $timed_type:literal, $timed_len:literal, from $timed_min:literal, $timed_handler:ident,
            $timed_spec:ident $timed_title:literal { $($timed_own:tt)* }
        )* }
        events { $(
            $(#[$doc:meta])*
            $name:ident = $type:literal, $len:literal, from $len_min:literal, $handler:ident,
            $spec:ident $title:literal { $($own:tt)* }
        )* }
    ) => {
        xdp_messages! {
            $($control)*
            $(
                $(#[$timed_doc])*
                $timed = $timed_type, $timed_len, from $timed_min, $timed_handler, $timed_spec $timed_title {
                    /// When, in seconds since the Unix epoch.
                    4 source_time: U32,
                    /// Nanoseconds within the second.
                    8 source_time_ns: U32,
                    /// The symbol.
                    12 symbol_index: U32,
                    $($timed_own)*
                }
            )*
            $(
                $(#[$doc])*
                $name = $type, $len, from $len_min, $handler, $spec $title {
                    /// Nanoseconds within the second of the last time reference.
                    4 source_time_ns: U32,
                    /// The symbol.
                    8 symbol_index: U32,
                    /// Number of the message among those about the symbol.
                    12 symbol_seq_num: U32,
                    $($own)*
                }
            )*
        }
    };
    ($(
        $(#[$doc:meta])*
        $name:ident = $type:literal, $len:literal, from $len_min:literal, $handler:ident, $spec:ident $title:literal {
            $( $(#[$field_doc:meta])* $offset:literal $field:ident: $wire:ty, )*
        }
    )*) => {
        $(
            message! {
                $(#[$doc])*
                #[doc = concat!("\nSource: ", specification!($spec), ", \"", $title, "\"; ", $len, " bytes.")]
                $name: u16 = $type, $len {
                    /// Its length and its type; the length is another than [`Self::LEN`] where the sender's version has
                    /// more fields, or fewer.
                    header: MessageHeader = MessageHeader::new($len, $type),
                    $( $(#[$field_doc])* $offset $field: $wire, )*
                }
            }

            const _: () = assert!($len_min <= $len);

            impl Versions for $name {
                const LEN_MIN: usize = $len_min;
            }
        )*

        messages! {
            /// One message by value: for tools, which look at a few messages of every type. A hot path uses [`decode`].
            #[allow(clippy::large_enum_variant, reason = "tools look at one at a time")]
            enum Message<'a> of u16, type_of, read;
            /// Length in bytes of a message of this type in the latest version, or `None` when it is not known here.
            fn message_len = LEN;
            { $( $name($name) = $type, $handler; )* }
            {}
        }

        fields! {
            u16, message;
            $( $name = $name::TYPE, $handler { $( $field )* } )*
        }

        /// Calls the listener's method for one message.
        ///
        /// Fields that a later version appended are not looked at; fields that an earlier version lacks read as zero.
        ///
        /// # Errors
        /// [`Malformed`]; the listener is then not called. An unknown type is not an error, see
        /// [`Listener::on_unknown`].
        #[inline(always)]
        pub fn decode(message: &[u8], listener: &mut impl Listener) -> Result<(), Malformed> {
            let message_type = type_of(message)?;
            // Adds and deletes are five messages in six, in an order that no CPU can predict: a jump by all the types would
            // be guessed wrong more often than not. That it is one of the two is one comparison, mostly true.
            if message_type & !(AddOrder::TYPE ^ DeleteOrder::TYPE) == AddOrder::TYPE {
                if message_type == AddOrder::TYPE {
                    if let Ok((add, _)) = AddOrder::ref_from_prefix(message) {
                        listener.on_add_order(add);
                        return Ok(());
                    }
                } else if let Ok((delete, _)) = DeleteOrder::ref_from_prefix(message) {
                    listener.on_delete_order(delete);
                    return Ok(());
                }
            }
            decode_other(message, message_type, listener)
        }

        /// What is neither an add nor a delete, or shorter than today's: kept out of the caller's loop, which is short then.
        #[inline(never)]
        fn decode_other(
            message: &[u8],
            message_type: u16,
            listener: &mut impl Listener,
        ) -> Result<(), Malformed> {
            match message_type {
                $( $name::TYPE => match $name::ref_from_prefix(message) {
                    Ok((message, _)) => listener.$handler(message),
                    Err(_) => {
                        cold_path();
                        listener.$handler(&lengthened(message)?);
                    }
                }, )*
                _ => listener.on_unknown(message_type, message),
            }
            Ok(())
        }

        /// Length in bytes of the shortest version of this type, or `None` when it is not known here.
        #[must_use]
        pub const fn message_len_min(message_type: u16) -> Option<usize> {
            match message_type {
                $( $name::TYPE => Some($len_min), )*
                _ => None,
            }
        }
    };
}

// One bit apart, and the add has it not: `decode` tells both from the rest by one comparison.
const _: () = {
    let apart = AddOrder::TYPE ^ DeleteOrder::TYPE;
    assert!(apart.is_power_of_two() && AddOrder::TYPE & apart == 0);
};

/// The longest message that is known here, in bytes.
pub const MESSAGE_LEN_MAX: usize = Imbalance::LEN;

/// The type of a whole message.
#[inline(always)]
fn type_of(message: &[u8]) -> Result<u16, Malformed> {
    match MessageHeader::ref_from_prefix(message) {
        Ok((header, _)) if usize::from(header.msg_size.get()) == message.len() => Ok(header.msg_type.get()),
        _ => {
            cold_path();
            Err(Malformed("a message of another length than its header says"))
        }
    }
}

/// A message that had other lengths in other versions.
trait Versions: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {
    /// Length in bytes of the shortest.
    const LEN_MIN: usize;
}

/// Gives a function the message that these bytes begin with, of whatever version.
#[inline(always)]
fn read<M: Versions, R>(message: &[u8], take: impl FnOnce(M) -> R) -> Result<R, Malformed> {
    match M::ref_from_prefix(message) {
        Ok((message, _)) => Ok(take(*message)),
        Err(_) => Ok(take(lengthened(message)?)),
    }
}

/// A message of an earlier version, with zeroes for what it lacks.
#[cold]
fn lengthened<M: Versions>(message: &[u8]) -> Result<M, Malformed> {
    if message.len() < M::LEN_MIN {
        return Err(Malformed("a message shorter than its type's shortest version"));
    }
    let mut whole = M::new_zeroed();
    // Shorter than the whole, or it would have been read as it is.
    whole.as_mut_bytes()[..message.len()].copy_from_slice(message);
    Ok(whole)
}

xdp_messages! {
    control {
        /// Sequence Number Reset (1): the channel counts from 1 again; this is its message 1, alone in its packet.
        SequenceNumberReset = 1, 14, from 14, on_sequence_number_reset, Common "Sequence Number Reset Message" {
            /// When, in seconds since the Unix epoch.
            4 source_time: U32,
            /// Nanoseconds within the second.
            8 source_time_ns: U32,
            /// The product.
            12 product_id: u8,
            /// The channel.
            13 channel_id: u8,
        }

        /// Source Time Reference (2): the second to which the nanoseconds of the following messages belong.
        SourceTimeReference = 2, 16, from 16, on_source_time_reference, Common "Source Time Reference Message" {
            /// The matching engine's partition: the System ID of the symbols that it means.
            4 id: U32,
            /// Reserved.
            8 symbol_seq_num: U32,
            /// Seconds since the Unix epoch.
            12 source_time: U32,
        }

        /// Symbol Index Mapping (3): what a symbol index means.
        SymbolIndexMapping = 3, 44, from 44, on_symbol_index_mapping, Common "Symbol Index Mapping Message" {
            /// The index by which other messages name the symbol.
            4 symbol_index: U32,
            /// The symbol.
            8 symbol: XdpSymbol,
            /// Reserved.
            19 reserved: u8,
            /// The market.
            20 market_id: U16,
            /// The matching engine's partition.
            22 system_id: u8,
            /// Where it is listed.
            23 exchange_code: ExchangeCode,
            /// Prices are in units of 10 to the minus this.
            24 price_scale_code: u8,
            /// Kind of security.
            25 security_type: SecurityType,
            /// Shares in a round lot.
            26 lot_size: U16,
            /// Closing price of the day before.
            28 prev_close_price: U32,
            /// Shares traded the day before.
            32 prev_close_volume: U32,
            /// 0 all penny, 1 penny and nickel, 5 nickel and dime.
            36 price_resolution: u8,
            /// Whether round lots are taken.
            37 round_lot: YesNo,
            /// Least price variation, in hundredths of a cent.
            38 mpv: U16,
            /// Shares in a unit of trade.
            40 unit_of_trade: U16,
            /// Reserved.
            42 reserved_2: U16,
        }

        /// Retransmission Request (10): a client asks for messages, over TCP.
        RetransmissionRequest = 10, 24, from 24, on_retransmission_request, Common "Retransmission Request Message" {
            /// Number of the first message.
            4 begin_seq_num: U32,
            /// Number of the last one.
            8 end_seq_num: U32,
            /// Who asks.
            12 source_id: SourceId,
            /// The product.
            22 product_id: u8,
            /// The channel.
            23 channel_id: u8,
        }

        /// Request Response (11): what the request server says to a request, over TCP.
        RequestResponse = 11, 29, from 29, on_request_response, Common "Request Response Message" {
            /// Number that the client gave its request.
            4 request_seq_num: U32,
            /// Number of the first message asked for.
            8 begin_seq_num: U32,
            /// Number of the last one.
            12 end_seq_num: U32,
            /// Who asked.
            16 source_id: SourceId,
            /// The product.
            26 product_id: u8,
            /// The channel.
            27 channel_id: u8,
            /// Whether it will be answered, and why not.
            28 status: RequestStatus,
        }

        /// Heartbeat Response (12): a client is still there, over TCP.
        HeartbeatResponse = 12, 14, from 14, on_heartbeat_response, Common "Heartbeat Response Message" {
            /// Who is there.
            4 source_id: SourceId,
        }

        /// Symbol Index Mapping Request (13): a client asks what a symbol index means, over TCP.
        SymbolIndexMappingRequest = 13, 21, from 21, on_symbol_index_mapping_request, Common "Symbol Index Mapping Request Message" {
            /// The index; 0 for all.
            4 symbol_index: U32,
            /// Who asks.
            8 source_id: SourceId,
            /// The product.
            18 product_id: u8,
            /// The channel.
            19 channel_id: u8,
            /// 0 by UDP.
            20 retransmit_method: u8,
        }

        /// Refresh Request (15): a client asks for the state of a symbol, over TCP.
        RefreshRequest = 15, 20, from 20, on_refresh_request, Common "Refresh Request Message" {
            /// The index; 0 for all.
            4 symbol_index: U32,
            /// Who asks.
            8 source_id: SourceId,
            /// The product.
            18 product_id: u8,
            /// The channel.
            19 channel_id: u8,
        }

        /// Message Unavailable (31): requested messages that will not come, on the retransmission channel.
        MessageUnavailable = 31, 14, from 14, on_message_unavailable, Common "Message Unavailable Message" {
            /// Number of the first message.
            4 begin_seq_num: U32,
            /// Number of the last one.
            8 end_seq_num: U32,
            /// The product.
            12 product_id: u8,
            /// The channel.
            13 channel_id: u8,
        }

        /// Refresh Header (35): begins each packet of a refresh; the first one of a symbol is the longer, with what it follows; the others have 8 bytes.
        RefreshHeader = 35, 16, from 8, on_refresh_header, Common "Refresh Header Message" {
            /// The packet among those about the symbol, from 1.
            4 current_refresh_pkt: U16,
            /// How many there are.
            6 total_refresh_pkts: U16,
            /// Number of the channel's last message that the refresh covers; not there in the short form.
            8 last_seq_num: U32,
            /// SymbolSeqNum of the symbol's last message that it covers; not there in the short form.
            12 last_symbol_seq_num: U32,
        }
    }

    timed {
        /// Symbol Clear (32): nothing that was said of the symbol holds any more.
        SymbolClear = 32, 20, from 20, on_symbol_clear, Common "Symbol Clear Message" {
            /// SymbolSeqNum of its next message.
            16 next_source_seq_num: U32,
        }

        /// Security Status (34): a symbol's state changed.
        SecurityStatus = 34, 46, from 46, on_security_status, Common "Security Status Message" {
            /// Number of the message among those about the symbol.
            16 symbol_seq_num: U32,
            /// What changed.
            20 security_status: SecurityStatusCode,
            /// Why it does not trade.
            21 halt_condition: HaltCondition,
            /// Reserved.
            22 reserved: U32,
            /// Lower price of an indication, or the price of the restriction.
            26 price_1: U32,
            /// Upper price of an indication.
            30 price_2: U32,
            /// Where the short sale restriction was triggered.
            34 ssr_trigger_exchange: ExchangeCode,
            /// How many shares triggered it.
            35 ssr_trigger_volume: U32,
            /// When, as HHMMSSmmm in Eastern Time.
            39 time: U32,
            /// Whether short sales are restricted.
            43 ssr_state: SsrState,
            /// The session that it is in.
            44 market_state: MarketState,
            /// Not used.
            45 session_state: u8,
        }

        /// Imbalance (105): what an auction would do now; 67 bytes up to 2.1.
        Imbalance = 105, 73, from 67, on_imbalance, Integrated "Imbalance Message" {
            /// Number of the message among those about the symbol.
            16 symbol_seq_num: U32,
            /// What the auction's price is nearest to.
            20 reference_price: U32,
            /// Shares that would trade at it.
            24 paired_qty: U32,
            /// Shares that would be left.
            28 total_imbalance_qty: U32,
            /// Shares of market orders that would be left.
            32 market_imbalance_qty: U32,
            /// When the auction is to be, as HHMM.
            36 auction_time: U16,
            /// Which auction.
            38 auction_type: AuctionType,
            /// The larger side.
            39 imbalance_side: ImbalanceSide,
            /// Where all interest would clear.
            40 continuous_book_clearing_price: U32,
            /// Where auction interest would clear.
            44 auction_interest_clearing_price: U32,
            /// Price of the short sale restriction's filing.
            48 ssr_filing_price: U32,
            /// Where the auction would trade.
            52 indicative_match_price: U32,
            /// The highest price of the auction.
            56 upper_collar: U32,
            /// The lowest.
            60 lower_collar: U32,
            /// Whether the auction will take place.
            64 auction_status: u8,
            /// 1 while the imbalance is frozen.
            65 freeze_status: u8,
            /// How often the auction was put off.
            66 num_extensions: u8,
            /// Shares without a counterpart; not there in the version of 67 bytes.
            67 unpaired_qty: U32,
            /// Their side; not there in the version of 67 bytes.
            71 unpaired_side: ImbalanceSide,
            /// Whether the imbalance is significant; not there in the version of 67 bytes.
            72 significant_imbalance: u8,
        }

        /// Add Order Refresh (106): an order that rests, told again.
        AddOrderRefresh = 106, 43, from 42, on_add_order_refresh, Integrated "Add Order Refresh Message" {
            /// Number of the last message among those about the symbol that it covers.
            16 symbol_seq_num: U32,
            /// The order.
            20 order_id: U64,
            /// Its price.
            28 price: U32,
            /// Shares.
            32 volume: U32,
            /// Its side.
            36 side: Side,
            /// Who entered it.
            37 firm_id: Firm,
            /// Reserved.
            42 reserved: u8,
        }

        /// Stock Summary (223): prices and volume of the day so far, on a channel of its own.
        StockSummary = 223, 36, from 36, on_stock_summary, Integrated "Stock Summary Message" {
            /// The highest price.
            16 high_price: U32,
            /// The lowest.
            20 low_price: U32,
            /// The first.
            24 open: U32,
            /// The last.
            28 close: U32,
            /// Shares traded.
            32 total_volume: U32,
        }
    }

    events {
        /// Add Order (100): an order rests at the tail of its level.
        AddOrder = 100, 39, from 38, on_add_order, Integrated "Add Order Message" {
            /// The order, unique within symbol and day.
            16 order_id: U64,
            /// Its price.
            24 price: U32,
            /// Shares.
            28 volume: U32,
            /// Its side.
            32 side: Side,
            /// Who entered it.
            33 firm_id: Firm,
            /// Reserved since Pillar 2.5; how often its parity was split before.
            38 num_parity_splits: u8,
        }

        /// Modify Order (101): an order has another price or volume, not because it traded.
        ModifyOrder = 101, 35, from 33, on_modify_order, Integrated "Modify Order Message" {
            /// The order.
            16 order_id: U64,
            /// Its price from now on.
            24 price: U32,
            /// Shares from now on.
            28 volume: U32,
            /// Whether it keeps its place.
            32 position_change: PositionChange,
            /// Its side since Pillar 2.5.a; zero before. Take the side from the book.
            33 side: Side,
            /// Reserved.
            34 reserved: u8,
        }

        /// Delete Order (102): an order is gone, for whatever reason but its full execution or its replacement.
        DeleteOrder = 102, 25, from 24, on_delete_order, Integrated "Delete Order Message" {
            /// The order.
            16 order_id: U64,
            /// Reserved.
            24 reserved: u8,
        }

        /// Order Execution (103): a resting order traded.
        OrderExecution = 103, 42, from 37, on_order_execution, Integrated "Order Execution Message" {
            /// The order.
            16 order_id: U64,
            /// The trade, unique within symbol and day.
            24 trade_id: U32,
            /// Price of the trade, which may be another than the order's.
            28 price: U32,
            /// Shares traded.
            32 volume: U32,
            /// Whether it is reported by this message.
            36 printable_flag: PrintableFlag,
            /// Reserved since Pillar 2.5; how often its parity was split before.
            37 num_parity_splits: u8,
            /// Conditions of the trade since Pillar 2.5; zeroes before.
            38 trade_conditions: [TradeCondition; 4],
        }

        /// Replace Order (104): an order is gone and another one of its symbol, side and firm rests at the tail of its level.
        ReplaceOrder = 104, 42, from 40, on_replace_order, Integrated "Replace Order Message" {
            /// The order that is gone.
            16 order_id: U64,
            /// The order that rests.
            24 new_order_id: U64,
            /// Its price.
            32 price: U32,
            /// Shares.
            36 volume: U32,
            /// Its side since Pillar 2.5.g; how often its parity was split before. Take the side from the book.
            40 side: Side,
            /// Reserved.
            41 reserved: u8,
        }

        /// Non-Displayed Trade (110): orders traded that were not in the book.
        NonDisplayedTrade = 110, 33, from 29, on_non_displayed_trade, Integrated "Non-Displayed Trade Message" {
            /// The trade, unique within symbol and day.
            16 trade_id: U32,
            /// Its price.
            20 price: U32,
            /// Shares traded.
            24 volume: U32,
            /// Whether it is reported by this message.
            28 printable_flag: PrintableFlag,
            /// Conditions of the trade since Pillar 2.5; zeroes before.
            29 trade_conditions: [TradeCondition; 4],
        }

        /// Cross Trade (111): the sum of an auction.
        CrossTrade = 111, 29, from 29, on_cross_trade, Integrated "Cross Trade Message" {
            /// The cross, unique within symbol and day.
            16 cross_id: U32,
            /// Its price.
            20 price: U32,
            /// Shares traded.
            24 volume: U32,
            /// Which cross.
            28 cross_type: CrossType,
        }

        /// Trade Cancel (112): a trade is void.
        TradeCancel = 112, 20, from 20, on_trade_cancel, Integrated "Trade Cancel Message" {
            /// The trade.
            16 trade_id: U32,
        }

        /// Cross Correction (113): a cross had another volume.
        CrossCorrection = 113, 24, from 24, on_cross_correction, Integrated "Cross Correction Message" {
            /// The cross.
            16 cross_id: U32,
            /// Its shares, in place of those told before.
            20 volume: U32,
        }

        /// Retail Price Improvement (114): interest that improves the best price for retail orders.
        RetailPriceImprovement = 114, 17, from 17, on_retail_price_improvement, Integrated "Retail Price Improvement Message" {
            /// On which sides there is some.
            16 rpi_indicator: RpiIndicator,
        }
    }
}

impl RefreshHeader {
    /// Length of the short form, in bytes: of all packets of a symbol but the first.
    pub const SHORT_LEN: usize = 8;

    /// Numbers of the channel's and of the symbol's last message that the refresh covers; `None` in the short form.
    #[inline]
    #[must_use]
    pub fn covered(&self) -> Option<(u32, u32)> {
        let is_long = usize::from(self.header.msg_size.get()) >= RefreshHeader::LEN;
        is_long.then(|| (self.last_seq_num.get(), self.last_symbol_seq_num.get()))
    }

    /// The short form's bytes.
    #[must_use]
    pub fn short(current_refresh_pkt: u16, total_refresh_pkts: u16) -> [u8; RefreshHeader::SHORT_LEN] {
        let mut whole = RefreshHeader::new(current_refresh_pkt, total_refresh_pkts, 0, 0);
        whole.header.msg_size = U16::new(RefreshHeader::SHORT_LEN as u16);
        *whole.as_bytes().first_chunk().expect("the short form is the beginning of the long one")
    }
}
