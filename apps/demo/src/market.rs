//! Starts the complete market: venue, feed handler, traders, and the background flow or a recorded flow.

use std::net::SocketAddrV4;
use std::sync::Arc;

use anyhow::Context;
use tickpath_agent::{Agent, Runner, StopSignal, TscClock};
use tickpath_capture::Recording;
use tickpath_capture::flow::{FlowLimits, Mapper};
use tickpath_config::TEST_PASSWORD;
use tickpath_exchange::{
    AdminSocket, DrainWatch, Endpoints, JournalSettings, Password, UserSettings, Venue, VenueSettings,
    VenueTracers, VenueView,
};
use tickpath_feed::{ArbiterConfig, LossConfig, LossModel};
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView, LineReader, Senders, SnapshotSources};
use tickpath_flowgen::{BackgroundFlow, BackgroundFlowConfig};
use tickpath_lockfree::{broadcast, records, spsc};
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_net::{Kernel, free_multicast_group};
use tickpath_timing::{Joiner, JoinerConfig, Stamp, Trace};
use tickpath_trader::{EngineAgent, EngineIdentity, EngineRings, GatewaySettings, OrderEntry, OrderGateway};
use tickpath_trading::{
    EngineConfig, KillSwitch, Limits, LiquidityTaker, MarketMaker, RECONCILE_AFTER, Strategy, TradeEngine,
    TraderView, WarmUp,
};
use tickpath_types::{Instrument, InstrumentTable, MarketUpdate, Nanos, Qty, SessionId};

use crate::background_flow::BackgroundFlowAgent;
use crate::flow::{FlowAgent, FlowOutcome, FlowReader};
use crate::participant::{SharedPhase, SourceView};
use crate::probe::Probe;
use crate::retention::JournalRetention;
use crate::settings::{BACKGROUND_FLOW, DemoSettings, FLOW, ORDER_GATEWAY};

/// Capacity of an agent's stamp ring: one second's stamps of the busiest agent at the default rate.
const TRACE_CAPACITY: usize = 1 << 18;
/// Bounds of the [`Joiner`] of stamps, sufficient for the fastest flow: 250,000 requests per second.
const JOINER: JoinerConfig = JoinerConfig {
    market_capacity: 1 << 17,
    command_capacity: 1 << 17,
    token_capacity: 1 << 17,
    age: Nanos::from_millis(250),
};
/// Capacity of an engine's queue of market updates: more than 100 ms of updates at the default rate.
const UPDATE_CAPACITY: usize = 1 << 14;
/// Capacity of the request ring and of the event ring between an engine and its gateway.
const ORDER_CAPACITY: usize = 1 << 12;
/// Number of order entry messages retained per user, to be sent again after a reconnect.
const RETAINED_RESPONSES: usize = 1 << 16;
/// Number of market data messages retained for retransmission.
const RETAINED_MESSAGES: usize = 1 << 19;
/// Maximum number of open orders at the venue.
const MAX_OPEN_ORDERS: u32 = 1 << 18;
/// Maximum number of open orders per session: the venue's maximum, because one session enters all resting
/// orders of a recorded flow.
const MAX_OPEN_ORDERS_PER_SESSION: u32 = 1 << 18;
/// Number of connections that the venue accepts in addition to one for each user.
const SPARE_CONNECTIONS: usize = 10;
/// Time without messages after which the publisher sends heartbeats on the multicast lines.
const HEARTBEAT: Nanos = Nanos::from_millis(100);
/// Maximum number of open orders of the probe. Each is open until the venue answers it.
const PROBES_OPEN_MAX: u32 = 16;
/// Minimum interval between the orders of the probe.
const PROBE_INTERVAL: Nanos = Nanos::from_millis(1);

/// Handle for observing a trader and for stopping its orders.
pub(crate) struct TraderHandle {
    pub(crate) name: &'static str,
    pub(crate) view: TraderView,
    pub(crate) kill: KillSwitch,
}

/// Handle for observing the source of orders: the background flow or a recorded flow.
pub(crate) struct SourceHandle {
    pub(crate) name: &'static str,
    pub(crate) view: SourceView,
    /// Number of the source's sessions.
    pub(crate) sessions: usize,
    /// The result of a recorded flow; `None` for the background flow.
    pub(crate) flow: Option<FlowOutcome>,
}

