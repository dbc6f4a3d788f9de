//! Metrics over HTTP, served by a separate thread.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::{BackgroundThread, StopSignal};
use tickpath_net::{Kernel, NetError};
use tickpath_types::Nanos;
use tickpath_web::{HttpResponse, ServerEvent, WebAcceptor, WebConnection, WebLimits};

use super::{GatewayMetrics, MetricsText, process};

/// Connection limits; none logs in. A further connection evicts the oldest of the address that has the most.
const CONNECTIONS: PreLoginLimits =
    PreLoginLimits { connections: 32, per_address: 16, deadline: Nanos::from_secs(60) };
/// Maximum number of connections accepted per turn.
const ACCEPTS_PER_TURN: usize = 64;
/// Sleep of the thread when it has no work.
const SLEEP: Duration = Duration::from_millis(10);
/// Content type required by Prometheus.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes samples of values counted elsewhere, once per request.
pub type Sampler = Box<dyn Fn(&mut MetricsText) + Send>;

/// Answers `GET /metrics`. Stops when dropped.
pub struct MetricsServer {
    address: SocketAddrV4,
    _thread: BackgroundThread,
}

impl MetricsServer {
    /// Listens on `address`, port 0 for a free one, and serves `metrics` and the samplers' values.
    ///
    /// # Errors
    /// [`NetError`] if the address is in use or not of this machine.
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

    /// Address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }
}

struct Server {
    acceptor: WebAcceptor,
    /// Connections with their keys.
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

    /// Does the pending work; returns whether there was any.
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
        // Accepts last: a request that has arrived is answered before its connection can be evicted.
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
                // Its request may have arrived.
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

    /// Serves one connection; returns whether there was work, and whether the connection is finished.
    fn serve_one(&mut self, place: usize, now: Nanos) -> (bool, bool) {
        let connection = &mut self.connections[place].1;
        let asks_for = match connection.receive(now) {
            None => {
                // Bytes that cannot be sent now are sent on the next call.
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
