//! A venue with a hundred clients, one of which may have stopped reading.

use std::net::SocketAddrV4;

use anyhow::{Context as _, ensure};
use tickpath_agent::TscClock;
use tickpath_exchange::{Password, UserSettings, Venue, VenueSettings, VenueView};
use tickpath_matching::EngineLimits;
use tickpath_trader::OrderEntry;
use tickpath_types::{EnterOrder, Nanos, OrderRequest, TimeInForce};

use super::venue::{self, NO_TRACERS, USER, Wait, instruments};

/// Number of clients; the last one may be stuck.
pub(crate) const CLIENTS: usize = 100;
/// Messages retained for each user: enough that a stuck client stays connected during the measurement.
pub(crate) const RETAINED: usize = 1 << 13;
/// Requests in one write of a stuck client. It repeats the write until the kernel accepts no more answers.
const BURST: u32 = 64;
/// Maximum number of requests until the kernel's buffers are full; their answers are about 8 MiB.
const FILLING_MAX: u32 = 200_000;
/// Number of answers to an order of the last client: accepted, cancelled.
pub(crate) const ANSWERS_EACH: u64 = 2;
/// Number of answers to a burst; at most this many are unsent when the kernel accepts no more.
pub(crate) const BURST_ANSWERS: usize = ANSWERS_EACH as usize * BURST as usize;

/// The clients of a venue. All but the last one trade in turn, and the last one trades after each of them.
pub(crate) struct ClientGroup {
    others: Vec<OrderEntry>,
    last: OrderEntry,
    /// True if the last client reads nothing.
    is_stuck: bool,
    /// UserRefNum of the last client's newest order.
    last_ref: u32,
}

/// Creates a venue for the clients, with capacity for the orders of `trips` round trips.
pub(crate) fn venue(clock: TscClock, trips: usize) -> anyhow::Result<Venue> {
    let user = |place| UserSettings::new(name(place), Password::plain(USER));
    let settings = venue::settings(instruments(1), 2 * trips as u32 + 1)?;
    let settings = VenueSettings {
        max_connections: CLIENTS,
        retained_responses: RETAINED,
        users: (1..=CLIENTS).map(user).collect(),
        limits: EngineLimits { max_sessions: CLIENTS as u16 + 1, ..settings.limits },
        ..settings
    };
    Venue::build(&settings, clock, NO_TRACERS)
}

fn name(place: usize) -> String {
    format!("{USER}{place}")
}

impl ClientGroup {
    /// Logs all clients in. If `is_stuck`, the last client's connection is full on return.
    pub(crate) fn connect(
        address: SocketAddrV4,
        is_stuck: bool,
        view: &VenueView,
        venue: &mut impl Wait,
    ) -> anyhow::Result<ClientGroup> {
        let log_in = |place| venue::log_in(address, &name(place), instruments(1), venue);
        let mut others = (1..=CLIENTS).map(log_in).collect::<anyhow::Result<Vec<_>>>()?;
        let last = others.pop().context("there is a hundredth client")?;
        let mut client_group = ClientGroup { others, last, is_stuck, last_ref: 0 };
        if is_stuck {
            client_group.fill(view, venue)?;
        }
        Ok(client_group)
    }

    /// Sends the order of round trip number `trip`, from 0, and waits for the order's acceptance.
    pub(crate) fn trade(&mut self, trip: usize, venue: &mut impl Wait) -> anyhow::Result<()> {
        venue::enter(&mut self.others[trip % (CLIENTS - 1)], trip as u32 + 1, venue)
    }

    /// Sends an order of the last client; unless stuck, the client also reads the messages that have arrived.
    pub(crate) fn trade_last(&mut self, now: Nanos) -> anyhow::Result<()> {
        self.last_ref += 1;
        self.last.queue(&OrderRequest::Enter(no_trade(self.last_ref)))?;
        self.last.flush(now)?;
        if !self.is_stuck {
            self.last.poll(now, &mut (), |_| (), |_, _| ())?;
        }
        Ok(())
    }

    /// Checks that no client was disconnected as slow, and that the last is stuck if and only if `is_stuck`.
    pub(crate) fn check(&self, view: &VenueView) -> anyhow::Result<()> {
        let counters = &view.order_server;
        ensure!(counters.slow_clients.read() == 0, "the stuck client was disconnected while it was measured");
        let is_full = counters.full_connections.read() > 0;
        ensure!(is_full == self.is_stuck, "the last client must be stuck exactly when intended");
        Ok(())
    }

    /// Sends requests of the last client without reading answers, until the kernel accepts no more answers.
    fn fill(&mut self, view: &VenueView, venue: &mut impl Wait) -> anyhow::Result<()> {
        let counters = &view.order_server;
        let before = counters.responses.read();
        while counters.full_connections.read() == 0 {
            ensure!(
                self.last_ref < FILLING_MAX,
                "the kernel takes whatever the venue sends to a client that does not read"
            );
            for _ in 0..BURST {
                self.last_ref += 1;
                self.last.queue(&OrderRequest::Enter(no_trade(self.last_ref)))?;
            }
            self.last.flush(venue.now())?;
            // Wait until the venue has answered, so that no work on these requests remains when the other
            // clients are measured.
            let wanted = before + ANSWERS_EACH * u64::from(self.last_ref);
            venue.wait(|_| Ok(counters.responses.read() >= wanted))?;
        }
        Ok(())
    }
}

/// Returns an order that is accepted and cancelled at once.
fn no_trade(user_ref: u32) -> EnterOrder {
    EnterOrder { time_in_force: TimeInForce::Ioc, ..venue::order(user_ref) }
}
