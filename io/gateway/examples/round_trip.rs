//! Cost of the client port: the round trip of a request and its answer, alternating with that of bare rings
//! of the same items. With `callgrind` as the argument: instructions per step, one thread, no clock reads.
//!
//! `cargo run --release -p tickpath-gateway-io --example round_trip`
#![allow(clippy::print_stdout)] // prints its results

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tickpath_gateway_io::{
    Client, ClientConfig, ClientId, ClientPort, ClientPortConfig, ClientPortEvent, monotonic,
};
use tickpath_gateway_protocol::frame::Password;
use tickpath_gateway_protocol::{CreateOrder, Event, EventKind, OrderAck, Request, Text, TopOfBook};
use tickpath_lockfree::SharedLines;
use tickpath_lockfree::shared_spsc::{Consumer, Producer, lines_of};
use tickpath_shm::{Folder, SegmentName};

const ROUNDS: usize = 20_000;
const TURNS: usize = 10;

fn connect(place: &Path) -> (ClientPort, Client, ClientId) {
    let socket = place.join("gateway.sock");
    let folder = Folder::create(&place.join("shm")).expect("there is room");
    let name = SegmentName::new("gateway").expect("it is a name");
    let mut door =
        ClientPort::open(ClientPortConfig::new(&socket, folder, name)).expect("the socket is free");
    // Like a gateway that has run for a while.
    std::thread::sleep(Duration::from_millis(300));
    let user = Text::cut("bench");
    let connecting = std::thread::spawn(move || {
        Client::connect(ClientConfig::new(&socket, user, Password::default())).expect("it is let in")
    });
    let id = loop {
        if let Some(ClientPortEvent::Login(login)) = door.poll(monotonic()) {
            // Processor time, as the client that wakes up may take the core meanwhile.
            let start = thread_time();
            let id = door.admit(login.id, 1).expect("there is room");
            println!("the gateway admitted a client in {} us", (thread_time() - start).as_micros());
            break id;
        }
    };
    let client = connecting.join().expect("it does not panic");
    (door, client, id)
}

fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock").into()
}

fn answer(request: &Request) -> Event {
    Event::of(&OrderAck { request_id: request.header.request_id, ..OrderAck::default() })
}

/// Median round trip through the client port, in nanoseconds.
fn through_the_door(client: &mut Client) -> u64 {
    let order = CreateOrder::default();
    let mut times: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let id = client.request(1, 1, 1, &order).expect("there is room");
            loop {
                if let Some(event) = client.poll()
                    && event.header.kind == EventKind::ORDER_ACK
                {
                    assert_eq!(event.body::<OrderAck>().map(|ack| ack.request_id), Some(id));
                    break start.elapsed().as_nanos() as u64;
                }
            }
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn through_rings(to: &mut Producer<Request>, from: &mut Consumer<Event>) -> u64 {
    let mut times: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            to.try_push(Request::empty()).expect("there is room");
            while from.try_pop().is_none() {
                std::hint::spin_loop();
            }
            start.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn measure(place: &Path) {
    let (mut door, mut client, _) = connect(place);
    let (requests, events) =
        (SharedLines::zeroed(lines_of::<Request>(1_024)), SharedLines::zeroed(lines_of::<Event>(1_024)));
    let mut to = Producer::<Request>::over(requests.clone()).expect("made for it");
    let mut server_from = Consumer::<Request>::over(requests).expect("made for it");
    let mut server_to = Producer::<Event>::over(events.clone()).expect("made for it");
    let mut from = Consumer::<Event>::over(events).expect("made for it");
    let (stop, is_bare) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if is_bare.load(Ordering::Relaxed) {
                    if server_from.try_pop().is_some() {
                        server_to.try_push(Event::empty()).expect("there is room");
                    }
                } else if let Some(ClientPortEvent::Request(client, request)) = door.poll(monotonic()) {
                    door.send(client, &mut answer(&request));
                }
            }
        });
        for turn in 0..TURNS {
            is_bare.store(false, Ordering::Relaxed);
            let door_ns = through_the_door(&mut client);
            is_bare.store(true, Ordering::Relaxed);
            let bare_ns = through_rings(&mut to, &mut from);
            println!(
                "turn {turn}: gateway {door_ns} ns, bare rings {bare_ns} ns, ratio {:.2}",
                door_ns as f64 / bare_ns as f64
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Does everything in one thread, so often that one-time work is negligible.
fn count(place: &Path, what: &str) {
    let (mut door, mut client, id) = connect(place);
    door.send_instrument_ready(id, 1);
    let mut top = Event::of(&TopOfBook::default());
    top.header.symbol = 1;
    let mut seen = 0;
    for _ in 0..ROUNDS {
        if what == "broadcast" {
            door.broadcast(&mut top);
        } else {
            client.request(1, 1, 1, &CreateOrder::default()).expect("there is room");
            while let Some(event) = door.poll(monotonic()) {
                if let ClientPortEvent::Request(client, request) = event {
                    door.send(client, &mut answer(&request));
                }
            }
        }
        while let Some(event) = client.poll() {
            seen += usize::from(matches!(event.header.kind, EventKind::ORDER_ACK | EventKind::TOP_OF_BOOK));
        }
    }
    assert_eq!(seen, ROUNDS);
}

fn main() {
    let place = std::env::temp_dir().join(format!("tickpath-round-trip-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("there is room");
    match std::env::args().nth(1).as_deref() {
        Some("callgrind") => count(&place, &std::env::args().nth(2).unwrap_or_default()),
        _ => measure(&place),
    }
    let _ = std::fs::remove_dir_all(&place);
}
