//! A whole XDP day: its books must equal those of the ITCH day with the same order flow.

use tickpath_book::{BookLimits, BooksById, Indexed, Level, PackedBooks};
use tickpath_feed::xdp::Channel;
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks, xdp};
use tickpath_flowgen::{ItchDay, ItchDayConfig, XdpDay, XdpDayConfig};
use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
use tickpath_nyse::{CrossTrade, Imbalance, NonDisplayedTrade, Packet, SymbolClear, SymbolIndexMapping};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, Side};

use crate::xdp::support::MIDNIGHT_SECS;

const FLOW: ItchDayConfig = ItchDayConfig { messages: 60_000, symbols: 40, live: 3_000, seed: 11 };
const MIDNIGHT: Nanos = Nanos::from_secs(MIDNIGHT_SECS as u64);

fn limits() -> BookLimits {
    BookLimits::new(InstrumentId(FLOW.symbols as u16), 2 * FLOW.live)
}

/// Builds books from the day's ITCH messages before time `until`; returns all their levels.
fn itch_levels(until: Nanos) -> Vec<Vec<Level>> {
    let mut builder = BookBuilder::new(Indexed::<ReferenceBooks>::new(limits()));
    let mut day = ItchDay::new(FLOW).unwrap();
    let mut message = [0; MESSAGE_LEN_MAX];
    let mut sequence = Sequence(1);
    while let Some(len) = day.next_message(&mut message) {
        let ts = message[5..11].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte));
        if ts >= until.0 {
            break;
        }
        builder.handle_message(sequence, &message[..len], &mut IgnoreUpdates);
        sequence = sequence.next();
    }
    levels(builder.instruments().books())
}

fn levels(books: &impl BooksById) -> Vec<Vec<Level>> {
    let ids = (1..=FLOW.symbols as u16).map(InstrumentId);
    ids.flat_map(|id| Side::BOTH.map(|side| books.levels(id, side).collect())).collect()
}

#[test]
fn levels_equal_those_of_the_same_flow_in_itch() {
    let config = XdpDayConfig { flow: FLOW, channels: 3, window_ns: 0, ..XdpDayConfig::xdp_500() };
    for hour in [10, 12, 16, 20] {
        let until = Nanos::from_secs(hour * 3_600);
        let mut builder = xdp::BookBuilder::new(PackedBooks::new(limits()), MIDNIGHT);
        let mut day = XdpDay::new(config).unwrap();
        while let Some(packet) = day.next_packet().filter(|packet| packet.ts_ns < MIDNIGHT.0 + until.0) {
            let messages = Packet::parse(packet.bytes()).unwrap();
            builder.handle_packet(Channel(packet.channel), &messages, &mut IgnoreUpdates);
        }
        let levels = levels(builder.instruments().books());
        assert!(levels.iter().map(Vec::len).sum::<usize>() > 50, "at {hour}");
        assert!(levels == itch_levels(until), "at {hour}");
        assert_eq!(builder.instruments().contradictions(), 0, "{:?}", builder.instruments().counters());
    }
}

#[test]
fn the_day_ends_with_empty_live_books() {
    let mut builder = xdp::BookBuilder::new(PackedBooks::new(limits()), MIDNIGHT);
    let mut day = XdpDay::new(XdpDayConfig { flow: FLOW, ..XdpDayConfig::xdp_500() }).unwrap();
    let mut counts = [0_u32; 256];
    while let Some(packet) = day.next_packet() {
        let messages = Packet::parse(packet.bytes()).unwrap();
        messages.messages().for_each(|(_, message)| counts[usize::from(message[2])] += 1);
        builder.handle_packet(Channel(packet.channel), &messages, &mut IgnoreUpdates);
    }
    let count = |message_type: u16| counts[usize::from(message_type)];
    assert_eq!([SymbolIndexMapping::TYPE, SymbolClear::TYPE].map(count), [FLOW.symbols; 2]);
    assert!(
        count(NonDisplayedTrade::TYPE) > 100 && count(CrossTrade::TYPE) > 30 && count(Imbalance::TYPE) > 500
    );
    let instruments = builder.instruments();
    assert_eq!((instruments.books().order_count(), instruments.contradictions()), (0, 0));
    assert_eq!(instruments.counters().messages, day.counters().messages);
    assert!(instruments.ids().all(|id| instruments.instrument(id).unwrap().health == BookHealth::Live));
}

#[test]
fn a_missing_packet_is_noticed() {
    let mut builder = xdp::BookBuilder::new(PackedBooks::new(limits()), MIDNIGHT);
    let mut day = XdpDay::new(XdpDayConfig { flow: FLOW, ..XdpDayConfig::xdp_500() }).unwrap();
    let mut number = 0;
    while let Some(packet) = day.next_packet() {
        number += 1;
        if number % 500 != 499 {
            let messages = Packet::parse(packet.bytes()).unwrap();
            builder.handle_packet(Channel(packet.channel), &messages, &mut IgnoreUpdates);
        }
    }
    assert!(builder.instruments().counters().symbol_gaps > 10);
    let instruments = builder.instruments();
    let suspect = |id: &InstrumentId| instruments.instrument(*id).unwrap().health == BookHealth::Suspect;
    assert!(instruments.ids().filter(suspect).count() > 10);
}
