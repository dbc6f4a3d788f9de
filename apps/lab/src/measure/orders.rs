//! An order into the whole venue and its acceptance back, over loopback TCP.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tickpath_agent::{IdleStrategy, StopSignal};
use tickpath_exchange::{
    Endpoints, JournalSettings, LoginPolicy, MarketRecoverySettings, Password, PreLoginLimits, UserSettings,
    Venue, VenueJournal, VenueSettings, VenueTracers, VenueView,
};
use tickpath_journal::Policy;
use tickpath_lockfree::records;
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Session};
use tickpath_nasdaq::{ouch50, soupbintcp};
use tickpath_net::free_multicast_group;
use tickpath_timing::{Joiner, JoinerConfig, Stamp, Trace};
use tickpath_trader::OrderEntry;
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, Nanos, OrderEvent, OrderEventKind, OrderId, OrderRequest,
    OrderState, Price, Qty, Sequence, SessionId, Side, UserRefNum,
};

use super::instruments::{REFERENCE, TICK, instruments};
use super::{Round, Sample, paced, venue};
use crate::context::{Context, wait_for};

/// Name and password of the one user.
pub(super) const USER: &str = "LAB";
/// Records of each trace ring, and trips between two drains: a trip leaves some 10 records in a ring.
const TRACE_RING: usize = 1 << 14;
const TRIPS_PER_DRAIN: u64 = 256;
/// Price levels on each side.
const LEVELS: u32 = 100;
const IDS: JoinerConfig = JoinerConfig {
    market_capacity: 1 << 13,
    command_capacity: 1 << 13,
    token_capacity: 1 << 13,
    age: Nanos::from_millis(250),
};

pub(super) fn open(context: Context) -> anyhow::Result<Round> {
    Ok(Box::new(move || {
        let (round_trip, response) = measure(&context, None)?;
        let folder = tempfile::tempdir()?;
        let journal =
            JournalSettings { snapshot_every: 0, ..JournalSettings::new(folder.path(), Policy::Async) };
        let (journaled, _) = measure(&context, Some(journal))?;
        Ok(vec![
            Sample::new("order_rtt", round_trip),
            Sample::new("venue_response", response),
            Sample::new("journal_async_cost", journaled),
        ])
    }))
}

/// Lengths of an order and of its acceptance on the wire.
pub(super) fn wire_lens() -> anyhow::Result<(usize, usize)> {
    let instruments = instruments(1);
    let order = order(1);
    let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
    let request =
        ouch50::encode_request(&OrderRequest::Enter(order), |id| instruments.symbol(id), &mut bytes)?;
    let accepted = OrderEvent {
        command: Sequence(1),
        session: SessionId(1),
        ts: Nanos::ZERO,
        is_reply: true,
        kind: OrderEventKind::Accepted { order, order_id: OrderId(1), state: OrderState::Live },
    };
    let answer = ouch50::encode_event(&accepted, |id| instruments.symbol(id), &mut bytes)?;
    Ok((soupbintcp::HEADER_LEN + request, soupbintcp::HEADER_LEN + answer))
}

/// A passive order; prices cycle through the levels of both sides.
pub(super) fn order(number: u32) -> EnterOrder {
    let side = if number.is_multiple_of(2) { Side::Buy } else { Side::Sell };
    let ticks_away = i64::from(1 + number / 2 % LEVELS);
    let price = Price(REFERENCE.0 - side.sign() * ticks_away * TICK);
    EnterOrder::limit(UserRefNum(number), InstrumentId(1), side, Qty(100), price)
}

/// Medians of the round trip and of the venue's part, in microseconds.
fn measure(context: &Context, journal: Option<JournalSettings>) -> anyhow::Result<(f64, f64)> {
    let instruments = instruments(1);
    let orders = paced::trip_count(context);
    let tracers = [(); 3].map(|()| Trace::new(TRACE_RING));
    let [(order_server, drain_1), (matcher, drain_2), (publisher, drain_3)] = tracers;
    let mut stamps = Stamps {
        drains: [drain_1, drain_2, drain_3],
        joiner: Joiner::new(IDS, *context.clock.calibration()),
    };
    let tracers = VenueTracers { order_server, matcher, publisher };
    let settings = VenueSettings { journal, ..settings(instruments.clone(), orders as u32)? };
    let Venue { agents, endpoints, view, journal, .. } = Venue::build(&settings, context.clock, tracers)?;
    let _journal = journal.map(VenueJournal::start).transpose()?;
    let round_trip = venue::beside(context, IdleStrategy::Spin, agents, |stop| {
        trade(context, endpoints, instruments, stop, &mut stamps)
    })?;
    check_final_state(&view, orders)?;
    Ok((round_trip, stamps.venue_response_us(context.clock.ticks())?))
}

