//! Requests of a front that runs beside the venue's agents.

use tickpath_matching::CommandKind;
use tickpath_types::{EnterOrder, InstrumentId, OrderRequest, SelfTradePrevention, SessionId};

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
