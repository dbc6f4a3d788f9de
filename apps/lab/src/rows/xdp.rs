//! Time to apply a synthetic day of NYSE's Integrated Feed from a capture in memory to books.

use tickpath_book::{BookLimits, BooksById, Indexed, PackedBooks};
use tickpath_capture::Packets;
use tickpath_feed::xdp::{BookBuilder, Channel, Message};
use tickpath_feed::{self as feed, IgnoreUpdates, MessageBooks};
use tickpath_flowgen::{ItchDay, ItchDayConfig, XdpDay, XdpDayConfig, append_record, pcap_header, xdp_group};
use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
use tickpath_nyse::{Fields, Message as XdpMessage, Messages, Packet, PositionChange, decode};
use tickpath_recording::Digest;
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, Price, Qty, Sequence, Side};
use xxhash_rust::xxh3::Xxh3;

use super::prelude::*;
use crate::touch::{Recorder, side_index};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("xdp_decode_and_touch", "ns").note(
            "a message of the day of xdp_books: framed, numbers checked, decoded, every field folded into a \
             checksum; and, added, the cache lines that it needs in the layout of itch_touch",
        ),
        row("xdp_books", "ns")
            .note(
                "a message of a synthetic day of NYSE's Integrated Feed (generate xdp, 500 symbols, two \
                 channels) in memory: pcap, Ethernet, IPv4 and UDP framing, the channel's numbers checked, \
                 decoded, applied to full books; packets as bursts fill them, and full ones in the note",
            )
            .limit("xdp_decode_and_touch")
            .goal(Goal::RatioAtMost(2.4)),
    ],
    open,
)];

/// Midnight of the synthetic day, since the Unix epoch.
const MIDNIGHT: Nanos = Nanos::from_secs(1_795_150_800);
/// Time of the close since midnight. A capture ends before it, because the close empties all books.
const CLOSE: Nanos = Nanos::from_secs(20 * 3_600);
/// Above the highest symbol index of the day minus the lowest one.
const INSTRUMENTS_MAX: u32 = 1 << 12;
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
    let checksum = bursts.checksum()?;
    // `bursts` and `full` have the same messages, so they lead to the same books.
    let (state_hash, live) = bursts.reference_outcome(expected)?;
    (bursts.state_hash, full.state_hash) = (state_hash, state_hash);
    let mut touching = bursts.touching(live)?;
    each_round(lab, move |context| {
        let decode = bursts.decode(context, checksum)?;
        let touch = context.timed(|| {
            black_box(touching());
            Ok(())
        })?;
        let touch = context.nanos_each(touch, bursts.messages);
        let value = bursts.pass(context)?;
        let of_full = full.pass(context)?;
        let note = format!(
            "{:.1} messages a packet; with {:.1} a packet {of_full:.1} ns",
            bursts.mean_per_packet(),
            full.mean_per_packet()
        );
        let limit = Sample::with_note(decode + touch, format!("{decode:.1} + {touch:.1} ns"));
        Ok([limit, Sample::with_note(value, note)])
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

    /// Returns state hash and number of orders of the reference model's books. Fails unless their levels hash
    /// to `levels`.
    fn reference_outcome(&self, levels: u64) -> anyhow::Result<(u64, u32)> {
        let mut reference_books = self.empty::<Indexed<ReferenceBooks>>();
        self.apply(&mut reference_books)?;
        let books = reference_books.instruments().books();
        ensure!(levels_hash(books) == levels, "the levels are not those of the same flow in ITCH");
        Ok((books.state_hash(), books.order_count()))
    }

    fn mean_per_packet(&self) -> f64 {
        self.messages as f64 / self.packets as f64
    }

    fn empty<B: BooksById>(&self) -> BookBuilder<B> {
        BookBuilder::new(B::new(limits(&self.config.flow)), MIDNIGHT)
    }

    /// Reads the capture, checks the channels' sequence numbers, and passes the messages on.
    #[inline(always)]
    fn apply(&self, target: &mut impl Target) -> anyhow::Result<()> {
        let mut next_sequences = [1; u8::MAX as usize];
        let mut count = 0;
        let mut packets = Packets::new(black_box(&self.bytes[..]));
        while packets.fill()? {
            count += target.take(MessageIter {
                packets: packets.block(),
                next_sequences: &mut next_sequences,
                channel: Channel(0),
                messages: None,
            })?;
        }
        ensure!(count == self.messages, "{count} messages of {} were in sequence", self.messages);
        Ok(())
    }

    /// Returns the nanoseconds per message to decode all messages.
    fn decode(&self, context: &Context, checksum: u64) -> anyhow::Result<f64> {
        let mut digest = Digest::default();
        let ticks = context.timed(|| self.apply(&mut digest))?;
        ensure!(digest.checksum == checksum, "the checksum of all messages is {:#018x}", digest.checksum);
        Ok(context.nanos_each(ticks, self.messages))
    }

    /// Returns the checksum of all fields of all messages.
    fn checksum(&self) -> anyhow::Result<u64> {
        let mut digest = Digest::default();
        self.apply(&mut digest)?;
        Ok(digest.checksum)
    }

    /// Prepares a loop that touches the memory that all messages need. `live` orders must rest at the end.
    fn touching(&self, live: u32) -> anyhow::Result<Box<dyn FnMut() -> u64>> {
        let mut recorder = Recorder::default();
        self.apply(&mut recorder)?;
        ensure!(recorder.order_count() == live as usize, "{} orders are recorded", recorder.order_count());
        Ok(recorder.finish())
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

/// Takes the messages of a part of a capture, and returns their number.
trait Target {
    fn take<'a>(&mut self, messages: impl Iterator<Item = Message<'a>>) -> anyhow::Result<u64>;
}

impl<B: BooksById> Target for BookBuilder<B> {
    #[inline(always)]
    fn take<'a>(&mut self, messages: impl Iterator<Item = Message<'a>>) -> anyhow::Result<u64> {
        Ok(self.handle_batch(messages, &mut IgnoreUpdates))
    }
}

/// Decodes messages and folds every field into the checksum.
impl Target for Digest {
    #[inline(always)]
    fn take<'a>(&mut self, messages: impl Iterator<Item = Message<'a>>) -> anyhow::Result<u64> {
        let mut count = 0;
        for message in messages {
            decode(message.bytes, &mut Fields(|fields: &[u64]| self.fields(fields)))?;
            count += 1;
        }
        Ok(count)
    }
}

