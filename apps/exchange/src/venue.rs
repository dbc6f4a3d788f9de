//! Assembly of the venue.

mod settings;

pub use self::settings::VenueSettings;

use std::mem::take;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use anyhow::Context;
use tickpath_admission::LoginGuard;
use tickpath_agent::{Agent, TscClock};
use tickpath_journal::{DurableView, Folder, JournalConfig, SessionName, Storage};
use tickpath_lockfree::spsc;
use tickpath_matching::COMMAND_LEN_MAX;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_net::{Kernel, NetError, Network};
use tickpath_timing::{NoTrace, Trace, Tracer};
use tickpath_types::{InstrumentTable, MarketEvent, Sequence, SessionId};
use tickpath_venue::day::commands_max;
use tickpath_venue::{
    CommandLog, FrontPort, LogCommand, LogCommandKind, LogFeed, Logins, Matcher, MessageStore, Opening,
    OpeningSettings, OrderEntry, Replica, Response, Sequencer, StoredLog, UserRegistry, VenueEngine,
    VenueView, wire_name,
};
use tickpath_venue_log::{
    Follower, JournalLog, Recovered, RecoveryOptions, StoredJournal, open_trusted_logins, recover,
};

use self::settings::{definition, retained_responses};
use crate::admin::{self, AdminClient, NewUserContext};
use crate::drop_copy::{DropCopyEndpoint, DropCopyLinks};
use crate::journal::{JournalSettings, VenueJournal};
use crate::login::{LoginChecker, TrustedLogin};
use crate::market_recovery::MarketRecovery;
use crate::matcher::MatcherAgent;
use crate::order_server::{BATCH_CAPACITY, Links, OrderServer, OrderServerConfig};
use crate::publisher::{Publisher, PublisherConfig};

/// Capacity of the rings between the agents: 8 ms of messages at a million per second.
const RING_CAPACITY: usize = 1 << 13;

/// Addresses of the venue's endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// OUCH over SoupBinTCP.
    pub order_entry: SocketAddrV4,
    /// ITCH over MoldUDP64, line A.
    pub line_a: SocketAddrV4,
    /// ITCH over MoldUDP64, line B.
    pub line_b: SocketAddrV4,
    /// MoldUDP64 retransmission requests.
    pub retransmission: SocketAddrV4,
    /// Drop copies over SoupBinTCP, if enabled.
    pub drop_copy: Option<SocketAddrV4>,
    /// GLIMPSE: snapshots over SoupBinTCP, if enabled.
    pub glimpse: Option<SocketAddrV4>,
    /// Snapshots over MoldUDP64, if enabled.
    pub snapshots: Option<SocketAddrV4>,
}

/// The tracers of the venue's agents.
pub struct VenueTracers<T> {
    /// Tracer of the order server.
    pub order_server: T,
    /// Tracer of the matcher.
    pub matcher: T,
    /// Tracer of the publisher.
    pub publisher: T,
}

/// A venue that is ready to run, with the agents to place on threads.
pub struct Venue {
    /// The agents `order-server`, `matcher` and `publisher`, and `line-b` if line B has a separate agent.
    pub agents: Vec<Box<dyn Agent>>,
    /// Addresses of the endpoints.
    pub endpoints: Endpoints,
    /// Counters and state, readable from other threads.
    pub view: VenueView,
    /// Submits commands to the running venue.
    pub admin: AdminClient,
    /// Session name on the wire, including the generation; the journal's, if the journal continues a session.
    pub session: Session,
    /// Traded instruments, including those added later.
    pub instruments: InstrumentTable,
    /// Schedule steps that fell due while the venue was down, which it executes at its start.
    pub missed: Vec<String>,
    /// Notices for the operator, such as differences between the recovered state and the configuration.
    pub notices: Vec<String>,
    /// The journal's parts that run on separate threads; no response is sent unless these run.
    pub journal: Option<VenueJournal>,
    /// Serves snapshots, and retransmission from the journal; runs on a separate thread.
    pub market_recovery: Option<MarketRecovery>,
    /// Connects the Deribit front; `None` unless there is a journal and a user has the port `deribit`.
    pub front_port: Option<FrontPort>,
}

