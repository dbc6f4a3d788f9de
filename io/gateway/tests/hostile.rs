//! A client that writes arbitrary values into the rings; a separate program, as it searches its own memory.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::support::{Site, let_in, message, next_leave, next_request, said, until};
use tickpath_gateway_io::{ClientPortEvent, LeaveReason, monotonic};
use tickpath_gateway_protocol::RequestKind;

/// Address of the client's channel: the memory that is mapped twice, by the gateway and by the client. Spare
/// rings of the gateway are mapped once.
fn channel_address() -> u64 {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mine: Vec<Vec<&str>> = maps
        .lines()
        .filter(|line| line.contains("memfd:tickpath-channel"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    // Address, access, offset, device, inode.
    let twice =
        mine.iter().find(|line| mine.iter().filter(|other| other[4] == line[4]).count() == 2).unwrap();
    u64::from_str_radix(twice[0].split('-').next().unwrap(), 16).unwrap()
}

fn write(address: u64, word: u64) {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    memory.write_all_at(&word.to_ne_bytes(), address).unwrap();
}

#[test]
fn positions_that_cannot_be_end_the_client_and_nothing_else() {
    let mut site = Site::new();
    (site.config.requests_max, site.config.events_max) = (4, 4);
    site.config.heartbeat = tickpath_types::Nanos(u64::MAX / 2);
    let mut door = site.open();
    // Three cache lines before the slots; a request takes two lines.
    let to_client = (3 + 4 * 2) * 64;
    for (broken, position) in [(1_u64, u64::MAX), (2, 1 << 62), (3, 1 << 40)] {
        let (mut client, id) = let_in(&mut door, site.client("mallory"));
        let channel = channel_address();
        client.request(0, 0, 0, &said(1)).unwrap();
        next_request(&mut door);
        // The client pretends to have read events that were never sent.
        write(channel + to_client, position);
        let mut sent = 0;
        while door.send(id, &mut message(sent)) {
            sent += 1;
            assert!(sent <= 4);
        }
        assert_eq!(next_leave(&mut door), (id, LeaveReason::Broken));
        assert_eq!((door.counters().broken, door.client_count()), (broken, 0));
        drop(client);
    }
    // A position that moves backwards.
    let (mut client, id) = let_in(&mut door, site.client("mallory"));
    let channel = channel_address();
    for number in 0..6 {
        assert!(door.send(id, &mut message(number)));
        support::next(&mut client);
    }
    write(channel + to_client, 0);
    let mut sent = 0;
    while door.send(id, &mut message(sent)) {
        sent += 1;
    }
    assert_eq!(next_leave(&mut door), (id, LeaveReason::Broken));
    drop(client);

    // Sequences in the ring to the gateway: unwritten memory is taken as a request, of no known kind.
    let (client, id) = let_in(&mut door, site.client("mallory"));
    let channel = channel_address();
    write(channel + 3 * 64, 1);
    let (from, request) = next_request(&mut door);
    assert_eq!((from, request.header.kind), (id, RequestKind(0)));
    for slot in 0..4 {
        write(channel + (3 + slot * 2) * 64, u64::MAX);
    }
    for _ in 0..100 {
        assert!(!matches!(door.poll(monotonic()), Some(ClientPortEvent::Request(..))));
    }
    // The words that mark an end as closed, with a value that is neither true nor false.
    write(channel + 64, u64::MAX);
    until(&mut door, |_, event| matches!(event, Some(ClientPortEvent::Left(..))).then_some(()));
    drop(client);
    assert_eq!(door.client_count(), 0);
}
