//! Time of an order from a gateway's client to the acknowledgement, and to the write to the TLS socket.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustls::ClientConnection;
use tickpath_agent::{Agent, StopSignal};
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::metrics::{Function, GatewayMetrics, Histogram};
use tickpath_gateway::process::{Gateway, GatewayAgent, REHEARSE_INTERVAL};
use tickpath_gateway_io::Client;
use tickpath_gateway_protocol::{
    AckStatus, CreateOrder, Event, OrderAck, OrderType, Ready, ReadyScope, ReferenceData, Request,
    RequestKind, Side, TimeInForce,
};
use tickpath_lockfree::SharedLines;
use tickpath_lockfree::shared_spsc::{Consumer, Producer, lines_of};

use super::prelude::*;
use crate::support::bare_tls::{BareTls, bare_tls};
use crate::support::deribit_venue::{CLIENT_ID, Certificates, LastOrder, SECRET, VenueEnd};
use crate::support::gateway_clients::{self, PASSWORD, ack_of};
use crate::support::paced::{self, PAUSE};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("gateway_ring_rtt", "ns").note(
            "a gateway's request and event over bare rings of shared memory to the other core and back, between \
             two orders of gateway_rtt, by the same threads and after an equal pause; p50",
        ),
        row("gateway_rtt", "ns")
            .note(
                "an order through a whole gateway to its RECEIVED acknowledgement: permissions, request \
                 limit, steps, caps, the connection's capacity and credits checked, kept in the order table, \
                 encoded and queued to the venue's connection; each is accepted by the venue's end before the \
                 next; p50",
            )
            .limit("gateway_ring_rtt")
            .goal(Goal::RatioAtMost(4.0))
            .reference("12 us published"),
        row("gateway_tls_write", "ns").note(
            "a bare TLS write of the frame of the last order of gateway_rtt, on the gateway's thread between two \
             orders: after an equal pause, with the gateway polling and warming up before it, and answered as \
             long after; p50",
        ),
        row("gateway_to_wire", "ns")
            .note(
                "of the orders of gateway_rtt, from the client's sending to the bytes written to the venue's \
                 socket over TLS, by the gateway's own stamps, p50",
            )
            .limit("gateway_tls_write")
            .goal(Goal::RatioAtMost(1.25))
            .reference("9 us published, tick to trade"),
    ],
    open,
)];

/// Number of orders in a full round, including the warm-up.
const ORDERS: usize = 2_000;
/// Sleep of the venue's thread when idle; the thread shares a core with the client.
const REST: Duration = Duration::from_micros(100);
/// Slots of each ring that is measured without a gateway.
const CAPACITY: usize = 1_024;
const SYMBOL: &str = "BTC-PERPETUAL";

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    each_round(lab, move |context| {
        let OrderTimes { mut bare_trips, mut trips, mut bare_writes, mut to_wire, mut handling, mut writes } =
            orders(context, &certificates)?;
        let [handling, write] = [&mut handling, &mut writes].map(|times| quantile(times, 0.5));
        let note = format!("handling {handling} ns, write {write} ns");
        Ok([
            context.quantile_ns(&mut bare_trips, 0.5).into(),
            context.quantile_ns(&mut trips, 0.5).into(),
            context.quantile_ns(&mut bare_writes, 0.5).into(),
            Sample::with_note(quantile(&mut to_wire, 0.5) as f64, note),
        ])
    })
}

/// The client's ends of two bare rings, one per direction, with the record types of a gateway.
struct BareClient {
    requests: Producer<Request>,
    events: Consumer<Event>,
}

/// The other ends of the rings, on the gateway's thread.
struct BareGateway {
    requests: Consumer<Request>,
    events: Producer<Event>,
    answered: u64,
}

fn bare_rings() -> anyhow::Result<(BareClient, BareGateway)> {
    let there = SharedLines::zeroed(lines_of::<Request>(CAPACITY));
    let back = SharedLines::zeroed(lines_of::<Event>(CAPACITY));
    let client =
        BareClient { requests: Producer::over(there.clone())?, events: Consumer::over(back.clone())? };
    let gateway =
        BareGateway { requests: Consumer::over(there)?, events: Producer::over(back)?, answered: 0 };
    Ok((client, gateway))
}

