//! Generates ticks and sends them to any number of subscribers.
//!
//! One thread serves all clients. It writes each due tick once, into a backlog that all subscribers share,
//! and sends each subscriber the ticks from its own place on. If a subscriber listed symbols, it first copies
//! the ticks of these symbols into a separate buffer. With [`ServeSettings::threads`] above 1, other threads
//! generate the ticks; the sequence numbers remain consecutive.
//!
//! ```
//! use tickpath_agent::{Agent, TscClock};
//! use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};
//! use tickpath_ticks_app::server::{ServeSettings, TicksServer};
//!
//! let market = TickGeneratorConfig::market(MarketRegime::Neutral, 100, 7);
//! let clock = TscClock::shared();
//! let mut server = TicksServer::open(&ServeSettings::new(market), clock)?;
//! while server.counters().ticks < 100 {
//!     server.do_work(clock.now())?;
//! }
//! while !server.finish(clock.now())? {}
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backlog;
mod client;
mod counters;
mod directory;
mod faults;
mod listen;
mod pace;
mod run;
mod selection;
mod settings;
mod source;
mod tick_writer;

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, anyhow, ensure};
use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::{Agent, AgentError, TscClock};
use tickpath_net::{Kernel, NetError, Network, Poller};
use tickpath_ticks::message::{EndReason, TICK_LEN};
use tickpath_types::Nanos;

use backlog::Backlog;
use client::{CLOSE_TIME, Client, ConnectionEnd, Flush, Socket};
pub use counters::ServerCounters;
use directory::Directory;
use faults::LinkFault;
use pace::Pace;
pub use run::{ServeEnd, ServeReport, serve};
use selection::TickSelection;
pub use settings::{FaultSettings, ServeSettings, SlowClient, TickRate};
use source::Source;

/// Maximum number of symbols in a session: their numbers have 16 bits and start at 1.
const SYMBOLS_MAX: usize = 65_535;
/// Maximum number of socket events that one poll returns.
const EVENTS_MAX: usize = 64;
/// Interval at which sockets are polled.
const POLL_INTERVAL: Nanos = Nanos::from_micros(100);
/// Interval of the checks for silent clients and due heartbeats.
const SWEEP_INTERVAL: Nanos = Nanos::from_millis(10);
/// Number of heartbeat intervals after which a client that sends nothing is disconnected.
const SILENT_HEARTBEATS: u64 = 5;
/// Maximum number of bytes in one read from a client.
const READ_LEN: usize = 4 << 10;

/// The server: an [`Agent`] that generates ticks and sends them.
pub struct TicksServer {
    settings: ServeSettings,
    clock: TscClock,
    session: u64,
    poller: Poller,
    /// Copy of the poller's last result, so that the poller is not borrowed while its sockets are served.
    ready: Vec<tickpath_net::Ready>,
    listener: Socket,
    local_address: SocketAddrV4,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    live: usize,
    /// Clients that have not subscribed yet, by their indices in `clients`.
    pre_login: PreLogin<Ipv4Addr>,
    /// Clients that have subscribed, by their indices in `clients`.
    subscribed: PreLogin<Ipv4Addr>,
    /// Number of connections accepted since the start.
    connections: u64,
    directory: Directory,
    source: Source,
    backlog: Backlog,
    pace: Pace,
    has_started: bool,
    /// Number of unsealed ticks that triggers a flush before `next_flush`.
    fill: u64,
    selection: TickSelection,
    counters: ServerCounters,
    /// Index of the client that the next flush begins with; the clients take turns.
    turn: usize,
    /// Place of the most advanced subscriber; `None` without subscribers.
    furthest: Option<u64>,
    /// True if the kernel has accepted bytes again for a blocked subscriber since the last flush.
    has_unblocked: bool,
    next_flush: Nanos,
    next_poll: Nanos,
    next_sweep: Nanos,
    is_shutting_down: bool,
}

