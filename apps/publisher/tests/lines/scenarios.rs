//! Tests of the feed handler with a publisher that drops packets: the handler's books must equal books that
//! are built from all messages.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use tickpath_agent::{Agent, TscClock};
use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_capture::{Packets, RecordingFile};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks, iex, xdp};
use tickpath_feedhandler::live::{ChannelStatus, LiveConfig, LiveHandler};
use tickpath_iex::{Feed, Segment};
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_nyse::Packet;
use tickpath_publisher::{Publication, PublishOptions, PublishReport};
use tickpath_test_support::wait_for;
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, Side, Symbol};

use super::recordings::{iex_day, iex_messages, itch_day, xdp_day};
use super::{Publisher, options};

const LIMITS: BookLimits = BookLimits::new(InstrumentId(64), 1 << 14);

/// Number of symbols in a day of ITCH or XDP.
const SYMBOLS: u32 = 12;

/// Symbol, best bid and best ask.
type Best = (Symbol, Option<i64>, Option<i64>);

/// The state of a handler that received all messages of its channel, and the publisher's report.
struct HandlerResult {
    status: ChannelStatus,
    books: Vec<Best>,
    report: PublishReport,
}

/// Runs a publisher and a handler until the handler's next message is `next` and `symbols` books are live. If
/// `is_late`, the handler is opened after the recording was sent.
fn run_handler(options: PublishOptions, next: u64, symbols: u32, is_late: bool) -> HandlerResult {
    let publication = Publication::open(options).unwrap();
    let text = format!("{}max_instruments = 64\nmax_orders = 16384\n", publication.feed_config());
    let mut config: LiveConfig = tickpath_config::parse("feed.toml", &text).unwrap();
    config.finish().unwrap();
    if is_late {
        // The late handler lacks more messages than `max_gap`, so it recovers by a snapshot.
        config.channels[0].max_gap = 1_000;
    }
    let clock = TscClock::shared();
    let (_commands, receiver) = sync_channel(1);
    let open =
        |receiver| LiveHandler::open(&tickpath_net::Kernel, &config, None, clock.now(), receiver).unwrap();
    let (publisher, (mut handler, mut view)) = if is_late {
        let publisher = Publisher::begin(publication);
        wait_for("the end of the recording", || publisher.has_published().then_some(()));
        (publisher, open(receiver))
    } else {
        let handler = open(receiver);
        (Publisher::begin(publication), handler)
    };
    wait_for("whole books", || {
        for _ in 0..1_000 {
            handler.do_work(clock.now()).unwrap();
        }
        let channels = view.channels();
        let status = &channels.first()?.status;
        (status.next_sequence == next && status.health == [symbols, 0, 0, 0]).then_some(())
    });
    handler.on_close();
    let status = view.channels()[0].status;
    let mut books: Vec<Best> = Vec::new();
    for (_, book) in view.books() {
        assert_eq!(book.health, BookHealth::Live);
        books.push((book.symbol, book.bid.map(|bid| bid.0.0), book.ask.map(|ask| ask.0.0)));
    }
    books.sort_unstable();
    HandlerResult { status, books, report: publisher.stop() }
}

/// Returns the best prices of each symbol in `books`.
fn best(books: &impl BooksById, symbols: impl Iterator<Item = (InstrumentId, Symbol)>) -> Vec<Best> {
    let price = |id, side| books.best_price(id, side).map(|price| price.0);
    let best = |(id, symbol)| (symbol, price(id, Side::Buy), price(id, Side::Sell));
    let mut all: Vec<Best> = symbols.map(best).collect();
    all.sort_unstable();
    all
}

fn with_losses(file: &Path) -> PublishOptions {
    PublishOptions { drop_a_ppm: 200_000, drop_b_ppm: 200_000, seed: 11, ..options(file) }
}

/// Checks that each line dropped packets, that retransmission filled gaps, and that no message was lost.
fn assert_recovered(result: &HandlerResult) {
    let lines = &result.report.channels[0].lines;
    assert!(lines.iter().all(|line| line.dropped > 5), "{}", result.report);
    assert!(result.status.lines.gaps_healed_by_retransmission > 0, "{:?}", result.status.lines);
    assert_eq!(result.status.lines.messages_lost, 0);
}

fn iex_reference(feed: Feed, count: usize) -> iex::BookBuilder<PackedBooks> {
    let mut reference = iex::BookBuilder::new(feed, PackedBooks::new(LIMITS));
    for (sequence, message) in (1..).zip(iex_messages(feed, count)) {
        reference.handle_message(Sequence(sequence), &message, &mut IgnoreUpdates);
    }
    reference
}

fn iex_symbols(reference: &iex::BookBuilder<PackedBooks>) -> impl Iterator<Item = (InstrumentId, Symbol)> {
    let ids = (1..=reference.symbol_count()).map(InstrumentId);
    ids.filter_map(|id| Some((id, reference.instrument(id)?.symbol?)))
}

