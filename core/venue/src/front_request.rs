//! The port of a front that runs on a thread beside the venue's agents, and its requests.

use tickpath_lockfree::spsc;
use tickpath_matching::CommandKind;
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, OrderRequest, SelfTradePrevention, SessionId,
};

use crate::log_feed::LogFeed;

/// Requests that may wait for the order server; a further one is given back.
const RING_CAPACITY: usize = 1 << 10;

/// A request of a front for one of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontRequest {
    /// The user's session.
    pub session: SessionId,
    /// When the kernel received it, in nanoseconds since 1970: it is sequenced among the requests of other ports by this.
    pub received_ns: u64,
    /// The request itself.
    pub kind: FrontRequestKind,
}

/// The kinds of requests that a front has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontRequestKind {
    /// A user's request, which passes the user's [`RequestFilter`](crate::RequestFilter).
    Order(OrderRequest),
    /// The venue's order for the user, to close a position that the user can no longer pay for. Neither the filter nor the
    /// user's limits nor a kill of the user prevent it, and the log marks it.
    Force(EnterOrder),
    /// The self-trade prevention of the user.
    PreventSelfTrades(SelfTradePrevention),
    /// An instrument has expired: it halts, and its orders are cancelled. It concerns no user.
    Suspend(InstrumentId),
}

impl FrontRequest {
    /// Its command, if the filter lets it pass.
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
    /// The port, and the order server's end of its requests.
    #[must_use]
    pub fn new(log: LogFeed, instruments: InstrumentTable) -> (FrontPort, spsc::Consumer<FrontRequest>) {
        let (requests, taken) = spsc::channel(RING_CAPACITY);
        (FrontPort { requests, log, instruments }, taken)
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