/// The state with which a venue starts.
struct StartState {
    replica: Replica,
    session: Session,
    guard: LoginGuard<Ipv4Addr>,
    journal: JournalParts,
    notices: Vec<String>,
}

/// Parts of the journal for other components; all `None` in a venue without a journal.
#[derive(Default)]
struct JournalParts {
    log: Option<Box<dyn CommandLog>>,
    durable: Option<DurableView>,
    drop_copy: Option<SocketAddrV4>,
    trusted: Option<spsc::Producer<TrustedLogin>>,
    stored: Option<Box<dyn StoredLog>>,
    feed: Option<LogFeed>,
    venue_journal: Option<VenueJournal>,
}

/// A type of tracer with which a venue can be built.
///
/// Its implementations compile the venue in this crate, once per tracer type, not in each program.
pub trait VenueTracer: Tracer + Send + Sized + 'static {
    /// As [`Venue::build`].
    ///
    /// # Errors
    /// As [`Venue::build`].
    fn build_venue(
        settings: &VenueSettings,
        clock: TscClock,
        tracers: VenueTracers<Self>,
    ) -> anyhow::Result<Venue>;
}

macro_rules! venue_tracers {
    ($($tracer:ty),*) => {$(
        impl VenueTracer for $tracer {
            fn build_venue(
                settings: &VenueSettings,
                clock: TscClock,
                tracers: VenueTracers<Self>,
            ) -> anyhow::Result<Venue> {
                Venue::build_with(settings, clock, tracers)
            }
        }
    )*};
}

venue_tracers!(Trace, NoTrace);

impl Venue {
    /// Recovers the journal, opens the venue's sockets, and connects its agents by rings.
    ///
    /// # Errors
    /// The journal is damaged, in use, or of another session. An address is in use or not local. The engine
    /// rejects the instruments.
    pub fn build<T: VenueTracer>(
        settings: &VenueSettings,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        T::build_venue(settings, clock, tracers)
    }

