//! A gateway between its clients and the venue: over shared memory, and to the venue's socket over TLS.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tickpath_agent::{Agent, StopSignal};
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::process::{Gateway, REHEARSE_INTERVAL};
use tickpath_gateway_io::{Client, ClientConfig, Door, DoorConfig, DoorEvent, monotonic};
use tickpath_gateway_protocol::frame::{Password, capability};
use tickpath_gateway_protocol::{
    AckStatus, CreateOrder, Event, EventKind, OrderAck, OrderType, Ready, ReadyScope, ReferenceData, Request,
    RequestKind, Side, Text, TimeInForce,
};
use tickpath_lockfree::SharedLines;
use tickpath_lockfree::shared_spsc::{Consumer, Producer, lines_of};
use tickpath_shm::{Folder, SegmentName};
use tickpath_types::Nanos;

use super::{Round, Sample};
use crate::context::{Context, wait_for};
use crate::deribit_venue::{CLIENT_ID, Certificates, SECRET, VenueEnd};

/// Orders of a full round, those that warm up included.
const ORDERS: usize = 2_000;
/// Time between an answer and the next order.
const PAUSE: Nanos = Nanos::from_micros(20);
/// How long the venue rests when there is nothing to do: it has no core of its own.
const REST: Duration = Duration::from_micros(100);
/// Slots of a bare ring.
const CAPACITY: usize = 1_024;
/// Pings of a full round, and the time between two of them.
const PINGS: usize = 2_000;
const PING_INTERVAL: Nanos = Nanos::from_micros(100);
const INSTRUMENT: &str = "BTC-PERPETUAL";

/// A bare ring each way, of what a client and a gateway send.
fn bare_rings(context: &Context) -> anyhow::Result<f64> {
    let there = SharedLines::zeroed(lines_of::<Request>(CAPACITY));
    let back = SharedLines::zeroed(lines_of::<Event>(CAPACITY));
    let (mut to_gateway, mut of_client) =
        (Producer::<Request>::over(there.clone())?, Consumer::<Request>::over(there)?);
    let (mut to_client, mut of_gateway) =
        (Producer::<Event>::over(back.clone())?, Consumer::<Event>::over(back)?);
    let trips = context.effort.count(ORDERS);
    let mut samples = Vec::with_capacity(trips);
    context.beside(
        move |stop| {
            loop {
                let request = wait_for(stop, || Ok(of_client.try_pop()))?;
                let mut event = Event::of(&OrderAck::default());
                event.header.sequence = request.header.request_id;
                to_client.try_push(event).ok().context("the ring back is full")?;
            }
        },
        |stop| {
            for number in 1..=trips as u64 {
                let mut request = Request::of(&CreateOrder::default());
                request.header.request_id = number;
                let start = context.clock.ticks();
                to_gateway.try_push(request).ok().context("the ring there is full")?;
                let event = wait_for(stop, || Ok(of_gateway.try_pop()))?;
                samples.push(context.clock.ticks() - start);
                ensure!(event.header.sequence == number, "request {number} was answered wrongly");
                context.spin(PAUSE);
            }
            Ok(())
        },
    )?;
    let warm_up = trips / 10;
    Ok(context.quantile_ns(&mut samples[warm_up..], 0.5))
}

pub(super) fn open_orders(context: Context) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    Ok(Box::new(move || {
        let bare = bare_rings(&context)?;
        let Found { mut trips, mut to_wire, refused } = orders(&context, &certificates)?;
        ensure!(refused == 0, "{refused} orders were refused");
        let p50 = |ticks: &mut [u64]| context.quantile_ns(ticks, 0.5);
        let warm_up = trips.len() / 10;
        let wire = crate::statistics::quantile(&mut to_wire[warm_up..], 0.5) as f64;
        Ok(vec![
            Sample::new("gateway_ring_rtt", bare),
            Sample::new("gateway_rtt", p50(&mut trips[warm_up..])),
            Sample::new("gateway_to_wire", wire),
        ])
    }))
}

/// What orders took: in ticks to their acknowledgement, in nanoseconds to the venue's socket.
struct Found {
    trips: Vec<u64>,
    to_wire: Vec<u64>,
    refused: u64,
}

