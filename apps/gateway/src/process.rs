//! The gateway as an agent, and its process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::Context;
use tickpath_admin::AdminThread;
use tickpath_admission::PreLoginLimits;
use tickpath_agent::{Agent, AgentError, Runner, StopSignal, ThreadPlan, TscClock};
use tickpath_gateway_core::{AdminCommand, Bans, Control, Core, Life, Policy, label::session_at};
use tickpath_gateway_io::{ClientPort, ClientPortConfig, monotonic};
use tickpath_gateway_protocol::{GatewayState, SessionId, Text};
use tickpath_shm::{Folder, SegmentName};
use tickpath_types::Nanos;

use crate::admin::{self, AdminPort, GatewayStatus};
use crate::config::GatewayConfig;
use crate::doorway::{Capabilities, Doorway};
use crate::event_log::{EventLog, LogCounters, LogSettings};
use crate::kill_marker::KillMarker;
use crate::metrics::{Exception, Function, GatewayMetrics};
use crate::recorder::Recorded;
use crate::users::{LoginChecker, UserPassword, passwords};
use crate::venue::{AccountKey, Streams, keys};

pub use crate::view::GatewayView;

/// Maximum number of connection messages that wait to be printed; further ones are dropped.
const NOTES_MAX: usize = 256;
/// Interval of order warm-ups while there is no work.
pub const REHEARSE_INTERVAL: Nanos = Nanos::from_micros(20);
/// Interval at which the clocks are compared.
const CLOCK_INTERVAL: Nanos = Nanos::from_secs(1);
/// Number of reads of both clocks in a comparison.
const CLOCK_READS: usize = 8;
/// Interval at which the view is updated and commands are taken.
const SHOW_INTERVAL: Nanos = Nanos(1_000_000);
/// Interval at which idle venue sockets are polled. A poll costs a system call, which delays a client's
/// request; data from a network is microseconds old by then anyway.
const LOOK_INTERVAL: Nanos = Nanos(500);
/// Maximum delay of a poll of the venue's sockets while clients have requests.
const LOOK_DELAY_MAX: Nanos = Nanos(10_000);
/// Maximum time to cancel clients' orders once the gateway's thread ends; longer waits happen before that.
const STOP_PATIENCE: Nanos = Nanos(1_500_000_000);

/// The gateway: one agent that serves clients and venue in turn.
pub struct GatewayAgent {
    core: Recorded,
    doorway: Doorway,
    streams: Streams,
    clock: TscClock,
    ahead_ns: u64,
    clocks_at: Nanos,
    timer_interval: Nanos,
    timer_at: Nanos,
    look_at: Nanos,
    show_at: Nanos,
    view: Arc<GatewayView>,
    admin: AdminPort,
    control: Control,
    closing: StopSignal,
    stopping_since: Option<Nanos>,
}

/// Endpoints of a gateway.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Unix socket that clients connect to.
    pub socket: PathBuf,
    /// Shared-memory segment of market data.
    pub segment: PathBuf,
    /// File that exists while the kill switch is on.
    pub kill_marker: PathBuf,
    /// WebSocket URI of the venue.
    pub venue: String,
    /// Transport of orders, for display.
    pub orders: String,
}

/// A gateway that is built but not running.
pub struct Gateway {
    /// Its only agent.
    pub agent: GatewayAgent,
    /// Its endpoints.
    pub endpoints: Endpoints,
    /// Messages about failures of the venue's connections.
    pub notes: Receiver<String>,
    /// The kill switch, and limits that a risk manager publishes.
    pub control: Control,
    /// Makes the gateway reject new orders, disconnect clients and cancel their orders while its thread
    /// continues to run. The view shows the remaining work.
    pub closing: StopSignal,
    /// Bans, in the order of the users' names.
    pub bans: Bans,
    /// State of the running gateway.
    pub view: Arc<GatewayView>,
    /// Metrics of the gateway.
    pub metrics: Arc<GatewayMetrics>,
    /// Counters of its event log.
    pub log_counters: Arc<LogCounters>,
    /// The admin socket, if there is one.
    pub admin: Option<AdminThread>,
}

