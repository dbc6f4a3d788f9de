//! Time to apply a synthetic day of NYSE's Integrated Feed from a capture in memory to books.

use tickpath_book::{BookLimits, BooksById, Indexed, PackedBooks};
use tickpath_capture::Packets;
use tickpath_feed::xdp::{BookBuilder, Channel, Message};
use tickpath_feed::{self as feed, IgnoreUpdates, MessageBooks};
use tickpath_flowgen::{ItchDay, ItchDayConfig, XdpDay, XdpDayConfig, append_record, pcap_header, xdp_group};
use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
use tickpath_nyse::{Messages, Packet};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, Sequence, Side};
use xxhash_rust::xxh3::Xxh3;

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("xdp_books", "ns").note(
        "a message of a synthetic day of NYSE's Integrated Feed (generate xdp, 500 symbols, two \
             channels) in memory: pcap, Ethernet, IPv4 and UDP framing, the channel's numbers checked, \
             decoded, applied to full books; packets as bursts fill them, and full ones in the note",
    )],
    open,
)];

/// Midnight of the synthetic day, since the Unix epoch.
const MIDNIGHT: Nanos = Nanos::from_secs(1_795_150_800);
/// Time of the close since midnight. A capture ends before it, because the close empties all books.
const CLOSE: Nanos = Nanos::from_secs(20 * 3_600);
/// Number of messages of the order flow in a full round, and number of them for each resting order.
const MESSAGES: usize = 5_000_000;
const MESSAGES_PER_LIVE: u64 = 25;
/// Maximum time that a packet in the capture `full` waits for more messages: enough to fill nearly all.
const FULL_WINDOW_NS: u64 = 1_000_000_000;

/// A capture up to the close, and the expected state hash of the books.
struct Capture {
    config: XdpDayConfig,
    bytes: Vec<u8>,
    messages: u64,
    packets: u64,
    state_hash: u64,
}

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let messages = (lab.context.effort.count(MESSAGES) as u64).max(100_000);
    let live = (messages / MESSAGES_PER_LIVE) as u32;
    let flow = ItchDayConfig { messages, live, ..ItchDayConfig::itch_500() };
    let expected = itch_levels(&flow)?;
    let mut bursts = Capture::new(XdpDayConfig { flow, ..XdpDayConfig::xdp_500() })?;
    let mut full = Capture::new(XdpDayConfig { window_ns: FULL_WINDOW_NS, ..bursts.config })?;
    // `bursts` and `full` have the same messages, so they lead to the same books.
    bursts.state_hash = bursts.reference_hash(expected)?;
    full.state_hash = bursts.state_hash;
    each_round(lab, move |context| {
        let value = bursts.pass(context)?;
        let of_full = full.pass(context)?;
        let note = format!(
            "{:.1} messages a packet; with {:.1} a packet {of_full:.1} ns",
            bursts.mean_per_packet(),
            full.mean_per_packet()
        );
        Ok([Sample::with_note(value, note)])
    })
}

impl Capture {
    /// Generates the capture; the expected state hash is set later.
    fn new(config: XdpDayConfig) -> anyhow::Result<Capture> {
        let mut day = XdpDay::new(config)?;
        let (mut bytes, mut messages, mut packets) = (pcap_header().to_vec(), 0, 0);
        while let Some(packet) = day.next_packet().filter(|packet| packet.ts_ns < MIDNIGHT.0 + CLOSE.0) {
            append_record(&packet, &mut bytes);
            messages += u64::from(packet.message_count);
            packets += 1;
        }
        Ok(Capture { config, bytes, messages, packets, state_hash: 0 })
    }

    /// Returns the state hash of the reference model's books. Fails unless their levels hash to `levels`.
    fn reference_hash(&self, levels: u64) -> anyhow::Result<u64> {
        let mut reference_books = self.empty::<Indexed<ReferenceBooks>>();
        self.apply(&mut reference_books)?;
        let books = reference_books.instruments().books();
        ensure!(levels_hash(books) == levels, "the levels are not those of the same flow in ITCH");
        Ok(books.state_hash())
    }

    fn mean_per_packet(&self) -> f64 {
        self.messages as f64 / self.packets as f64
    }

