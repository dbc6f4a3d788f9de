//! Tests of channels: granting, use and disconnection, and invalid greetings or memory from a server.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use tickpath_agent::ListenError;
use tickpath_lockfree::{Full, Payload};
use tickpath_shm::channel::{
    CHANNEL_CAPACITY_MAX, Caller, Channel, ChannelError, ChannelListener, Rings, call,
};
use tickpath_test_support::{PATIENCE, this_test, until};

/// Environment variable that passes the socket's path to the client in a child process.
const CHILD_SOCKET: &str = "TICKPATH_CHANNEL_TEST_SOCKET";
const COUNT: u64 = 20_000;

type Server = Channel<[u64; 9], u64>;
type Client = Channel<u64, [u64; 9]>;

struct Site {
    _place: tempfile::TempDir,
    path: PathBuf,
}

fn site() -> Site {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    Site { _place: place, path }
}

/// Waits until the peer has ended. A child process forked by another test may briefly hold the peer's socket.
#[track_caller]
fn wait_for_end<S: Payload, R: Payload>(channel: &Channel<S, R>) {
    until(|| channel.is_peer_disconnected().then_some(()));
}

fn accept(listener: &ChannelListener) -> Caller {
    until(|| listener.try_accept().unwrap())
}

fn pair(site: &Site, capacity: u64) -> (Server, Client) {
    let listener = ChannelListener::bind(&site.path).unwrap();
    let caller = call(&site.path).unwrap();
    let server = accept(&listener).grant(capacity).unwrap();
    (server, caller.receive(PATIENCE).unwrap())
}

#[test]
fn items_pass_both_ways_and_the_bound_gives_them_back() {
    let site = site();
    let (mut server, mut client) = pair(&site, 3);
    assert_eq!((server.peer().pid, client.peer().pid), (std::process::id(), std::process::id()));
    for item in 0..4 {
        assert_eq!(client.sender.try_push(item), Ok(()));
        assert_eq!(server.sender.try_push([item; 9]), Ok(()));
    }
    assert_eq!((client.sender.try_push(9), client.sender.capacity()), (Err(Full(9)), 4));
    for item in 0..4 {
        assert_eq!((server.receiver.try_pop(), client.receiver.try_pop()), (Some(item), Some([item; 9])));
    }
    assert!(!server.is_peer_disconnected() && !client.is_peer_disconnected());
    client.sender.try_push(5).unwrap();
    drop(client);
    wait_for_end(&server);
    assert!(server.receiver.is_disconnected() && server.sender.is_abandoned());
    assert_eq!((server.receiver.try_pop(), server.receiver.try_pop()), (Some(5), None));
}

#[test]
fn the_server_judges_messages_before_the_channel() {
    let site = site();
    let listener = ChannelListener::bind(&site.path).unwrap();
    assert!(listener.try_accept().unwrap().is_none());
    let password = |given: &[u8; 4]| {
        let client = call(&site.path).unwrap();
        { client.stream() }.write_all(given).unwrap();
        let server = accept(&listener);
        assert_eq!(server.peer().uid, nix::unistd::geteuid().as_raw());
        let mut received_password = [0; 4];
        { server.stream() }.read_exact(&mut received_password).unwrap();
        let granted: Option<Server> = (received_password == *b"open").then(|| server.grant(8).unwrap());
        (granted, client.receive::<u64, [u64; 9]>(PATIENCE))
    };
    let (granted, received) = password(b"open");
    assert!(granted.is_some() && received.is_ok());
    let (granted, received) = password(b"shut");
    assert!(granted.is_none() && matches!(received, Err(ChannelError::Refused)), "{received:?}");
}

