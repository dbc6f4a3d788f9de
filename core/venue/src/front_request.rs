//! Requests of a front (an order entry gateway on another thread), and the port that sends them to the venue.

use tickpath_lockfree::spsc;
use tickpath_matching::CommandKind;
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, OrderRequest, SelfTradePrevention, SessionId,
};

use crate::log_feed::LogFeed;

/// Capacity of the ring of requests to the order server; requests beyond it are returned to the caller.
const RING_CAPACITY: usize = 1 << 10;

/// A request that a front sends for one of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontRequest {
    /// The user's session.
    pub session: SessionId,
    /// Time at which the kernel received the request, in ns since the Unix epoch. The sequencer sorts the
    /// requests of a batch, from all ports, by this time.
    pub received_ns: u64,
    /// The kind of the request.
    pub kind: FrontRequestKind,
}

/// The kinds of requests from a front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontRequestKind {
    /// A user's request, which the user's [`RequestFilter`](crate::RequestFilter) checks.
    Order(OrderRequest),
    /// The venue's own order for the user, which closes a position in a liquidation. The user's filter,
    /// limits and kill do not apply to it. It is logged as [`CommandKind::Force`].
    Force(EnterOrder),
    /// Sets the self-trade prevention of the user.
    PreventSelfTrades(SelfTradePrevention),
    /// Halts an expired instrument and cancels its orders. [`FrontRequest::session`] has no meaning.
    Suspend(InstrumentId),
}

impl FrontRequest {
    /// The log command that executes the request as it is: for an [order](FrontRequestKind::Order), if the
    /// user's filter accepts it. The filter does not check the other kinds.
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

/// Connects a front on another thread to the venue.
///
/// Requests of the front's users pass the same filter, log and engine as those of all other users. The front
/// reads the results of all requests from the log.
pub struct FrontPort {
    requests: spsc::Producer<FrontRequest>,
    /// Yields all commands of the log with their events, from the first one on.
    pub log: LogFeed,
    /// The venue's instruments, including those added later.
    pub instruments: InstrumentTable,
}

impl FrontPort {
    /// Creates the port, and the receiving end of its requests for the order server.
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

    /// True once the venue has stopped and accepts no more requests.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.requests.is_abandoned()
    }
}
