//! The properties of recovery: snapshots of the market, and the drop copy of outbound messages.

use tickpath_book::{BookLimits, BooksById, FastBooks, Indexed};
use tickpath_exchange::{COPY_HEADER_LEN, DropCopy};
use tickpath_feed::{
    BookBuilder, IgnoreUpdates, MessageBooks, SnapshotOutcome, SnapshotRecovery, SnapshotScope,
};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::soupbintcp::{
    BufferTooShort, CONTROL_LEN_MAX, ClientEvent, ClientSession, LoginRequest,
};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence};
use zerocopy::FromBytes;

use crate::nasdaq::Pieces;

/// Instruments with a book.
const INSTRUMENTS: u16 = 3;
/// Maximum number of resting orders, small enough to be reached.
const ORDERS_MAX: u32 = 8;
/// Maximum number of live messages that wait for a snapshot.
const BUFFERED_MAX: usize = 4;
/// Sequence number of the first live message after the lost ones.
const NEXT: Sequence = Sequence(10);

/// Books that lost everything before [`NEXT`], and their recovery.
struct Listener<B> {
    recovery: SnapshotRecovery,
    builder: BookBuilder<B>,
    next: Sequence,
}

impl<B: BooksById> Listener<B> {
    fn new(books: B) -> Self {
        let mut builder = BookBuilder::new(books);
        let mut recovery = SnapshotRecovery::new(InstrumentId(INSTRUMENTS), BUFFERED_MAX);
        builder.handle_lost(&mut IgnoreUpdates);
        recovery.handle_lost(NEXT);
        Listener { recovery, builder, next: NEXT }
    }

    fn handle_live(&mut self, message: &[u8]) {
        self.recovery.handle_message(self.next, message, &mut self.builder, &mut IgnoreUpdates);
        self.next = self.next.next();
        self.check();
    }

    fn handle_snapshot_message(&mut self, scope: SnapshotScope, message: &[u8]) -> Option<SnapshotOutcome> {
        let before = self.recovery.waiting();
        let outcome = self.recovery.handle_snapshot(scope, message, &mut self.builder, &mut IgnoreUpdates);
        let recovered = match outcome {
            Some(SnapshotOutcome::Recovered(count)) => count,
            _ => 0,
        };
        assert_eq!(self.recovery.waiting() + recovered, before, "{outcome:?}");
        assert!(scope != SnapshotScope::Market || recovered == 0 || recovered == before, "all or none");
        self.check();
        outcome
    }

    /// Checks that no book that waits for a snapshot is trusted.
    fn check(&self) {
        let is_stale =
            |id| self.builder.instrument(InstrumentId(id)).expect("a book").health >= BookHealth::Stale;
        let stale = (1..=INSTRUMENTS).filter(|id| is_stale(*id)).count();
        assert!(stale >= self.recovery.waiting() as usize);
        assert_eq!(self.recovery.needs_snapshot(), self.recovery.waiting() > 0);
    }
}

/// Checks a snapshot client whose server sends anything, for the whole market or for one instrument after
/// another, with live messages in between: a waiting book is not trusted, and the fast books equal the
/// reference model.
pub fn glimpse(data: &[u8]) {
    let _ = read_snapshots(data);
}

/// Returns the outcomes of the snapshots.
fn read_snapshots(data: &[u8]) -> Vec<SnapshotOutcome> {
    let mut outcomes = Vec::new();
    let (&choice, stream) = data.split_first().unwrap_or((&0, &[]));
    let scope = if choice & 1 == 0 { SnapshotScope::Market } else { SnapshotScope::Instrument };
    let limits = BookLimits::new(InstrumentId(INSTRUMENTS), ORDERS_MAX);
    let mut fast = Listener::new(Indexed::<FastBooks<()>>::new(limits));
    let mut reference = Listener::new(Indexed::<ReferenceBooks<()>>::new(limits));
    let mut client = ClientSession::new(LoginRequest::new("FEED", "").expect("short names"), Nanos(0));
    let mut received = Vec::new();
    client.poll_transmit(Nanos(0), &mut [0; CONTROL_LEN_MAX]);
    for (now, piece) in Pieces::new(stream) {
        received.extend(piece);
        let mut at = 0;
        while let Ok(Some((event, used))) = client.handle_bytes(now, &received[at..]) {
            at += used;
            match event {
                ClientEvent::LoginAccepted { .. } => {
                    fast.recovery.begin(scope);
                    reference.recovery.begin(scope);
                }
                ClientEvent::Message { message, .. } => {
                    if let Some(end) = end_of(message) {
                        assert_eq!(EndOfSnapshot::of(end).sequence(), Some(end));
                    }
                    let outcome = fast.handle_snapshot_message(scope, message);
                    assert_eq!(outcome, reference.handle_snapshot_message(scope, message));
                    outcomes.extend(outcome);
                }
                ClientEvent::Unsequenced(message) => {
                    fast.handle_live(message);
                    reference.handle_live(message);
                }
                _ => {}
            }
            assert_eq!(fast.builder.books().state_hash(), reference.builder.books().state_hash());
            assert_eq!(fast.builder.counters(), reference.builder.counters());
        }
        received.drain(..at);
    }
    fast.recovery.abandon();
    fast.check();
    outcomes
}

fn end_of(message: &[u8]) -> Option<Sequence> {
    EndOfSnapshot::ref_from_bytes(message).ok()?.sequence()
}

/// Checks drop copies: a parsed copy is written back to the same bytes, a written copy is parsed unchanged,
/// and a truncated header is an error.
pub fn drop_copy(data: &[u8]) {
    let mut out = vec![0; data.len() + COPY_HEADER_LEN];
    match DropCopy::parse(data) {
        Ok(copy) => {
            assert_eq!(copy.encode(&mut out), Ok(data.len()));
            assert_eq!(out[..data.len()], *data);
            let len = data.len() - 1;
            assert_eq!(copy.encode(&mut out[..len]), Err(BufferTooShort { needed: data.len(), len }));
            for len in 0..COPY_HEADER_LEN {
                assert!(DropCopy::parse(&data[..len]).is_err());
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    let (&len, rest) = data.split_first().unwrap_or((&0, &[]));
    let (name, message) = rest.split_at(rest.len().min(usize::from(len % 6) + 1));
    let name: String = name.iter().map(|byte| char::from(byte % 94 + b'!')).collect();
    let user = if name.is_empty() { "A" } else { name.as_str() };
    let copy = DropCopy { user, number: u64::from(len) << 40, message };
    let len = copy.encode(&mut out).expect("there is room");
    assert_eq!(DropCopy::parse(&out[..len]), Ok(copy));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_recover_books_and_are_too_old() {
        use SnapshotOutcome::{Recovered, TooOld};
        let outcomes: Vec<_> = crate::seeds::glimpse().iter().map(|seed| read_snapshots(seed)).collect();
        assert_eq!(
            outcomes,
            [vec![Recovered(3)], vec![Recovered(1), Recovered(1)], vec![TooOld], vec![Recovered(1)]]
        );
    }
}