impl TicksServer {
    /// Opens the listener and prepares the server.
    ///
    /// # Errors
    /// The address is in use or not of this machine, or a setting is invalid.
    pub fn open(settings: &ServeSettings, clock: TscClock) -> anyhow::Result<TicksServer> {
        let symbols = settings.market.symbols.len();
        ensure!(symbols <= SYMBOLS_MAX, "{symbols} symbols: give 1 to {SYMBOLS_MAX}");
        ensure!(settings.heartbeat_ms > 0, "a heartbeat interval of 0 ms: give 1 to 65535");
        let source = Source::start(&settings.market, settings.threads)?;
        // One address may hold all connections, as long as no other address needs one.
        let places = PreLoginLimits {
            connections: settings.clients_max,
            per_address: settings.clients_max,
            // No deadline: `check_client` disconnects clients that send nothing.
            deadline: Nanos(u64::MAX),
        };
        // File descriptors: `clients_max` for subscribers, as many for connections without a subscription,
        // one for each connection being refused, and a reserve.
        let wanted = 2 * settings.clients_max as u64 + listen::REFUSED_MAX as u64 + 64;
        let files = tickpath_net::raise_open_files(wanted)?;
        ensure!(
            files >= wanted,
            "the limit of open files is {files}: raise it by ulimit -n {wanted}, or lower --clients-max"
        );
        let (listener, local_address) = Kernel.listen(settings.listen).map_err(|error| match error {
            NetError::AddressInUse { address } => {
                anyhow!("{address} is in use, perhaps by another ticks server: choose another port")
            }
            error => error.into(),
        })?;
        let poller = Poller::new(EVENTS_MAX)?;
        poller
            .add(&listener, listen::LISTENER_KEY, tickpath_net::Interest::Read)
            .context("cannot watch for clients")?;
        let now = clock.now();
        let backlog = Backlog::new(settings.backlog);
        // The field below is clamped to at most half of the lag that `unpaced_count` permits.
        let fill = (settings.fill_bytes / TICK_LEN) as u64;
        Ok(TicksServer {
            session: now.0,
            poller,
            ready: Vec::with_capacity(EVENTS_MAX),
            listener,
            local_address,
            clients: Vec::with_capacity(settings.clients_max),
            free: Vec::with_capacity(settings.clients_max),
            live: 0,
            pre_login: PreLogin::new(places),
            subscribed: PreLogin::new(places),
            connections: 0,
            directory: Directory::new(&settings.market),
            source,
            fill: fill.clamp(1, backlog.retained() / 4),
            backlog,
            pace: Pace::new(settings.rate, now),
            has_started: false,
            selection: TickSelection::new(),
            counters: ServerCounters::default(),
            turn: 0,
            furthest: None,
            has_unblocked: false,
            next_flush: Nanos::ZERO,
            next_poll: Nanos::ZERO,
            next_sweep: Nanos::ZERO,
            is_shutting_down: false,
            clock,
            settings: settings.clone(),
        })
    }

    /// Returns the address to which clients connect.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Returns the server's counters.
    #[must_use]
    pub fn counters(&self) -> &ServerCounters {
        &self.counters
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.live
    }

    /// Returns the time until which there is no work unless a client sends something. A thread without a
    /// dedicated core may sleep until then.
    #[must_use]
    pub fn idle_until(&self) -> Nanos {
        let next_ticks = match self.settings.rate {
            TickRate::PerSecond(_) if self.settings.coalesce == Nanos::ZERO => self.pace.next_due(),
            TickRate::PerSecond(_) => self.next_flush.max(self.pace.next_due()),
            TickRate::Max if self.furthest.is_some() => Nanos::ZERO,
            TickRate::Max => self.next_sweep,
        };
        next_ticks.min(self.next_sweep)
    }

    /// Generates the due ticks; returns their number.
    #[inline]
    fn make(&mut self, now: Nanos) -> u64 {
        let wanted = match self.settings.rate {
            TickRate::PerSecond(_) => self.pace.due(now, self.backlog.burst_max()),
            TickRate::Max => self.unpaced_count(),
        };
        let is_paced = matches!(self.settings.rate, TickRate::PerSecond(_));
        let mut left =
            wanted.min(self.backlog.burst_max() - (self.backlog.written() - self.backlog.sealed()));
        let made = self.backlog.written();
        let now = if is_paced || left == 0 { now } else { self.clock.now() };
        while left > 0 {
            let place = self.backlog.written();
            let room = self.backlog.write_space(left as usize);
            let pace = &mut self.pace;
            let next_ts = || if is_paced { pace.take() } else { now };
            let count = self.source.take(place, room, next_ts);
            self.backlog.commit(count);
            left -= count as u64;
            if count == 0 {
                break;
            }
        }
        let count = self.backlog.written() - made;
        self.counters.ticks += count;
        count
    }

    /// Returns the number of ticks to generate at [`TickRate::Max`]: enough for one write, or 0 if even the
    /// most advanced subscriber would then lag by more than a quarter of the backlog.
    fn unpaced_count(&self) -> u64 {
        let Some(furthest) = self.furthest else { return 0 };
        let behind = self.backlog.written() - furthest;
        if behind + self.fill <= self.backlog.retained() / 2 { self.fill } else { 0 }
    }

    /// Returns true if the written ticks must be sent now, or a subscriber is no longer blocked.
    #[inline]
    fn is_flush_due(&self, now: Nanos) -> bool {
        let waiting = self.backlog.written() - self.backlog.sealed();
        if waiting == 0 {
            return self.has_unblocked;
        }
        now >= self.next_flush || waiting >= self.fill
    }

