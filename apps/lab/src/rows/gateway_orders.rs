//! Time of an order from a gateway's client to the acknowledgement, and to the write to the TLS socket.

use std::path::Path;
use std::thread;
use std::time::Duration;

use tickpath_agent::{Agent, StopSignal};
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::process::{Gateway, REHEARSE_INTERVAL};
use tickpath_gateway_io::Client;
use tickpath_gateway_protocol::{
    AckStatus, CreateOrder, Event, OrderAck, OrderType, Ready, ReadyScope, ReferenceData, Request,
    RequestKind, Side, TimeInForce,
};
use tickpath_lockfree::SharedLines;
use tickpath_lockfree::shared_spsc::{Consumer, Producer, lines_of};

use super::prelude::*;
use crate::support::deribit_venue::{CLIENT_ID, Certificates, SECRET, VenueEnd};
use crate::support::gateway_clients::{self, PASSWORD, ack_of};
use crate::support::paced;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("gateway_ring_rtt", "ns").note(
            "a gateway's request and event over bare rings of shared memory to the other core and back, p50; \
             20 us between trips",
        ),
        row("gateway_rtt", "ns")
            .note(
                "an order through a whole gateway to its RECEIVED acknowledgement: permissions, request \
                 limit, steps, caps, the connection's capacity and credits checked, kept in the order table; \
                 it is encoded and queued to the venue's connection after that; each is accepted by the \
                 venue's end before the next; p50",
            )
            .limit("gateway_ring_rtt")
            .goal(Goal::RatioAtMost(4.0))
            .reference("12 us published")
            .not_judged("RECEIVED leaves before the order is encoded and queued to the venue's connection"),
        row("gateway_to_wire", "ns")
            .note(
                "of the same orders, from the client's sending to the bytes written to the venue's socket \
                 over TLS, by the gateway's own stamps, p50; the limit is a bare write on another thread, \
                 at another cadence",
            )
            .limit("tls_write")
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
const INSTRUMENT: &str = "BTC-PERPETUAL";

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let certificates = Certificates::make()?;
    each_round(lab, move |context| {
        let bare = bare_rings(context)?;
        let (mut trips, mut to_wire) = orders(context, &certificates)?;
        Ok([bare, context.quantile_ns(&mut trips, 0.5), quantile(&mut to_wire, 0.5) as f64])
    })
}

/// Measures round trips over two bare rings, one per direction, with the record types of a gateway.
fn bare_rings(context: &Context) -> anyhow::Result<f64> {
    let there = SharedLines::zeroed(lines_of::<Request>(CAPACITY));
    let back = SharedLines::zeroed(lines_of::<Event>(CAPACITY));
    let (mut to_gateway, mut of_client) =
        (Producer::<Request>::over(there.clone())?, Consumer::<Request>::over(there)?);
    let (mut to_client, mut of_gateway) =
        (Producer::<Event>::over(back.clone())?, Consumer::<Event>::over(back)?);
    let mut ticks = context.run_on_two_cores(
        move |stop| {
            loop {
                let request = wait_for(stop, || Ok(of_client.try_pop()))?;
                let mut event = Event::of(&OrderAck::default());
                event.header.sequence = request.header.request_id;
                to_client.try_push(event).ok().context("the ring back is full")?;
            }
        },
        |stop| {
            trips(context, |number| {
                let mut request = Request::of(&CreateOrder::default());
                request.header.request_id = number;
                context.timed(|| {
                    to_gateway.try_push(request).ok().context("the ring there is full")?;
                    let event = wait_for(stop, || Ok(of_gateway.try_pop()))?;
                    ensure!(event.header.sequence == number, "request {number} was answered wrongly");
                    Ok(())
                })
            })
        },
    )?;
    Ok(context.quantile_ns(&mut ticks, 0.5))
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

/// Returns two times of each order after the warm-up, both from the client's sending: the time to its
/// acknowledgement (in clock ticks) and to the write to the venue's socket (in nanoseconds).
fn orders(context: &Context, certificates: &Certificates) -> anyhow::Result<(Vec<u64>, Vec<u64>)> {
    let folder = tempfile::tempdir()?;
    let mut venue = VenueEnd::open(certificates)?;
    let config = configuration(folder.path(), &venue.url(), &certificates.ca)?;
    venue.serve_during(REST, || {
        let gateway = Gateway::build(&config, None, Some(&folder.path().join("shm")), context.clock)?;
        let (mut agent, metrics, socket) = (gateway.agent, gateway.metrics, gateway.endpoints.socket);
        let notes = gateway.notes;
        let latency = metrics.request_latency(RequestKind::CREATE_ORDER);
        let mut to_wire = Vec::with_capacity(context.effort.count(ORDERS));
        let written = &mut to_wire;
        let trips = context.run_on_two_cores(
            |stop| {
                agent.on_start()?;
                let (mut previous_sum, mut warmed_up_at) = (0, context.clock.now());
                while !stop.is_stopped() {
                    let now = context.clock.now();
                    if agent.do_work(now)? > 0 {
                        // Read the sums on this thread after each order, so that no order is missed.
                        if latency.count() as usize > written.len() {
                            let sum = metrics.inter_process.sum() + latency.sum();
                            written.push(sum - std::mem::replace(&mut previous_sum, sum));
                        }
                    } else if now.since(warmed_up_at) >= REHEARSE_INTERVAL {
                        // Warm up when idle, as the thread of a real gateway does.
                        warmed_up_at = now;
                        agent.warm_up(now);
                    }
                }
                agent.on_close();
                Ok(())
            },
            |stop| {
                let mut client = Client::start(gateway_clients::client(&socket, "trader")?);
                let (account, symbol) = ready(&mut client, stop).map_err(|error| {
                    let messages: Vec<String> = notes.try_iter().collect();
                    error.context(format!("the gateway is not ready: {}", messages.join("; ")))
                })?;
                trade(context, &mut client, account, symbol, stop)
            },
        )?;
        let orders = context.effort.count(ORDERS);
        ensure!(to_wire.len() == orders, "{} orders were written to the venue", to_wire.len());
        Ok((trips, to_wire.split_off(orders / 10)))
    })
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
                && reference.name.as_str() == INSTRUMENT
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

fn trade(
    context: &Context,
    client: &mut Client,
    account: u16,
    symbol: u32,
    stop: &StopSignal,
) -> anyhow::Result<Vec<u64>> {
    let order = CreateOrder {
        price: "50000.5".parse().ok().context("it is a price")?,
        quantity: "10".parse().ok().context("it is a quantity")?,
        side: Side::BUY,
        order_type: OrderType::LIMIT,
        time_in_force: TimeInForce::GTC,
        ..CreateOrder::default()
    };
    trips(context, |number| {
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
        Ok(ticks)
    })
}
