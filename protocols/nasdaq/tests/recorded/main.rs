//! Decodes the recorded files from Nasdaq, if present, and checks their codes, prices and times.
#![allow(clippy::unwrap_used, reason = "functions that tests share do not count as tests")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads recorded data")]

mod data;

use std::collections::BTreeMap;
use std::io::Read;

use data::{captures, payloads};
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_nasdaq::itch50::*;
use tickpath_nasdaq::wire::{ShortPrice, Stock};
use tickpath_nasdaq::{itch50, moldudp64, ouch50, soupbintcp};
use tickpath_test_support::recorded;
use tickpath_types::{Nanos, Sequence};

/// Counts messages by type, and asserts that each has a plausible time, known codes and plausible prices.
#[derive(Default)]
struct MessageCounts {
    counts: BTreeMap<char, usize>,
}

impl MessageCounts {
    fn decode(&mut self, message: &[u8]) {
        itch50::decode(message, self).unwrap_or_else(|error| panic!("{error}: {message:02x?}"));
    }

    fn count(&mut self, message_type: u8, ts: Nanos) {
        *self.counts.entry(char::from(message_type)).or_default() += 1;
        assert!((Nanos::from_secs(3 * 3600)..Nanos::from_secs(20 * 3600)).contains(&ts), "{ts}");
    }

    fn text(&self) -> String {
        self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    }
}

fn check_stock(stock: Stock) {
    assert!(stock.as_str().bytes().all(|byte| byte.is_ascii_graphic()) && !stock.as_str().is_empty());
}

fn check_price(price: ShortPrice) {
    assert!((1..=2_000_000_000).contains(&price.get().0), "{price:?}");
}

macro_rules! message_counts {
    ($( $handler:ident($message:ident: $type:ty) $checks:block )*) => {
        impl Listener for MessageCounts {
            $( fn $handler(&mut self, $message: &$type) {
                self.count($message.message_type, $message.timestamp.get());
                $checks
            } )*

            fn on_unknown(&mut self, message_type: u8, _: &[u8]) {
                panic!("type {message_type:#04x}");
            }
        }
    };
}

message_counts! {
    on_system_event(event: SystemEvent) {
        assert!(event.event_code.stage().is_some() && event.stock_locate.get().0 == 0);
    }
    on_stock_directory(directory: StockDirectory) {
        check_stock(directory.stock);
        assert!(directory.market_category.meaning().is_some());
        assert!(directory.financial_status.meaning().is_some());
        assert!(directory.authenticity.meaning().is_some());
        assert!(directory.etp_flag.meaning().is_some() && directory.inverse.meaning().is_some());
    }
    on_stock_trading_action(action: StockTradingAction) {
        check_stock(action.stock);
        assert!(action.trading_state.state().is_some());
    }
    on_reg_sho_restriction(restriction: RegShoRestriction) {
        check_stock(restriction.stock);
        assert!(restriction.reg_sho_action.meaning().is_some());
    }
    on_market_participant_position(position: MarketParticipantPosition) {
        check_stock(position.stock);
        assert!(position.market_maker_mode.meaning().is_some());
        assert!(position.participant_state.meaning().is_some());
    }
    on_luld_auction_collar(collar: LuldAuctionCollar) {
        check_stock(collar.stock);
        assert!(collar.lower_price.get() < collar.reference_price.get());
        assert!(collar.reference_price.get() < collar.upper_price.get());
    }
    on_add_order(add: AddOrder) {
        check_stock(add.stock);
        check_price(add.price);
        assert!(add.side.side().is_some() && add.shares.get().0 > 0);
    }
    on_add_order_mpid(add: AddOrderMpid) {
        check_stock(add.stock);
        check_price(add.price);
        assert!(add.side.side().is_some() && add.attribution.0.iter().all(u8::is_ascii_alphanumeric));
    }
    on_order_executed(executed: OrderExecuted) {
        assert!(executed.executed_shares.get().0 > 0 && executed.match_number.get().0 > 0);
    }
    on_order_executed_with_price(executed: OrderExecutedWithPrice) {
        check_price(executed.execution_price);
        assert!(executed.printable.meaning().is_some());
    }
    on_order_cancel(cancel: OrderCancel) {
        assert!(cancel.canceled_shares.get().0 > 0);
    }
    on_order_delete(delete: OrderDelete) {
        assert!(delete.order_ref.get().0 > 0);
    }
    on_order_replace(replace: OrderReplace) {
        check_price(replace.price);
        assert!(replace.original_order_ref.get() < replace.new_order_ref.get());
    }
    on_non_cross_trade(trade: NonCrossTrade) {
        check_stock(trade.stock);
        check_price(trade.price);
    }
    on_cross_trade(cross: CrossTrade) {
        check_stock(cross.stock);
        assert!(cross.cross_type.meaning().is_some());
    }
    on_net_order_imbalance(noii: NetOrderImbalance) {
        check_stock(noii.stock);
        assert!(noii.imbalance_direction.meaning().is_some());
        assert!(noii.cross_type.meaning().is_some() && noii.price_variation.meaning().is_some());
    }
}

