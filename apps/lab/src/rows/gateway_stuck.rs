//! Round trips of a gateway's clients while another client reads none of its events.

use tickpath_gateway_io::{Client, ClientConfig, ClientPortEvent, monotonic};
use tickpath_gateway_protocol::frame::capability;
use tickpath_gateway_protocol::{CreateOrder, Event, OrderAck};

use super::prelude::*;
use crate::support::gateway_clients::{PortFolder, ack_of};
use crate::support::paced;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("gateway_sixteen_clients", "ns").note(
            "a request of one of fifteen clients in turn to a gateway's client port and its answer, while the \
             sixteenth gets an event with each and reads it, p50; 20 us between trips",
        ),
        row("gateway_stuck_client", "ns")
            .note("the same while the sixteenth reads nothing; it is cut off once its ring is full")
            .limit("gateway_sixteen_clients")
            .goal(Goal::RatioWithinControl),
    ],
    open,
)];

/// Number of clients of the gateway's endpoint; the last one may be stuck.
const CLIENTS: usize = 16;
/// Maximum number of unread events of a client. A client that reads nothing reaches this number half-way
/// through a full measurement, and is disconnected.
const EVENTS_MAX: u64 = 1_024;
/// Number of round trips in a full measurement, including the warm-up.
const TRIPS: usize = 2_000;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut round = 0;
    each_round(lab, move |context| {
        // Measure twice with all clients reading, and once with the last one stuck.
        let trips = in_turn(&mut round, |place| echo(context, place == 1))?;
        let [(all, _), (stuck, cut_off), (control, _)] = trips;
        let note = format!("{cut_off} cut off within {} round trips", context.effort.count(TRIPS));
        Ok([all.into(), Sample { control: Some(control / all), ..Sample::with_note(stuck, note) }])
    })
}

/// Measures round trips of fifteen clients in turn; in each, the sixteenth client gets an event too.
/// Returns the median round trip in nanoseconds, and the number of clients disconnected as too slow.
fn echo(context: &Context, is_stuck: bool) -> anyhow::Result<(f64, u64)> {
    let port_folder = PortFolder::make()?;
    let mut port = port_folder.open(|config| config.events_max = EVENTS_MAX)?;
    let trips = context.effort.count(TRIPS).max(20);
    let mut ticks = context.run_on_two_cores(
        |stop| {
            let mut last = None;
            while !stop.is_stopped() {
                match port.poll(monotonic()) {
                    Some(ClientPortEvent::Login(login)) => {
                        last = Some(port.admit(login.id, capability::TRADING).context("there is room")?);
                    }
                    Some(ClientPortEvent::Request(client, request)) => {
                        let mut event = Event::of(&OrderAck {
                            client_order_id: request.header.client_order_id,
                            ..OrderAck::default()
                        });
                        port.send(client, &mut event);
                        if let Some(last) = last {
                            port.send(last, &mut event);
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        },
        |stop| {
            let connect =
                |_| Ok(Client::connect(ClientConfig { is_persistent: false, ..port_folder.client()? })?);
            let mut clients = (0..CLIENTS).map(connect).collect::<anyhow::Result<Vec<_>>>()?;
            let mut last = clients.pop().context("there are some")?;
            paced::trips(context, trips / 10, trips - trips / 10, |number| {
                let client = &mut clients[number as usize % (CLIENTS - 1)];
                let ticks = context.timed(|| {
                    client.request(1, 1, number, &CreateOrder::default())?;
                    wait_for(stop, || Ok(client.poll().and_then(|event| ack_of(&event, number)))).map(drop)
                })?;
                while !is_stuck && last.poll().is_some() {}
                Ok(ticks)
            })
        },
    )?;
    ensure!(port.counters().too_slow <= u64::from(is_stuck), "a client that reads was cut off");
    Ok((context.quantile_ns(&mut ticks, 0.5), port.counters().too_slow))
}
