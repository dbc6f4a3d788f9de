//! Requests of a front that runs beside the venue's agents.

use tickpath_faults::{Fault, is_planted_for};
use tickpath_lockfree::spsc;
use tickpath_lockfree::wake::Waker;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50::RequestError;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, Nanos, OrderRequest, SelfTradePrevention, SessionId,
};

use crate::log_feed::LogFeed;
use crate::order_server::OrderServer;
use crate::sequencer::Arrival;

/// Requests that may wait for the order server; a further one is given back.
const RING_CAPACITY: usize = 1 << 10;
/// Requests that one duty cycle takes at most.
const REQUESTS_PER_CYCLE: usize = 64;

/// A request of a front for one of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorRequest {
    /// Whose.
    pub session: SessionId,
    /// When the kernel received it, in nanoseconds since 1970: it stands in line with what came by other doors then.
    pub received_ns: u64,
    /// What is asked.
    pub ask: DoorAsk,
}

/// What a front asks of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorAsk {
    /// A user's request, which goes through the gate.
    Order(OrderRequest),
    /// The venue's own order for the user, to close what it can no longer pay for: neither the gate nor the user's limits nor a
    /// kill of the user hold it back, and the log says that it is one.
    Force(EnterOrder),
    /// What becomes of the user's orders that would trade with its own.
    PreventSelfTrades(SelfTradePrevention),
    /// An instrument has expired: it halts, and its orders are cancelled. Of no user.
    Suspend(InstrumentId),
}

impl DoorRequest {
    /// The command that it is, if the gate lets it pass.
    #[must_use]
    pub const fn kind(&self) -> CommandKind {
        match self.ask {
            DoorAsk::Order(request) => CommandKind::Order(request),
            DoorAsk::Force(order) => CommandKind::Force(order),
            DoorAsk::PreventSelfTrades(strategy) => {
                CommandKind::SetSelfTradePrevention { strategy, account: self.session }
            }
            DoorAsk::Suspend(instrument) => CommandKind::SuspendInstrument { instrument },
        }
    }
}

/// What a front on a thread of its own is joined to the venue by.
///
/// Its users' requests go through the same gate, log and engine as everybody's; what becomes of them, and of all other
/// requests, is read from the log.
pub struct SideDoor {
    requests: spsc::Producer<DoorRequest>,
    /// Everything that happened and happens.
    pub log: LogFeed,
    /// What is traded, those that are added included.
    pub instruments: InstrumentTable,
}

impl SideDoor {
    pub(crate) fn new(log: LogFeed, instruments: InstrumentTable) -> (SideDoor, DoorRequests) {
        let (requests, taken) = spsc::channel(RING_CAPACITY);
        (SideDoor { requests, log, instruments }, DoorRequests(taken))
    }

    /// Hands a request to the venue.
    ///
    /// # Errors
    /// The request, when as many as may wait do.
    pub fn try_request(&mut self, request: DoorRequest) -> Result<(), DoorRequest> {
        self.requests.try_push(request).map_err(|full| full.0)
    }

    /// True once the venue takes no more: it has stopped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.requests.is_abandoned()
    }
}

/// The order server's end.
pub(crate) struct DoorRequests(spsc::Consumer<DoorRequest>);

impl DoorRequests {
    /// Has each request wake the thread behind `waker`.
    pub(crate) fn wake_by(&self, waker: &Waker) {
        self.0.wake_by(waker);
    }
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Takes what waits there, as far as the batch has room; returns how many.
    #[cold]
    pub(crate) fn take_side_door(&mut self, now: Nanos) -> usize {
        let room = REQUESTS_PER_CYCLE.min(self.sequencer.room());
        let mut count = 0;
        while count < room
            && let Some(request) = self.side_door.as_mut().and_then(|door| door.0.try_pop())
        {
            count += 1;
            let DoorRequest { session, received_ns: kernel_ns, ask } = request;
            let asked = match ask {
                DoorAsk::Order(asked) => asked,
                DoorAsk::Force(_) => {
                    let is_shut = self.users.of_session(session).is_none_or(|user| user.gate.is_shut());
                    if !is_shut && !self.keeps_room_for_cancels() {
                        self.counters.requests.add(1);
                        self.sequencer.add(Arrival { kernel_ns, session, token: None, kind: request.kind() });
                    }
                    continue;
                }
                _ => {
                    self.sequencer.add(Arrival::of_venue(session, request.kind()));
                    continue;
                }
            };
            let Some(user) = self.users.of_session(session) else { continue };
            let kind = match user.gate.filter(Ok(asked), now) {
                Ok(request) => CommandKind::Order(request),
                Err(RequestError::Refused { user_ref, reason, client_order_id }) => {
                    self.note_refused(session);
                    if self.keeps_room_for_cancels() {
                        continue;
                    }
                    CommandKind::Refuse { user_ref, reason, client_order_id }
                }
                Err(_) => continue,
            };
            self.counters.requests.add(1);
            if !is_planted_for(Fault::RequestDropped, self.counters.requests.read()) {
                self.sequencer.add(Arrival { kernel_ns, session, token: None, kind });
            }
        }
        count
    }
}
