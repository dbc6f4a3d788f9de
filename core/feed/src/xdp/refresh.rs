//! Refreshes of XDP: a snapshot of one symbol, or those of all symbols in turn.

use tickpath_book::BooksById;
use tickpath_nyse::{DeliveryFlag, Message, Packet, RefreshHeader};
use tickpath_types::{InstrumentId, Nanos, Sequence};

use super::builder::BookBuilder;
use super::packets::{Packets, widened};
use crate::channel::Channel;
use crate::framing::Framing;
use crate::instruments::{IgnoreUpdates, UpdateListener};
use crate::message_books::MessageBooks;
use crate::snapshot_recovery::{SnapshotRecovery, SnapshotScope};

/// Time without a refresh packet after which the request is repeated; it doubles with each repetition.
const SILENCE_MIN: Nanos = Nanos::from_secs(2);
const DOUBLINGS_MAX: u32 = 6;
/// Time from the end of a refresh to the next request, if books still wait for a snapshot.
const NEXT_WAIT: Nanos = Nanos::from_millis(100);
/// Maximum number of waiting books that are refreshed singly; beyond it, one refresh covers all.
const SINGLE_MAX: u32 = 4;

/// The snapshot recovery of a channel; it loads the refreshes.
type Recovery = SnapshotRecovery<<Packets as Framing>::Storage>;

/// The latest refresh request. After the deadline, the next one is due if books still wait.
#[derive(Clone, Copy)]
struct Requested {
    deadline: Nanos,
    /// Sequence number of the request.
    number: u32,
    is_of_all: bool,
}

/// The refresh of one symbol, while its packets are read.
#[derive(Clone, Copy)]
struct Loading {
    instrument: InstrumentId,
    packet: u16,
    packets: u16,
    /// Sequence number of the first live message that the refresh does not cover.
    end: u64,
    last_symbol_seq: u32,
}

/// Requests refreshes while books wait for a snapshot, and loads the packets of each refresh.
#[derive(Default)]
pub(super) struct Refresh {
    requested: Option<Requested>,
    failures: u32,
    loading: Option<Loading>,
    /// In a refresh of all symbols: the end of the first symbol's refresh; `None` after a missed packet.
    all: Option<u64>,
}

impl Refresh {
    fn silence_max(&self) -> Nanos {
        Nanos(SILENCE_MIN.0 << self.failures.min(DOUBLINGS_MAX))
    }

    /// Returns the refresh request that is due, if any: the index of one symbol, or `Some(None)` for all
    /// symbols.
    pub(super) fn poll_request<B: BooksById>(
        &mut self,
        now: Nanos,
        channel: &Channel<BookBuilder<B>, Packets>,
    ) -> Option<Option<u32>> {
        let recovery = channel.snapshots().filter(|recovery| recovery.needs_snapshot())?;
        match self.requested {
            Some(requested) if now < requested.deadline => return None,
            Some(_) => self.failures += 1,
            None => {}
        }
        self.requested = None;
        let single = recovery.first_waiting().filter(|_| recovery.waiting() <= SINGLE_MAX);
        Some(single.and_then(|id| channel.books().symbol_index(id)))
    }

    /// Records that the due request was sent, as packet `number`.
    pub(super) fn handle_requested(&mut self, now: Nanos, number: u32, is_of_all: bool) {
        self.requested = Some(Requested { deadline: now + self.silence_max(), number, is_of_all });
    }

    /// Handles the server's refusal of request `number`: postpones the next request.
    pub(super) fn handle_refused(&mut self, now: Nanos, number: u32) {
        if let Some(requested) = self.requested.filter(|requested| requested.number == number) {
            self.failures += 1;
            self.requested = Some(Requested { deadline: now + self.silence_max(), ..requested });
        }
    }