    fn build_with<T: Tracer + Send + 'static>(
        settings: &VenueSettings,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        let view = VenueView::new(registry(settings));
        let start = match &settings.journal {
            None => {
                let replica = Replica::new(definition(settings))?;
                let guard = LoginGuard::new(settings.login, view.users.capacity());
                let journal = JournalParts::default();
                StartState { replica, session: settings.session, guard, journal, notices: Vec::new() }
            }
            Some(journal) => Folder::new(&journal.folder)
                .map_err(anyhow::Error::from)
                .and_then(|folder| {
                    let mode = mode_notice(&folder)?;
                    let mut start = recover_start_state(settings, journal, &folder, &Kernel, &view)?;
                    start.notices.extend(mode);
                    Ok(start)
                })
                .with_context(|| format!("journal {}", journal.folder.display()))?,
        };
        Venue::start(settings, start, view, &Kernel, clock, tracers)
    }

    /// Builds a venue on `network`, with its journal on `storage` in place of the configured folder.
    ///
    /// # Errors
    /// As [`Venue::build`].
    pub fn build_in<S: Storage, N: Network, T: Tracer + Send + 'static>(
        settings: &VenueSettings,
        journal: &JournalSettings,
        storage: &S,
        network: &N,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        let view = VenueView::new(registry(settings));
        let start = recover_start_state(settings, journal, storage, network, &view).context("journal")?;
        Venue::start(settings, start, view, network, clock, tracers)
    }

    fn start<N: Network, T: Tracer + Send + 'static>(
        settings: &VenueSettings,
        start: StartState,
        mut view: VenueView,
        network: &N,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        let StartState { mut replica, session, guard, journal, mut notices } = start;
        let JournalParts { log, durable, drop_copy, trusted, stored, feed, venue_journal: journal } = journal;
        if settings.prefault {
            replica.prefault();
        }
        let (commands_in, commands_out) = spsc::channel(RING_CAPACITY);
        let (responses_in, responses_out) = spsc::channel(RING_CAPACITY);
        let (market_in, market_out) = spsc::channel(RING_CAPACITY);
        view.resume(&replica);
        let instruments = replica.streams.table.clone();
        let (admin, admin_port) = admin::channel(new_user_context(settings, &view, &instruments));
        let mut opening = Opening::of(opening_settings(settings), &replica, &view, clock.now(), &mut notices)
            .context("instruments")?;
        let (front_port, front_requests) = feed.map(|feed| FrontPort::new(feed, instruments.clone())).unzip();
        let is_session_kept = journal.is_some();
        let wiring =
            Wiring { settings, network, session, view: &view, instruments: &instruments, is_session_kept };
        let (market_recovery, publisher_links) =
            MarketRecovery::build(network, settings, &replica, session, stored, &view.market_recovery)?;
        let mut sequencer = wiring.sequencer(commands_in, &replica);
        if let (Some(log), Some(journal)) = (log, &journal) {
            sequencer = sequencer.with_journal(log, journal.recovery.last, replica.replayed.last_ts);
        }
        let Replica { engine, streams, .. } = replica;
        let (missed, commands) = (take(&mut opening.missed), take(&mut opening.commands));
        let logins = Logins::new(settings.max_connections, settings.pre_login, guard);
        let entry = opening.order_entry(session, streams.users, &instruments, &view.users, logins, sequencer);
        let links = Links {
            responses: responses_out,
            front: front_requests,
            trusted,
            admin: admin_port,
            checker: LoginChecker::start(&view.users).context("the thread that checks passwords")?,
        };
        let order_server = wiring.order_server(entry, links, commands, clock, tracers.order_server)?;
        let matcher = wiring.matcher(*engine, commands_out, responses_in, market_in, tracers.matcher);
        let publisher = wiring
            .publisher((market_out, durable), streams.market.messages, tracers.publisher)?
            .with_recovery(&settings.market_recovery, publisher_links);
        let (publisher, line_b) = wiring.with_line_b_agent(publisher);
        let glimpse = market_recovery.as_ref().and_then(MarketRecovery::glimpse_address);
        let endpoints = Endpoints {
            drop_copy,
            glimpse,
            ..wiring.endpoints(order_server.local_address(), publisher.requests_address())
        };
        let mut agents: Vec<Box<dyn Agent>> =
            vec![Box::new(order_server), Box::new(matcher), Box::new(publisher)];
        agents.extend(line_b);
        Ok(Venue {
            agents,
            endpoints,
            view,
            admin,
            session,
            instruments,
            missed,
            notices,
            journal,
            market_recovery,
            front_port,
        })
    }
}

fn new_user_context(
    settings: &VenueSettings,
    view: &VenueView,
    instruments: &InstrumentTable,
) -> NewUserContext {
    NewUserContext {
        registry: view.users.clone(),
        instruments: instruments.clone(),
        retained_responses: retained_responses(settings),
        prefault: settings.prefault,
    }
}

fn opening_settings(settings: &VenueSettings) -> OpeningSettings<'_> {
    OpeningSettings { day: &settings.day, users: &settings.users, instruments: &settings.instruments }
}

/// Creates the user registry, with capacity for users added later. Session 0 belongs to no user.
fn registry(settings: &VenueSettings) -> UserRegistry {
    UserRegistry::new(&settings.users, usize::from(settings.limits.max_sessions.saturating_sub(1)))
}

/// Settings and shared state from which the agents are built.
struct Wiring<'a, N: Network> {
    settings: &'a VenueSettings,
    network: &'a N,
    session: Session,
    view: &'a VenueView,
    instruments: &'a InstrumentTable,
    is_session_kept: bool,
}

