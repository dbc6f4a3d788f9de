//! Decodes sample packets and checks each field; encoding the values must give the same bytes.
#![allow(clippy::unwrap_used)]

use crate::samples::{packet, samples};
use tickpath_nyse::{
    AddOrder, AuctionType, CrossTrade, CrossType, DeleteOrder, DeliveryFlag, ExchangeCode, Fields, Firm,
    HaltCondition, Imbalance, ImbalanceSide, MESSAGE_TYPES, MarketState, Message, NonDisplayedTrade,
    OrderExecution, PACKET_LEN_MAX, Packet, PacketBuilder, PrintableFlag, ReplaceOrder, SecurityStatus,
    SecurityStatusCode, SecurityType, SendTime, SequenceNumberReset, Side, SourceTimeReference, SsrState,
    StockSummary, SymbolIndexMapping, TradeCondition, XdpSymbol, YesNo, decode, message_len,
};
use zerocopy::IntoBytes;

fn messages(bytes: &[u8]) -> Vec<(u32, Message<'_>)> {
    let packet = Packet::parse(bytes).unwrap();
    packet.messages().map(|(sequence, message)| (sequence, Message::parse(message).unwrap())).collect()
}

/// Checks that a sample's only message decodes to `expected`, and that encoding `message` gives the sample.
#[track_caller]
fn check_one<M: IntoBytes + zerocopy::Immutable>(
    name: &str,
    sequence: u32,
    expected: Message<'_>,
    message: &M,
) {
    let bytes = packet(name);
    assert_eq!(messages(&bytes), [(sequence, expected)], "{name}");
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.delivery_flag(), DeliveryFlag::ORIGINAL);
    let mut builder = PacketBuilder::new([0; PACKET_LEN_MAX], sequence);
    builder.push(message).unwrap();
    assert_eq!(builder.finish(DeliveryFlag::ORIGINAL, packet.send_time()), bytes, "{name}");
}

fn regular(rest: [u8; 3]) -> [TradeCondition; 4] {
    [TradeCondition::REGULAR, TradeCondition(rest[0]), TradeCondition(rest[1]), TradeCondition(rest[2])]
}

#[test]
fn the_sheets_test_vector_is_three_messages() {
    let bytes = packet("sheet/TestVector");
    let time = SourceTimeReference::new(7, 0, 1_700_000_000);
    let order_id = 0x0102_0304_0506_0708_u64;
    let add = AddOrder::new(123_456_789, 4242, 1, order_id, 2756, 300, Side::BUY, Firm::NONE, 0);
    let conditions = regular(*b"  I");
    let print = PrintableFlag::PRINTED;
    let executed = OrderExecution::new(123_456_999, 4242, 2, order_id, 77, 2756, 100, print, 0, conditions);
    assert_eq!(
        messages(&bytes),
        [
            (100, Message::SourceTimeReference(time)),
            (101, Message::AddOrder(add)),
            (102, Message::OrderExecution(executed)),
        ]
    );
    let mut builder = PacketBuilder::new([0; PACKET_LEN_MAX], 100);
    builder.push(&time).unwrap();
    builder.push(&add).unwrap();
    builder.push(&executed).unwrap();
    assert_eq!(builder.finish(DeliveryFlag::ORIGINAL, SendTime { secs: 1_700_000_000, nanos: 5 }), bytes);
}

#[test]
fn an_add_order_of_pillar() {
    let add = AddOrder::new(
        177_431_552,
        4966,
        6,
        0x0001_0100_0000_a6e9_u64,
        10_010_000,
        1200,
        Side::BUY,
        Firm::NONE,
        0,
    );
    check_one("integrated/AddOrderMessage", 53_173, Message::AddOrder(add), &add);
}

#[test]
fn a_delete_order_of_pillar() {
    let delete = DeleteOrder::new(989_195_264, 48_869, 17, 0x0001_0100_0000_a6aa_u64, 0);
    check_one("integrated/DeleteOrderMessage", 53_150, Message::DeleteOrder(delete), &delete);
}

#[test]
fn an_execution_of_pillar() {
    let executed = OrderExecution::new(
        213_399_808,
        5530,
        11,
        0x0001_0100_0000_b28c_u64,
        68_747,
        10_010_000,
        100,
        PrintableFlag::PRINTED,
        0,
        regular(*b"   "),
    );
    check_one("integrated/OrderExecutionMessage", 54_328, Message::OrderExecution(executed), &executed);
}

#[test]
fn a_replacement_of_pillar() {
    let replace = ReplaceOrder::new(
        491_220_224,
        59_823,
        63,
        0x0001_0100_0000_e985_u64,
        0x0001_0100_0000_e9d6_u64,
        10_000,
        200,
        Side(0),
        0,
    );
    check_one("integrated/ReplaceOrderMessage", 54_194, Message::ReplaceOrder(replace), &replace);
}

