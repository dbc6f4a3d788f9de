//! Measures sockets over loopback: round trips, delay from kernel receive time to read, polls and batches.
//!
//! `cargo bench -p tickpath-net`. Without `--bench`, as in a test run, all measurements are short.
#![allow(clippy::unwrap_used)] // a failed step ends the run

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tickpath_net::{
    BufferSizes, Fill, Interest, MulticastReceiver, MulticastSender, Poller, RecvBatch, SendOutcome,
    SendStatus, TcpAcceptor, TcpConnection, free_multicast_group,
};

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, calls) = if is_bench { (100_000, 300_000) } else { (20, 20) };
    for len in [64, 1_400] {
        let both_ways = multicast_round_trips(len, rounds);
        report(&format!("multicast {len} B"), &both_ways);
    }
    report("tcp 64 B", &tcp_round_trips(64, rounds));
    idle_polls(calls);
    batches(if is_bench { 5_000 } else { 2 });
}

/// Durations in ns: of each round trip, and from the kernel's receive time of each answer to its read.
struct Samples {
    round_trips: Vec<u64>,
    kernel_to_read: Vec<u64>,
}

fn report(name: &str, samples: &Samples) {
    let [p50, p99, p999] = percentiles(&samples.round_trips);
    println!("{name:<18} round trip p50 {p50} p99 {p99} p99.9 {p999} ns");
    let [p50, p99, _] = percentiles(&samples.kernel_to_read);
    println!("{name:<18} kernel stamp to read p50 {p50} p99 {p99} ns (n={})", samples.kernel_to_read.len());
}

fn percentiles(samples: &[u64]) -> [u64; 3] {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    [500, 990, 999].map(|per_mille| sorted[(sorted.len() - 1) * per_mille / 1_000])
}

/// Pins this thread to one of the allowed cores, so that two threads run on separate cores if there are two.
fn pin(which: usize) {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let cores: Vec<_> = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap()).collect();
    let mut one = CpuSet::new();
    one.set(cores[which % cores.len()]).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
}

fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn multicast_round_trips(len: usize, rounds: usize) -> Samples {
    let (there, back) = (free_multicast_group().unwrap(), free_multicast_group().unwrap());
    let mut echo_receiver = MulticastReceiver::join(there, LOOPBACK).unwrap();
    let mut receiver = MulticastReceiver::join(back, LOOPBACK).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = MulticastSender::new(back, LOOPBACK).unwrap();
            let mut buffer = [0; 2_048];
            on_core(1, || {
                while !stop.load(Ordering::Relaxed) {
                    if let Some(received) = echo_receiver.recv(&mut buffer).unwrap() {
                        assert_eq!(sender.send(&buffer[..received.len]).unwrap(), SendStatus::Sent);
                    }
                }
            });
        });
        let mut sender = MulticastSender::new(there, LOOPBACK).unwrap();
        let (packet, mut buffer) = (vec![7; len], [0; 2_048]);
        let samples = on_core(0, || {
            sample(rounds, || {
                assert_eq!(sender.send(&packet).unwrap(), SendStatus::Sent);
                let received = loop {
                    if let Some(received) = receiver.recv(&mut buffer).unwrap() {
                        break received;
                    }
                };
                assert_eq!(buffer[..received.len], packet);
                received.kernel_ns
            })
        });
        stop.store(true, Ordering::Relaxed);
        samples
    })
}

fn tcp_pair() -> (TcpConnection, TcpConnection) {
    let buffers = BufferSizes::default();
    let mut acceptor = TcpAcceptor::bind(SocketAddrV4::new(LOOPBACK, 0), buffers).unwrap();
    let timeout = Duration::from_secs(5);
    let client = TcpConnection::connect(acceptor.local_address(), timeout, buffers).unwrap();
    loop {
        if let Some(server) = acceptor.accept().unwrap() {
            return (client, server);
        }
    }
}

fn tcp_round_trips(len: usize, rounds: usize) -> Samples {
    let (mut client, mut server) = tcp_pair();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut message = vec![0; len];
            on_core(1, || {
                while !stop.load(Ordering::Relaxed) {
                    if server.fill().unwrap() != Fill::Empty && server.received().len() == len {
                        message.copy_from_slice(server.received());
                        server.consume(len);
                        assert_eq!(server.send(&message).unwrap(), SendOutcome::Sent);
                    }
                }
            });
        });
        let message = vec![7; len];
        let samples = on_core(0, || {
            sample(rounds, || {
                assert_eq!(client.send(&message).unwrap(), SendOutcome::Sent);
                let mut stamp = None;
                while client.received().len() < len {
                    if let Fill::Bytes { kernel_ns, .. } = client.fill().unwrap() {
                        stamp = kernel_ns;
                    }
                }
                assert_eq!(client.received(), message);
                client.consume(len);
                stamp
            })
        });
        stop.store(true, Ordering::Relaxed);
        samples
    })
}

