//! Instruction count of a gateway's broadcast of market data, with one client and with sixteen.

use std::thread;
use std::time::{Duration, Instant};

use tickpath_gateway_io::{Client, ClientConfig, ClientId, ClientPort, ClientPortEvent, monotonic};
use tickpath_gateway_protocol::frame::capability;
use tickpath_gateway_protocol::{Event, EventKind, TopOfBook};

use super::prelude::*;
use crate::counted::CountedWork;
use crate::support::gateway_clients::PortFolder;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("gateway_broadcast_instructions", "instr").note(
            "instructions of a gateway's client port for an event of market data that one client reads, counted by \
             callgrind",
        ),
        row("gateway_fanout_per_client", "instr")
            .note("the same for sixteen clients, each of which gets every event")
            .limit("gateway_broadcast_instructions")
            .goal(Goal::RatioAtMost(1.001)),
    ],
    open,
)
.counting(&WORK)];

const WORK: CountedWork = CountedWork { names: &["fanout"], function: "*counted_broadcast*", run };
/// Number of clients in each of the two runs.
const CLIENTS: [usize; 2] = [1, 16];

/// Number of events whose instructions are counted.
const EVENTS: u64 = 20_000;
/// Number of events after which every client reads.
const BATCH: u64 = 500;
/// Id of the instrument.
const SYMBOL: u32 = 1;
/// Timeout of a client; long, because callgrind slows both sides.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts once, because the result is the same in each round.
fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let each = |clients: usize| -> anyhow::Result<f64> {
        let what = format!("events to {clients} clients of a gateway");
        let counted = WORK.instructions(lab, what, &clients.to_string(), result_text(clients))?;
        Ok(counted as f64 / EVENTS as f64)
    };
    let [one, many] = CLIENTS;
    Ok(once([each(one)?, each(many)?]))
}

/// The function that callgrind counts; `WORK` selects it by this unique name.
#[inline(never)]
fn counted_broadcast(port: &mut ClientPort, event: &mut Event) {
    port.broadcast(event);
}

/// Runs in the process under callgrind; returns the text that `open` expects.
fn run(arguments: &[String]) -> anyhow::Result<String> {
    let count: usize = arguments.get(1).context("how many clients there are")?.parse()?;
    let port_folder = PortFolder::make()?;
    let mut port = port_folder.open(|_| ())?;
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let config = ClientConfig { timeout: PATIENCE, ..port_folder.client()? };
        let connecting = thread::spawn(move || Client::connect(config));
        let id = admit_client(&mut port)?;
        let client = connecting.join().ok().context("the client panicked")??;
        ensure!(port.send_instrument_ready(id, SYMBOL), "the client is in");
        clients.push((client, 0_u64));
    }
    for number in 1..=EVENTS {
        let mut event = Event::of(&TopOfBook { change_id: number, ..TopOfBook::default() });
        event.header.symbol = SYMBOL;
        counted_broadcast(&mut port, &mut event);
        if number % BATCH == 0 {
            for (client, last) in &mut clients {
                while let Some(event) = client.poll() {
                    if event.header.kind == EventKind::TOP_OF_BOOK {
                        let top = event.body::<TopOfBook>().context("it is of its kind")?;
                        ensure!(top.change_id == *last + 1, "a client lost an event");
                        *last = top.change_id;
                    }
                }
                ensure!(*last == number, "a client has {last} of {number} events");
            }
        }
    }
    Ok(result_text(count))
}

fn admit_client(port: &mut ClientPort) -> anyhow::Result<ClientId> {
    let start = Instant::now();
    loop {
        if let Some(ClientPortEvent::Login(login)) = port.poll(monotonic()) {
            return port.admit(login.id, capability::TRADING).context("there is room");
        }
        ensure!(start.elapsed() < PATIENCE, "no client connects");
        thread::yield_now();
    }
}

/// Returns the text that `run` returns on success.
fn result_text(clients: usize) -> String {
    format!("{EVENTS} events to {clients} clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_work_gives_the_expected_result() {
        let run = |clients: &str| run(&["fanout", clients].map(str::to_owned));
        for clients in CLIENTS {
            assert_eq!(run(&clients.to_string()).unwrap(), result_text(clients));
        }
        assert!(run("many").is_err());
    }
}
