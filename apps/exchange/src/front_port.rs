//! The port of a front that runs on a thread beside the venue's agents.

use tickpath_lockfree::spsc;
use tickpath_lockfree::wake::Waker;
use tickpath_types::InstrumentTable;
use tickpath_venue::FrontRequest;

use crate::log_feed::LogFeed;

/// Requests that may wait for the order server; a further one is given back.
const RING_CAPACITY: usize = 1 << 10;

/// The port by which a front on another thread is joined to the venue.
///
/// Its users' requests pass the same filter, log and engine as those of all users; the front reads from the log what
/// becomes of them, and of all other requests.
pub struct FrontPort {
    requests: spsc::Producer<FrontRequest>,
    /// Everything that happened and happens.
    pub log: LogFeed,
    /// The instruments, those that are added included.
    pub instruments: InstrumentTable,
}

impl FrontPort {
    pub(crate) fn new(log: LogFeed, instruments: InstrumentTable) -> (FrontPort, FrontRequests) {
        let (requests, taken) = spsc::channel(RING_CAPACITY);
        (FrontPort { requests, log, instruments }, FrontRequests(taken))
    }

    /// Hands a request to the venue.
    ///
    /// # Errors
    /// The request, when as many as may wait do.
    pub fn try_request(&mut self, request: FrontRequest) -> Result<(), FrontRequest> {
        self.requests.try_push(request).map_err(|full| full.0)
    }

    /// True once the venue takes no more: it has stopped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.requests.is_abandoned()
    }
}

/// The order server's end of a [`FrontPort`].
pub(crate) struct FrontRequests(spsc::Consumer<FrontRequest>);

impl FrontRequests {
    /// Has each request wake the thread behind `waker`.
    pub(crate) fn wake_by(&self, waker: &Waker) {
        self.0.wake_by(waker);
    }

    /// The next request, if there is one.
    pub(crate) fn try_pop(&mut self) -> Option<FrontRequest> {
        self.0.try_pop()
    }
}