    fn empty<B: BooksById>(&self) -> BookBuilder<B> {
        BookBuilder::new(B::new(limits(&self.config.flow)), MIDNIGHT)
    }

    /// Reads the capture, checks the channels' sequence numbers, and applies the messages to books.
    fn apply<B: BooksById>(&self, builder: &mut BookBuilder<B>) -> anyhow::Result<()> {
        let mut rows = [1; u8::MAX as usize];
        let mut count = 0;
        let mut packets = Packets::new(black_box(&self.bytes[..]));
        while packets.fill()? {
            let walk = MessageIter {
                packets: packets.block(),
                rows: &mut rows,
                channel: Channel(0),
                messages: None,
            };
            count += builder.handle_batch(walk, &mut IgnoreUpdates);
        }
        ensure!(count == self.messages, "{count} messages of {} were in their rows", self.messages);
        Ok(())
    }

    /// Returns the nanoseconds per message of one pass into new books. Creation and check of the books are
    /// not timed.
    fn pass(&self, context: &Context) -> anyhow::Result<f64> {
        let mut books = self.empty::<PackedBooks>();
        let ticks = context.timed(|| self.apply(&mut books))?;
        let instruments = books.instruments();
        let contradictions = instruments.contradictions();
        ensure!(contradictions == 0, "the books contradict the day: {:?}", instruments.counters());
        let state_hash = instruments.books().state_hash();
        ensure!(
            state_hash == self.state_hash,
            "the books end as {state_hash:#018x}, their reference model otherwise"
        );
        Ok(context.nanos_each(ticks, self.messages))
    }
}

/// Iterates over the messages of packets that are in sequence; ends at a packet that is not.
struct MessageIter<'a, P> {
    packets: P,
    /// Next sequence number of each channel.
    rows: &'a mut [u32; u8::MAX as usize],
    channel: Channel,
    messages: Option<Messages<'a>>,
}

impl<'a, P: Iterator<Item = tickpath_capture::Packet<'a>>> Iterator for MessageIter<'a, P> {
    type Item = Message<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Message<'a>> {
        loop {
            if let Some((sequence, message)) = self.messages.as_mut().and_then(Messages::next) {
                return Some(Message::new(self.channel, sequence, message));
            }
            let captured = self.packets.next()?;
            let channel = captured.dst.port().wrapping_sub(xdp_group(0, 0).port()) as u8;
            let packet = Packet::parse_header(captured.payload).ok()?;
            let next = self.rows.get_mut(usize::from(channel))?;
            if packet.sequence() != *next {
                return None;
            }
            *next = next.wrapping_add(u32::from(packet.message_count()));
            (self.channel, self.messages) = (Channel(channel), Some(packet.messages()));
        }
    }
}

fn limits(flow: &ItchDayConfig) -> BookLimits {
    BookLimits::new(InstrumentId(flow.symbols as u16), flow.live + flow.live / 4 + 10_000)
}

/// Applies the same order flow, as ITCH messages, to the reference model; returns the hash of its levels
/// before the close.
fn itch_levels(flow: &ItchDayConfig) -> anyhow::Result<u64> {
    let mut builder = feed::BookBuilder::new(Indexed::<ReferenceBooks>::new(limits(flow)));
    let mut day = ItchDay::new(*flow).context("the flow of the XDP day")?;
    let mut message = [0; MESSAGE_LEN_MAX];
    let mut sequence = Sequence(1);
    while let Some(len) = day.next_message(&mut message) {
        let ts = message[5..11].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte));
        if ts >= CLOSE.0 {
            break;
        }
        builder.handle_message(sequence, &message[..len], &mut IgnoreUpdates);
        sequence = sequence.next();
    }
    Ok(levels_hash(builder.instruments().books()))
}

/// Hashes price, quantity and number of orders of every level.
fn levels_hash(books: &impl BooksById) -> u64 {
    let mut hasher = Xxh3::new();
    for id in (1..=books.limits().max_instrument.0).map(InstrumentId) {
        for side in Side::BOTH {
            for level in books.levels(id, side) {
                hasher.update(&level.price.0.to_le_bytes());
                hasher.update(&level.qty.0.to_le_bytes());
                hasher.update(&level.order_count.to_le_bytes());
            }
            hasher.update(b"|");
        }
    }
    hasher.digest()
}