impl BareClient {
    /// Returns the ticks of one round trip.
    fn trip(&mut self, context: &Context, number: u64, stop: &StopSignal) -> anyhow::Result<u64> {
        let mut request = Request::of(&CreateOrder::default());
        request.header.request_id = number;
        context.timed(|| {
            self.requests.try_push(request).ok().context("the ring there is full")?;
            let event = wait_for(stop, || Ok(self.events.try_pop()))?;
            ensure!(event.header.sequence == number, "request {number} was answered wrongly");
            Ok(())
        })
    }
}

impl BareGateway {
    /// Announces that the thread polls the bare ring, and answers the next request.
    fn answer(&mut self, stop: &StopSignal, ready: &AtomicU64) -> anyhow::Result<()> {
        self.answered += 1;
        ready.store(self.answered, Ordering::Release);
        let request = wait_for(stop, || Ok(self.requests.try_pop()))?;
        let mut event = Event::of(&OrderAck::default());
        event.header.sequence = request.header.request_id;
        self.events.try_push(event).ok().context("the ring back is full")?;
        Ok(())
    }
}

/// Calls `trip` for each order of a round; returns its results after the first tenth, which is the warm-up.
fn trips(context: &Context, trip: impl FnMut(u64) -> anyhow::Result<u64>) -> anyhow::Result<Vec<u64>> {
    let orders = context.effort.count(ORDERS);
    paced::trips(context, orders / 10, orders - orders / 10, trip)
}

fn configuration(folder: &Path, url: &str, ca: &Path) -> anyhow::Result<GatewayConfig> {
    let text = format!(
        "name = 'lab'\nclient_listen_address = '{}'\nadmin_listen_address = '{}'\n\
         [venue]\nws_uri = '{url}'\nca_file = '{}'\nmatching_rate = 100000\nmatching_burst = 100000\n\
         [venue.feeds]\nticker = false\nbook = false\ntrades = false\ninstrument_state = false\n\
         [accounts.A1]\nmaster = true\nlogin = '{CLIENT_ID}'\nsecret = '{SECRET}'\n\
         [limits]\norder_size_max = '1000'\nnotional_max = '1000000'\nopen_orders_max = 100000\n\
         [users.trader]\npassword = '{PASSWORD}'\naccounts = ['A1']\nrequest_limit = 65536\n",
        folder.join("gateway.sock").display(),
        folder.join("admin.sock").display(),
        ca.display()
    );
    Ok(GatewayConfig::parse("gateway.toml", &text)?)
}

/// Times of each order after the warm-up.
struct OrderTimes {
    /// Of a round trip over bare rings after the order, in clock ticks.
    bare_trips: Vec<u64>,
    /// From the client's sending to the acknowledgement, in clock ticks.
    trips: Vec<u64>,
    /// Of the bare TLS write after the order, in clock ticks.
    bare_writes: Vec<u64>,
    /// From the client's sending to the write to the venue's socket, in nanoseconds.
    to_wire: Vec<u64>,
    /// Of that, from the removal from the client's ring until the order is queued, in nanoseconds.
    handling: Vec<u64>,
    /// Of that, the encryption and the system call, in nanoseconds.
    writes: Vec<u64>,
}