#[test]
fn the_trades_of_an_auction_are_two_messages_of_a_packet() {
    let bytes = packet("integrated/CrossTradeMessage");
    let cross = CrossTrade::new(571_389_696, 25_093, 6, 184_796, 9_990_000, 100, CrossType::CLOSING);
    let trade = NonDisplayedTrade::new(
        571_389_696,
        25_093,
        7,
        91_449,
        9_990_000,
        100,
        PrintableFlag::NOT_PRINTED,
        regular(*b"6  "),
    );
    let expected = [(53_638, Message::CrossTrade(cross)), (53_639, Message::NonDisplayedTrade(trade))];
    assert_eq!(messages(&bytes), expected);
}

#[test]
fn an_imbalance_of_pillar_has_the_later_fields() {
    let imbalance = Imbalance::new(
        1_645_642_896,
        205_260_288,
        59_083,
        14,
        10_000_000,
        900,
        1100,
        0,
        1406,
        AuctionType::CLOSING,
        ImbalanceSide::BUY,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        0,
        1100,
        ImbalanceSide::BUY,
        b' ',
    );
    check_one("integrated/ImbalanceMessage", 53_119, Message::Imbalance(imbalance), &imbalance);
}

#[test]
fn a_security_status_of_pillar() {
    let status = SecurityStatus::new(
        1_645_642_897,
        150_267_136,
        9380,
        8,
        SecurityStatusCode(b'5'),
        HaltCondition::NONE,
        0,
        0,
        0,
        ExchangeCode(b' '),
        0,
        0,
        SsrState::NONE,
        MarketState::PRE_OPENING,
        0,
    );
    check_one("integrated/SecurityStatusMessage", 42_754, Message::SecurityStatus(status), &status);
}

#[test]
fn a_source_time_reference_and_a_stock_summary_of_pillar() {
    let time = SourceTimeReference::new(1, 0, 1_645_642_895);
    check_one("integrated/SourceTimeReferenceMessage", 10_985, Message::SourceTimeReference(time), &time);
    let summary =
        StockSummary::new(1_645_636_597, 228_979_968, 59_327, 10_020_000, 10_000_000, 10_020_000, 0, 900);
    check_one("integrated/StockSummaryMessage", 216_123, Message::StockSummary(summary), &summary);
}

#[test]
fn a_sequence_reset_is_a_separate_packet_with_its_flag() {
    let bytes = packet("bbo/SequenceNumberResetMessage");
    let reset = SequenceNumberReset::new(1_507_044_971, 49_677_029, 3, 1);
    assert_eq!(messages(&bytes), [(1, Message::SequenceNumberReset(reset))]);
    assert_eq!(Packet::parse(&bytes).unwrap().delivery_flag(), DeliveryFlag::SEQUENCE_RESET);
}

#[test]
fn a_symbol_index_mapping_names_a_symbol() {
    let symbol = XdpSymbol::new("ACP").unwrap();
    let mapping = SymbolIndexMapping::new(
        36_439,
        symbol,
        0,
        65_u16,
        1,
        ExchangeCode(0),
        5,
        SecurityType(b'N'),
        0_u16,
        0,
        0,
        0,
        YesNo::NO,
        0_u16,
        0_u16,
        0_u16,
    );
    let bytes = packet("bbo/SymbolIndexMappingMessage");
    let [(2, Message::SymbolIndexMapping(found))] = messages(&bytes)[..] else { panic!("another message") };
    assert_eq!((found.symbol_index.get(), found.symbol), (36_439, mapping.symbol));
    assert_eq!(found.symbol.symbol().unwrap().as_str(), "ACP");
}

#[test]
fn messages_of_the_best_prices_feed_are_unknown_and_skipped() {
    let bytes = packet("bbo/QuoteMessage");
    let [(19_618, Message::Unknown(quote))] = messages(&bytes)[..] else { panic!("a known message") };
    assert_eq!((quote.len(), quote[2]), (38, 140));
}

#[test]
fn every_cut_of_a_packet_and_of_a_message_is_an_error() {
    for (name, bytes) in samples() {
        for len in 0..bytes.len() {
            assert!(Packet::parse(&bytes[..len]).is_err(), "{name} cut to {len}");
        }
        for (_, message) in Packet::parse(&bytes).unwrap().messages() {
            for len in 0..message.len() {
                assert!(Message::parse(&message[..len]).is_err(), "{name} cut to {len}");
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Packet::parse(&longer).is_err(), "{name} with a byte behind it");
    }
}

#[test]
fn every_byte_of_every_message_is_in_a_field() {
    let sum = |message: &[u8]| {
        let mut sum = 0_u64;
        let mut fields = Fields(|fields: &[u64]| {
            sum = fields.iter().fold(sum, |sum, field| sum.rotate_left(9).wrapping_mul(31) ^ field);
        });
        decode(message, &mut fields).unwrap();
        sum
    };
    for message_type in MESSAGE_TYPES.iter().chain(&[999]) {
        let len = message_len(*message_type).unwrap_or(21);
        let mut message: Vec<u8> = (0..len as u8).map(|byte| byte.wrapping_mul(37) ^ 0x5a).collect();
        message[..2].copy_from_slice(&(len as u16).to_le_bytes());
        message[2..4].copy_from_slice(&message_type.to_le_bytes());
        let plain = sum(&message);
        for byte in 4..len {
            let mut changed = message.clone();
            changed[byte] ^= 1;
            assert_ne!(sum(&changed), plain, "byte {byte} of {message_type}");
        }
    }
}