/// Runs a venue on a thread that rests while there is nothing to do.
fn with_venue<T>(
    certificates: &Certificates,
    context: &Context,
    work: impl FnOnce(&str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut venue = VenueEnd::open(certificates)?;
    let url = venue.url();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let served = scope.spawn(|| -> anyhow::Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                if venue.work(context.clock.now())? == 0 {
                    thread::sleep(REST);
                }
            }
            Ok(())
        });
        let done = work(&url);
        is_over.store(true, Ordering::Relaxed);
        match served.join() {
            Err(_) => bail!("the venue's end panicked"),
            Ok(served) => done.and_then(|done| served.map(|()| done)),
        }
    })
}

fn configuration(folder: &Path, url: &str, ca: &Path) -> anyhow::Result<GatewayConfig> {
    let text = format!(
        "name = 'lab'\nclient_listen_address = '{}'\nadmin_listen_address = '{}'\n\
         [venue]\nws_uri = '{url}'\nca_file = '{}'\nmatching_rate = 100000\nmatching_burst = 100000\n\
         [venue.feeds]\nticker = false\nbook = false\ntrades = false\ninstrument_state = false\n\
         [accounts.A1]\nmaster = true\nlogin = '{CLIENT_ID}'\nsecret = '{SECRET}'\n\
         [limits]\norder_size_max = '1000'\nnotional_max = '1000000'\nopen_orders_max = 100000\n\
         [users.trader]\npassword = 'test'\naccounts = ['A1']\nrequest_limit = 65536\n",
        folder.join("gateway.sock").display(),
        folder.join("admin.sock").display(),
        ca.display()
    );
    Ok(GatewayConfig::parse("gateway.toml", &text)?)
}

fn orders(context: &Context, certificates: &Certificates) -> anyhow::Result<Found> {
    let folder = tempfile::tempdir()?;
    with_venue(certificates, context, |url| {
        let config = configuration(folder.path(), url, &certificates.ca())?;
        let gateway = Gateway::build(&config, None, Some(&folder.path().join("shm")), context.clock)?;
        let (mut agent, metrics, socket) = (gateway.agent, gateway.metrics, gateway.endpoints.socket);
        let notes = gateway.notes;
        let latency = metrics.request_latency(RequestKind::CREATE_ORDER);
        let mut to_wire = Vec::with_capacity(context.effort.count(ORDERS));
        let written = &mut to_wire;
        let mut found = context.beside(
            |stop| {
                agent.on_start()?;
                let (mut gone, mut rehearsed) = (0, context.clock.now());
                while !stop.is_stopped() {
                    let now = context.clock.now();
                    if agent.do_work(now)? > 0 {
                        // Read on this thread, as nobody looks at a gateway's figures between two orders.
                        if latency.count() as usize > written.len() {
                            let sum = metrics.inter_process.sum() + latency.sum();
                            written.push(sum - std::mem::replace(&mut gone, sum));
                        }
                    } else if now.since(rehearsed) >= REHEARSE_INTERVAL {
                        // As the thread of a gateway does.
                        rehearsed = now;
                        agent.rehearse(now);
                    }
                }
                agent.on_close();
                Ok(())
            },
            |stop| {
                let password = Password::new(b"test").context("it is short")?;
                let user = Text::new("trader").context("it is short")?;
                let mut client = Client::start(ClientConfig::new(&socket, user, password));
                let (account, symbol) = ready(&mut client, stop).map_err(|error| {
                    let said: Vec<String> = notes.try_iter().collect();
                    error.context(format!("the gateway is not ready: {}", said.join("; ")))
                })?;
                trade(context, &mut client, account, symbol, stop)
            },
        )?;
        ensure!(to_wire.len() == found.trips.len(), "{} orders were written to the venue", to_wire.len());
        found.to_wire = to_wire;
        Ok(found)
    })
}