fn on_core<T>(which: usize, work: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
    pin(which);
    let result = work();
    sched_setaffinity(Pid::from_raw(0), &before).unwrap();
    result
}

/// Samples `rounds` calls of `round`, after a warm-up. `round` returns the kernel's receive time
/// of the answer.
fn sample(rounds: usize, mut round: impl FnMut() -> Option<u64>) -> Samples {
    let mut samples =
        Samples { round_trips: Vec::with_capacity(rounds), kernel_to_read: Vec::with_capacity(rounds) };
    for _ in 0..rounds / 10 {
        round();
    }
    for _ in 0..rounds {
        let start = Instant::now();
        let kernel_ns = round();
        samples.round_trips.push(start.elapsed().as_nanos() as u64);
        samples.kernel_to_read.extend(kernel_ns.map(|kernel_ns| realtime_ns().saturating_sub(kernel_ns)));
    }
    samples
}

/// Prints the median cost of each kind of poll; all but the last find no data. A sample averages 100 calls.
fn idle_polls(calls: usize) {
    let mut receiver = MulticastReceiver::join(free_multicast_group().unwrap(), LOOPBACK).unwrap();
    let mut buffer = [0; 2_048];
    let cost = median_cost(calls, || black_box(receiver.recv(&mut buffer).unwrap()).is_none());
    println!("nothing there: multicast recv         {cost} ns");
    let mut batch = RecvBatch::new(32, 2_048);
    let cost = median_cost(calls, || receiver.recv_batch(&mut batch).unwrap() == 0);
    println!("nothing there: multicast recv_batch   {cost} ns");
    let mut connections: Vec<_> = (0..64).map(|_| tcp_pair()).collect();
    let cost = median_cost(calls, || connections[0].0.fill().unwrap() == Fill::Empty);
    println!("nothing there: tcp fill               {cost} ns");
    for count in [1, 64] {
        let mut poller = Poller::new(64).unwrap();
        for (key, (_, server)) in connections[..count].iter().enumerate() {
            poller.add(server, key as u64, Interest::Read).unwrap();
        }
        let cost = median_cost(calls, || poller.poll().unwrap().len() == 0);
        println!("nothing there: poller of {count:>2} sockets  {cost} ns");
    }
    let mut poller = Poller::new(64).unwrap();
    poller.add(&connections[0].1, 0, Interest::Read).unwrap();
    let (client, server) = &mut connections[0];
    assert_eq!(client.send(b"x").unwrap(), SendOutcome::Sent);
    let cost = median_cost(calls, || poller.poll().unwrap().len() == 1);
    println!("one readable:  poller                 {cost} ns");
    assert!(matches!(server.fill().unwrap(), Fill::Bytes { count: 1, .. }));
}

fn median_cost(calls: usize, mut call: impl FnMut() -> bool) -> u64 {
    const BATCH: usize = 100;
    let costs: Vec<_> = (0..calls.div_ceil(BATCH))
        .map(|_| {
            let start = Instant::now();
            assert!((0..BATCH).all(|_| call()), "the call answered otherwise");
            start.elapsed().as_nanos() as u64 / BATCH as u64
        })
        .collect();
    percentiles(&costs)[0]
}

/// Prints the median costs of sending and receiving a datagram of 1,400 bytes, 46 at a time on one thread.
fn batches(rounds: usize) {
    const COUNT: usize = 46;
    let group = free_multicast_group().unwrap();
    let mut receiver = MulticastReceiver::join(group, LOOPBACK).unwrap();
    let mut sender = MulticastSender::new(group, LOOPBACK).unwrap();
    let mut batch = RecvBatch::new(COUNT, 2_048);
    let (mut sent, mut received) = (vec![], vec![]);
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..COUNT {
            assert_eq!(sender.send(&[7; 1_400]).unwrap(), SendStatus::Sent);
        }
        sent.push(start.elapsed().as_nanos() as u64 / COUNT as u64);
        let start = Instant::now();
        let mut received_count = 0;
        while received_count < COUNT {
            received_count += receiver.recv_batch(&mut batch).unwrap();
        }
        received.push(start.elapsed().as_nanos() as u64 / COUNT as u64);
    }
    let [sent, received] = [sent, received].map(|costs| percentiles(&costs)[0]);
    println!("1,400 B datagram: send {sent} ns, recv_batch {received} ns");
}
