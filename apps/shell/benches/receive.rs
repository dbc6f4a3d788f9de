//! Cost of the shell over TLS on this host: receiving a message with and without the history. Also sending a
//! buy order, from the command to the send, compared with a bare write of the same bytes.
//!
//! `cargo bench -p tickpath-shell`. Without `--bench`, as under test, it runs few rounds. With `on` or `off`
//! it runs only that case, to count instructions: `valgrind --tool=callgrind --toggle-collect='*Link*poll*'`.
//! With `venue` it serves as a venue until its standard input ends.
#![allow(clippy::unwrap_used)] // a failed step ends the run
#![allow(dead_code)] // unused parts of the tests' venue

#[path = "../tests/shell/venue.rs"]
mod venue;

use std::time::{Duration, Instant};

use tickpath_deribit::session::Key;
use tickpath_net::{Kernel, SendOutcome};
use tickpath_shell::{Interrupt, Link, Shell, ShellConfig, Span, Standing, Way};
use tickpath_test_support::{Certificates, Deadline};
use tickpath_types::Nanos;
use tickpath_web::{Target, TlsClient, WebLimits, WebSocketClient};
use venue::{CLIENT_ID, SECRET, Venue};

/// A book change, 350 bytes including its envelope.
const CHANGE: &str = r#"{"type":"change","timestamp":1554373911330,"prev_change_id":297217,"instrument_name":"BTC-PERPETUAL","change_id":297218,"bids":[["delete",5041.94,0],["delete",5042.34,0]],"asks":[["new",5042.36,100],["change",5042.5,9580]]}"#;
const CHANNEL: &str = "book.BTC-PERPETUAL.raw";
/// Number of requests that the session's rate limit allows in one burst.
const ORDERS: u64 = 90;
/// Number of messages per round.
const ROUND: u64 = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let rounds = if has("--bench") { 200 } else { 2 };
    let place = Place::new();
    if has("on") || has("off") {
        place.receive(has("on"), 20);
        return;
    }
    if has("venue") {
        println!("{} {}", place.venue.url, place.files.ca.display());
        let _ = std::io::stdin().lines().count();
        return;
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..2 * rounds {
        let keeps = round % 2 == 0;
        times[usize::from(keeps)].push(place.receive(keeps, 1));
    }
    let [without, with] = times.map(|mut times| median(&mut times));
    println!("taken in without history {without} ns a message, with it {with} ns (n={})", rounds * ROUND);
    place.send(if has("--bench") { ORDERS } else { 3 });
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

struct Place {
    venue: Venue,
    files: Certificates,
}

impl Place {
    fn new() -> Place {
        let files = Certificates::new();
        let venue = Venue::start_tls(&files.certificate, &files.key);
        venue.send_on_subscription(CHANGE, ROUND);
        Place { venue, files }
    }

    fn link(&self) -> Link {
        // Allows for a long round in a debug build on a loaded machine.
        let text = format!(
            "url = '{}'\nca_file = '{}'\nrequest_timeout = '60s'",
            self.venue.url,
            self.files.ca.display()
        );
        let config: ShellConfig = tickpath_config::parse("shell.toml", &text).unwrap();
        let url = config.checked_url().unwrap();
        Link::new(config, url, Some(Key::new(CLIENT_ID, SECRET)))
    }

    /// Mean nanoseconds per message over `rounds` rounds.
    fn receive(&self, keeps_history: bool, rounds: u64) -> u64 {
        let mut link = self.link();
        link.keep_history(keeps_history);
        link.connect();
        pump(&mut link, |link| link.standing() == Standing::Ready);
        let mut total = Duration::ZERO;
        for round in 0..rounds {
            link.subscribe(CHANNEL).unwrap();
            link.poll();
            // All messages are in flight before the measurement starts.
            std::thread::sleep(Duration::from_millis(20));
            let start = Instant::now();
            pump(&mut link, |link| link.feeds().get(CHANNEL).is_some_and(|feed| feed.count == ROUND));
            total += start.elapsed();
            if round + 1 < rounds {
                link.unsubscribe(CHANNEL);
                pump(&mut link, |link| link.active_channels() == 0);
            }
        }
        let kept = link.history().entries().filter(|entry| entry.way == Way::Received).count();
        assert_eq!(kept > 100, keeps_history);
        link.disconnect();
        (total.as_nanos() / u128::from(rounds * ROUND)) as u64
    }

    /// Measures the time from a command to its send, and the time of the write alone.
    fn send(&self, count: u64) {
        let mut shell = Shell::new(self.link(), None, false, Interrupt::default());
        shell.execute("connect").unwrap();
        let frame = {
            shell.execute("buy BTC-PERPETUAL 10 50000 label=tp-19ab4c3d2e1-1f2e-12").unwrap();
            let link = shell.link();
            let mut sent = link.history().entries().filter(|entry| entry.text.contains("private/buy"));
            sent.next().unwrap().text
        };
        shell.link().watches.reset();
        let mut bare = self.bare();
        let mut writes = Vec::new();
        for number in 0..count {
            // The lowest tier allows five orders a second; queries take the same path to the socket.
            shell
                .execute(if number == 0 {
                    "buy BTC-PERPETUAL 10 50000"
                } else {
                    "call private/get_positions"
                })
                .unwrap();
            let start = Instant::now();
            assert_eq!(bare.send(&frame), SendOutcome::Sent);
            writes.push(start.elapsed().as_nanos() as u64);
            while bare.receive().unwrap().is_none() {
                std::thread::yield_now();
            }
        }
        let link = shell.link();
        let sent = link.watches.figures().find(|figures| figures.name == Span::SendRequest.name()).unwrap();
        let bare = median(&mut writes);
        println!(
            "command to socket p50 {} ns, bare write of {} bytes over TLS {bare} ns",
            sent.p50_ns,
            frame.len()
        );
        assert_eq!(sent.count, count);
    }

    /// Opens a WebSocket without a session.
    fn bare(&self) -> WebSocketClient {
        let url: tickpath_web::WebUrl = self.venue.url.parse().unwrap();
        let tls = TlsClient::with_ca_file(&self.files.ca).unwrap();
        let target = Target { address: url.resolve().unwrap(), url, is_proxy: false, tls: Some(tls) };
        let mut client = WebSocketClient::start(&Kernel, Nanos(1), target, WebLimits::client()).unwrap();
        while !client.poll_open(Nanos(1)).unwrap() {
            std::thread::yield_now();
        }
        client
    }
}

/// Polls the link until a condition holds.
fn pump(link: &mut Link, mut is_so: impl FnMut(&Link) -> bool) {
    let deadline = Deadline::start();
    while !is_so(link) {
        assert!(!deadline.is_over(), "nothing came for too long");
        link.wait(Duration::from_millis(10));
        link.poll();
    }
}
