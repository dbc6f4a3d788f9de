//! The orderly stop of a venue.

use tickpath_types::Nanos;

use crate::view::VenueView;

/// Decides when a draining venue may stop: when all clients have disconnected, or after a maximum time.
#[derive(Debug)]
pub struct DrainWatch {
    timeout: Nanos,
    since: Option<Nanos>,
}

impl DrainWatch {
    /// Creates a watch. The timeout starts at the first call of [`is_over`](Self::is_over) while draining.
    #[must_use]
    pub fn new(timeout: Nanos) -> DrainWatch {
        DrainWatch { timeout, since: None }
    }

    /// True once the draining venue may stop. Call it repeatedly while the venue runs.
    pub fn is_over(&mut self, view: &VenueView, now: Nanos) -> bool {
        let server = &view.order_server;
        if server.is_draining.read() == 0 {
            return false;
        }
        let since = *self.since.get_or_insert(now);
        // `disconnects` is read first, so that a connection accepted between the two reads counts as open.
        let disconnected = server.disconnects.read();
        server.connections.read() == disconnected || now >= since + self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_ends_when_all_disconnect_or_time_is_up() {
        let view = VenueView::default();
        let (server, start) = (&view.order_server, Nanos::from_secs(100));
        let timeout = Nanos::from_secs(5);
        let mut watch = DrainWatch::new(timeout);
        server.connections.set(2);
        assert!(!watch.is_over(&view, start), "it was not requested");
        server.is_draining.set(1);
        assert!(!watch.is_over(&view, start + Nanos(1)));
        assert!(!watch.is_over(&view, start + timeout));
        assert!(watch.is_over(&view, start + timeout + Nanos(1)));
        server.disconnects.set(2);
        assert!(DrainWatch::new(timeout).is_over(&view, start));
    }
}
