//! The parts of a channel that its recovery client works on.

use tickpath_nasdaq::moldudp64::Session;

use crate::framing::MoldUdp64;
use crate::heal::SnapshotHealer;
use crate::instruments::UpdateListener;
use crate::message_books::MessageBooks;
use crate::recovery::Recovering;

/// The session and books of an ITCH channel, as its recovery client needs them.
pub trait ItchTarget {
    /// The books.
    type Books: MessageBooks;
    /// The listener of updates.
    type Updates: UpdateListener;

    /// The session of the lines, once it is known.
    fn session(&self) -> Option<Session>;

    /// The reader of snapshots, the books that it reads them into, and the listener; `None` without snapshots.
    fn healer(&mut self) -> Option<(&mut SnapshotHealer, &mut Self::Books, &mut Self::Updates)>;
}

impl<B: MessageBooks, L: UpdateListener> ItchTarget for Recovering<'_, B, MoldUdp64, L> {
    type Books = B;
    type Updates = L;

    fn session(&self) -> Option<Session> {
        self.channel.arbiter().session()
    }

    fn healer(&mut self) -> Option<(&mut SnapshotHealer, &mut B, &mut L)> {
        let (healer, books) = self.channel.healer()?;
        Some((healer, books, &mut self.out))
    }
}