impl Gateway {
    /// Opens the client port and prepares the connections. `file` is the configuration's path, for the
    /// secrets in it. `folder` is the folder of the market data segment, the default one when absent.
    ///
    /// # Errors
    /// An error in one line that names what cannot be opened, found or read, and says what to do.
    pub fn build(
        config: &GatewayConfig,
        file: Option<&Path>,
        folder: Option<&Path>,
        clock: TscClock,
    ) -> anyhow::Result<Gateway> {
        let (notes, to_print) = sync_channel(NOTES_MAX);
        let (keys, passwords) = check_secrets(config, file)?;
        let mut streams = Streams::new(config, &keys, notes)?;
        let checker = LoginChecker::start(passwords).context("cannot start a thread")?;
        let settings = config.settings()?;
        let (policy, control) = Policy::new(&settings);
        let bans = policy.bans();
        let folder = Folder::create(&folder.map_or_else(Folder::usual_path, Path::to_owned))?;
        let segment = SegmentName::new(&config.name)?;
        let marker = KillMarker::of(config)
            .with_context(|| format!("state_folder {}", config.state_folder().display()))?;
        let endpoints = Endpoints {
            kill_marker: marker.path().to_owned(),
            socket: config.client_socket(),
            segment: folder.file(&segment),
            venue: config.venue.ws_uri.clone(),
            orders: config.venue.order_door(),
        };
        let door = ClientPort::open(door_config(config, folder, segment))?;
        let ahead_ns = ahead_of_monotonic(clock);
        let session = door.session();
        let life = Life {
            session,
            label_session: session_at(clock.now()),
            seed: session.0[0] ^ session.0[1].rotate_left(17),
            ahead_ns,
        };
        let log = open_log(config, session, clock)?;
        let log_counters = log.counters();
        let mut core = Recorded::new(Core::new(settings.clone(), life, policy), life, clock.now(), log);
        let capabilities = Capabilities {
            cancels: config.clients.cancel_on_disconnect,
            is_production: config.production,
            is_dry_run: config.dry_run,
        };
        let traders = config.users.values().map(|user| !user.accounts.is_empty()).collect();
        let names: Vec<String> =
            (0..core.stream_count()).map(|stream| core.stream_name(stream).as_str().to_owned()).collect();
        let mut metrics = GatewayMetrics::of(&config.name, config.clients.max as usize, &names);
        if let Some(first_fix) = streams.first_fix() {
            metrics = metrics.with_fix_from(first_fix);
        }
        let metrics = Arc::new(metrics);
        let view = Arc::new(GatewayView::new(&core, clock.now().0, streams.loss_texts()));
        let mut doorway =
            Doorway::new(door, checker, bans.clone(), traders, capabilities, Arc::clone(&metrics));
        let admin_socket = config.admin_socket();
        let status = GatewayStatus::new(
            config,
            &settings,
            Arc::clone(&view),
            Arc::clone(&metrics),
            control.clone(),
            bans.clone(),
        );
        let (admin, port) = admin::open_socket(&admin_socket, marker.clone(), status)?;
        if marker.is_there() {
            core.handle_admin(clock.now(), &AdminCommand::Kill, &control, &mut doorway);
        }
        let closing = StopSignal::new();
        streams.start(clock.now());
        let agent = GatewayAgent {
            core,
            doorway,
            streams,
            clock,
            ahead_ns,
            clocks_at: Nanos::ZERO,
            timer_interval: config.duty_cycle.timer_interval.0,
            timer_at: Nanos::ZERO,
            look_at: Nanos::ZERO,
            show_at: Nanos::ZERO,
            view: Arc::clone(&view),
            admin: port,
            control: control.clone(),
            closing: closing.clone(),
            stopping_since: None,
        };
        let admin = Some(admin);
        Ok(Gateway {
            agent,
            endpoints,
            notes: to_print,
            control,
            closing,
            bans,
            view,
            metrics,
            log_counters,
            admin,
        })
    }
}

/// The keys of the accounts, and the users with their passwords, each sorted by name.
pub type Secrets = (Vec<AccountKey>, Vec<(String, UserPassword)>);

/// Reads all secrets of a configuration; `file` is its path.
///
/// # Errors
/// A secret is missing, or others can read it.
pub fn check_secrets(config: &GatewayConfig, file: Option<&Path>) -> anyhow::Result<Secrets> {
    Ok((keys(config, file)?, passwords(config, file)?))
}