#[test]
fn books_of_iex_survive_losses_by_gap_fill() {
    for feed in [Feed::Deep10, Feed::DeepPlus10] {
        let folder = tempfile::tempdir().unwrap();
        let result = run_handler(with_losses(&iex_day(folder.path(), feed, 6_000)), 6_001, 3, false);
        assert_recovered(&result);
        let reference = iex_reference(feed, 6_000);
        assert_eq!(result.status.state_hash, reference.books().state_hash());
        assert_eq!(result.books, best(reference.books(), iex_symbols(&reference)));
    }
}

#[test]
fn a_late_handler_of_iex_begins_with_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let result = run_handler(options(&iex_day(folder.path(), Feed::Deep10, 6_000)), 6_001, 3, true);
    let reference = iex_reference(Feed::Deep10, 6_000);
    assert_eq!(result.books, best(reference.books(), iex_symbols(&reference)));
    let service = &result.report.channels[0].service;
    assert!(service.iter().any(|(name, count)| *name == "snap_snapshots" && *count > 0), "{service:?}");
}

/// Returns the sequence number after the last message of an ITCH file, and the books of all its messages.
fn itch_reference(file: &Path) -> (u64, BookBuilder<PackedBooks>) {
    let bytes = std::fs::read(file).unwrap();
    let mut reference = BookBuilder::new(PackedBooks::new(LIMITS));
    let mut next = 1;
    for message in Frames::new(&bytes, Lengths::Prefixed) {
        reference.handle_message(Sequence(next), message.unwrap(), &mut IgnoreUpdates);
        next += 1;
    }
    (next, reference)
}

#[test]
fn books_of_itch_survive_losses_by_retransmission_and_late_ones_begin_with_glimpse() {
    let folder = tempfile::tempdir().unwrap();
    let file = itch_day(folder.path());
    let (next, reference) = itch_reference(&file);
    let result = run_handler(with_losses(&file), next, SYMBOLS, false);
    assert_recovered(&result);
    assert_eq!(result.status.state_hash, reference.books().state_hash());

    let late = run_handler(options(&file), next, SYMBOLS, true);
    assert_eq!(late.status.state_hash, reference.books().state_hash());
    assert!(late.report.channels[0].service.contains(&("glimpse_logins", 1)), "{}", late.report);
}

#[test]
fn books_of_xdp_survive_losses_by_retransmission_and_late_ones_begin_with_a_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let file = xdp_day(folder.path(), 1);
    let mut reference = xdp::BookBuilder::new(PackedBooks::new(LIMITS), Nanos::ZERO);
    let mut packets = Packets::of(RecordingFile::open(&file).unwrap());
    let mut next = 1;
    while let Some(packet) = packets.next_packet().unwrap() {
        let packet = Packet::parse(packet.payload).unwrap();
        if packet.sequence() == next {
            reference.handle_packet(xdp::Channel(0), &packet, &mut IgnoreUpdates);
            next += u32::from(packet.message_count());
        }
    }
    let result = run_handler(with_losses(&file), next.into(), SYMBOLS, false);
    assert_recovered(&result);
    assert_eq!(result.status.state_hash, reference.instruments().books().state_hash());

    let late = run_handler(options(&file), next.into(), SYMBOLS, true);
    let instruments = reference.instruments();
    let named = instruments.ids().filter_map(|id| Some((id, instruments.instrument(id)?.symbol?)));
    assert_eq!(late.books, best(instruments.books(), named));
    let service = &late.report.channels[0].service;
    assert!(service.iter().any(|(name, count)| *name == "symbols_refreshed" && *count > 0), "{service:?}");
}

/// Publishes a part of a real IEX capture, in which the session restarts.
#[test]
fn a_real_capture_is_published_whole_over_its_restart() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../protocols/iex/tests/data/deep10_20170425_restart.pcap.gz");
    let mut packets = Packets::of(RecordingFile::open(&file).unwrap());
    let mut last = (0, 0);
    while let Some(packet) = packets.next_packet().unwrap() {
        let segment = Segment::parse(packet.payload).unwrap();
        last = (segment.next_sequence().0, segment.session());
    }
    let report = Publisher::start(PublishOptions { linger: Nanos::ZERO, ..options(&file) }).finish();
    assert!(report.is_whole(), "{report}");
    let channel = &report.channels[0];
    assert_eq!((channel.packets, channel.messages, channel.restarts), (400, 861, 1));
    assert!(last.0 > 500);
}

#[test]
fn a_handler_accepts_the_configuration_of_two_channels() {
    let folder = tempfile::tempdir().unwrap();
    let publication = Publication::open(options(&xdp_day(folder.path(), 2))).unwrap();
    let mut config: LiveConfig = tickpath_config::parse("feed.toml", &publication.feed_config()).unwrap();
    config.finish().unwrap();
    let numbers: Vec<u8> = config.channels.iter().map(|channel| channel.channel_id).collect();
    assert_eq!(numbers, [1, 2]);
}
