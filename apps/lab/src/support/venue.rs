//! A venue for the measurements: its settings, its thread, and a client's login and orders.

use std::net::SocketAddrV4;

use anyhow::{Context as _, ensure};
use tickpath_agent::{Agent, IdleStrategy, Runner, StopSignal, ThreadPlan, TscClock};
use tickpath_book::OrderBooks;
use tickpath_exchange::{
    MessageStore, Password, PublisherConfig, UserSettings, VenueSettings, VenueTracers, VenueView,
};
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Session};
use tickpath_net::free_multicast_group;
use tickpath_timing::NoTrace;
use tickpath_trader::OrderEntry;
use tickpath_types::{
    EnterOrder, Instrument, InstrumentId, InstrumentTable, Nanos, OrderEventKind, OrderRequest, OrderState,
    Price, Qty, Side, Symbol, UserRefNum,
};

use crate::context::{Context, wait_for};

/// Name and password of the only user.
pub(crate) const USER: &str = "LAB";
/// Tick size: one hundredth.
pub(crate) const TICK: i64 = 100;
/// Reference price: 100.00.
pub(crate) const REFERENCE: Price = Price(1_000_000);
/// Number of price levels on each side.
const LEVELS: u32 = 100;
/// Indexes of the agents in the order of their calls. The order server is called again before the publisher,
/// so that answers leave before market data, as in a venue on one thread.
pub(crate) const CYCLE: [usize; 4] = [0, 1, 0, 2];
pub(crate) const NO_TRACERS: VenueTracers<NoTrace> =
    VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };

/// Returns `count` instruments with a reference price of 100.00 and a collar of 20.00 on either side.
pub(crate) fn instruments(count: u16) -> InstrumentTable {
    let instrument = |id| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(&format!("LAB{id}")).expect("at most 8 characters"),
        tick_size: Price(TICK),
        lot_size: Qty(1),
        max_qty: Qty(100_000),
        reference_price: REFERENCE,
        collar_low: Price(800_000),
        collar_high: Price(1_200_000),
    };
    InstrumentTable::new(&(1..=count).map(instrument).collect::<Vec<_>>())
}

/// Returns the settings of a venue of one user, with capacity for `orders` open orders.
pub(crate) fn settings(instruments: InstrumentTable, orders: u32) -> anyhow::Result<VenueSettings> {
    let lines = [free_multicast_group()?, free_multicast_group()?];
    let users = vec![UserSettings::new(USER, Password::plain(USER))];
    let limits = EngineLimits {
        max_open_orders: orders,
        max_open_orders_per_session: orders,
        ..EngineLimits::default()
    };
    let settings = VenueSettings::on_loopback(session()?, instruments, lines, users);
    Ok(VenueSettings { limits, ..settings })
}

pub(crate) fn session() -> anyhow::Result<Session> {
    Session::new("LAB").context("a session name")
}

/// Returns the settings of a publisher that retains the last `retained_messages` messages.
pub(crate) fn publisher(
    instruments: InstrumentTable,
    heartbeat: Nanos,
    retained_messages: usize,
) -> anyhow::Result<PublisherConfig> {
    let mut store = MessageStore::new(retained_messages);
    store.prefault();
    Ok(PublisherConfig {
        session: session()?,
        instruments,
        packet_bytes: DATAGRAM_LEN_MAX,
        segmented_sends: true,
        heartbeat,
        store,
        durable: None,
        is_session_kept: false,
    })
}

/// Runs a venue's agents on the other core while `near` runs on this one; `near` gets the agents' stop
/// signal.
pub(crate) fn run_with_venue<T>(
    context: &Context,
    idle: IdleStrategy,
    agents: Vec<Box<dyn Agent>>,
    near: impl FnOnce(&StopSignal) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let plan = ThreadPlan {
        name: "venue".to_owned(),
        core: Some(context.far()?),
        idle,
        warm_up_interval: None,
        cycle: CYCLE.into(),
        agents,
    };
    let stop = StopSignal::new();
    let runner = Runner::start(vec![plan], context.clock, stop.clone())?;
    let measured = near(&stop);
    stop.stop();
    // Report an agent's error first, because it explains a timeout of the measurement.
    runner.join()?;
    measured
}