/// Nanoseconds by which the gateway's clock is ahead of the monotonic clock.
///
/// The two clocks cannot be read at once. A read that is delayed, for example because its code is not in the
/// cache, would shift all times between processes by microseconds, so the closest of some reads counts.
fn ahead_of_monotonic(clock: TscClock) -> u64 {
    let read = |_| {
        let (before, at, after) = (monotonic().0, clock.now().0, monotonic().0);
        (after.saturating_sub(before), at.saturating_sub(before.midpoint(after)))
    };
    (0..CLOCK_READS).map(read).min().map_or(0, |(_, ahead_ns)| ahead_ns)
}

fn open_log(config: &GatewayConfig, session: SessionId, clock: TscClock) -> anyhow::Result<EventLog> {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&session.0[0].to_be_bytes());
    id[8..].copy_from_slice(&session.0[1].to_be_bytes());
    match LogSettings::of(config, id) {
        None => Ok(EventLog::off()),
        Some(settings) => {
            let folder = settings.folder.clone();
            let text = tickpath_config::to_toml(config);
            EventLog::start(settings, &text, clock.now())
                .with_context(|| format!("event_log.folder {}", folder.display()))
        }
    }
}

fn door_config(config: &GatewayConfig, folder: Folder, segment: SegmentName) -> ClientPortConfig {
    let clients = &config.clients;
    ClientPortConfig {
        gateway: Text::cut(&config.name),
        exchange: Text::cut(&config.venue.exchange),
        clients_max: clients.max as usize,
        pre_login: PreLoginLimits {
            connections: clients.pre_login_max as usize,
            per_address: clients.pre_login_per_process as usize,
            deadline: clients.login_timeout.0,
        },
        requests_max: clients.requests_max.into(),
        events_max: clients.events_max.into(),
        broadcasts_max: clients.market_data_max.into(),
        heartbeat: clients.heartbeat.0,
        ..ClientPortConfig::new(&config.client_socket(), folder, segment)
    }
}