/// Sends orders through a gateway. After each the gateway's thread makes a bare TLS write, and answers a request
/// over bare rings.
fn orders(context: &Context, certificates: &Certificates) -> anyhow::Result<OrderTimes> {
    let folder = tempfile::tempdir()?;
    let mut venue = VenueEnd::open(certificates)?;
    let config = configuration(folder.path(), &venue.url(), &certificates.ca)?;
    let (tls, mut server) = bare_tls(certificates)?;
    let (order, mut echo) = (venue.last_order(), Vec::new());
    let answer = move || {
        let count = server.read()? as usize;
        echo.resize(count, b'x');
        if count > 0 {
            server.write(&echo)?;
        }
        Ok(count)
    };
    venue.serve_with(REST, answer, || {
        let gateway = Gateway::build(&config, None, Some(&folder.path().join("shm")), context.clock)?;
        let (agent, socket, notes) = (gateway.agent, gateway.endpoints.socket, gateway.notes);
        let turns = Turns::default();
        let count = context.effort.count(ORDERS);
        let (mut bare_client, bare_gateway) = bare_rings()?;
        let mut thread = GatewayThread {
            context,
            agent,
            to_wire: WireTimes::new(&gateway.metrics, count),
            bare: BareWrites::new(tls, order, count),
            rings: bare_gateway,
            warmed_up_at: context.clock.now(),
        };
        let (trips, bare_trips) = context.run_on_two_cores(
            |stop| thread.run(stop, &turns),
            |stop| {
                let mut client = Client::start(gateway_clients::client(&socket, "trader")?);
                let (account, symbol) = ready(&mut client, stop).map_err(|error| {
                    let messages: Vec<String> = notes.try_iter().collect();
                    error.context(format!("the gateway is not ready: {}", messages.join("; ")))
                })?;
                let bare = &mut bare_client;
                trade(context, &mut client, bare, Instrument { account, symbol }, &turns, stop)
            },
        )?;
        let GatewayThread { to_wire: WireTimes { total, handling, write, .. }, bare, .. } = thread;
        let mut times = [total.times, handling.times, write.times, bare.ticks, bare_trips];
        for times in &mut times {
            ensure!(
                times.len() == count,
                "{} of {count} orders, bare writes or bare trips were timed",
                times.len()
            );
            times.drain(..count / 10);
        }
        let [to_wire, handling, writes, bare_writes, bare_trips] = times;
        Ok(OrderTimes { bare_trips, trips, bare_writes, to_wire, handling, writes })
    })
}

/// Turns of the gateway's thread: orders, bare writes and bare rings alternate.
#[derive(Default)]
struct Turns {
    /// Number of bare writes requested by the client.
    wanted: AtomicU64,
    /// Number of bare writes answered.
    done: AtomicU64,
    /// Number of answers over bare rings requested by the client.
    rings_wanted: AtomicU64,
    /// Number of these for which the gateway's thread polls, or has polled, the ring.
    rings_ready: AtomicU64,
}

/// Times of single orders, as differences of a metric's sum.
struct SumTimes {
    previous: u64,
    times: Vec<u64>,
}

impl SumTimes {
    fn new(count: usize) -> SumTimes {
        SumTimes { previous: 0, times: Vec::with_capacity(count) }
    }

    /// Takes the increase of the sum; it is a time of an order if `is_order`.
    fn take(&mut self, sum: u64, is_order: bool) {
        let time = sum - std::mem::replace(&mut self.previous, sum);
        if is_order {
            self.times.push(time);
        }
    }
}

/// Reads the times of the gateway's orders from its metrics.
struct WireTimes<'a> {
    metrics: &'a GatewayMetrics,
    latency: &'a Histogram,
    total: SumTimes,
    handling: SumTimes,
    write: SumTimes,
}

impl<'a> WireTimes<'a> {
    fn new(metrics: &'a GatewayMetrics, orders: usize) -> WireTimes<'a> {
        let [total, handling, write] = std::array::from_fn(|_| SumTimes::new(orders));
        let latency = metrics.request_latency(RequestKind::CREATE_ORDER);
        WireTimes { metrics, latency, total, handling, write }
    }

    /// Must be called after each duty cycle with work, because a time is the difference of two sums.
    fn take(&mut self) {
        let metrics = self.metrics;
        let is_order = self.latency.count() as usize > self.total.times.len();
        self.total.take(metrics.inter_process.sum() + self.latency.sum(), is_order);
        self.handling.take(metrics.profile(Function::Request).sum(), is_order);
        self.write.take(metrics.profile(Function::Write).sum(), is_order);
    }
}

/// Bare TLS writes of the orders' frames, each answered before the next.
struct BareWrites {
    tls: BareTls<ClientConnection>,
    order: LastOrder,
    frame: Vec<u8>,
    /// Number of bytes of the current answer that have not arrived.
    awaited: usize,
    ticks: Vec<u64>,
}

impl BareWrites {
    fn new(tls: BareTls<ClientConnection>, order: LastOrder, count: usize) -> BareWrites {
        BareWrites { tls, order, frame: Vec::new(), awaited: 0, ticks: Vec::with_capacity(count) }
    }

    fn write(&mut self, context: &Context) -> anyhow::Result<()> {
        self.order.write_frame(&mut self.frame);
        let BareWrites { tls, frame, .. } = self;
        self.ticks.push(context.timed(|| tls.write(frame))?);
        self.awaited = self.frame.len();
        Ok(())
    }