#[test]
fn day_file_excerpts() {
    for (file, counts) in [
        ("nasdaq_itch50/itch50_20191230_0400_first500_order_msgs.bin", "A 495, D 4, U 1"),
        ("nasdaq_itch50/itch50_20191230_2_per_type.bin", "A 2, C 2, D 2, E 2, U 2, X 2"),
    ] {
        let Some(path) = recorded(file) else { return };
        let data = std::fs::read(path).unwrap();
        assert_eq!(Lengths::detect(&data), Lengths::Prefixed);
        let mut message_counts = MessageCounts::default();
        for message in Frames::new(&data, Lengths::Prefixed) {
            message_counts.decode(message.unwrap());
        }
        assert_eq!(message_counts.text(), counts, "{file}");
    }
}

#[test]
fn a_file_whose_length_fields_are_zero() {
    let Some(path) = recorded("nasdaq_itch50/ritch_ex20101224.TEST_ITCH_50.gz") else { return };
    let mut data = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut data).unwrap();
    assert_eq!(Lengths::detect(&data), Lengths::Implied);
    let mut message_counts = MessageCounts::default();
    for message in Frames::new(&data, Lengths::Implied) {
        message_counts.decode(message.unwrap());
    }
    assert_eq!(message_counts.text(), "A 4997, D 1745, E 198, F 3, H 3, P 5000, R 3, S 6, U 12, X 45");
}

#[test]
fn captured_datagrams() {
    for (folder, counts) in [
        (
            "nasdaq_itch50/omi_nasdaq_20230822",
            "A 5, C 5, D 5, E 5, F 5, H 5, I 5, J 5, L 5, P 5, Q 5, S 1, U 5, X 5, Y 5",
        ),
        ("nasdaq_itch50/omi_nasdaq_v5_captured", "A 37, D 2, E 1, F 2, H 1, I 1, L 1, U 1"),
    ] {
        let Some(folder) = recorded(folder) else { return };
        let mut message_counts = MessageCounts::default();
        for datagram in captures(&folder).iter().flat_map(|file| payloads(file)) {
            let packet = moldudp64::Packet::parse(&datagram).unwrap();
            packet.messages().for_each(|(_, message)| message_counts.decode(message));
            for len in 0..datagram.len() {
                assert!(moldudp64::Packet::parse(&datagram[..len]).is_err());
            }
        }
        assert_eq!(message_counts.text(), counts);
    }
}

#[test]
fn a_captured_packet_of_many_messages_is_rebuilt() {
    let Some(folder) = recorded("nasdaq_itch50/omi_nasdaq_v5_captured") else { return };
    let datagrams = payloads(&folder.join("Multiple.Packets.pcap"));
    let packet = moldudp64::Packet::parse(&datagrams[1]).unwrap();
    assert_eq!((packet.message_count(), packet.sequence()), (38, Sequence(19_009_117)));
    assert_eq!(packet.session(), moldudp64::Session::new("000010059B").unwrap());
    let mut builder = moldudp64::PacketBuilder::new([0; 1500], packet.session(), packet.sequence());
    for (_, message) in packet.messages() {
        builder.push(message).unwrap();
    }
    assert_eq!(builder.finish(), datagrams[1]);
}

#[test]
fn captured_order_entry() {
    let Some(folder) = recorded("order_entry/omi_nasdaq_ouch50") else { return };
    let mut seen = Vec::new();
    for bytes in captures(&folder).iter().flat_map(|file| payloads(file)) {
        let (packet, used) = soupbintcp::next_packet(&bytes).unwrap().unwrap();
        assert_eq!(used, bytes.len());
        seen.push(match packet {
            soupbintcp::Packet::UnsequencedData(message) => match ouch50::Inbound::parse(message).unwrap() {
                ouch50::Inbound::EnterOrder(..) => "enter",
                ouch50::Inbound::CancelOrder(..) => "cancel",
                other => panic!("{other:?}"),
            },
            soupbintcp::Packet::SequencedData(message) => match ouch50::Outbound::parse(message).unwrap() {
                ouch50::Outbound::Accepted(..) => "accepted",
                ouch50::Outbound::Canceled(..) => "canceled",
                other => panic!("{other:?}"),
            },
            soupbintcp::Packet::ClientHeartbeat => "client heartbeat",
            soupbintcp::Packet::ServerHeartbeat => "server heartbeat",
            other => panic!("{other:?}"),
        });
        let mut out = [0; 256];
        let len = packet.encode(&mut out).unwrap();
        assert_eq!(out[..len], bytes);
    }
    assert_eq!(seen, ["cancel", "canceled", "client heartbeat", "enter", "accepted", "server heartbeat"]);
}
