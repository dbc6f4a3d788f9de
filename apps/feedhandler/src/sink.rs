//! From the arbiter's messages to the books, and from the books' updates to the ring.

use tickpath_agent::{KernelTime, TscClock};
use tickpath_book::DirectBooks;
use tickpath_feed::itch::ItchTarget;
use tickpath_feed::{BookBuilder, MessageBooks, MessageListener, SnapshotHealer, UpdateListener};
use tickpath_lockfree::broadcast;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_timing::{Function, Hop, MarketId, Tracer};
use tickpath_types::{MarketUpdate, Sequence, UpdateKind};

use crate::deferred::Deferred;

/// Interval, in messages, of timing the decoding and the change of the book.
const TIMED_EVERY: u64 = 16;

/// Books that a feed handler builds.
pub type FeedBooks = BookBuilder<DirectBooks>;

/// Takes the arbiter's messages to the books and the books' updates to the ring.
pub(crate) struct Sink<T> {
    pub(crate) builder: Option<FeedBooks>,
    pub(crate) updates: Updates<T>,
    pub(crate) deferred: Deferred,
    /// Whether messages are to wait now that one was delivered.
    pub(crate) delivery: Delivery,
    /// When the packet at hand was read.
    read_at: u64,
    /// When the kernel received it, by its clock.
    kernel_ns: Option<u64>,
    /// The same on the scale of `read_at`, once it was needed; 0 when it is not known.
    received_at: Option<u64>,
    kernel_time: KernelTime,
    /// The session that the lines have gone over to, until it is reported.
    pub(crate) foreign: Option<Session>,
    /// Heals the books, where there are snapshots.
    pub(crate) healer: Option<SnapshotHealer>,
    /// Messages go by way of the snapshots.
    pub(crate) is_healing: bool,
}

/// How the messages of a packet are delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// All at once.
    All,
    /// The first now, each of the others in another duty cycle.
    First,
    /// The first was delivered.
    Later,
}

/// Sends the updates of the books to the engines.
pub(crate) struct Updates<T> {
    pub(crate) sender: broadcast::Sender<MarketUpdate>,
    pub(crate) tracer: T,
    pub(crate) feed: u8,
}

impl<T: Tracer> Sink<T> {
    pub(crate) fn new(builder: FeedBooks, updates: Updates<T>, clock: TscClock) -> Sink<T> {
        Sink {
            builder: Some(builder),
            updates,
            deferred: Deferred::new(),
            delivery: Delivery::All,
            read_at: 0,
            kernel_ns: None,
            received_at: None,
            kernel_time: KernelTime::new(clock),
            foreign: None,
            healer: None,
            is_healing: false,
        }
    }

    #[cold]
    fn deliver_healing(&mut self, sequence: Sequence, message: &[u8]) {
        if let (Some(healer), Some(builder)) = (&mut self.healer, &mut self.builder) {
            healer.handle_message(sequence, message, builder, &mut self.updates);
            self.is_healing = healer.is_active();
        }
    }

    /// A packet was read just now.
    #[inline]
    pub(crate) fn start_packet(&mut self, kernel_ns: Option<u64>, delivery: Delivery) {
        self.read_at = self.updates.tracer.now_ordered();
        self.kernel_ns = kernel_ns;
        self.received_at = None;
        self.delivery = delivery;
    }

    /// Delivers a message that waited; true when there was one.
    #[inline]
    pub(crate) fn deliver_next(&mut self) -> bool {
        let Some((sequence, bytes, len)) = self.deferred.pop() else { return false };
        self.deliver(sequence, &bytes[..len]);
        true
    }

    #[inline]
    fn deliver(&mut self, sequence: Sequence, message: &[u8]) {
        let updates = &mut self.updates;
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        if self.is_healing {
            self.deliver_healing(sequence, message);
        } else if T::ENABLED && sequence.0.is_multiple_of(TIMED_EVERY) {
            let started = updates.tracer.now();
            builder.handle_message(sequence, message, updates);
            let ticks = updates.tracer.now().wrapping_sub(started);
            updates.tracer.time(Function::BookApply, ticks);
        } else {
            builder.handle_message(sequence, message, updates);
        }
        // The engines have it already: nothing waits for these.
        let id = MarketId::new(sequence).via_feed(self.updates.feed);
        self.updates.tracer.stamp_at(Hop::T7, id, self.read_at);
        if T::ENABLED {
            let received_at = self.received_at();
            self.updates.tracer.stamp_at(Hop::T7k, id, received_at);
        }
    }