    /// Reads a part of the answer; returns whether that completes it.
    fn read(&mut self) -> anyhow::Result<bool> {
        if self.awaited == 0 {
            return Ok(false);
        }
        let count = self.tls.read()? as usize;
        self.awaited = self.awaited.checked_sub(count).context("the answer is too long")?;
        Ok(self.awaited == 0)
    }
}

/// The gateway's thread, which also makes the bare writes and answers over the bare rings.
struct GatewayThread<'a> {
    context: &'a Context,
    agent: GatewayAgent,
    to_wire: WireTimes<'a>,
    bare: BareWrites,
    rings: BareGateway,
    warmed_up_at: Nanos,
}

impl GatewayThread<'_> {
    fn run(&mut self, stop: &StopSignal, turns: &Turns) -> anyhow::Result<()> {
        self.agent.on_start()?;
        while !stop.is_stopped() {
            let now = self.context.clock.now();
            if self.agent.do_work(now)? > 0 {
                self.to_wire.take();
            } else if turns.wanted.load(Ordering::Acquire) > self.bare.ticks.len() as u64 {
                self.bare.write(self.context)?;
            } else if self.bare.read()? {
                turns.done.store(self.bare.ticks.len() as u64, Ordering::Release);
            } else if turns.rings_wanted.load(Ordering::Acquire) > self.rings.answered {
                self.rings.answer(stop, &turns.rings_ready)?;
            } else if now.since(self.warmed_up_at) >= REHEARSE_INTERVAL {
                // Warm up when idle, as the thread of a real gateway does.
                self.warmed_up_at = now;
                self.agent.warm_up(now);
            }
        }
        self.agent.on_close();
        Ok(())
    }
}

/// Waits until the account can trade; returns its number and the instrument's.
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
                && reference.name.as_str() == SYMBOL
            {
                symbol = Some(event.header.symbol);
            }
        }
        if client.failure().is_some_and(|failure| !failure.is_temporary()) {
            bail!("the gateway admits no client: {:?}", client.failure());
        }
        Ok(account.zip(symbol))
    })
}

/// The account and the instrument of the orders.
struct Instrument {
    account: u16,
    symbol: u32,
}

/// Sends the orders of a round. Returns the ticks of the orders after the warm-up, and of all bare trips.
fn trade(
    context: &Context,
    client: &mut Client,
    bare: &mut BareClient,
    Instrument { account, symbol }: Instrument,
    turns: &Turns,
    stop: &StopSignal,
) -> anyhow::Result<(Vec<u64>, Vec<u64>)> {
    let order = CreateOrder {
        price: "50000.5".parse().ok().context("it is a price")?,
        quantity: "10".parse().ok().context("it is a quantity")?,
        side: Side::BUY,
        order_type: OrderType::LIMIT,
        time_in_force: TimeInForce::GTC,
        ..CreateOrder::default()
    };
    let mut bare_trips = Vec::with_capacity(context.effort.count(ORDERS));
    let orders = trips(context, |number| {
        let id = client.next_order_id();
        let ticks = context.timed(|| {
            client.request(account, symbol, id, &order)?;
            let received = wait_for(stop, || Ok(client.poll().and_then(|event| ack_of(&event, id))))?;
            ensure!(received.status == AckStatus::RECEIVED, "order {number} was not received: {received:?}");
            Ok(())
        })?;
        // Yield, because the venue shares this core and needs it for its answer.
        let accepted = wait_for(stop, || {
            let ack = client.poll().and_then(|event| ack_of(&event, id));
            if ack.is_none() {
                thread::yield_now();
            }
            Ok(ack)
        })?;
        ensure!(accepted.status == AckStatus::ACCEPTED, "order {number} was not accepted: {accepted:?}");
        context.spin(PAUSE);
        turns.wanted.store(number, Ordering::Release);
        wait_for(stop, || {
            let is_done = turns.done.load(Ordering::Acquire) == number;
            if !is_done {
                thread::yield_now();
            }
            Ok(is_done.then_some(()))
        })?;
        turns.rings_wanted.store(number, Ordering::Release);
        wait_for(stop, || Ok((turns.rings_ready.load(Ordering::Acquire) == number).then_some(())))?;
        context.spin(PAUSE);
        bare_trips.push(bare.trip(context, number, stop)?);
        Ok(ticks)
    })?;
    Ok((orders, bare_trips))
}