impl<N: Network> Wiring<'_, N> {
    fn sequencer(&self, commands: spsc::Producer<LogCommand>, replica: &Replica) -> Sequencer {
        // The batch needs capacity for internal commands in addition to the requests.
        let batch = BATCH_CAPACITY + commands_max(self.instruments.max_id());
        let mut sequencer = Sequencer::new(commands, batch);
        replica.engine.expire_times().for_each(|second| sequencer.add_expiry(second));
        sequencer
    }

    fn order_server<T: Tracer>(
        &self,
        entry: OrderEntry<Ipv4Addr>,
        links: Links,
        opening: Vec<(SessionId, LogCommandKind)>,
        clock: TscClock,
        tracer: T,
    ) -> anyhow::Result<OrderServer<T, N>> {
        let settings = self.settings;
        let config = OrderServerConfig {
            address: settings.order_entry,
            session: self.session,
            places: settings.max_connections + settings.pre_login.connections,
            instruments: self.instruments.clone(),
            cancel_at_shutdown: settings.cancel_at_shutdown,
            is_session_kept: self.is_session_kept,
            opening,
        };
        OrderServer::new(config, entry, links, self.view, self.network, clock, tracer)
            .map_err(order_entry_error)
    }

    fn matcher<T: Tracer>(
        &self,
        engine: VenueEngine,
        commands: spsc::Consumer<LogCommand>,
        responses: spsc::Producer<Response>,
        market: spsc::Producer<MarketEvent>,
        tracer: T,
    ) -> MatcherAgent<T> {
        let (counters, last) = (Arc::clone(&self.view.matcher), Arc::clone(&self.view.engine));
        let matcher = Matcher::new(engine, commands, responses, market, counters, last, tracer);
        let (states, trades) = (Arc::clone(&self.view.states), Arc::clone(&self.view.trades));
        MatcherAgent(matcher.with_instruments(states, trades))
    }

    fn publisher<T: Tracer>(
        &self,
        (events, durable): (spsc::Consumer<MarketEvent>, Option<DurableView>),
        store: MessageStore,
        tracer: T,
    ) -> anyhow::Result<Publisher<T, N>> {
        let Wiring { settings, network, .. } = *self;
        let requests = network.endpoint(settings.retransmission).map_err(retransmission_error)?;
        let config = PublisherConfig {
            session: self.session,
            instruments: self.instruments.clone(),
            packet_bytes: settings.packet_bytes,
            segmented_sends: settings.segmented_sends,
            heartbeat: settings.heartbeat,
            store,
            durable,
            is_session_kept: self.is_session_kept,
        };
        let sender = |group| network.sender(group, settings.interface);
        let lines = [sender(settings.line_a).context("line A")?, sender(settings.line_b).context("line B")?];
        let counters = Arc::clone(&self.view.publisher);
        Ok(Publisher::new(config, events, lines, requests, counters, tracer))
    }

    /// Moves line B to a separate agent, if the settings request that.
    fn with_line_b_agent<T: Tracer>(
        &self,
        publisher: Publisher<T, N>,
    ) -> (Publisher<T, N>, Option<Box<dyn Agent>>) {
        if !self.settings.has_line_b_agent {
            return (publisher, None);
        }
        let (publisher, agent) = publisher.with_line_b_agent();
        (publisher, agent.map(|agent| Box::new(agent) as Box<dyn Agent>))
    }

    /// All endpoints except drop copy and GLIMPSE, which are `None`.
    fn endpoints(&self, order_entry: SocketAddrV4, retransmission: SocketAddrV4) -> Endpoints {
        let VenueSettings { line_a, line_b, market_recovery, .. } = self.settings;
        Endpoints {
            order_entry,
            line_a: *line_a,
            line_b: *line_b,
            retransmission,
            drop_copy: None,
            glimpse: None,
            snapshots: market_recovery.snapshots.as_ref().map(|snapshots| snapshots.group),
        }
    }
}