#[test]
fn one_process_listens_and_a_leftover_socket_is_taken_over() {
    let site = site();
    let first = ChannelListener::bind(&site.path).unwrap();
    assert!(matches!(ChannelListener::bind(&site.path), Err(ChannelError::Listen(ListenError::InUse(_)))));
    drop(first);
    assert!(!site.path.exists());
    // A dropped listener of the standard library leaves the socket's file, as a killed server does.
    drop(UnixListener::bind(&site.path).unwrap());
    assert!(site.path.exists());
    drop(until(|| ChannelListener::bind(&site.path).ok()));
    std::fs::write(&site.path, "notes").unwrap();
    let refused = ChannelListener::bind(&site.path);
    assert!(matches!(refused, Err(ChannelError::Listen(ListenError::NotASocket(_)))), "a file is no socket");
    std::fs::remove_file(&site.path).unwrap();
    assert!(matches!(call(&site.path), Err(ChannelError::System { .. })));
}

#[test]
fn requests_beyond_the_bounds_are_rejected() {
    let site = site();
    let listener = ChannelListener::bind(&site.path).unwrap();
    for capacity in [CHANNEL_CAPACITY_MAX + 1, u64::MAX] {
        let _client = call(&site.path).unwrap();
        let granted = accept(&listener).grant::<u64, u64>(capacity);
        assert!(matches!(granted, Err(ChannelError::Bounds)), "{capacity}");
    }
    let _client = call(&site.path).unwrap();
    let granted = accept(&listener).grant::<[u64; 1_000], u64>(1);
    assert!(matches!(granted, Err(ChannelError::Bounds)));
}

#[test]
fn another_kind_of_channel_is_refused_by_the_client() {
    let site = site();
    let listener = ChannelListener::bind(&site.path).unwrap();
    let client = call(&site.path).unwrap();
    let _server: Server = accept(&listener).grant(8).unwrap();
    let received = client.receive::<u64, [u64; 8]>(PATIENCE);
    assert!(matches!(received, Err(ChannelError::Greeting)), "{received:?}");
}

/// Returns the client's error when a server sends these bytes and the descriptors of these files.
fn offer(greeting: &[u8], memory: &[&File]) -> ChannelError {
    let site = site();
    let listener = UnixListener::bind(&site.path).unwrap();
    let client = call(&site.path).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let descriptors: Vec<_> = memory.iter().map(|file| file.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let controls = if descriptors.is_empty() { &[][..] } else { &rights };
    let bytes = [IoSlice::new(greeting)];
    sendmsg::<()>(stream.as_raw_fd(), &bytes, controls, MsgFlags::empty(), None).unwrap();
    drop(stream);
    client.receive::<u64, u64>(PATIENCE).unwrap_err()
}

#[test]
fn a_bad_server_gets_no_client() {
    // A channel of one item in each direction: each ring has three header lines and one slot of one line.
    let mut greeting = Vec::new();
    greeting.extend(b"TICKCHAN");
    [1_u32, 8, 8, 0].iter().for_each(|number| greeting.extend(number.to_le_bytes()));
    [1_u64, 8 * 64].iter().for_each(|number| greeting.extend(number.to_le_bytes()));
    let memory = |len| {
        let memory = memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).map(File::from).unwrap();
        memory.set_len(len).unwrap();
        memory
    };
    assert!(matches!(offer(&greeting, &[&memory(512)]), ChannelError::Unsealed));
    let file = tempfile::tempfile().unwrap();
    assert!(matches!(offer(&greeting, &[&file]), ChannelError::Unsealed));
    let sealed = memory(4_096);
    let seals = nix::fcntl::SealFlag::all();
    let seals = nix::fcntl::FcntlArg::F_ADD_SEALS(seals & !nix::fcntl::SealFlag::F_SEAL_WRITE);
    nix::fcntl::fcntl(&sealed, seals).unwrap();
    assert!(matches!(offer(&greeting, &[&sealed]), ChannelError::Greeting), "another length");
    assert!(matches!(offer(&greeting, &[]), ChannelError::Greeting));
    for len in 1..greeting.len() {
        assert!(matches!(offer(&greeting[..len], &[&sealed]), ChannelError::Greeting), "{len} bytes");
    }
    for byte in 0..greeting.len() {
        let mut other = greeting.clone();
        other[byte] ^= 0x81;
        assert!(matches!(offer(&other, &[&sealed]), ChannelError::Greeting), "byte {byte}");
    }
}

