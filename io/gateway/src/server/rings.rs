//! Rings for clients to come, made beside the duty cycle.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use tickpath_gateway_protocol::{Event, Request};
use tickpath_shm::channel::Rings;

/// Rings that are kept ready.
const SPARES: usize = 2;

/// Rings of a client, seen from the gateway.
pub(super) type ClientRings = Rings<Event, Request>;

/// A thread that makes rings ahead: all pages of a client's rings are taken when they are made, and that takes milliseconds
/// which no duty cycle has.
#[derive(Debug)]
pub(super) struct RingMaker {
    requests_max: u64,
    events_max: u64,
    made: Option<Receiver<ClientRings>>,
    thread: Option<JoinHandle<()>>,
}

impl RingMaker {
    /// Begins to make them. Where there can be no thread each is made when it is needed.
    pub(super) fn start(requests_max: u64, events_max: u64) -> RingMaker {
        // One waits in the thread's own hands.
        let (sender, receiver) = sync_channel(SPARES - 1);
        let make = move || {
            // Ends when nobody wants them any more, or there is no memory: then they are made, or refused, as they are needed.
            while let Ok(rings) = ClientRings::new(requests_max, events_max) {
                if sender.send(rings).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("gateway-rings".to_owned()).spawn(make).ok();
        RingMaker { requests_max, events_max, made: Some(receiver), thread }
    }

    /// Rings for the next client; `None` when the system has no memory for them.
    pub(super) fn take(&self) -> Option<ClientRings> {
        let made = self.made.as_ref().and_then(|made| made.try_recv().ok());
        made.or_else(|| ClientRings::new(self.requests_max, self.events_max).ok())
    }
}

impl Drop for RingMaker {
    fn drop(&mut self) {
        // The thread sees that nobody receives.
        self.made = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
