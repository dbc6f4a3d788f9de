//! The publisher's side of a recovery protocol.

use tickpath_types::Nanos;

use crate::store::Store;

/// Serves those who lost messages of one channel, or came late.
pub(crate) trait Service: Send {
    /// A message is being published; it is in the store.
    fn on_message(&mut self, sequence: u64, message: &[u8]);

    /// The numbering began anew: everything before is of another session.
    fn on_restart(&mut self) {}

    /// A packet's head was read; what of it a service has to know besides.
    fn on_head(&mut self, head: &crate::packet::PacketHead) {
        let _ = head;
    }

    /// Answers a bounded amount; returns how much there was to do.
    fn poll(&mut self, now: Nanos, store: &Store) -> usize;

    /// Tells everyone who is connected that it is over.
    fn close(&mut self, now: Nanos);

    /// What it has done, by name.
    fn counters(&self) -> Vec<(&'static str, u64)>;

    /// Lines of the feed handler's configuration, as the channel's keys.
    fn config(&self) -> String;
}