/// A running market.
pub(crate) struct Market {
    pub(crate) instruments: InstrumentTable,
    pub(crate) endpoints: Endpoints,
    pub(crate) venue: VenueView,
    pub(crate) feed: FeedView,
    pub(crate) traders: Vec<TraderHandle>,
    pub(crate) source: SourceHandle,
    pub(crate) shared_phase: SharedPhase,
    pub(crate) updates: broadcast::Receiver<MarketUpdate>,
    pub(crate) rings: Vec<records::Consumer<Stamp>>,
    pub(crate) joiner: Joiner,
    pub(crate) clock: TscClock,
    pub(crate) runner: Runner,
    /// Core to which each of the runner's threads is pinned; `None` for an unpinned thread.
    pub(crate) cores: Vec<Option<usize>>,
    /// Core of the calling thread, which drains the traces and draws the view.
    pub(crate) observer: Option<usize>,
    pub(crate) stop: StopSignal,
    /// The venue's admin socket, and the watch that detects the end of a drain, which ends the market.
    pub(crate) admin: Option<(AdminSocket, DrainWatch)>,
    /// The journal's folder and threads; the threads end after those of the venue.
    pub(crate) journal_retention: JournalRetention,
}

/// Agents, and the rings of their tracers, that are collected before the threads start.
struct Builder {
    clock: TscClock,
    agents: Vec<Box<dyn Agent>>,
    rings: Vec<records::Consumer<Stamp>>,
    instruments: InstrumentTable,
    updates: Vec<broadcast::Receiver<MarketUpdate>>,
    order_entry: SocketAddrV4,
    traders: Vec<TraderHandle>,
    /// The gateway with the sessions of the traders added so far.
    gateway: Option<OrderGateway<Trace>>,
}

/// Returns a new tracer, and adds the ring of its stamps to `rings`.
fn new_trace(rings: &mut Vec<records::Consumer<Stamp>>) -> Trace {
    let (trace, ring) = Trace::new(TRACE_CAPACITY);
    rings.push(ring);
    trace
}

impl Builder {
    /// Adds an engine and its session of the order gateway. Engines and sessions are numbered in the order of
    /// the calls.
    fn add_trader<S: Strategy + Send + 'static>(
        &mut self,
        name: &'static str,
        user: &str,
        limits: impl Fn(&Instrument) -> Limits,
        strategy: WarmUp<S>,
    ) -> anyhow::Result<()> {
        let index = self.traders.len();
        let session = SessionId(index as u16 + 1);
        let (requests, requests_out) = spsc::channel(ORDER_CAPACITY);
        let (events_in, events) = spsc::channel(ORDER_CAPACITY);
        let kill = KillSwitch::default();
        let limits: Vec<_> = self.instruments.as_slice().iter().map(limits).collect();
        let trace = new_trace(&mut self.rings);
        let WarmUp { strategy, instance } = strategy;
        let engine = TradeEngine::new(
            &EngineConfig::default(),
            self.instruments.as_slice(),
            &limits,
            strategy,
            trace,
        )?;
        let updates = self.updates.pop().context("one receiver of market updates for each trader")?;
        let engine = EngineAgent::new(
            EngineIdentity { role: name, feed: 0, engine: index as u8, session },
            engine,
            EngineRings { updates, events, requests },
            kill.clone(),
        )
        .warmed_up_by(instance);
        let view = engine.view();
        self.agents.push(Box::new(engine));
        let settings = GatewaySettings {
            role: ORDER_GATEWAY,
            address: self.order_entry,
            user: user.to_owned(),
            password: TEST_PASSWORD.to_owned(),
            session,
            instruments: self.instruments.clone(),
            reconcile_after: RECONCILE_AFTER,
        };
        let (clock, counters, trace) = (self.clock, Arc::clone(&view.gateway), new_trace(&mut self.rings));
        let session = OrderGateway::new(settings, requests_out, events_in, clock, counters, trace);
        self.gateway = Some(match self.gateway.take() {
            Some(gateway) => gateway.joined(session),
            None => session,
        });
        self.traders.push(TraderHandle { name, view, kill });
        Ok(())
    }

    fn log_in(&self, user: &str) -> anyhow::Result<OrderEntry> {
        let now = self.clock.now();
        Ok(OrderEntry::connect(self.order_entry, user, TEST_PASSWORD, self.instruments.clone(), now)?)
    }
}

