//! The interface of a channel's recovery service, with one implementation for each protocol.

use tickpath_types::Nanos;

use crate::store::Store;

/// Serves recovery of one channel to clients that lost messages or joined late.
pub(crate) trait Service: Send {
    /// Handles a published message, which the store already contains.
    fn on_message(&mut self, sequence: u64, message: &[u8]);

    /// Handles a sequence reset: all earlier messages belong to another session.
    fn on_restart(&mut self) {}

    /// Handles the header of a published packet, before its messages. The default ignores it.
    fn on_head(&mut self, head: &crate::packet::PacketHead) {
        let _ = head;
    }

    /// Answers a bounded number of requests; returns the amount of work done.
    fn poll(&mut self, now: Nanos, store: &Store) -> usize;

    /// Ends the service: disconnects all clients.
    fn close(&mut self, now: Nanos);

    /// Returns the counters of the service by name.
    fn counters(&self) -> Vec<(&'static str, u64)>;

    /// Returns the TOML lines that tell a feed handler's channel to use this service.
    fn config(&self) -> String;
}