pub(super) fn settings(instruments: InstrumentTable, orders: u32) -> anyhow::Result<VenueSettings> {
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    Ok(VenueSettings {
        session: Session::new("LAB").context("a session name")?,
        instruments,
        order_entry: any_port,
        max_connections: 1,
        retained_responses: 1 << 10,
        users: vec![UserSettings::new(USER, Password::plain(USER))],
        login: LoginPolicy::default(),
        pre_login: PreLoginLimits::default(),
        cancel_at_shutdown: false,
        line_a: free_multicast_group()?,
        line_b: free_multicast_group()?,
        interface: Ipv4Addr::LOCALHOST,
        retransmission: any_port,
        packet_bytes: DATAGRAM_LEN_MAX,
        heartbeat: Nanos::from_secs(1),
        retained_messages: 1 << 16,
        market_recovery: MarketRecoverySettings::default(),
        limits: EngineLimits {
            max_open_orders: orders,
            max_open_orders_per_session: orders,
            ..EngineLimits::default()
        },
        day: tickpath_exchange::DaySettings::default(),
        journal: None,
        prefault: true,
    })
}

/// The one user, logged in.
pub(super) fn log_in(
    context: &Context,
    endpoints: Endpoints,
    instruments: InstrumentTable,
    stop: &StopSignal,
) -> anyhow::Result<OrderEntry> {
    let clock = context.clock;
    let mut entry = OrderEntry::connect(endpoints.order_entry, USER, USER, instruments, clock.now())?;
    wait_for(stop, || {
        entry.poll(clock.now(), &mut (), |_| (), |_, _| ())?;
        Ok(entry.is_active().then_some(()))
    })?;
    Ok(entry)
}

/// Sends orders one at a time and waits for each acceptance.
fn trade(
    context: &Context,
    endpoints: Endpoints,
    instruments: InstrumentTable,
    stop: &StopSignal,
    stamps: &mut Stamps,
) -> anyhow::Result<f64> {
    let clock = context.clock;
    let mut entry = log_in(context, endpoints, instruments, stop)?;
    let trip = |number: u64| {
        let order = order(number as u32);
        entry.queue(&OrderRequest::Enter(order))?;
        entry.flush(clock.now())?;
        wait_for(stop, || {
            let mut answer = None;
            entry.poll(clock.now(), &mut answer, |_| (), |answer, it| *answer = Some(it.kind))?;
            let Some(kind) = answer else { return Ok(None) };
            let is_accepted = matches!(kind, OrderEventKind::Accepted { order: echoed, state: OrderState::Live, .. }
                if echoed.user_ref == order.user_ref && echoed.price == order.price);
            ensure!(is_accepted, "order {number} was answered by {kind:?}");
            Ok(Some(()))
        })
    };
    let after = |number: u64| {
        if number.is_multiple_of(TRIPS_PER_DRAIN) {
            stamps.drain(clock.ticks());
        }
        Ok(())
    };
    let round_trip = paced::p50_us(context, trip, after)?;
    // What the venue still has to say goes into the rings before it is stopped.
    std::thread::sleep(Duration::from_millis(1));
    entry.logout(clock.now());
    Ok(round_trip)
}

/// Every order rests in the book and nothing else happened.
pub(super) fn check_final_state(view: &VenueView, orders: u64) -> anyhow::Result<()> {
    let engine =
        view.engine.lock().ok().and_then(|mut engine| engine.take()).context("the matcher left no engine")?;
    let counters = engine.counters();
    let open = u64::from(tickpath_book::OrderBooks::order_count(engine.books()));
    ensure!(
        open == orders && counters.rejected + counters.ignored + counters.executions == 0,
        "{open} of {orders} orders are open: {counters:?}"
    );
    Ok(())
}

/// The venue's stamps and what joins them.
struct Stamps {
    drains: [records::Consumer<Stamp>; 3],
    joiner: Joiner,
}

impl Stamps {
    fn drain(&mut self, now: u64) {
        self.joiner.drain(&mut self.drains, TRACE_RING, now);
    }

    /// Median from an order's read to its answer's write, over all orders.
    fn venue_response_us(&mut self, now: u64) -> anyhow::Result<f64> {
        self.drain(now);
        self.joiner.finish();
        let dropped = self.joiner.counters().dropped;
        ensure!(dropped == 0, "{dropped} stamps were dropped: drain more often");
        let report = self.joiner.report();
        let row = report.row("venue_response").context("no order was stamped from its read to its answer")?;
        Ok(row.summary.p50_ns as f64 / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echo_has_the_lengths_of_the_real_messages() {
        let (soup, no_options) = (3, 2);
        assert_eq!(wire_lens().unwrap(), (soup + 45 + no_options, soup + 64));
    }

    #[test]
    fn orders_rest_on_either_side_and_never_cross() {
        let orders: Vec<EnterOrder> = (1..=2 * LEVELS).map(order).collect();
        let best = |side| orders.iter().filter(move |it| it.side == side).map(|it| it.price.0);
        assert_eq!(best(Side::Buy).max(), Some(REFERENCE.0 - TICK));
        assert_eq!(best(Side::Sell).min(), Some(REFERENCE.0 + TICK));
    }
}