/// Returns a notice if other users of the machine can read the journal.
fn mode_notice(folder: &Folder) -> std::io::Result<Option<String>> {
    let others = folder.other_modes()?;
    let Some((name, mode)) = others.first() else { return Ok(None) };
    let path = folder.path().display();
    Ok(Some(format!(
        "journal {path}: {name} has mode {mode:04o}{}, and a journal holds every order, hidden ones too: \
         chmod -R u=rwX,go= {path}",
        if others.len() > 1 {
            format!(", and {} other files are open too", others.len() - 1)
        } else {
            String::new()
        }
    )))
}

fn recover_start_state<S: Storage, N: Network>(
    settings: &VenueSettings,
    journal: &JournalSettings,
    storage: &S,
    network: &N,
    view: &VenueView,
) -> anyhow::Result<StartState> {
    let options = RecoveryOptions {
        config: JournalConfig {
            policy: journal.policy,
            segment_len: journal.segment_len,
            buffer_len: journal.buffer_len,
            payload_len_max: COMMAND_LEN_MAX,
            first_sequence: Sequence(1),
        },
        session: journal.session,
        new_session: SessionName::new(&settings.session.to_string())?,
        accept_loss: journal.accept_loss,
    };
    let Recovered { journal: log, worker, replica, recovery } =
        recover(storage, &options, definition(settings))?;
    let session = recovery.session;
    let (durable, counters) = (log.durable_view(), Arc::clone(&view.journal));
    let stored = || StoredJournal::new(storage.clone(), session, durable.clone());
    let follower = (journal.snapshot_every > 0).then(|| {
        Follower::new(stored(), journal.snapshot_every, journal.keep_snapshots, Arc::clone(&counters))
    });
    let name = wire_name(&session.to_string(), recovery.generation)
        .with_context(|| format!("session {session} has more than 10 characters"))?;
    let (mut trusted_logins, notice) =
        open_trusted_logins(storage.clone(), view.users.clone(), recovery.last > Sequence(0));
    let guard = LoginGuard::with_trusted(settings.login, trusted_logins.known());
    let trusted = trusted_logins.sink();
    let mut open_drop_copy = |drop_copy| {
        let links = DropCopyLinks {
            log: Box::new(stored()),
            session: name,
            users: view.users.clone(),
            guard: guard.clone(),
            trusted: trusted_logins.sink(),
            pre_login: settings.pre_login,
            counters: Arc::clone(&view.drop_copy),
        };
        DropCopyEndpoint::open(drop_copy, network, links).context("drop copy")
    };
    let drop_copy = journal.drop_copy.as_ref().map(&mut open_drop_copy).transpose()?;
    let drop_copy_address = drop_copy.as_ref().map(DropCopyEndpoint::local_address);
    let drop_copy = drop_copy.map(|endpoint| -> Box<dyn Agent> { Box::new(endpoint) });
    let has_front = settings.users.iter().any(|user| user.ports.deribit);
    let feed = has_front.then(|| LogFeed::new(Box::new(stored()), session.to_string(), recovery.generation));
    let stored = Box::new(stored());
    let venue_journal = VenueJournal::new(recovery, worker, follower, trusted_logins, drop_copy, counters);
    let journal = JournalParts {
        log: Some(Box::new(JournalLog(log))),
        durable: Some(durable),
        drop_copy: drop_copy_address,
        trusted: Some(trusted),
        stored: Some(stored),
        feed,
        venue_journal: Some(venue_journal),
    };
    Ok(StartState { replica, session: name, guard, notices: notice.into_iter().collect(), journal })
}

fn order_entry_error(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(NetError::AddressInUse { address }) => {
            anyhow::anyhow!("order entry: address {address} is in use: another venue? choose --port")
        }
        _ => error.context("order entry"),
    }
}

/// Describes an error of the retransmission socket. If its address is in use, suggests a separate one.
fn retransmission_error(error: NetError) -> anyhow::Error {
    match error {
        NetError::AddressInUse { address } => anyhow::anyhow!(
            "retransmission: address {address} is in use: another venue? give this one separate \
             lines and a separate retransmission address under [market_data]"
        ),
        other => anyhow::Error::from(other).context("retransmission"),
    }
}