    /// Handles a packet of the refresh group; returns true if it completes a refresh of one symbol or of all.
    pub(super) fn handle_packet<B: BooksById>(
        &mut self,
        now: Nanos,
        packet: &Packet<'_>,
        channel: &mut Channel<BookBuilder<B>, Packets>,
        out: &mut impl UpdateListener,
    ) -> bool {
        let flag = packet.delivery_flag();
        if !flag.is_refresh() {
            return false;
        }
        let silence_max = self.silence_max();
        if let Some(requested) = &mut self.requested {
            requested.deadline = now + silence_max;
        }
        let near = channel.arbiter().next_sequence().0;
        let Some((recovery, books)) = channel.recovery() else { return false };
        if flag == DeliveryFlag::REFRESH_START {
            self.all = None;
        }
        let mut header = None;
        for (_, message) in packet.messages() {
            let parsed = Message::parse(message);
            if let Ok(Message::RefreshHeader(refresh)) = parsed {
                header = Some(refresh);
                continue;
            }
            let is_mapping = matches!(parsed, Ok(Message::SymbolIndexMapping(_)));
            if is_mapping {
                // Without the mapping, the other messages about the symbol are unreadable.
                books.handle_message(Sequence(near), message, &mut IgnoreUpdates);
            }
            if let Some(refresh) = header {
                self.begin(refresh, near, message, recovery, books);
            }
            if let Some(loading) = self.loading.filter(|_| !is_mapping) {
                recovery.load(loading.instrument, message, books);
            }
        }
        header.is_some() && self.end_packet(now, flag, recovery, books, out)
    }

    /// Begins the refresh of the symbol that a message names, or continues the one being loaded.
    fn begin<B: BooksById>(
        &mut self,
        refresh: RefreshHeader,
        near: u64,
        message: &[u8],
        recovery: &mut Recovery,
        books: &mut BookBuilder<B>,
    ) {
        let (packet, packets) = (refresh.current_refresh_pkt.get(), refresh.total_refresh_pkts.get());
        let instrument = books.named_by(message);
        match (self.loading, refresh.covered()) {
            (Some(loading), _) if loading.packet == packet && loading.instrument == instrument => {}
            (Some(loading), _) if loading.packet + 1 == packet && loading.instrument == instrument => {
                self.loading = Some(Loading { packet, ..loading });
            }
            (_, Some((last, last_symbol_seq))) if packet == 1 && instrument.0 != 0 => {
                recovery.begin(SnapshotScope::Instrument);
                recovery.begin_instrument(instrument, books);
                let end = widened(last, near) + 1;
                self.loading = Some(Loading { instrument, packet, packets, end, last_symbol_seq });
            }
            // A packet was missed, so the symbol waits for the next refresh.
            _ => {
                recovery.abandon();
                (self.loading, self.all) = (None, None);
            }
        }
    }

    /// Ends a packet after its last message; returns true if it completes a refresh of one symbol or of all.
    fn end_packet<B: BooksById>(
        &mut self,
        now: Nanos,
        flag: DeliveryFlag,
        recovery: &mut Recovery,
        books: &mut BookBuilder<B>,
        out: &mut impl UpdateListener,
    ) -> bool {
        let Some(loading) = self.loading.filter(|loading| loading.packet == loading.packets) else {
            return false;
        };
        self.loading = None;
        if recovery.is_waiting(loading.instrument) {
            books.set_symbol_seq(loading.instrument, loading.last_symbol_seq);
        }
        recovery.end(Some(Sequence(loading.end)), books, out);
        if flag == DeliveryFlag::REFRESH_START {
            self.all = Some(loading.end);
        }
        let is_of_all = self.requested.is_none_or(|requested| requested.is_of_all);
        if is_of_all && flag != DeliveryFlag::REFRESH_ONE && flag != DeliveryFlag::REFRESH_END {
            return false;
        }
        self.failures = 0;
        if let Some(end) = self.all.take().filter(|_| is_of_all && flag == DeliveryFlag::REFRESH_END) {
            recovery.end_cycle(Sequence(end), books, out);
        }
        // If this refresh was too old, books still wait for one, so the next request is due soon.
        if let Some(requested) = &mut self.requested {
            requested.deadline = now + NEXT_WAIT;
        }
        true
    }
}