impl GatewayAgent {
    /// The gateway core.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Starts the gateway's thread with the configured core and idle strategy.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(self, config: &GatewayConfig, clock: TscClock, stop: StopSignal) -> anyhow::Result<Runner> {
        let plan = ThreadPlan {
            name: "gateway".to_owned(),
            core: config.duty_cycle.core,
            idle: config.duty_cycle.idle,
            warm_up_interval: Some(REHEARSE_INTERVAL),
            agents: vec![Box::new(self)],
            cycle: Vec::new(),
        };
        Ok(Runner::start(vec![plan], clock, stop)?)
    }

    #[inline]
    fn keep_house(&mut self, now: Nanos) {
        if now >= self.clocks_at {
            self.clocks_at = now + CLOCK_INTERVAL;
            // The two clocks drift apart, so their difference is measured again.
            self.ahead_ns = ahead_of_monotonic(self.clock);
            self.core.set_ahead(now, self.ahead_ns);
            self.view.show_parts(&self.core);
        }
    }

    /// Executes the commands of the admin socket.
    fn poll_admin(&mut self, now: Nanos) {
        while let Some((id, command)) = self.admin.poll() {
            self.core.handle_admin(now, &command, &self.control, &mut self.doorway);
            // The answer includes the command's consequences.
            self.core.poll(now, &mut self.doorway, &mut self.streams);
            self.streams.flush();
            self.show(now);
            self.view.show_parts(&self.core);
            self.admin.answer(id, ());
        }
    }

    fn show(&self, now: Nanos) {
        let counters = self.core.counters();
        let view = &self.view;
        self.show_state(now, self.core.state());
        view.clients.set(self.doorway.door().client_count() as u64);
        view.requests.set(counters.requests);
        view.refused.set(counters.refused);
        view.open_orders.set(self.core.orders().live_count() as u64);
        view.messages.set(counters.messages);
        view.broadcasts.set(self.doorway.door().broadcasts());
        view.instruments.set(self.core.instruments().len() as u64);
        view.faults.set(counters.faults);
        view.doubts.set(counters.doubts);
        let (foreign, unreadable) = self.core.foreign_orders();
        view.foreign.set(foreign.into());
        view.unreadable.set(unreadable.into());
        view.elsewhere.set(counters.orders_elsewhere);
        view.listed.set(self.core.listed_instruments());
        if self.stopping_since.is_some() {
            view.cancels_left.set(self.core.cancels_wanted() as u64);
        }
        let metrics = self.doorway.metrics();
        metrics.clients_connected.set(view.clients.read());
        metrics.open_orders.set(view.open_orders.read());
        metrics.is_killed.set(u64::from(self.control.is_killed()));
        metrics.streams_ready.set(self.core.ready_streams() as u64);
        metrics.bans.set(self.core.policy().counts().1);
        self.doorway.note_door();
        metrics.set_exceptions(Exception::Book, counters.books_lost);
        metrics.set_exceptions(Exception::Number, counters.faults);
        metrics.set_exceptions(Exception::Doubt, counters.doubts);
        metrics.set_exceptions(Exception::Full, counters.orders_left_out + counters.instruments_left_out);
        view.losses.set(
            (0..self.core.stream_count()).filter_map(|at| self.streams.stats(at)).map(|it| it.losses).sum(),
        );
    }

    /// Rejects new orders from now on, disconnects clients, and cancels their orders if configured.
    #[cold]
    fn begin_to_stop(&mut self, now: Nanos) -> Nanos {
        self.core.stop(now);
        self.core.poll(now, &mut self.doorway, &mut self.streams);
        self.doorway.stop();
        *self.stopping_since.insert(now)
    }

    fn show_state(&self, now: Nanos, state: GatewayState) {
        let state = u64::from(state.0);
        if self.view.state.read() != state {
            self.view.state_since_ns.set(now.0);
            self.view.show_parts(&self.core);
            self.view.state.set(state);
        }
    }

    /// Handles clients' requests, then venue messages and core timers; returns the amount of work.
    #[inline]
    fn work(&mut self, now: Nanos) -> usize {
        let GatewayAgent { core, doorway, streams, clock, .. } = self;
        let asked = doorway.poll(now, self.ahead_ns, *clock, core, streams);
        if asked > 0 {
            let begun = clock.now();
            streams.flush();
            let written = clock.now();
            doorway.note_written(written);
            doorway.metrics().profile(Function::Write).record(written.since(begun).0);
        }
        let mut work = asked;
        let patience = if asked > 0 { LOOK_DELAY_MAX } else { Nanos::ZERO };
        if now >= self.look_at + patience {
            let found = streams.poll(now, *clock, core, doorway);
            self.look_at = if found > 0 { now } else { now + LOOK_INTERVAL };
            work += found;
        }
        if work > 0 || now >= self.timer_at {
            self.timer_at = now + self.timer_interval;
            let waiting = core.poll(now, doorway, streams);
            if waiting > 0 {
                streams.flush();
            }
            work += waiting;
        }
        work
    }
}

impl Agent for GatewayAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.keep_house(now);
        let work = self.work(now);
        if work > 0 {
            self.doorway.metrics().profile(Function::DutyCycle).record(self.clock.now().since(now).0);
        }
        if now >= self.show_at {
            self.show_at = now + SHOW_INTERVAL;
            self.poll_admin(now);
            self.show(now);
            if self.stopping_since.is_some() {
                self.view.is_closed.set(u64::from(work == 0 && !self.core.has_cancels()));
            } else if self.closing.is_stopped() {
                self.begin_to_stop(now);
            }
        }
        Ok(work)
    }

    fn warm_up(&mut self, now: Nanos) {
        self.core.rehearse(now, &mut self.doorway, &mut self.streams);
    }

    fn role_name(&self) -> &'static str {
        "gateway"
    }

    /// Ends the log once everything recorded is on disk.
    fn on_close(&mut self) {
        self.core.finish();
    }

    /// Rejects new orders, disconnects clients, cancels orders if configured, and closes the connections.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        let since = match self.stopping_since {
            Some(since) => since,
            None => self.begin_to_stop(now),
        };
        let work = self.work(now);
        let is_done = work == 0 && !self.core.has_cancels();
        if !is_done && now.since(since) < STOP_PATIENCE {
            return Ok(false);
        }
        self.show(now);
        let GatewayAgent { core, doorway, streams, clock, .. } = self;
        streams.stop(now, *clock, core, doorway);
        self.show_state(now, GatewayState::STOPPING);
        Ok(true)
    }
}
