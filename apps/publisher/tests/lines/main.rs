//! Recordings published on loopback multicast lines: the packets sent, and the recovery of lost packets.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod deep;
mod itch;
mod recordings;
mod scenarios;
mod sending;
mod xdp;

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddrV4, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tickpath_agent::{StopSignal, TscClock};
use tickpath_config::Speed;
use tickpath_net::{MulticastReceiver, free_multicast_group};
use tickpath_publisher::{Publication, PublishOptions, PublishProgress, PublishReport};
use tickpath_test_support::{ANY_PORT, wait_for};
use tickpath_types::Nanos;

/// A publication on a separate thread, stopped on drop.
pub(crate) struct Publisher {
    /// The first channel's part of the feed handler configuration, by key; `text` has all of it.
    pub(crate) config: HashMap<String, String>,
    pub(crate) text: String,
    stop: StopSignal,
    is_sent: Arc<AtomicBool>,
    thread: Option<JoinHandle<PublishReport>>,
}

/// Options for maximum speed with recovery; the linger time is longer than any test.
pub(crate) fn options(file: &Path) -> PublishOptions {
    PublishOptions {
        line_b: Some(free_multicast_group().unwrap()),
        speed: Speed::Max,
        recovery: Some(ANY_PORT),
        start_after: Nanos::from_millis(1),
        linger: Nanos::from_secs(600),
        max_orders: 1 << 14,
        store_bytes: 8 << 20,
        ..PublishOptions::new(file, free_multicast_group().unwrap())
    }
}

impl Publisher {
    pub(crate) fn start(options: PublishOptions) -> Publisher {
        Publisher::begin(Publication::open(options).unwrap())
    }

    pub(crate) fn begin(publication: Publication) -> Publisher {
        let text = publication.feed_config();
        let stop = StopSignal::new();
        let stopped = stop.clone();
        let is_sent = Arc::new(AtomicBool::new(false));
        let sent = Arc::clone(&is_sent);
        let run = move || {
            let mut observer = |progress: &PublishProgress| sent.store(progress.is_sent, Ordering::Release);
            publication.run(TscClock::shared(), &stopped, &mut observer)
        };
        let thread = Some(thread::spawn(run));
        Publisher { config: values(&text), text, stop, is_sent, thread }
    }

    /// True once the whole recording has been sent.
    pub(crate) fn has_published(&self) -> bool {
        self.is_sent.load(Ordering::Acquire)
    }

    pub(crate) fn address(&self, key: &str) -> SocketAddrV4 {
        self.config[key].parse().unwrap()
    }

    pub(crate) fn stop(mut self) -> PublishReport {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits until the publication ends by itself.
    pub(crate) fn finish(mut self) -> PublishReport {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the first channel's keys in `config` with their values, without quotes.
fn values(config: &str) -> HashMap<String, String> {
    let pairs = config.lines().filter_map(|line| line.split_once(" = "));
    let mut values = HashMap::new();
    for (key, value) in pairs {
        values.entry(key.to_owned()).or_insert_with(|| value.trim_matches('"').to_owned());
    }
    values
}

/// Returns the next datagram of a line.
pub(crate) fn receive(receiver: &mut MulticastReceiver) -> Vec<u8> {
    let mut buffer = [0; 65_536];
    let received = wait_for("a datagram", || receiver.recv(&mut buffer).unwrap());
    buffer[..received.len].to_vec()
}

/// Reads exactly `len` bytes.
pub(crate) fn read_bytes(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// True if the peer closes the connection without sending more.
pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 16]) {
        Ok(count) => count == 0,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
    }
}
