//! Publishing of the books' updates to the engines.

use tickpath_agent::{KernelTime, TscClock};
use tickpath_book::PackedBooks;
use tickpath_feed::{BookBuilder, Line, UpdateListener};
use tickpath_lockfree::broadcast;
use tickpath_timing::{Function, Hop, MarketId, Tracer};
use tickpath_types::{MarketUpdate, Sequence, UpdateKind};

/// One message in this many is timed, from before its decoding until its updates are made.
const TIMED_EVERY: u64 = 16;

/// The books of a feed handler.
pub type FeedBooks = BookBuilder<PackedBooks>;

/// Sends the updates of the books to the engines, and stamps the times of packets and messages.
///
/// The latest update is held until the next one or the end of the packet, which decides its
/// [`MarketUpdate::has_more`].
pub(crate) struct Updates<T> {
    pub(crate) sender: broadcast::Sender<MarketUpdate>,
    pub(crate) tracer: T,
    feed: u8,
    /// Kernel receive time of the current packet, on the kernel's clock; `None` if unknown.
    pub(crate) kernel_ns: Option<u64>,
    /// Time at which the current packet was read, on the tracer's clock.
    read_at: u64,
    /// `kernel_ns` converted to the clock of `read_at` at first use; `Some(0)` if `kernel_ns` is unknown.
    received_at: Option<u64>,
    kernel_time: KernelTime,
    /// Start time of the current message, if it is timed.
    began_at: Option<u64>,
    held: Option<MarketUpdate>,
    /// First and last of the applied messages whose read and receive times are not stamped yet.
    unstamped: Option<[Sequence; 2]>,
}

impl<T: Tracer> Updates<T> {
    /// Creates a publisher for the feed handler whose id in timing stamps is `feed`.
    pub(crate) fn new(
        sender: broadcast::Sender<MarketUpdate>,
        tracer: T,
        feed: u8,
        clock: TscClock,
    ) -> Updates<T> {
        Updates {
            sender,
            tracer,
            feed,
            kernel_ns: None,
            read_at: 0,
            received_at: None,
            kernel_time: KernelTime::new(clock),
            began_at: None,
            held: None,
            unstamped: None,
        }
    }

    /// Sends the last update of the packet, if the packet had any.
    #[inline]
    pub(crate) fn end_packet(&mut self) {
        if let Some(update) = self.held.take() {
            self.send(update);
        }
    }

    /// Stamps the times at which the latest packet was received and read; returns false if they are stamped
    /// already. Call this before the next packet is read: in the next duty cycle, so that the stamps do not
    /// delay the engines on the same thread.
    #[inline]
    pub(crate) fn stamp_packet(&mut self) -> bool {
        let Some([first, last]) = self.unstamped.take() else { return false };
        let received_at = self.received_at();
        for sequence in first.0..=last.0 {
            let id = MarketId::new(Sequence(sequence)).via_feed(self.feed);
            self.tracer.stamp_at(Hop::T7, id, self.read_at);
            self.tracer.stamp_at(Hop::T7k, id, received_at);
        }
        true
    }

    #[inline]
    fn send(&mut self, update: MarketUpdate) {
        self.sender.send(update);
        if update.kind() != Some(UpdateKind::Status) {
            let id = MarketId::new(Sequence(update.sequence)).via_feed(self.feed);
            self.tracer.stamp(Hop::T8, id);
        }
    }

    #[inline]
    fn received_at(&mut self) -> u64 {
        let (kernel_time, read_at) = (&mut self.kernel_time, self.read_at);
        let kernel_ns = self.kernel_ns;
        *self.received_at.get_or_insert_with(|| kernel_ns.map_or(0, |ns| kernel_time.ticks(ns, read_at)))
    }
}

impl<T: Tracer> UpdateListener for Updates<T> {
    const WANTS_MESSAGES: bool = true;

    #[inline]
    fn on_packet(&mut self, line: Line) {
        self.end_packet();
        self.stamp_packet();
        self.read_at = self.tracer.now_ordered();
        self.received_at = None;
        if line == Line::Recovery {
            self.kernel_ns = None;
        }
    }

    #[inline]
    fn on_apply(&mut self, sequence: Sequence) {
        if T::ENABLED && sequence.0.is_multiple_of(TIMED_EVERY) {
            self.began_at = Some(self.tracer.now());
        }
    }

    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        if let Some(held) = self.held.replace(*update) {
            self.send(MarketUpdate { has_more: 1, ..held });
        }
    }

    #[inline]
    fn on_applied(&mut self, sequence: Sequence) {
        if T::ENABLED {
            if let Some(began_at) = self.began_at.take() {
                self.tracer.time(Function::BookApply, self.tracer.now().wrapping_sub(began_at));
            }
            match &mut self.unstamped {
                Some([_, last]) if last.next() == sequence => *last = sequence,
                _ => {
                    self.stamp_packet();
                    self.unstamped = Some([sequence; 2]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, BooksById};
    use tickpath_feed::{ArbiterConfig, Channel, ChannelConfig};
    use tickpath_nasdaq::itch50::OrderDelete;
    use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
    use tickpath_timing::{StampKind, Trace};
    use tickpath_types::{InstrumentId, Nanos, OrderId};

    use super::*;

    #[test]
    fn messages_are_stamped_during_snapshot_recovery() {
        let (tracer, mut drain) = Trace::new(64);
        let mut updates = Updates::new(broadcast::channel(16).0, tracer, 0, TscClock::system());
        let arbiter = ArbiterConfig { max_requests: 0, ..ArbiterConfig::default() };
        let books = BookBuilder::new(PackedBooks::new(BookLimits::new(InstrumentId(1), 8)));
        let mut channel = Channel::<_>::new(&ChannelConfig::new(arbiter, Some(8)), books);
        let delete = OrderDelete::new(InstrumentId(1), 0_u16, Nanos(1), OrderId(1));
        let session = Session::new("TODAY").unwrap();
        let packet = |sequence| {
            let mut packet = PacketBuilder::new([0; 64], session, Sequence(sequence));
            packet.push(zerocopy::IntoBytes::as_bytes(&delete)).unwrap();
            packet.finish().to_vec()
        };
        for sequence in [5, 6] {
            channel.handle_packet(Nanos(1), Line::A, &packet(sequence), &mut updates);
        }
        channel.handle_timeout(Nanos::from_secs(1), &mut updates);
        updates.end_packet();
        updates.stamp_packet();
        assert!(channel.needs_snapshot());
        updates.tracer.flush();
        let mut read = vec![];
        drain.drain(64, |stamp| {
            if let Some(StampKind::Hop { hop: Hop::T7, id, .. }) = stamp.decode() {
                read.push(id);
            }
        });
        assert_eq!(read, [5, 6]);
    }
}