/// Waits for a venue. Its agents run on another thread, or the implementation runs them while it waits.
pub(crate) trait Wait {
    /// Returns the time to pass to calls of the clients.
    fn now(&self) -> Nanos;

    /// Polls until `poll` returns true.
    fn wait(&mut self, poll: impl FnMut(Nanos) -> anyhow::Result<bool>) -> anyhow::Result<()>;
}

/// A venue on another thread.
pub(crate) struct RunningVenue<'a> {
    pub(crate) clock: TscClock,
    pub(crate) stop: &'a StopSignal,
}

impl Wait for RunningVenue<'_> {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    #[inline(always)]
    fn wait(&mut self, mut poll: impl FnMut(Nanos) -> anyhow::Result<bool>) -> anyhow::Result<()> {
        wait_for(self.stop, || Ok(poll(self.clock.now())?.then_some(())))
    }
}

/// Connects a client and waits until `user` is logged in.
pub(crate) fn log_in(
    address: SocketAddrV4,
    user: &str,
    instruments: InstrumentTable,
    venue: &mut impl Wait,
) -> anyhow::Result<OrderEntry> {
    let mut entry = OrderEntry::connect(address, user, USER, instruments, venue.now())?;
    venue.wait(|now| {
        entry.poll(now, &mut (), |_| (), |_, _| ())?;
        Ok(entry.is_active())
    })?;
    Ok(entry)
}

/// Returns an order that never crosses; sides alternate, and prices cycle through [`LEVELS`] levels.
pub(crate) fn order(number: u32) -> EnterOrder {
    let side = if number.is_multiple_of(2) { Side::Buy } else { Side::Sell };
    let ticks_away = i64::from(1 + number / 2 % LEVELS);
    let price = Price(REFERENCE.0 - side.sign() * ticks_away * TICK);
    EnterOrder::limit(UserRefNum(number), InstrumentId(1), side, Qty(100), price)
}

/// Sends order `number` and waits for its acceptance.
#[inline(always)]
pub(crate) fn enter(entry: &mut OrderEntry, number: u32, venue: &mut impl Wait) -> anyhow::Result<()> {
    let order = order(number);
    entry.queue(&OrderRequest::Enter(order))?;
    entry.flush(venue.now())?;
    venue.wait(|now| {
        let mut answer = None;
        entry.poll(now, &mut answer, |_| (), |answer, it| *answer = Some(it.kind))?;
        let Some(kind) = answer else { return Ok(false) };
        let is_accepted = matches!(kind, OrderEventKind::Accepted { order: echoed, state: OrderState::Live, .. }
            if echoed.user_ref == order.user_ref && echoed.price == order.price);
        ensure!(is_accepted, "order {number} was answered by {kind:?}");
        Ok(true)
    })
}

/// Checks that every order rests, and that no order was rejected, ignored or executed.
pub(crate) fn check_final_state(view: &VenueView, orders: u64) -> anyhow::Result<()> {
    let engine =
        view.engine.lock().ok().and_then(|mut engine| engine.take()).context("the matcher left no engine")?;
    let counters = engine.counters();
    let open = u64::from(engine.books().order_count());
    ensure!(
        open == orders && counters.rejected + counters.ignored + counters.executions == 0,
        "{open} of {orders} orders are open: {counters:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_rest_on_either_side_and_never_cross() {
        let orders: Vec<EnterOrder> = (1..=2 * LEVELS).map(order).collect();
        let best = |side| orders.iter().filter(move |it| it.side == side).map(|it| it.price.0);
        assert_eq!(best(Side::Buy).max(), Some(REFERENCE.0 - TICK));
        assert_eq!(best(Side::Sell).min(), Some(REFERENCE.0 + TICK));
    }
}
