//! A hundred clients of one venue, one of which may have stopped reading.

use anyhow::ensure;
use tickpath_agent::{IdleStrategy, Runner, StopSignal, ThreadPlan};
use tickpath_exchange::{Password, UserSettings, Venue, VenueSettings, VenueTracers, VenueView};
use tickpath_timing::NoTrace;
use tickpath_trader::OrderEntry;
use tickpath_types::{EnterOrder, Nanos, OrderEventKind, OrderRequest, TimeInForce};

use super::instruments::instruments;
use super::{Round, Sample, orders};
use crate::context::{Context, wait_for};
use crate::statistics::quantile;

/// Clients; the last one may be stuck.
const CLIENTS: usize = 100;
/// Round trips of a full measurement, and before it.
const TRIPS: usize = 4_000;
const WARM_UP: usize = 400;
/// Time between an answer and the next request.
const PAUSE: Nanos = Nanos::from_micros(20);
/// Messages kept for each user: more than a stuck one causes while it is measured.
const RETAINED: usize = 1 << 13;
/// Requests of the last client in one write, until the venue's kernel takes no more answers.
const BURST: u32 = 64;
/// Requests after which the kernel's buffers are full for certain: some 8 MiB of answers.
const FILLING_MAX: u32 = 200_000;
const PASSWORD: &str = "LAB";

/// What the last client does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Reads,
    IsStuck,
}

pub(super) fn open(context: Context) -> anyhow::Result<Round> {
    Ok(Box::new(move || {
        let [p50, p99] = measure(&context, Last::Reads)?;
        let [stuck_p50, stuck_p99] = measure(&context, Last::IsStuck)?;
        let [again_p50, again_p99] = measure(&context, Last::Reads)?;
        Ok(vec![
            Sample::new("hundred_clients", p50),
            Sample::new("hundred_clients_p99", p99),
            Sample::new("hundred_clients_again", again_p50),
            Sample::new("hundred_clients_again_p99", again_p99),
            Sample::new("stuck_client", stuck_p50),
            Sample::new("stuck_client_p99", stuck_p99),
        ])
    }))
}

fn name(place: usize) -> String {
    format!("LAB{place}")
}

/// Median and 99th percentile of the others' round trips, in microseconds.
fn measure(context: &Context, last: Last) -> anyhow::Result<[f64; 2]> {
    let instruments = instruments(1);
    let trips = context.effort.count(TRIPS) + context.effort.count(WARM_UP);
    let settings = orders::settings(instruments.clone(), 2 * trips as u32 + 1)?;
    let settings = VenueSettings {
        max_connections: CLIENTS,
        retained_responses: RETAINED,
        users: (1..=CLIENTS).map(|place| UserSettings::new(name(place), Password::plain(PASSWORD))).collect(),
        limits: tickpath_matching::EngineLimits { max_sessions: CLIENTS as u16 + 1, ..settings.limits },
        ..settings
    };
    let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
    let Venue { agents, endpoints, view, .. } = Venue::build(&settings, context.clock, tracers)?;
    let plan = ThreadPlan {
        name: "venue".to_owned(),
        core: Some(context.far()?),
        idle: IdleStrategy::Spin,
        rehearse_interval: None,
        cycle: [0, 1, 0, 2].into(),
        agents,
    };
    let stop = StopSignal::new();
    let runner = Runner::start(vec![plan], context.clock, stop.clone())?;
    let mut ticks = (|| {
        let clock = context.clock;
        let mut clients = Vec::with_capacity(CLIENTS);
        for place in 1..=CLIENTS {
            let user = name(place);
            let address = endpoints.order_entry;
            let mut entry = OrderEntry::connect(address, &user, PASSWORD, instruments.clone(), clock.now())?;
            wait_for(&stop, || {
                entry.poll(clock.now(), &mut (), |_| (), |_, _| ())?;
                Ok(entry.is_active().then_some(()))
            })?;
            clients.push(entry);
        }
        trade(context, &mut clients, last, trips, &view, &stop)
    })();
    stop.stop();
    runner.join()?;
    let ticks = ticks.as_mut().map_err(|error| anyhow::anyhow!("{error:#}"))?;
    let ticks = &mut ticks[context.effort.count(WARM_UP)..];
    Ok([0.5, 0.99].map(|wanted| context.clock.ticks_to_nanos(quantile(ticks, wanted)).0 as f64 / 1_000.0))
}

/// The round trips of all clients but the last, in turn.
fn trade(
    context: &Context,
    clients: &mut [OrderEntry],
    last: Last,
    trips: usize,
    view: &VenueView,
    stop: &StopSignal,
) -> anyhow::Result<Vec<u64>> {
    let clock = context.clock;
    let Some((hundredth, others)) = clients.split_last_mut() else { return Ok(Vec::new()) };
    let mut hundredths_ref = 0;
    if last == Last::IsStuck {
        hundredths_ref = fill(context, hundredth, view, stop)?;
    }
    let mut ticks = Vec::with_capacity(trips);
    for trip in 0..trips {
        let entry = &mut others[trip % (CLIENTS - 1)];
        let order = orders::order(trip as u32 + 1);
        let start = clock.ticks();
        entry.queue(&OrderRequest::Enter(order))?;
        entry.flush(clock.now())?;
        wait_for(stop, || {
            let mut answer = None;
            entry.poll(clock.now(), &mut answer, |_| (), |answer, it| *answer = Some(it.kind))?;
            let Some(kind) = answer else { return Ok(None) };
            let is_accepted = matches!(kind, OrderEventKind::Accepted { order: echoed, .. }
                if echoed.user_ref == order.user_ref);
            ensure!(is_accepted, "order {trip} was answered by {kind:?}");
            Ok(Some(()))
        })?;
        ticks.push(clock.ticks() - start);
        hundredths_ref += 1;
        hundredth.queue(&OrderRequest::Enter(no_trade(hundredths_ref)))?;
        hundredth.flush(clock.now())?;
        if last == Last::Reads {
            hundredth.poll(clock.now(), &mut (), |_| (), |_, _| ())?;
        }
        context.spin(PAUSE);
    }
    let counters = &view.order_server;
    ensure!(counters.slow_clients.read() == 0, "the stuck client was disconnected while it was measured");
    let is_stuck = counters.full_connections.read() > 0;
    ensure!(is_stuck == (last == Last::IsStuck), "the last client was not what it was meant to be");
    Ok(ticks)
}

/// Asks for answers, none of which is read, until the kernel takes no more of them; the last number used.
fn fill(
    context: &Context,
    entry: &mut OrderEntry,
    view: &VenueView,
    stop: &StopSignal,
) -> anyhow::Result<u32> {
    let before = view.order_server.requests.read();
    let mut user_ref = 0;
    while view.order_server.full_connections.read() == 0 {
        ensure!(
            user_ref < FILLING_MAX,
            "the kernel takes whatever the venue sends to a client that does not read"
        );
        for _ in 0..BURST {
            user_ref += 1;
            entry.queue(&OrderRequest::Enter(no_trade(user_ref)))?;
        }
        entry.flush(context.clock.now())?;
        wait_for(stop, || {
            let is_read = view.order_server.requests.read() - before >= u64::from(user_ref);
            Ok(is_read.then_some(()))
        })?;
    }
    Ok(user_ref)
}

/// An order that is accepted and cancelled at once.
fn no_trade(user_ref: u32) -> EnterOrder {
    EnterOrder { time_in_force: TimeInForce::Ioc, ..orders::order(user_ref) }
}
