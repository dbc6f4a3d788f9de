//! The port of a front that runs on a thread beside the venue's agents, and its requests.

use tickpath_lockfree::spsc;
use tickpath_matching::CommandKind;
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, OrderRequest, SelfTradePrevention, SessionId,
};

use crate::log_feed::LogFeed;

/// Maximum number of requests that wait for the order server; further ones are returned to the caller.
const RING_CAPACITY: usize = 1 << 10;

/// A request of a front for one of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontRequest {
    /// The user's session.
    pub session: SessionId,
    /// Time at which the kernel received it, in ns since 1970; orders it among other ports' requests.
    pub received_ns: u64,
    /// The request itself.
    pub kind: FrontRequestKind,
}

/// The kinds of requests from a front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontRequestKind {
    /// A user's request, which passes the user's [`RequestFilter`](crate::RequestFilter).
    Order(OrderRequest),
    /// The venue's order for the user, to close a position that the user can no longer pay for. Neither the
    /// filter nor the user's limits nor a kill of the user prevent it, and the log marks it.
    Force(EnterOrder),
    /// Sets the self-trade prevention of the user.
    PreventSelfTrades(SelfTradePrevention),
    /// An instrument has expired: it halts, and its orders are cancelled. Concerns no user.
    Suspend(InstrumentId),
}

impl FrontRequest {
    /// The command of the request, if the filter accepts it.
    #[must_use]
    pub const fn command(&self) -> CommandKind {
        match self.kind {
            FrontRequestKind::Order(request) => CommandKind::Order(request),
            FrontRequestKind::Force(order) => CommandKind::Force(order),
            FrontRequestKind::PreventSelfTrades(strategy) => {
                CommandKind::SetSelfTradePrevention { strategy, account: self.session }
            }
            FrontRequestKind::Suspend(instrument) => CommandKind::SuspendInstrument { instrument },
        }
    }
}

/// The port that connects a front on another thread to the venue.
///
/// Its users' requests pass the same filter, log and engine as those of all users. The front reads the
/// results of these and of all other requests from the log.
pub struct FrontPort {
    requests: spsc::Producer<FrontRequest>,
    /// All commands and their events, past and future.
    pub log: LogFeed,
    /// The instruments, including added ones.
    pub instruments: InstrumentTable,
}

impl FrontPort {
    /// Creates the port, and the order server's end of its requests.
    #[must_use]
    pub fn new(log: LogFeed, instruments: InstrumentTable) -> (FrontPort, spsc::Consumer<FrontRequest>) {
        let (requests, taken) = spsc::channel(RING_CAPACITY);
        (FrontPort { requests, log, instruments }, taken)
    }

    /// Sends a request to the venue.
    ///
    /// # Errors
    /// Returns the request when the queue is full.
    pub fn try_request(&mut self, request: FrontRequest) -> Result<(), FrontRequest> {
        self.requests.try_push(request).map_err(|full| full.0)
    }

    /// True once the venue accepts no more requests: it has stopped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.requests.is_abandoned()
    }
}
