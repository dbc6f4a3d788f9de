//! Requests of a front that runs beside the venue's agents.

use tickpath_faults::{Fault, is_planted_for};
use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50::RequestError;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::Nanos;
use tickpath_venue::{Arrival, FrontRequest, FrontRequestKind};

use super::OrderServer;

/// Requests that one duty cycle takes at most.
const REQUESTS_PER_CYCLE: usize = 64;

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Takes requests that wait, as far as the batch has room; returns how many.
    #[cold]
    pub(super) fn take_front_requests(&mut self, now: Nanos) -> usize {
        let room = REQUESTS_PER_CYCLE.min(self.sequencer.room());
        let mut count = 0;
        while count < room
            && let Some(request) = self.front_port.as_mut().and_then(|port| port.try_pop())
        {
            count += 1;
            let FrontRequest { session, received_ns: kernel_ns, kind } = request;
            let asked = match kind {
                FrontRequestKind::Order(asked) => asked,
                FrontRequestKind::Force(_) => {
                    let is_shut = self.users.of_session(session).is_none_or(|user| user.filter.is_shut());
                    if !is_shut && !self.keeps_room_for_cancels() {
                        self.counters.requests.add(1);
                        self.sequencer.add(Arrival {
                            kernel_ns,
                            session,
                            token: None,
                            kind: request.command(),
                        });
                    }
                    continue;
                }
                _ => {
                    self.sequencer.add(Arrival::internal(session, request.command()));
                    continue;
                }
            };
            let Some(user) = self.users.of_session(session) else { continue };
            let kind = match user.filter.check(Ok(asked), now) {
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
