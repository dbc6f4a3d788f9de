//! The parts of a channel that its recovery client works on.

use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::Nanos;

use crate::framing::MoldUdp64;
use crate::heal::SnapshotHealer;
use crate::instruments::UpdateListener;
use crate::line::Line;
use crate::message_books::MessageBooks;
use crate::recovery::Recovering;

/// The arbiter and books of an ITCH channel, as its recovery client needs them.
pub trait ItchTarget {
    /// The books.
    type Books: MessageBooks;
    /// The listener of updates.
    type Updates: UpdateListener;

    /// The session of the lines, once it is known.
    fn session(&self) -> Option<Session>;

    /// Takes an answer of the request server.
    fn handle_answer(&mut self, now: Nanos, datagram: &[u8]);

    /// The reader of snapshots, the books that it reads them into, and the listener; `None` without snapshots.
    fn healer(&mut self) -> Option<(&mut SnapshotHealer, &mut Self::Books, &mut Self::Updates)>;
}

impl<B: MessageBooks, L: UpdateListener> ItchTarget for Recovering<'_, B, MoldUdp64, L> {
    type Books = B;
    type Updates = L;

    fn session(&self) -> Option<Session> {
        self.channel.arbiter().session()
    }

    fn handle_answer(&mut self, now: Nanos, datagram: &[u8]) {
        self.channel.handle_packet(now, Line::Recovery, datagram, &mut self.out);
    }

    fn healer(&mut self) -> Option<(&mut SnapshotHealer, &mut B, &mut L)> {
        let (healer, books) = self.channel.healer()?;
        Some((healer, books, &mut self.out))
    }
}
