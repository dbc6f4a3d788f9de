//! A live feed handler that arbitrates full packets from two loopback multicast lines and builds a whole
//! day's books.

use tickpath_book::PackedBooks;
use tickpath_feed::{ArbiterConfig, BookBuilder, Channel, ChannelConfig, Line, MoldUdp64, UpdateListener};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder};
use tickpath_net::{MulticastReceiver, MulticastSender, RecvBatch, SendStatus};
use tickpath_types::{MarketUpdate, Nanos, Sequence};

use super::prelude::*;
use crate::day::StandardDay;
use crate::itch_books::{self, frames};
use crate::lab::Day;
use crate::support::loopback::line;
use crate::support::venue::session;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("feed_live", "ns")
        .note(
            "a message of itch-8000 in full packets on two lines of loopback multicast: packet in, \
             arbitration of both copies, decoding, full books, the update made; without the receive call, \
             which is beside it; one core; the row fails unless the books end as the day's",
        )
        .reference("commercial feed handlers 100 to 250 ns an update, perhaps with the receive call")],
    open,
)];

/// Packets sent on each line before both are read: far fewer than a receive buffer holds.
const PACKETS_PER_TURN: usize = 32;
const LINES: [Line; 2] = [Line::A, Line::B];
/// Timeout for the arrival of a turn's packets.
const PATIENCE: Nanos = Nanos::from_secs(10);

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_8000)?;
    let packets = pack(&day)?;
    each_round(lab, move |context| {
        let mut lines = Lines::new()?;
        let config = &day.standard.config;
        let core = ChannelConfig::new(ArbiterConfig::default(), Some(1 << 16));
        let books: BookBuilder<PackedBooks> = itch_books::empty(config);
        let mut channel = Channel::<_, MoldUdp64>::new(&core, books);
        let mut updates = Updates(0);
        for turn in packets.chunks(PACKETS_PER_TURN) {
            lines.turn(context, turn, &mut channel, &mut updates)?;
        }
        itch_books::check(channel.books(), &day.standard)?;
        let counters = channel.line_counters();
        ensure!(
            counters.lines[1].duplicate_messages == config.messages && counters.messages_lost == 0,
            "line B brought no copy of each message: {counters:?}"
        );
        ensure!(updates.0 > 0, "no update was made");
        let receive = context.nanos_each(lines.receive_ticks, config.messages);
        let first = context.nanos_each(lines.handle_ticks[0], config.messages);
        let copies = context.nanos_each(lines.handle_ticks[1], config.messages);
        let note = format!(
            "{:.1} messages a packet; line A {first:.1} ns, the copies of line B {copies:.1} ns; the receive call \
             {receive:.1} ns more, both lines",
            config.messages as f64 / packets.len() as f64,
        );
        Ok([Sample::with_note(first + copies, note)])
    })
}

/// Packs the day's messages into full packets.
fn pack(day: &Day) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut builder = PacketBuilder::new([0; DATAGRAM_LEN_MAX], session()?, Sequence(1));
    let mut packets = vec![];
    for message in frames(&day.file.bytes) {
        if !builder.has_capacity_for(message.len()) {
            packets.push(builder.finish().to_vec());
            builder.start_next();
        }
        builder.push(message)?;
    }
    packets.push(builder.finish().to_vec());
    Ok(packets)
}

/// Reads one field of each update, so that the compiler cannot omit the updates.
struct Updates(u64);

impl UpdateListener for Updates {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0 += u64::from(black_box(update).kind);
    }
}

/// Both lines, and the ticks spent on receiving and on handling their packets.
struct Lines {
    senders: [MulticastSender; 2],
    receivers: [MulticastReceiver; 2],
    batch: RecvBatch,
    receive_ticks: u64,
    handle_ticks: [u64; 2],
}

impl Lines {
    fn new() -> anyhow::Result<Lines> {
        let ((to_a, a), (to_b, b)) = (line()?, line()?);
        Ok(Lines {
            senders: [to_a, to_b],
            receivers: [a, b],
            batch: RecvBatch::new(PACKETS_PER_TURN, 2_048),
            receive_ticks: 0,
            handle_ticks: [0; 2],
        })
    }

    /// Sends packets on both lines, then reads and handles those of line A, then those of line B.
    fn turn(
        &mut self,
        context: &Context,
        packets: &[Vec<u8>],
        channel: &mut Channel<BookBuilder<PackedBooks>, MoldUdp64>,
        updates: &mut Updates,
    ) -> anyhow::Result<()> {
        for packet in packets {
            for sender in &mut self.senders {
                ensure!(sender.send(packet)? == SendStatus::Sent, "a packet was not sent");
            }
        }
        let deadline = context.clock.now() + PATIENCE;
        for (index, line) in LINES.into_iter().enumerate() {
            let mut left = packets.len();
            while left > 0 {
                let start = context.clock.ticks();
                let count = self.receivers[index].recv_batch(&mut self.batch)?;
                let received = context.clock.ticks();
                self.receive_ticks += received - start;
                ensure!(count > 0 || context.clock.now() < deadline, "{left} packets did not arrive");
                let now = context.clock.at(received);
                for (_, datagram) in self.batch.iter() {
                    channel.handle_packet(now, line, datagram, updates);
                }
                if count > 0 {
                    self.handle_ticks[index] += context.clock.ticks() - received;
                }
                left -= count.min(left);
            }
        }
        Ok(())
    }
}
