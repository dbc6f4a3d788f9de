//! Client rings, created in advance outside the duty cycle.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use tickpath_gateway_protocol::{Event, Request};
use tickpath_shm::channel::Rings;

/// Number of spare rings.
const SPARES: usize = 2;

/// Rings of a client, from the gateway's side.
pub(super) type ClientRings = Rings<Event, Request>;

/// A thread that creates rings in advance. All pages of the rings are allocated at creation, which takes too
/// many milliseconds for the duty cycle.
#[derive(Debug)]
pub(super) struct RingMaker {
    requests_max: u64,
    events_max: u64,
    made: Option<Receiver<ClientRings>>,
    thread: Option<JoinHandle<()>>,
}

impl RingMaker {
    /// Starts the thread. If the system cannot start it, rings are created on demand.
    pub(super) fn start(requests_max: u64, events_max: u64) -> RingMaker {
        // The thread itself holds one more.
        let (sender, receiver) = sync_channel(SPARES - 1);
        let make = move || {
            // Ends without a receiver or without memory; rings are then created on demand, or refused.
            while let Ok(rings) = ClientRings::new(requests_max, events_max) {
                if sender.send(rings).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("gateway-rings".to_owned()).spawn(make).ok();
        RingMaker { requests_max, events_max, made: Some(receiver), thread }
    }

    /// Returns rings for the next client; `None` if the system has no memory for them.
    pub(super) fn take(&self) -> Option<ClientRings> {
        let made = self.made.as_ref().and_then(|made| made.try_recv().ok());
        made.or_else(|| ClientRings::new(self.requests_max, self.events_max).ok())
    }
}

impl Drop for RingMaker {
    fn drop(&mut self) {
        // The closed channel ends the thread.
        self.made = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
