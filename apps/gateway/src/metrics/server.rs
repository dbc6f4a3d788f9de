//! Metrics over HTTP, on a thread of their own.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::{BackgroundThread, StopSignal};
use tickpath_net::{Kernel, NetError};
use tickpath_types::Nanos;
use tickpath_web::{HttpResponse, ServerEvent, WebAcceptor, WebConnection, WebLimits};

use super::{GatewayMetrics, MetricsText, process};

/// Connections at a time, none of which logs in; for a further one the oldest of the address that has the most is closed.
const CONNECTIONS: PreLoginLimits =
    PreLoginLimits { connections: 32, per_address: 16, deadline: Nanos::from_secs(60) };
/// Connections accepted in one turn.
const ACCEPTS_PER_TURN: usize = 64;
/// How long the thread sleeps when nothing is to be done.
const SLEEP: Duration = Duration::from_millis(10);
/// As Prometheus wants to be told.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes samples of what is counted elsewhere, when somebody asks.
pub type Sampler = Box<dyn Fn(&mut MetricsText) + Send>;

/// Answers `GET /metrics`. Ends when it is dropped.
pub struct MetricsServer {
    address: SocketAddrV4,
    _thread: BackgroundThread,
}

impl MetricsServer {
    /// Listens at `address`, port 0 for a free one, for `metrics` and what the samplers write.
    ///
    /// # Errors
    /// [`NetError`] when the address is taken or none of this machine.
    pub fn start(
        address: SocketAddrV4,
        metrics: Arc<GatewayMetrics>,
        samplers: Vec<Sampler>,
    ) -> Result<MetricsServer, NetError> {
        let acceptor = WebAcceptor::bind(Kernel, address, None, WebLimits::server())?;
        let address = acceptor.local_address();
        let server = Server {
            acceptor,
            connections: Vec::new(),
            places: PreLogin::new(CONNECTIONS),
            next_key: 0,
            metrics,
            samplers,
            started: Instant::now(),
        };
        let thread = BackgroundThread::start("metrics", move |stop| server.run(stop))
            .map_err(|source| NetError::Bind { address, source })?;
        Ok(MetricsServer { address, _thread: thread })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }
}

struct Server {
    acceptor: WebAcceptor,
    /// By their keys.
    connections: Vec<(u64, WebConnection)>,
    places: PreLogin<Ipv4Addr>,
    next_key: u64,
    metrics: Arc<GatewayMetrics>,
    samplers: Vec<Sampler>,
    started: Instant,
}

impl Server {
    fn run(mut self, stop: &StopSignal) {
        while !stop.is_stopped() {
            if !self.serve() {
                std::thread::park_timeout(SLEEP);
            }
        }
    }

    /// Does what is to be done; whether there was something.
    fn serve(&mut self) -> bool {
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = Nanos::from_secs(1) + Nanos(elapsed);
        let mut is_busy = false;
        let mut place = 0;
        while place < self.connections.len() {
            let (was_busy, is_over) = self.serve_one(place, now);
            is_busy |= was_busy;
            if is_over {
                self.places.remove(self.connections.swap_remove(place).0);
            } else {
                place += 1;
            }
        }
        // Behind the others: a request that has come is answered before its connection could be closed for a newcomer.
        is_busy | self.accept(now)
    }

    fn accept(&mut self, now: Nanos) -> bool {
        while let Some(key) = self.places.expired(now) {
            self.close(key);
        }
        for count in 0..ACCEPTS_PER_TURN {
            let Ok(Some(connection)) = self.acceptor.accept(now) else { return count > 0 };
            let peer = *connection.peer_address().ip();
            if let Some(key) = self.places.victim(peer) {
                // Its request may have come.
                if let Some(place) = self.connections.iter().position(|(known, _)| *known == key) {
                    self.serve_one(place, now);
                }
                self.close(key);
            }
            self.places.admit(now, self.next_key, peer);
            self.connections.push((self.next_key, connection));
            self.next_key += 1;
        }
        true
    }

    fn close(&mut self, key: u64) {
        self.places.remove(key);
        self.connections.retain(|(known, _)| *known != key);
    }

    /// One connection; whether something was done, and whether it is over.
    fn serve_one(&mut self, place: usize, now: Nanos) -> (bool, bool) {
        let connection = &mut self.connections[place].1;
        let asks_for = match connection.receive(now) {
            None => {
                // What does not leave now leaves with the next look.
                let _ = connection.flush();
                return (false, false);
            }
            Some(ServerEvent::End(_)) => return (true, true),
            Some(ServerEvent::Message(_)) => return (true, false),
            Some(ServerEvent::Upgrade(_)) => Page::Missing,
            Some(ServerEvent::Request(request)) => match (request.method(), request.path()) {
                ("GET" | "HEAD", "/metrics") => Page::Metrics,
                ("GET" | "HEAD", _) => Page::Missing,
                _ => Page::WrongMethod,
            },
        };
        let text;
        let (status, body): (u16, &str) = match asks_for {
            Page::Metrics => {
                text = page(&self.metrics, &self.samplers);
                (200, &text)
            }
            Page::Missing => (404, "metrics are at /metrics\n"),
            Page::WrongMethod => (405, "metrics are read by GET\n"),
        };
        let response =
            HttpResponse { status, content_type: CONTENT_TYPE, headers: &[], body: body.as_bytes() };
        self.connections[place].1.respond(now, &response);
        (true, false)
    }
}

#[derive(Clone, Copy)]
enum Page {
    Metrics,
    Missing,
    WrongMethod,
}

fn page(metrics: &GatewayMetrics, samplers: &[Sampler]) -> String {
    let mut text = MetricsText::new(&metrics.gateway);
    metrics.write(&mut text);
    for sampler in samplers {
        sampler(&mut text);
    }
    process::write(&mut text);
    text.finish()
}