/// Refused descriptors are closed: a pipe's read end reports a hang-up once the last write end is closed.
#[test]
fn descriptors_of_a_bad_server_are_closed() {
    let greeting = [0; 40];
    for count in [2, 3, 10, 253] {
        let (reader, writer) = std::io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        assert!(matches!(offer(&greeting, &vec![&file; count]), ChannelError::Greeting), "{count}");
        drop(file);
        let mut polled = [PollFd::new(reader.as_fd(), PollFlags::empty())];
        until(|| poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ended| ended == 1).then_some(()));
    }
}

/// Not a test: the client that another test starts as a process and kills.
#[test]
fn child_client() {
    let Some(path) = std::env::var_os(CHILD_SOCKET) else { return };
    let mut client: Client = call(Path::new(&path)).unwrap().receive(PATIENCE).unwrap();
    while !client.is_peer_disconnected() {
        while let Some(item) = client.receiver.try_pop() {
            assert_eq!(item, [item[0]; 9]);
            until(|| client.sender.try_push(item[0]).ok());
        }
        thread::yield_now();
    }
}

#[test]
fn another_process_answers_and_its_death_is_detected() {
    let site = site();
    let listener = ChannelListener::bind(&site.path).unwrap();
    let mut child = this_test(module_path!(), "child_client")
        .env(CHILD_SOCKET, &site.path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let caller = accept(&listener);
    assert_eq!(caller.peer().pid, child.id());
    let mut server: Server = caller.grant(64).unwrap();
    let (mut sent, mut answered) = (0, 0);
    until(|| {
        for _ in 0..64 {
            if sent < COUNT && server.sender.try_push([sent; 9]).is_ok() {
                sent += 1;
            }
            if let Some(answer) = server.receiver.try_pop() {
                assert_eq!(answer, answered);
                answered += 1;
            }
        }
        (answered == COUNT).then_some(())
    });
    assert!(!server.is_peer_disconnected() && !server.sender.is_broken());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_end(&server);
    assert!(!server.receiver.is_disconnected(), "it had no time to say so");
}

#[test]
fn each_ring_has_its_requested_capacity() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("gateway.sock");
    let listener = ChannelListener::bind(&path).unwrap();
    let caller = call(&path).unwrap();
    let accepted = listener.try_accept().unwrap().unwrap();
    let mut server: Channel<[u64; 23], [u64; 15]> = accepted.grant_rings(Rings::new(3, 16).unwrap()).unwrap();
    let mut client: Channel<[u64; 15], [u64; 23]> = caller.receive(Duration::from_secs(30)).unwrap();
    assert_eq!((client.sender.capacity(), client.receiver.capacity()), (4, 16));
    for number in 0..4 {
        client.sender.try_push([number; 15]).unwrap();
    }
    assert!(client.sender.try_push([4; 15]).is_err());
    for number in 0..16 {
        server.sender.try_push([number; 23]).unwrap();
    }
    assert!(server.sender.try_push([16; 23]).is_err());
    assert!((0..4).all(|number| server.receiver.try_pop() == Some([number; 15])));
    assert!((0..16).all(|number| client.receiver.try_pop() == Some([number; 23])));
}

#[test]
fn unread_messages_do_not_hide_a_disconnection() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("gateway.sock");
    let listener = ChannelListener::bind(&path).unwrap();
    let caller = call(&path).unwrap();
    let accepted = listener.try_accept().unwrap().unwrap();
    let mut talk = caller.stream().try_clone().unwrap();
    let server: Channel<u64, u64> = accepted.grant(4).unwrap();
    talk.write_all(b"garbage").unwrap();
    assert!(!server.is_peer_disconnected());
    drop((talk, caller));
    wait_for_end(&server);
}