impl Market {
    /// Opens all sockets, starts all threads, and leaves the market in its login phase.
    pub(crate) fn start(settings: &DemoSettings, clock: TscClock) -> anyhow::Result<Market> {
        let placement = settings.placement_on(&tickpath_agent::Host::describe().cores_allowed)?;
        let recorded = settings.flow.as_ref().map(|path| open_flow(path)).transpose()?;
        let instruments: Vec<Instrument> = match &recorded {
            Some((_, survey)) => survey.instruments(),
            None => settings.instruments.clone(),
        };
        anyhow::ensure!(!instruments.is_empty(), "the recording has no instrument that can be traded");
        let instruments = InstrumentTable::new(&instruments);
        let is_flow = recorded.is_some();
        let (trader_users, source_users): (&[&str], &[&str]) = if is_flow {
            (&["PROBE"], &["FLOWM", "FLOWT"])
        } else {
            (&["MAKER", "TAKER"], &["CROWD1", "CROWD2"])
        };
        let guests = settings.guests.settings(&instruments, settings.file.as_deref())?;
        let lines = [free_multicast_group()?, free_multicast_group()?];

        let mut journal_retention = JournalRetention::open(settings.journal.as_deref())?;
        let mut rings = Vec::new();
        let mut trace = || new_trace(&mut rings);
        let venue = Venue::build(
            &venue_settings(
                &instruments,
                settings.guests.address(),
                trader_users.iter().chain(source_users),
                guests,
                lines,
                journal_retention.settings(),
                settings.reader,
            ),
            clock,
            VenueTracers { order_server: trace(), matcher: trace(), publisher: trace() },
        )?;
        journal_retention.start(venue.journal)?;
        let admin = match &settings.admin {
            Some(admin) => Some((
                AdminSocket::open(&admin.socket, venue.admin, venue.instruments.clone(), venue.view.clone())?,
                DrainWatch::new(admin.drain.0),
            )),
            None => None,
        };
        let feed = FeedView::default();
        let (sender, watcher) = broadcast::channel(UPDATE_CAPACITY);
        let receivers = trader_users.iter().map(|_| sender.subscribe()).collect();
        let feed_handler = FeedHandler::open(
            &Kernel,
            &feed_settings(settings, &instruments, &venue.endpoints),
            sender,
            clock,
            &feed,
            trace(),
        )?;
        let mut builder = Builder {
            clock,
            agents: venue.agents,
            rings,
            instruments: instruments.clone(),
            updates: receivers,
            order_entry: venue.endpoints.order_entry,
            traders: Vec::new(),
            gateway: None,
        };
        builder.agents.push(Box::new(feed_handler));
        let count = instruments.as_slice().len();
        if is_flow {
            builder.add_trader("probe", "PROBE", probe_limits, Probe::new(PROBE_INTERVAL).into())?;
        } else {
            let maker = MarketMaker::warmed_up(Default::default());
            let limits = |instrument: &Instrument| settings.maker.in_lots(instrument);
            builder.add_trader("maker", "MAKER", limits, maker)?;
            builder.add_trader(
                "taker",
                "TAKER",
                |instrument| settings.taker.in_lots(instrument),
                WarmUp::of(|| LiquidityTaker::new(count)),
            )?;
        }
        builder.agents.extend(builder.gateway.take().map(|gateway| Box::new(gateway) as Box<dyn Agent>));

        let shared_phase = SharedPhase::default();
        let source = add_source(&mut builder, settings, recorded, source_users, &shared_phase)?;
        let stop = StopSignal::new();
        let plans = placement.plan(builder.agents)?;
        let cores = plans.iter().map(|plan| plan.core).collect();
        let joiner = Joiner::new(JOINER, *clock.calibration());
        let runner = Runner::start(plans, clock, stop.clone())?;
        Ok(Market {
            instruments,
            endpoints: venue.endpoints,
            venue: venue.view,
            feed,
            traders: builder.traders,
            source,
            shared_phase,
            updates: watcher,
            rings: builder.rings,
            joiner,
            clock,
            runner,
            cores,
            observer: placement.observer,
            stop,
            admin,
            journal_retention,
        })
    }

    /// Ends the market after `error`. Returns the error of a failed agent if there is one, otherwise `error`.
    pub(crate) fn end(self, error: anyhow::Error) -> anyhow::Error {
        self.stop.stop();
        self.runner.join().err().map_or(error, anyhow::Error::from)
    }
}

impl Market {
    /// Returns the number of logins by guests, that is, by clients from outside the demonstration.
    pub(crate) fn guests(&self) -> u64 {
        let own: u64 = self.traders.iter().map(|trader| 1 + trader.view.gateway.disconnects.read()).sum();
        self.venue.order_server.logins.read().saturating_sub(own + self.source.sessions as u64)
    }
}

fn open_flow(path: &std::path::Path) -> anyhow::Result<(Recording, tickpath_capture::flow::Survey)> {
    anyhow::ensure!(
        std::fs::metadata(path).map_or(true, |found| found.is_file()),
        "{} is not a file: name a regular file, because the recorded flow is read twice",
        path.display()
    );
    let survey = tickpath_capture::flow::survey(&mut Recording::open(path)?)?;
    Ok((Recording::open(path)?, survey))
}

