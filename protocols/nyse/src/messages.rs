//! The messages of XDP, each declared as a table of its fields.
//!
//! Source: NYSE XDP Common Client Specification 2.3c and XDP Integrated Feed Client Specification 2.3a;
//! changes of Pillar 2.5 are noted at their fields. All integers are little-endian. The unit of a
//! symbol's prices is 10^-PriceScaleCode, see [`PriceScale`](crate::PriceScale).

use std::hint::cold_path;

use tickpath_wire::{Malformed, fields, layout, message, messages};
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codes::*;
use crate::{Firm, SourceId, XdpSymbol};

layout! {
    /// The header of every message.
    MessageHeader, 4 => {
        /// Length of the message with this header, in bytes.
        0 msg_size: U16,
        /// Type of the message.
        2 msg_type: U16,
    }
}

impl MessageHeader {
    /// Creates the header of a message of this length and type.
    #[inline]
    #[must_use]
    pub const fn new(msg_size: u16, msg_type: u16) -> MessageHeader {
        MessageHeader { msg_size: U16::new(msg_size), msg_type: U16::new(msg_type) }
    }
}

/// Title of the specification that describes a message.
macro_rules! specification {
    (Common) => {
        "XDP Common Client Specification"
    };
    (Integrated) => {
        "XDP Integrated Feed Client Specification"
    };
}

/// Declares all messages, and the items that cover all of them, such as `decode`. An entry has name, type,
/// length, length of the shortest version, handler, specification, title in the specification, and fields.
/// The macro inserts the shared first fields: one set in the messages of `timed`, another in `events`.
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
                    /// Time of the event, in seconds since the Unix epoch.
                    4 source_time: U32,
                    /// Nanoseconds of the event within the second.
                    8 source_time_ns: U32,
                    /// Index of the symbol.
                    12 symbol_index: U32,
                    $($timed_own)*
                }
            )*
            $(
                $(#[$doc])*
                $name = $type, $len, from $len_min, $handler, $spec $title {
                    /// Nanoseconds of the event within the second of the last Source Time Reference.
                    4 source_time_ns: U32,
                    /// Index of the symbol.
                    8 symbol_index: U32,
                    /// Sequence number of this message among those of its symbol.
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
                    /// Length and type of the message; the length differs from [`Self::LEN`] if the sender's
                    /// version has more or fewer fields.
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
            /// One message by value, for tools that handle every type and need not be fast. A hot path uses
            /// [`decode`].
            #[allow(clippy::large_enum_variant, reason = "tools look at one at a time")]
            enum Message<'a> of u16, type_of, read;
            /// Returns the length in bytes of a message type in the latest version, or `None` for an unknown
            /// type.
            fn message_len = LEN;
            { $( $name($name) = $type, $handler; )* }
            {}
        }

        fields! {
            u16, message;
            $( $name = $name::TYPE, $handler { $( $field )* } )*
        }

        /// Decodes one message, and calls the listener's method for its type.
        ///
        /// Ignores fields of a later version; fields that an earlier version lacks read as zero.
        ///
        /// # Errors
        /// [`Malformed`] if the header does not state the message's length, or the message is shorter than
        /// its type's shortest version. An unknown type is not an error, see [`Listener::on_unknown`].
        #[inline(always)]
        pub fn decode(message: &[u8], listener: &mut impl Listener) -> Result<(), Malformed> {
            let message_type = type_of(message)?;
            // Five messages in six are adds or deletes, in unpredictable order: a jump table over all types
            // would mostly be mispredicted. One comparison, mostly true, selects both types.
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

        /// Decodes all messages except full-length adds and deletes; not inlined, to keep the caller's loop
        /// short.
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
                        listener.$handler(&extended(message)?);
                    }
                }, )*
                _ => listener.on_unknown(message_type, message),
            }
            Ok(())
        }

        /// Returns the length in bytes of the shortest version of this type, or `None` for an unknown type.
        #[must_use]
        pub const fn message_len_min(message_type: u16) -> Option<usize> {
            match message_type {
                $( $name::TYPE => Some($len_min), )*
                _ => None,
            }
        }
    };
}

// The types of add and delete differ in one bit, unset in the add: `decode` selects both by one comparison.
const _: () = {
    let apart = AddOrder::TYPE ^ DeleteOrder::TYPE;
    assert!(apart.is_power_of_two() && AddOrder::TYPE & apart == 0);
};

/// Length of the longest known message, in bytes.
pub const MESSAGE_LEN_MAX: usize = Imbalance::LEN;