    /// Seals the written ticks (adds send time and checksum) and sends them to all subscribers.
    #[inline]
    fn flush(&mut self, now: Nanos) {
        let sent_at = self.clock.now();
        self.backlog.seal(sent_at);
        if self.settings.coalesce > Nanos::ZERO {
            // Keep the write times on a fixed grid, independent of the duration of a duty cycle.
            let interval = self.settings.coalesce;
            let next = self.next_flush + interval;
            self.next_flush = if next > now { next } else { now + interval };
        }
        self.has_unblocked = false;
        self.furthest = None;
        let count = self.clients.len();
        for at in (self.turn..count).chain(0..self.turn.min(count)) {
            self.flush_client(at, sent_at);
        }
        self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
    }

    /// Sends the messages and ticks of one client, as far as the kernel accepts them.
    #[inline]
    fn flush_client(&mut self, at: usize, now: Nanos) {
        let Some(client) = &mut self.clients[at] else { return };
        let was_blocked = client.is_blocked;
        let mut flush = Flush {
            backlog: &self.backlog,
            states: self.source.states(),
            counters: &mut self.counters,
            selection: &mut self.selection,
            policy: self.settings.slow_client,
            now,
        };
        let result = client.flush(&mut flush);
        if let Some(place) = client.tick_place() {
            self.furthest = Some(self.furthest.unwrap_or(0).max(place));
        }
        let is_blocked = client.is_blocked;
        match result {
            Err(ConnectionEnd::Lost) => self.close(at),
            _ if is_blocked && !was_blocked => self.watch_writable(at, true),
            _ => {}
        }
    }

    /// Checks each client's faults, silence, lag and heartbeat. Drops all due ticks if the oldest of them is
    /// more than a second late.
    fn sweep(&mut self, now: Nanos) {
        self.next_sweep = now + SWEEP_INTERVAL;
        self.counters.given_up += self.pace.drop_late(now);
        for at in 0..self.clients.len() {
            self.check_client(at, now);
        }
    }

    fn check_client(&mut self, at: usize, now: Nanos) {
        let heartbeat = Nanos::from_millis(self.settings.heartbeat_ms.into());
        let silent = Nanos(heartbeat.0 * SILENT_HEARTBEATS);
        let Some(client) = &mut self.clients[at] else { return };
        if client.closes_at().is_some_and(|deadline| now >= deadline) {
            return self.close(at);
        }
        if let Some(fault) = client.faults.as_mut().and_then(|faults| faults.due(now)) {
            match fault {
                LinkFault::StallUntil(end) => {
                    self.counters.fault_stalls += 1;
                    client.stalled_until = end;
                }
                LinkFault::Disconnect => {
                    self.counters.fault_disconnects += 1;
                    return self.close(at);
                }
            }
        }
        if client.closes_at().is_none() && now.since(client.last_received) > silent {
            self.counters.silent += 1;
            client.end(EndReason::Silent, now, now + CLOSE_TIME);
        } else if self.settings.slow_client == SlowClient::Disconnect && client.is_too_slow(&self.backlog) {
            self.counters.slow += 1;
            self.counters.slow_disconnected += 1;
            client.end(EndReason::TooSlow, now, now + CLOSE_TIME);
        } else if now.since(client.last_sent) >= heartbeat && client.queue_heartbeat(now) {
            self.counters.heartbeats += 1;
        }
        if client.has_messages() || client.stalled_until != Nanos::ZERO && now >= client.stalled_until {
            client.stalled_until =
                if now >= client.stalled_until { Nanos::ZERO } else { client.stalled_until };
            self.flush_messages(at, now);
        }
    }

    /// Begins the shutdown: sends the last ticks, and then End of Stream, to all clients.
    fn start_shutdown(&mut self, now: Nanos) {
        self.is_shutting_down = true;
        self.flush(now);
        for client in self.clients.iter_mut().flatten() {
            client.end(EndReason::ServerStops, now, now + CLOSE_TIME);
        }
    }
}

impl Agent for TicksServer {
    #[inline]
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if !self.has_started {
            self.has_started = true;
            self.pace = Pace::new(self.settings.rate, now);
            self.next_flush = now + self.settings.coalesce;
        }
        let mut work = 0;
        if now >= self.next_poll {
            work += self.poll_sockets(now).map_err(AgentError::fatal)?;
            self.next_poll = now + POLL_INTERVAL;
        }
        work += self.make(now) as usize;
        if self.is_flush_due(now) {
            self.flush(now);
            work += 1;
        }
        if now >= self.next_sweep {
            self.sweep(now);
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        "ticks-server"
    }

    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        if !self.is_shutting_down {
            self.start_shutdown(now);
        }
        self.poll_sockets(now).map_err(AgentError::fatal)?;
        for at in 0..self.clients.len() {
            self.flush_messages(at, now);
            self.check_client(at, now);
        }
        Ok(self.live == 0)
    }
}