/// Waits until the account can be traded with; its number and the instrument's.
fn ready(client: &mut Client, stop: &StopSignal) -> anyhow::Result<(u16, u32)> {
    let (mut account, mut symbol) = (None, None);
    wait_for(stop, || {
        while let Some(event) = client.poll() {
            if let Some(ready) = event.body::<Ready>()
                && ready.scope == ReadyScope::ACCOUNT
            {
                account = Some(event.header.account);
            }
            if let Some(reference) = event.body::<ReferenceData>()
                && reference.name.as_str() == INSTRUMENT
            {
                symbol = Some(event.header.symbol);
            }
        }
        if client.failure().is_some_and(|failure| !failure.is_temporary()) {
            bail!("the gateway lets nobody in: {:?}", client.failure());
        }
        Ok(account.zip(symbol))
    })
}

fn trade(
    context: &Context,
    client: &mut Client,
    account: u16,
    symbol: u32,
    stop: &StopSignal,
) -> anyhow::Result<Found> {
    let count = context.effort.count(ORDERS);
    let mut found = Found { trips: Vec::with_capacity(count), to_wire: Vec::new(), refused: 0 };
    let order = CreateOrder {
        price: "50000.5".parse().ok().context("it is a price")?,
        quantity: "10".parse().ok().context("it is a quantity")?,
        side: Side::BUY,
        order_type: OrderType::LIMIT,
        time_in_force: TimeInForce::GTC,
        ..CreateOrder::default()
    };
    for number in 1..=count as u64 {
        let id = client.next_order_id();
        let start = context.clock.ticks();
        client.request(account, symbol, id, &order)?;
        let received = wait_for(stop, || Ok(client.poll().and_then(|event| ack_of(&event, id))))?;
        let ticks = context.clock.ticks() - start;
        if received.status != AckStatus::RECEIVED {
            found.refused += 1;
            bail!("order {number} was not received: {received:?}");
        }
        found.trips.push(ticks);
        // The venue, which has no core of its own, needs this one for its answer.
        let accepted = wait_for(stop, || {
            let ack = client.poll().and_then(|event| ack_of(&event, id));
            if ack.is_none() {
                thread::yield_now();
            }
            Ok(ack)
        })?;
        ensure!(accepted.status == AckStatus::ACCEPTED, "order {number} was not accepted: {accepted:?}");
        context.spin(PAUSE);
    }
    Ok(found)
}

fn ack_of(event: &Event, client_order_id: u64) -> Option<OrderAck> {
    if event.header.kind != EventKind::ORDER_ACK {
        return None;
    }
    event.body::<OrderAck>().filter(|ack| ack.client_order_id == client_order_id)
}

pub(super) fn open_heartbeat(context: Context) -> anyhow::Result<Round> {
    Ok(Box::new(move || Ok(vec![heartbeat(&context)?])))
}

/// One way each between a door and a client, both of which look all the time.
fn heartbeat(context: &Context) -> anyhow::Result<Sample> {
    let place = tempfile::tempdir()?;
    let socket = place.path().join("door.sock");
    let folder = Folder::create(&place.path().join("shm"))?;
    let mut config = DoorConfig::new(&socket, folder, SegmentName::new("lab")?);
    config.heartbeat = PING_INTERVAL;
    let mut door = Door::open(config)?;
    let pings = context.effort.count(PINGS).max(20);
    let mut times = [Vec::with_capacity(pings), Vec::with_capacity(pings)];
    let is_done = AtomicBool::new(false);
    context.beside(
        |stop| {
            while !stop.is_stopped() && times[0].len() < pings {
                match door.poll(monotonic()) {
                    Some(DoorEvent::Login(login)) => {
                        door.admit(login.id, capability::TRADING).context("there is room")?;
                    }
                    Some(DoorEvent::Heartbeat(_, heartbeat)) => {
                        times[0].push(heartbeat.to_client_ns);
                        times[1].push(heartbeat.to_gateway_ns);
                    }
                    _ => {}
                }
            }
            is_done.store(true, Ordering::Release);
            wait_for(stop, || Ok(None))
        },
        |stop| {
            let password = Password::new(b"test").context("it is short")?;
            let user = Text::new("lab").context("it is short")?;
            let mut client = Client::start(ClientConfig::new(&socket, user, password));
            wait_for(stop, || {
                client.poll();
                Ok(is_done.load(Ordering::Acquire).then_some(()))
            })
        },
    )?;
    ensure!(times[0].len() == pings, "{} of {pings} pings were answered", times[0].len());
    let [there, back] =
        times.map(|mut times| crate::statistics::quantile(&mut times[pings / 10..], 0.5) as f64);
    let note = format!("to the client {there:.0} ns, to the gateway {back:.0} ns");
    Ok(Sample { note: Some(note), ..Sample::new("gateway_heartbeat", there.max(back)) })
}

