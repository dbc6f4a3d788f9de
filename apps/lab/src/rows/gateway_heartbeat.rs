//! One-way time of a ping between a gateway's endpoint and a client.

use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_gateway_io::{Client, ClientPortEvent, monotonic};
use tickpath_gateway_protocol::frame::capability;

use super::between_cores::cache_line;
use super::prelude::*;
use crate::support::gateway_clients::PortFolder;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[row("gateway_heartbeat", "ns")
        .note(
            "a ping in one direction between a gateway's client port and a client, both polling without pause; \
             the slower direction, p50; the goal is three one-way transfers of a cache line. It is measured in \
             parts, each between two measurements of the limit; the part with the median ratio counts",
        )
        .limit("cacheline_rtt")
        .goal(Goal::RatioAtMost(1.5))],
    |lab| each_round(lab, |context| Ok([median_part(context)?])),
)];

/// Number of parts of a round. A host that moves virtual CPUs between its cores changes the distance of the two
/// cores within seconds, so that a limit measured at another time is the limit of another distance.
const PARTS: usize = 5;
/// Number of pings in a part of a full round, and the time between two of them.
const PINGS: usize = 400;
const PING_INTERVAL: Nanos = Nanos::from_micros(100);

/// Returns the part with the median ratio to the limit.
fn median_part(context: &Context) -> anyhow::Result<Sample> {
    let mut line = cache_line(context)?;
    let mut parts = Vec::with_capacity(PARTS);
    for _ in 0..PARTS {
        let sample = heartbeat(context)?;
        let next_line = cache_line(context)?;
        let limit = std::mem::replace(&mut line, next_line).midpoint(next_line);
        parts.push((sample.value / limit, Sample { limit: Some(limit), ..sample }));
    }
    parts.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    Ok(parts.swap_remove(PARTS / 2).1)
}

/// Measures the one-way time in each direction between a gateway's endpoint and a client; both busy-poll.
fn heartbeat(context: &Context) -> anyhow::Result<Sample> {
    let port_folder = PortFolder::make()?;
    let mut port = port_folder.open(|config| config.heartbeat = PING_INTERVAL)?;
    let pings = context.effort.count(PINGS).max(20);
    let mut times = [Vec::with_capacity(pings), Vec::with_capacity(pings)];
    let is_done = AtomicBool::new(false);
    context.run_on_two_cores(
        |stop| {
            while !stop.is_stopped() && times[0].len() < pings {
                match port.poll(monotonic()) {
                    Some(ClientPortEvent::Login(login)) => {
                        port.admit(login.id, capability::TRADING).context("there is room")?;
                    }
                    Some(ClientPortEvent::Heartbeat(_, heartbeat)) => {
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
            let mut client = Client::start(port_folder.client()?);
            wait_for(stop, || {
                client.poll();
                Ok(is_done.load(Ordering::Acquire).then_some(()))
            })
        },
    )?;
    ensure!(times[0].len() == pings, "{} of {pings} pings were answered", times[0].len());
    let [there, back] = times.map(|mut times| quantile(&mut times[pings / 10..], 0.5) as f64);
    let note = format!("to the client {there:.0} ns, to the gateway {back:.0} ns");
    Ok(Sample::with_note(there.max(back), note))
}
