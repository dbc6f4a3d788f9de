//! Processes that are killed: a client while it writes, and a gateway.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;
use std::thread;

use crate::support::{
    Site, client_config, let_in, login, message, next, next_leave, next_request, said, until,
};
use tickpath_gateway_io::{Client, ClientPort, ClientPortEvent, LeaveReason, SendError, monotonic};
use tickpath_gateway_protocol::{CustomRequest, EventKind};
use tickpath_shm::{EventsReader, WriterState, verify_events};
use tickpath_test_support::{Running, this_test};

/// Environment variable that makes a child process of this program, and names its place.
const PLACE: &str = "TICKPATH_GATEWAY_TEST_PLACE";

fn child(test: &str, place: &Path) -> Running {
    Running::spawn(this_test(module_path!(), test).env(PLACE, place))
}

/// Not a test scenario itself: the client that the scenario below starts and kills.
#[test]
fn child_client() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let mut client = Client::connect(client_config(Path::new(&place).join("deribit.sock"), "child")).unwrap();
    let mut number = 0;
    loop {
        match client.request(1, 1, 0, &said(number)) {
            Ok(_) => number += 1,
            Err(SendError::Full) => drop(client.poll()),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_client_that_is_killed_while_it_writes_harms_nobody() {
    let site = Site::new();
    let mut door = site.open();
    let (mut other, other_id) = let_in(&mut door, site.client("other"));
    for round in 1..=8 {
        let child = child("child_client", site.place.path());
        let login = login(&mut door);
        assert_eq!(login.peer.pid, child.id());
        let id = door.admit(login.id, 0).unwrap();
        // The client is killed after a different number of requests each time.
        let mut taken = 0;
        while taken < round * 97 {
            let (from, request) = next_request(&mut door);
            assert_eq!((from, request.body::<CustomRequest>().unwrap().data), (id, [taken; 8]));
            taken += 1;
        }
        drop(child);
        let reason = until(&mut door, |_, event| match event {
            Some(ClientPortEvent::Request(from, request)) => {
                assert_eq!(
                    (from, request.body::<CustomRequest>().unwrap().data),
                    (id, [taken; 8]),
                    "torn, or lost"
                );
                taken += 1;
                None
            }
            Some(ClientPortEvent::Left(from, reason)) => {
                assert_eq!(from, id);
                Some(reason)
            }
            _ => None,
        });
        assert_eq!(reason, LeaveReason::Died);
        assert!(door.send(other_id, &mut message(round)));
        assert_eq!(next(&mut other).header.kind, EventKind::CUSTOM_MESSAGE);
    }
    assert_eq!((door.counters().died, door.client_count()), (8, 1));
}

/// Not a test scenario itself: the gateway that the scenario below starts and kills.
#[test]
fn child_gateway() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let mut door = ClientPort::open(Site::config_at(Path::new(&place))).unwrap();
    #[expect(clippy::print_stdout, reason = "its parent waits for the line")]
    {
        println!("\nopen");
    }
    loop {
        if let Some(ClientPortEvent::Login(login)) = door.poll(monotonic()) {
            let id = door.admit(login.id, 0).unwrap();
            door.send(id, &mut message(7));
        }
        door.broadcast(&mut message(8));
        thread::yield_now();
    }
}

#[test]
fn what_a_killed_gateway_leaves_is_taken_over_and_its_client_comes_back() {
    let site = Site::new();
    let mut gateway = child("child_gateway", site.place.path());
    gateway.wait_for_line("the gateway's start", |line| (line == "open").then_some(()));
    let mut client = Client::connect(site.client("anna")).unwrap();
    let mut kinds = HashMap::new();
    while kinds.get(&EventKind::CUSTOM_MESSAGE).is_none_or(|count| *count < 100) {
        *kinds.entry(next(&mut client).header.kind).or_insert(0) += 1;
    }
    let session = client.welcome().unwrap().session;
    drop(gateway);
    while next(&mut client).header.kind != EventKind::DISCONNECTED {}

    // The socket's file and the segment still exist, without an owner.
    assert!(site.socket().exists());
    let segment = EventsReader::open(&site.config.folder, &site.config.segment).unwrap();
    assert_eq!(segment.writer_state(), WriterState::Dead);
    assert!(verify_events(&segment).problem_count <= 1, "one event may be torn");
    let mut door = site.open();
    assert!(segment.is_replaced());
    assert_eq!(EventsReader::open(&site.config.folder, &site.config.segment).unwrap().header().generation, 2);

    let thread = thread::spawn(move || next(&mut client));
    let login = login(&mut door);
    let id = door.admit(login.id, 0).unwrap();
    let event = thread.join().unwrap();
    assert_eq!((event.header.kind, event.header.session), (EventKind::CONNECTED, door.session()));
    assert_ne!(door.session(), session);
    assert_eq!(next_leave(&mut door), (id, LeaveReason::Closed));
}