/// Clients of a door, of whom the last may be stuck.
const CLIENTS: usize = 16;
/// Events that wait for a client; one that reads nothing has had them half-way through a full round, and is cut off.
const EVENTS_MAX: u64 = 1_024;
/// Round trips of a full measurement, those that warm up included.
const TRIPS: usize = 2_000;

/// What is measured in a round: the same twice, and with the last client stuck. Each has each place in turn.
const STUCK: [bool; 3] = [false, true, false];

pub(super) fn open_stuck(context: Context) -> anyhow::Result<Round> {
    let mut round = 0;
    Ok(Box::new(move || {
        let mut trips = [(0.0, 0); STUCK.len()];
        for step in 0..STUCK.len() {
            let place = (round + step) % STUCK.len();
            trips[place] = echo(&context, STUCK[place])?;
        }
        round += 1;
        let [(all, _), (stuck, cut_off), (again, _)] = trips;
        let note = format!("{cut_off} cut off within {} round trips", context.effort.count(TRIPS));
        Ok(vec![
            Sample::new("gateway_sixteen_clients", all),
            Sample {
                note: Some(note),
                again: Some(again / all),
                ..Sample::new("gateway_stuck_client", stuck)
            },
        ])
    }))
}

/// Round trips of fifteen clients in turn, while the sixteenth gets an event with each: their median in nanoseconds, and
/// clients that were cut off.
fn echo(context: &Context, is_stuck: bool) -> anyhow::Result<(f64, u64)> {
    let place = tempfile::tempdir()?;
    let socket = place.path().join("door.sock");
    let folder = Folder::create(&place.path().join("shm"))?;
    let mut config = DoorConfig::new(&socket, folder, SegmentName::new("lab")?);
    config.events_max = EVENTS_MAX;
    let mut door = Door::open(config)?;
    let trips = context.effort.count(TRIPS).max(20);
    let mut samples = Vec::with_capacity(trips);
    context.beside(
        |stop| {
            let mut last = None;
            while !stop.is_stopped() {
                match door.poll(monotonic()) {
                    Some(DoorEvent::Login(login)) => {
                        last = Some(door.admit(login.id, capability::TRADING).context("there is room")?);
                    }
                    Some(DoorEvent::Request(client, request)) => {
                        let mut event = Event::of(&OrderAck {
                            client_order_id: request.header.client_order_id,
                            ..OrderAck::default()
                        });
                        door.send(client, &mut event);
                        if let Some(last) = last {
                            door.send(last, &mut event);
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        },
        |stop| {
            let mut clients = Vec::with_capacity(CLIENTS);
            for _ in 0..CLIENTS {
                let password = Password::new(b"test").context("it is short")?;
                let mut config =
                    ClientConfig::new(&socket, Text::new("lab").context("it is short")?, password);
                config.is_persistent = false;
                clients.push(Client::connect(config)?);
            }
            let mut last = clients.pop().context("there are some")?;
            for number in 1..=trips as u64 {
                let client = &mut clients[number as usize % (CLIENTS - 1)];
                let start = context.clock.ticks();
                client.request(1, 1, number, &CreateOrder::default())?;
                wait_for(stop, || Ok(client.poll().and_then(|event| ack_of(&event, number))))?;
                samples.push(context.clock.ticks() - start);
                while !is_stuck && last.poll().is_some() {}
                context.spin(PAUSE);
            }
            Ok(())
        },
    )?;
    ensure!(door.counters().too_slow <= u64::from(is_stuck), "a client that reads was cut off");
    let p50 = context.quantile_ns(&mut samples[trips / 10..], 0.5);
    Ok((p50, door.counters().too_slow))
}
