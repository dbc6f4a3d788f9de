//! Polling and sending allocate nothing, on either side.
#![allow(clippy::unwrap_used)]

use crate::support::{Site, let_in, message, said, top};
use tickpath_agent::{CountingAllocator, counts_allocations, thread_allocations};
use tickpath_gateway_io::{ClientPortEvent, monotonic};
use tickpath_gateway_protocol::EventKind;
use tickpath_types::Nanos;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn no_message_allocates_at_either_end() {
    assert!(counts_allocations());
    let mut site = Site::new();
    site.config.heartbeat = Nanos(1_000);
    let mut door = site.open();
    let mut config = site.client("anna");
    config.timer = Some(Nanos(1_000));
    let (mut client, id) = let_in(&mut door, config);
    assert!(door.send_instrument_ready(id, 1));
    while client.poll().is_some_and(|event| event.header.kind != EventKind::READY) {}
    let (mut requests, mut heartbeats, mut events, mut pings, mut timers, mut lapped) = (0, 0, 0, 0, 0, 0);
    let before = thread_allocations();
    for number in 0..5_000 {
        client.request(1, 1, 0, &said(number)).unwrap();
        while let Some(event) = door.poll(monotonic()) {
            match event {
                ClientPortEvent::Request(from, _) => {
                    requests += 1;
                    assert!(door.send(from, &mut message(number)));
                }
                ClientPortEvent::Heartbeat(..) => heartbeats += 1,
                _ => panic!("nothing else happens"),
            }
        }
        // At intervals, enough events to overrun the client.
        let burst = if number % 1_000 == 999 { 100 } else { 1 };
        (0..burst).for_each(|_| door.broadcast(&mut top(1, number)));
        while let Some(event) = client.poll() {
            match event.header.kind {
                EventKind::PING => pings += 1,
                EventKind::TIMER => timers += 1,
                EventKind::LAPPED => lapped += 1,
                _ => events += 1,
            }
        }
    }
    assert_eq!(thread_allocations() - before, 0);
    assert!(
        requests >= 5_000 && events >= 5_000 && lapped == 5 && timers > 0,
        "{requests} {events} {lapped} {timers}"
    );
    assert!(heartbeats > 0 && pings >= heartbeats, "{heartbeats} {pings}");
}