fn venue_settings<'a>(
    instruments: &InstrumentTable,
    order_entry: SocketAddrV4,
    participants: impl Iterator<Item = &'a &'a str>,
    guests: Vec<UserSettings>,
    lines: [SocketAddrV4; 2],
    journal: JournalSettings,
    reader: LineReader,
) -> VenueSettings {
    let participant = |name: &&str| UserSettings::new(*name, Password::plain(TEST_PASSWORD));
    let users = participants.map(participant).chain(guests).collect();
    let session = Session::new("DEMO").expect("four letters name a session");
    let settings = VenueSettings::on_loopback(session, instruments.clone(), lines, users);
    VenueSettings {
        order_entry,
        max_connections: settings.users.len() + SPARE_CONNECTIONS,
        retained_responses: RETAINED_RESPONSES,
        interface: DemoSettings::INTERFACE,
        heartbeat: HEARTBEAT,
        retained_messages: RETAINED_MESSAGES,
        // A packet ring on the venue's host would get the packets of one call as one packet.
        segmented_sends: reader == LineReader::Sockets,
        limits: EngineLimits {
            max_open_orders: MAX_OPEN_ORDERS,
            max_open_orders_per_session: MAX_OPEN_ORDERS_PER_SESSION,
            ..settings.limits
        },
        journal: Some(journal),
        ..settings
    }
}

/// Returns risk limits for the probe that allow orders of one lot of the instrument.
fn probe_limits(instrument: &Instrument) -> Limits {
    let lot = instrument.lot_size;
    Limits {
        clip: lot,
        max_order_qty: lot,
        max_position: Qty(lot.0 * u64::from(PROBES_OPEN_MAX)),
        max_open_orders: PROBES_OPEN_MAX,
        ..Limits::taker()
    }
    .in_lots(instrument)
}

fn feed_settings(
    settings: &DemoSettings,
    instruments: &InstrumentTable,
    endpoints: &Endpoints,
) -> FeedSettings {
    let loss =
        LossConfig { seed: settings.seed, loss_ppm: settings.loss_ppm, common_ppm: settings.common_loss_ppm };
    FeedSettings {
        feed: 0,
        line_a: endpoints.line_a,
        line_b: endpoints.line_b,
        interface: DemoSettings::INTERFACE,
        senders: Senders::of(None, DemoSettings::INTERFACE, None),
        reader: settings.reader,
        max_instrument: instruments.max_id(),
        symbols: instruments.iter().map(|instrument| instrument.symbol).collect(),
        max_orders: MAX_OPEN_ORDERS,
        arbiter: ArbiterConfig::default(),
        retransmission: Some(endpoints.retransmission),
        snapshots: SnapshotSources::none(),
        loss: (settings.loss_ppm > 0).then(|| LossModel::new(&loss)),
    }
}

fn add_source(
    builder: &mut Builder,
    settings: &DemoSettings,
    recorded: Option<(Recording, tickpath_capture::flow::Survey)>,
    users: &[&str],
    shared_phase: &SharedPhase,
) -> anyhow::Result<SourceHandle> {
    let (clock, count) = (builder.clock, builder.instruments.as_slice().len());
    let (view, writer) = SourceView::new(count);
    let entries = users.iter().map(|user| builder.log_in(user)).collect::<anyhow::Result<Vec<_>>>()?;
    let Some((recording, survey)) = recorded else {
        let config = BackgroundFlowConfig {
            seed: settings.seed,
            rate: u32::try_from(settings.rate).context("rate is too high")?,
            sessions: users.len() as u16,
            ..BackgroundFlowConfig::default()
        };
        let background_flow = BackgroundFlow::new(config, builder.instruments.as_slice())?;
        let agent =
            BackgroundFlowAgent::new(background_flow, entries, count, shared_phase.clone(), clock, writer);
        builder.agents.push(Box::new(agent));
        return Ok(SourceHandle { name: BACKGROUND_FLOW, view, sessions: users.len(), flow: None });
    };
    let [maker, taker] =
        <[OrderEntry; 2]>::try_from(entries).map_err(|_| anyhow::anyhow!("a flow has two sessions"))?;
    let outcome = FlowOutcome::default();
    let mapper = Mapper::new(survey, FlowLimits::default());
    builder.agents.push(Box::new(FlowAgent::new(
        FlowReader::start(recording, mapper)?,
        settings.speed,
        [maker, taker],
        count,
        shared_phase.clone(),
        clock,
        writer,
        Arc::clone(&outcome),
    )));
    Ok(SourceHandle { name: FLOW, view, sessions: users.len(), flow: Some(outcome) })
}
