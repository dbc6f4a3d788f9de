//! A gateway's instructions for market data that one client reads, and sixteen.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tickpath_gateway_io::{Client, ClientConfig, ClientId, Door, DoorConfig, DoorEvent, monotonic};
use tickpath_gateway_protocol::frame::{Password, capability};
use tickpath_gateway_protocol::{Event, EventKind, Text, TopOfBook};
use tickpath_shm::{Folder, SegmentName};

/// Events that are counted.
pub(crate) const EVENTS: u64 = 20_000;
/// Events after which every client reads.
const BATCH: u64 = 500;
/// The instrument.
const SYMBOL: u32 = 1;
/// Everything is slow under callgrind.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is counted, by this name and no other.
#[inline(never)]
fn counted_broadcast(door: &mut Door, event: &mut Event) {
    door.broadcast(event);
}

/// The work that is counted; returns what it led to.
pub(crate) fn run(clients: &str) -> anyhow::Result<String> {
    let count: usize = clients.parse().context("how many clients there are")?;
    let place = tempfile::tempdir()?;
    let socket = place.path().join("door.sock");
    let folder = Folder::create(&place.path().join("shm"))?;
    let mut door = Door::open(DoorConfig::new(&socket, folder, SegmentName::new("lab")?))?;
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let password = Password::new(b"test").context("it is short")?;
        let mut config = ClientConfig::new(&socket, Text::new("lab").context("it is short")?, password);
        config.timeout = PATIENCE;
        let connecting = thread::spawn(move || Client::connect(config));
        let id = let_in(&mut door)?;
        let client = connecting.join().ok().context("the client panicked")??;
        ensure!(door.send_instrument_ready(id, SYMBOL), "the client is in");
        clients.push((client, 0_u64));
    }
    for number in 1..=EVENTS {
        let mut event = Event::of(&TopOfBook { change_id: number, ..TopOfBook::default() });
        event.header.symbol = SYMBOL;
        counted_broadcast(&mut door, &mut event);
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
    Ok(words(count))
}

fn let_in(door: &mut Door) -> anyhow::Result<ClientId> {
    let start = Instant::now();
    loop {
        if let Some(DoorEvent::Login(login)) = door.poll(monotonic()) {
            return door.admit(login.id, capability::TRADING).context("there is room");
        }
        ensure!(start.elapsed() < PATIENCE, "nobody calls");
        thread::yield_now();
    }
}

/// What a run leads to.
pub(crate) fn words(clients: usize) -> String {
    format!("{EVENTS} events to {clients} clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_comes_to_what_is_expected_of_it() {
        for clients in [1, 16] {
            assert_eq!(run(&clients.to_string()).unwrap(), words(clients));
        }
        assert!(run("many").is_err());
    }
}