/// Records the changes of orders.
impl Target for Recorder {
    fn take<'a>(&mut self, messages: impl Iterator<Item = Message<'a>>) -> anyhow::Result<u64> {
        let mut count = 0;
        for message in messages {
            count += 1;
            // The day's prices have one scale for each symbol, so that the touched levels are those of the books.
            match XdpMessage::parse(message.bytes)? {
                XdpMessage::AddOrder(add) => {
                    let side = side_index(
                        u16::try_from(add.symbol_index.get() % INSTRUMENTS_MAX)?,
                        add.side.side().context("a side")?,
                    );
                    self.add(add.order_id.get(), side, price(add.price.get()), qty(add.volume.get()));
                }
                XdpMessage::ModifyOrder(modify) => {
                    let (id, price, qty) =
                        (modify.order_id.get(), price(modify.price.get()), qty(modify.volume.get()));
                    let has_moved = self.order(id).is_some_and(|order| order.price != price)
                        || modify.position_change == PositionChange::LOST
                        || qty.is_zero();
                    if has_moved { self.replace(id, id, price, qty) } else { self.resize(id, qty) }
                }
                XdpMessage::DeleteOrder(delete) => {
                    self.remove(delete.order_id.get());
                }
                XdpMessage::OrderExecution(execution) => {
                    self.reduce(execution.order_id.get(), qty(execution.volume.get()));
                }
                XdpMessage::ReplaceOrder(replace) => {
                    let (id, new_id) = (replace.order_id.get(), replace.new_order_id.get());
                    self.replace(id, new_id, price(replace.price.get()), qty(replace.volume.get()));
                }
                _ => {}
            }
        }
        Ok(count)
    }
}

fn price(units: u32) -> Price {
    Price(i64::from(units))
}

fn qty(volume: u32) -> Qty {
    Qty(u64::from(volume))
}

/// Iterates over the messages of packets that are in sequence; ends at a packet that is not.
struct MessageIter<'a, P> {
    packets: P,
    /// Next sequence number of each channel.
    next_sequences: &'a mut [u32; u8::MAX as usize],
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
            let next = self.next_sequences.get_mut(usize::from(channel))?;
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