    #[inline]
    fn received_at(&mut self) -> u64 {
        let (kernel_time, read_at) = (&mut self.kernel_time, self.read_at);
        let kernel_ns = self.kernel_ns;
        *self.received_at.get_or_insert_with(|| kernel_ns.map_or(0, |ns| kernel_time.ticks(ns, read_at)))
    }
}

impl<T: Tracer> MessageListener for Sink<T> {
    #[inline]
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        match self.delivery {
            Delivery::All => {}
            Delivery::First => self.delivery = Delivery::Later,
            Delivery::Later if self.deferred.push(sequence, message) => {
                let builder = self.builder.as_ref().expect("a closed agent takes no messages");
                return builder.prefetch(message);
            }
            Delivery::Later => {
                // Cannot wait: so nothing before it can.
                self.delivery = Delivery::All;
                while self.deliver_next() {}
            }
        }
        self.deliver(sequence, message);
    }

    fn on_lost(&mut self, first: Sequence, count: u64) {
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        builder.handle_lost(&mut self.updates);
        if let Some(healer) = &mut self.healer {
            healer.handle_lost(Sequence(first.0 + count));
            self.is_healing = true;
        }
    }

    /// The numbers begin again, so the books are reset.
    #[cold]
    fn on_restart(&mut self) {
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        builder.handle_restart(&mut self.updates);
        if let Some(healer) = &mut self.healer {
            healer.restart();
        }
    }

    /// The books belong to an ended session and stay stale until the program restarts.
    #[cold]
    fn on_foreign_session(&mut self, session: Session) {
        self.foreign = Some(session);
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        builder.handle_lost(&mut self.updates);
    }
}

/// The session and the books, as the recovery client needs them.
pub(crate) struct Recovered<'a, T> {
    pub(crate) session: Option<Session>,
    pub(crate) sink: &'a mut Sink<T>,
}

impl<T: Tracer> ItchTarget for Recovered<'_, T> {
    type Books = FeedBooks;
    type Updates = Updates<T>;

    fn session(&self) -> Option<Session> {
        self.session
    }

    fn healer(&mut self) -> Option<(&mut SnapshotHealer, &mut FeedBooks, &mut Updates<T>)> {
        let Sink { healer, builder, updates, .. } = &mut *self.sink;
        Some((healer.as_mut()?, builder.as_mut()?, updates))
    }
}

impl<T: Tracer> UpdateListener for Updates<T> {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.sender.send(*update);
        if update.kind() != Some(UpdateKind::Status) {
            let id = MarketId::new(Sequence(update.sequence)).via_feed(self.feed);
            self.tracer.stamp(Hop::T8, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, BooksById};
    use tickpath_nasdaq::itch50::OrderDelete;
    use tickpath_timing::{StampKind, Trace};
    use tickpath_types::{InstrumentId, Nanos, OrderId};
    use zerocopy::IntoBytes;

    use super::*;

    #[test]
    fn messages_are_stamped_while_books_are_healed() {
        let (tracer, mut drain) = Trace::new(64);
        let (sender, _updates) = broadcast::channel(16);
        let books = DirectBooks::new(BookLimits::new(InstrumentId(1), 8));
        let updates = Updates { sender, tracer, feed: 0 };
        let mut sink = Sink::new(BookBuilder::new(books), updates, TscClock::system());
        sink.healer = Some(SnapshotHealer::new(InstrumentId(1), 8));
        sink.on_lost(Sequence(1), 4);
        assert!(sink.is_healing);
        let delete = OrderDelete::new(InstrumentId(1), 0_u16, Nanos(1), OrderId(1));
        for sequence in [5, 6] {
            sink.start_packet(Some(1), Delivery::All);
            sink.on_message(Sequence(sequence), delete.as_bytes());
        }
        sink.updates.tracer.flush();
        let mut read = vec![];
        drain.drain(64, |stamp| {
            if let Some(StampKind::Hop { hop: Hop::T7, id, .. }) = stamp.decode() {
                read.push(id);
            }
        });
        assert_eq!(read, [5, 6]);
    }
}