/// Returns the type of a message; fails unless the header states the message's length.
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

/// A message whose length may differ between versions of the specification.
trait Versions: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {
    /// Length of the shortest version, in bytes.
    const LEN_MIN: usize;
}

/// Decodes a message of any version and passes it to `take`.
#[inline(always)]
fn read<M: Versions, R>(message: &[u8], take: impl FnOnce(M) -> R) -> Result<R, Malformed> {
    match M::ref_from_prefix(message) {
        Ok((message, _)) => Ok(take(*message)),
        Err(_) => Ok(take(extended(message)?)),
    }
}

/// Decodes a message of an earlier version, with zeroes for the fields that it lacks.
#[cold]
fn extended<M: Versions>(message: &[u8]) -> Result<M, Malformed> {
    if message.len() < M::LEN_MIN {
        return Err(Malformed("a message shorter than its type's shortest version"));
    }
    let mut whole = M::new_zeroed();
    // `message` is shorter than the structure, or the caller would have read it directly.
    whole.as_mut_bytes()[..message.len()].copy_from_slice(message);
    Ok(whole)
}

xdp_messages! {
    control {
        /// Sequence Number Reset (1): the channel's sequence numbers restart at 1; this message has sequence
        /// number 1 and is alone in its packet.
        SequenceNumberReset = 1, 14, from 14, on_sequence_number_reset, Common "Sequence Number Reset Message" {
            /// Time of the reset, in seconds since the Unix epoch.
            4 source_time: U32,
            /// Nanoseconds of the reset within the second.
            8 source_time_ns: U32,
            /// Id of the data product (feed).
            12 product_id: u8,
            /// Id of the channel.
            13 channel_id: u8,
        }

        /// Source Time Reference (2): the second to which the nanoseconds of the following messages belong.
        SourceTimeReference = 2, 16, from 16, on_source_time_reference, Common "Source Time Reference Message" {
            /// Id of the matching engine's partition; the same as the System ID of its symbols.
            4 id: U32,
            /// Reserved.
            8 symbol_seq_num: U32,
            /// Seconds since the Unix epoch.
            12 source_time: U32,
        }

        /// Symbol Index Mapping (3): the symbol to which an index belongs, and its attributes.
        SymbolIndexMapping = 3, 44, from 44, on_symbol_index_mapping, Common "Symbol Index Mapping Message" {
            /// The index that identifies the symbol in other messages.
            4 symbol_index: U32,
            /// The symbol of the security.
            8 symbol: XdpSymbol,
            /// Reserved.
            19 reserved: u8,
            /// Id of the market that publishes the symbol's messages.
            20 market_id: U16,
            /// System ID: the partition of the matching engine that trades the symbol.
            22 system_id: u8,
            /// Listing market of the security.
            23 exchange_code: ExchangeCode,
            /// Number of decimals of the symbol's prices: their unit is 10^-`price_scale_code`.
            24 price_scale_code: u8,
            /// Kind of security.
            25 security_type: SecurityType,
            /// Shares in a round lot.
            26 lot_size: U16,
            /// Closing price of the previous day.
            28 prev_close_price: U32,
            /// Shares traded on the previous day.
            32 prev_close_volume: U32,
            /// Code of the price resolution: 0 all penny, 1 penny and nickel, 5 nickel and dime.
            36 price_resolution: u8,
            /// `Y` if round lots are accepted.
            37 round_lot: YesNo,
            /// Minimum price variation, in hundredths of a cent.
            38 mpv: U16,
            /// Shares in a unit of trade.
            40 unit_of_trade: U16,
            /// Reserved.
            42 reserved_2: U16,
        }

        /// Retransmission Request (10): a client requests messages, over TCP.
        RetransmissionRequest = 10, 24, from 24, on_retransmission_request, Common "Retransmission Request Message" {
            /// Sequence number of the first requested message.
            4 begin_seq_num: U32,
            /// Sequence number of the last requested message.
            8 end_seq_num: U32,
            /// Source id of the requesting client.
            12 source_id: SourceId,
            /// Id of the data product (feed).
            22 product_id: u8,
            /// Id of the channel.
            23 channel_id: u8,
        }

        /// Request Response (11): the request server's answer to a request, over TCP.
        RequestResponse = 11, 29, from 29, on_request_response, Common "Request Response Message" {
            /// Sequence number of the packet that carried the client's request.
            4 request_seq_num: U32,
            /// Sequence number of the first requested message.
            8 begin_seq_num: U32,
            /// Sequence number of the last requested message.
            12 end_seq_num: U32,
            /// Source id of the requesting client.
            16 source_id: SourceId,
            /// Id of the data product (feed).
            26 product_id: u8,
            /// Id of the channel.
            27 channel_id: u8,
            /// Acceptance of the request, or the reason of the refusal.
            28 status: RequestStatus,
        }

        /// Heartbeat Response (12): a client answers the request server's heartbeat, over TCP.
        HeartbeatResponse = 12, 14, from 14, on_heartbeat_response, Common "Heartbeat Response Message" {
            /// Source id of the client that responds.
            4 source_id: SourceId,
        }

        /// Symbol Index Mapping Request (13): a client requests the symbol of a symbol index, over TCP.
        SymbolIndexMappingRequest = 13, 21, from 21, on_symbol_index_mapping_request, Common "Symbol Index Mapping Request Message" {
            /// Index of the symbol; 0 for all symbols.
            4 symbol_index: U32,
            /// Source id of the requesting client.
            8 source_id: SourceId,
            /// Id of the data product (feed).
            18 product_id: u8,
            /// Id of the channel.
            19 channel_id: u8,
            /// Transport of the answer: 0 for UDP.
            20 retransmit_method: u8,
        }

        /// Refresh Request (15): a client requests the state of a symbol, over TCP.
        RefreshRequest = 15, 20, from 20, on_refresh_request, Common "Refresh Request Message" {
            /// Index of the symbol; 0 for all symbols.
            4 symbol_index: U32,
            /// Source id of the requesting client.
            8 source_id: SourceId,
            /// Id of the data product (feed).
            18 product_id: u8,
            /// Id of the channel.
            19 channel_id: u8,
        }

        /// Message Unavailable (31): the server cannot retransmit requested messages; sent on the
        /// retransmission channel.
        MessageUnavailable = 31, 14, from 14, on_message_unavailable, Common "Message Unavailable Message" {
            /// Sequence number of the first unavailable message.
            4 begin_seq_num: U32,
            /// Sequence number of the last unavailable message.
            8 end_seq_num: U32,
            /// Id of the data product (feed).
            12 product_id: u8,
            /// Id of the channel.
            13 channel_id: u8,
        }

        /// Refresh Header (35): begins each packet of a refresh. It has all fields in the first packet of a
        /// symbol, and only the first 8 bytes in the symbol's other packets.
        RefreshHeader = 35, 16, from 8, on_refresh_header, Common "Refresh Header Message" {
            /// Number of this packet in the symbol's refresh, from 1.
            4 current_refresh_pkt: U16,
            /// Number of packets in the symbol's refresh.
            6 total_refresh_pkts: U16,
            /// The refresh covers the channel's messages up to this number; absent in the short form.
            8 last_seq_num: U32,
            /// The refresh covers the symbol's messages up to this SymbolSeqNum; absent in the short form.
            12 last_symbol_seq_num: U32,
        }
    }

    timed {
        /// Symbol Clear (32): all earlier information about the symbol is obsolete.
        SymbolClear = 32, 20, from 20, on_symbol_clear, Common "Symbol Clear Message" {
            /// SymbolSeqNum of the symbol's next message.
            16 next_source_seq_num: U32,
        }

        /// Security Status (34): the status of a symbol changed.
        SecurityStatus = 34, 46, from 46, on_security_status, Common "Security Status Message" {
            /// Sequence number of this message among those of its symbol.
            16 symbol_seq_num: U32,
            /// Code of the change, such as a halt.
            20 security_status: SecurityStatusCode,
            /// Reason of the symbol's trading halt.
            21 halt_condition: HaltCondition,
            /// Reserved.
            22 reserved: U32,
            /// Lower price of a price indication, or the price that triggered the short sale restriction.
            26 price_1: U32,
            /// Upper price of a price indication.
            30 price_2: U32,
            /// Market on which the short sale restriction was triggered.
            34 ssr_trigger_exchange: ExchangeCode,
            /// Shares of the trade that triggered the short sale restriction.
            35 ssr_trigger_volume: U32,
            /// Time when the short sale restriction was triggered, as HHMMSSmmm in Eastern Time.
            39 time: U32,
            /// State of the short sale restriction.
            43 ssr_state: SsrState,
            /// Trading session of the symbol.
            44 market_state: MarketState,
            /// Not used.
            45 session_state: u8,
        }

        /// Imbalance (105): the expected outcome of an auction; 67 bytes up to version 2.1.
        Imbalance = 105, 73, from 67, on_imbalance, Integrated "Imbalance Message" {
            /// Sequence number of this message among those of its symbol.
            16 symbol_seq_num: U32,
            /// Reference price of the auction.
            20 reference_price: U32,
            /// Shares that would trade at the reference price.
            24 paired_qty: U32,
            /// Shares that would remain untraded.
            28 total_imbalance_qty: U32,
            /// Shares of market orders that would remain untraded.
            32 market_imbalance_qty: U32,
            /// Time of the auction, as HHMM.
            36 auction_time: U16,
            /// Kind of auction.
            38 auction_type: AuctionType,
            /// Side with excess shares.
            39 imbalance_side: ImbalanceSide,
            /// Price at which all orders, resting and auction-only, would clear.
            40 continuous_book_clearing_price: U32,
            /// Price at which auction-only orders would clear.
            44 auction_interest_clearing_price: U32,
            /// Price at which short sale orders are entered under a short sale restriction.
            48 ssr_filing_price: U32,
            /// Indicative price of the auction.
            52 indicative_match_price: U32,
            /// Highest price at which the auction may clear.
            56 upper_collar: U32,
            /// Lowest price at which the auction may clear.
            60 lower_collar: U32,
            /// States whether the auction will take place.
            64 auction_status: u8,
            /// 1 while the imbalance freeze is in effect.
            65 freeze_status: u8,
            /// Number of times that the auction was extended.
            66 num_extensions: u8,
            /// Shares without a counterpart; absent in the version of 67 bytes.
            67 unpaired_qty: U32,
            /// Side of the unpaired shares; absent in the version of 67 bytes.
            71 unpaired_side: ImbalanceSide,
            /// States whether the imbalance is significant; absent in the version of 67 bytes.
            72 significant_imbalance: u8,
        }

        /// Add Order Refresh (106): a resting order, sent as part of a refresh.
        AddOrderRefresh = 106, 43, from 42, on_add_order_refresh, Integrated "Add Order Refresh Message" {
            /// SymbolSeqNum of the symbol's last message that the refresh covers.
            16 symbol_seq_num: U32,
            /// Id of the order.
            20 order_id: U64,
            /// Price of the order.
            28 price: U32,
            /// Number of shares.
            32 volume: U32,
            /// Side of the order.
            36 side: Side,
            /// The firm that entered the order.
            37 firm_id: Firm,
            /// Reserved.
            42 reserved: u8,
        }

        /// Stock Summary (223): prices and volume of the day so far, on a separate channel.
        StockSummary = 223, 36, from 36, on_stock_summary, Integrated "Stock Summary Message" {
            /// Highest price of the day so far.
            16 high_price: U32,
            /// Lowest price of the day so far.
            20 low_price: U32,
            /// First price of the day.
            24 open: U32,
            /// Last price of the day so far.
            28 close: U32,
            /// Shares traded on the day so far.
            32 total_volume: U32,
        }
    }

    events {
        /// Add Order (100): an order was added at the end of the queue at its price.
        AddOrder = 100, 39, from 38, on_add_order, Integrated "Add Order Message" {
            /// Id of the order, unique within symbol and day.
            16 order_id: U64,
            /// Price of the order.
            24 price: U32,
            /// Number of shares.
            28 volume: U32,
            /// Side of the order.
            32 side: Side,
            /// The firm that entered the order.
            33 firm_id: Firm,
            /// Reserved since Pillar 2.5; earlier versions send the number of parity splits.
            38 num_parity_splits: u8,
        }

        /// Modify Order (101): an order's price or volume changed without a trade.
        ModifyOrder = 101, 35, from 33, on_modify_order, Integrated "Modify Order Message" {
            /// Id of the order.
            16 order_id: U64,
            /// New price of the order.
            24 price: U32,
            /// New number of shares.
            28 volume: U32,
            /// States whether the order keeps its queue position.
            32 position_change: PositionChange,
            /// Side of the order since Pillar 2.5.a. Earlier versions send zero: take the side from the book.
            33 side: Side,
            /// Reserved.
            34 reserved: u8,
        }

        /// Delete Order (102): an order was removed, for any reason other than full execution or replacement.
        DeleteOrder = 102, 25, from 24, on_delete_order, Integrated "Delete Order Message" {
            /// Id of the order.
            16 order_id: U64,
            /// Reserved.
            24 reserved: u8,
        }

        /// Order Execution (103): a resting order traded.
        OrderExecution = 103, 42, from 37, on_order_execution, Integrated "Order Execution Message" {
            /// Id of the order.
            16 order_id: U64,
            /// Id of the trade, unique within symbol and day.
            24 trade_id: U32,
            /// Price of the trade, which may differ from the order's.
            28 price: U32,
            /// Shares traded.
            32 volume: U32,
            /// States whether the trade is printed on the consolidated tape.
            36 printable_flag: PrintableFlag,
            /// Reserved since Pillar 2.5; earlier versions send the number of parity splits.
            37 num_parity_splits: u8,
            /// Conditions of the trade since Pillar 2.5; zeroes in earlier versions.
            38 trade_conditions: [TradeCondition; 4],
        }

        /// Replace Order (104): an order was replaced by a new one with the same symbol, side and firm, at
        /// the end of the queue at the new price.
        ReplaceOrder = 104, 42, from 40, on_replace_order, Integrated "Replace Order Message" {
            /// Id of the removed order.
            16 order_id: U64,
            /// Id of the new order.
            24 new_order_id: U64,
            /// Price of the new order.
            32 price: U32,
            /// Number of shares of the new order.
            36 volume: U32,
            /// Side since Pillar 2.5.g. Earlier versions send the number of parity splits: take the side from
            /// the book.
            40 side: Side,
            /// Reserved.
            41 reserved: u8,
        }

        /// Non-Displayed Trade (110): a non-displayed order traded.
        NonDisplayedTrade = 110, 33, from 29, on_non_displayed_trade, Integrated "Non-Displayed Trade Message" {
            /// Id of the trade, unique within symbol and day.
            16 trade_id: U32,
            /// Price of the trade.
            20 price: U32,
            /// Shares traded.
            24 volume: U32,
            /// States whether the trade is printed on the consolidated tape.
            28 printable_flag: PrintableFlag,
            /// Conditions of the trade since Pillar 2.5; zeroes in earlier versions.
            29 trade_conditions: [TradeCondition; 4],
        }

        /// Cross Trade (111): the total of an auction's trades.
        CrossTrade = 111, 29, from 29, on_cross_trade, Integrated "Cross Trade Message" {
            /// Id of the cross, unique within symbol and day.
            16 cross_id: U32,
            /// Price of the cross.
            20 price: U32,
            /// Shares traded.
            24 volume: U32,
            /// Kind of cross.
            28 cross_type: CrossType,
        }

        /// Trade Cancel (112): a trade was cancelled.
        TradeCancel = 112, 20, from 20, on_trade_cancel, Integrated "Trade Cancel Message" {
            /// Id of the cancelled trade.
            16 trade_id: U32,
        }

        /// Cross Correction (113): the volume of a cross is corrected.
        CrossCorrection = 113, 24, from 24, on_cross_correction, Integrated "Cross Correction Message" {
            /// Id of the cross.
            16 cross_id: U32,
            /// Corrected number of shares of the cross.
            20 volume: U32,
        }

        /// Retail Price Improvement (114): sides on which orders offer retail orders a better price.
        RetailPriceImprovement = 114, 17, from 17, on_retail_price_improvement, Integrated "Retail Price Improvement Message" {
            /// Sides with orders that offer retail price improvement.
            16 rpi_indicator: RpiIndicator,
        }
    }
}

impl RefreshHeader {
    /// Length in bytes of the short form, which begins all packets of a symbol's refresh but the first.
    pub const SHORT_LEN: usize = 8;

    /// Returns the sequence number of the channel's last message that the refresh covers, and the
    /// SymbolSeqNum of the symbol's last covered message; `None` in the short form.
    #[inline]
    #[must_use]
    pub fn covered(&self) -> Option<(u32, u32)> {
        let is_long = usize::from(self.header.msg_size.get()) >= RefreshHeader::LEN;
        is_long.then(|| (self.last_seq_num.get(), self.last_symbol_seq_num.get()))
    }

    /// Returns a refresh header in its short form, as bytes.
    #[must_use]
    pub fn short(current_refresh_pkt: u16, total_refresh_pkts: u16) -> [u8; RefreshHeader::SHORT_LEN] {
        let mut whole = RefreshHeader::new(current_refresh_pkt, total_refresh_pkts, 0, 0);
        whole.header.msg_size = U16::new(RefreshHeader::SHORT_LEN as u16);
        *whole.as_bytes().first_chunk().expect("the short form is the beginning of the long one")
    }
}
