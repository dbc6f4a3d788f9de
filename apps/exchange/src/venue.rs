//! The venue put together.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use tickpath_admission::{LoginGuard, LoginPolicy, PreLoginLimits};
use tickpath_agent::{Agent, Counter, TscClock};
use tickpath_faults::{Fault, is_planted};
use tickpath_journal::{Folder, SessionName, Storage};
use tickpath_lockfree::spsc;
use tickpath_matching::{CommandKind, EngineLimits};
use tickpath_nasdaq::moldudp64::Session;
use tickpath_nasdaq::soupbintcp::ServerConfig;
use tickpath_net::{DatagramEndpoint, Kernel, NetError, Network};
use tickpath_timing::{NoTrace, Trace, Tracer};
use tickpath_types::{
    AddInstrumentError, Instrument, InstrumentId, InstrumentTable, Nanos, SelfTradePrevention, Sequence,
    SessionId,
};
use tickpath_venue::day::{Day, DaySettings, commands_max};
use tickpath_venue::{
    CommandLog, Definition, Entitlements, InternalCommands, Logins, OrderEntry, Replica, Sequencer,
    SessionLog, UserRegistry, UserSettings, Users,
};

use crate::admin::{self, AdminClient, UserBasis};
use crate::drop_copy::reading::Source;
use crate::drop_copy::{DropCopyCounters, DropCopyDoor, Wiring};
use crate::front_port::FrontPort;
use crate::journal::{
    Follower, JournalCounters, JournalLog, JournalSettings, Recovered, VenueJournal, recover, wire_name,
};
use crate::log_feed::LogFeed;
use crate::login::{LoginChecker, TrustedLogin, TrustedLogins};
use crate::market_recovery::{
    ArchiveSource, MarketRecovery, MarketRecoverySettings, RecoveryBasis, RecoveryCounters,
};
use crate::matcher::{FinalEngine, Matcher, MatcherCounters};
use crate::order_server::{
    BATCH_CAPACITY, OrderServer, OrderServerConfig, OrderServerCounters, OrderServerLinks,
    RESPONSES_PER_CYCLE, Rings,
};
use crate::publisher::{Publisher, PublisherConfig, PublisherCounters};

/// Slots of the rings between the agents: more than 4 ms of a million messages a second.
const RING_CAPACITY: usize = 1 << 13;

/// Everything that a venue needs to know, checked.
#[derive(Clone)]
pub struct VenueSettings {
    /// Name of the session, if the journal does not go on with one.
    pub session: Session,
    /// What is traded.
    pub instruments: InstrumentTable,
    /// Where orders are taken; port 0 takes a free one.
    pub order_entry: SocketAddrV4,
    /// Clients of order entry that are logged in, at a time.
    pub max_connections: usize,
    /// Messages kept for each user; 256 at least.
    pub retained_responses: usize,
    /// Who may log in; their sessions are 1, 2, 3 ... in this order.
    pub users: Vec<UserSettings>,
    /// How wrong passwords are answered.
    pub login: LoginPolicy,
    /// Connections that have not logged in: of order entry, of drop copies and of GLIMPSE each.
    pub pre_login: PreLoginLimits,
    /// When the venue stops, the open orders of users with `cancel_on_disconnect` are cancelled too.
    pub cancel_at_shutdown: bool,
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Interface of both lines.
    pub interface: Ipv4Addr,
    /// Where retransmission is requested; port 0 takes a free one.
    pub retransmission: SocketAddrV4,
    /// Longest datagram.
    pub packet_bytes: usize,
    /// After so long without a packet a heartbeat is sent.
    pub heartbeat: Nanos,
    /// Messages kept for retransmission.
    pub retained_messages: usize,
    /// Snapshots of the market, and how often messages may be asked for again.
    pub market_recovery: MarketRecoverySettings,
    /// Bounds of the engine.
    pub limits: EngineLimits,
    /// The trading day.
    pub day: DaySettings,
    /// Where the commands are kept; without it a venue forgets everything when it stops.
    pub journal: Option<JournalSettings>,
    /// All memory is touched before the venue opens, so that no message costs a page fault.
    pub prefault: bool,
}

/// Where the venue can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// OUCH over SoupBinTCP.
    pub order_entry: SocketAddrV4,
    /// ITCH over MoldUDP64, line A.
    pub line_a: SocketAddrV4,
    /// The same on line B.
    pub line_b: SocketAddrV4,
    /// MoldUDP64 requests.
    pub retransmission: SocketAddrV4,
    /// Drop copies over SoupBinTCP, where there are any.
    pub drop_copy: Option<SocketAddrV4>,
    /// GLIMPSE: snapshots over SoupBinTCP.
    pub glimpse: Option<SocketAddrV4>,
    /// Snapshots over MoldUDP64.
    pub snapshots: Option<SocketAddrV4>,
}

/// What can be read of a venue while it runs, and afterwards.
#[derive(Clone, Default)]
pub struct VenueView {
    /// The order server's counts.
    pub order_server: Arc<OrderServerCounters>,
    /// The matcher's counts.
    pub matcher: Arc<MatcherCounters>,
    /// The publisher's counts.
    pub publisher: Arc<PublisherCounters>,
    /// Each user, in the order of the sessions.
    pub users: UserRegistry,
    /// A [`TradingState`](tickpath_types::TradingState)'s code for each instrument, at the place of its id.
    pub states: Arc<[Counter]>,
    /// How the journal stands.
    pub journal: Arc<JournalCounters>,
    /// What became of the drop copies.
    pub drop_copy: Arc<DropCopyCounters>,
    /// What was recovered by whom.
    pub market_recovery: Arc<RecoveryCounters>,
    /// The engine, once the venue has stopped.
    pub engine: FinalEngine,
}

/// One tracer for each agent of the venue.
pub struct VenueTracers<T> {
    /// The order server's.
    pub order_server: T,
    /// The matcher's.
    pub matcher: T,
    /// The publisher's.
    pub publisher: T,
}

/// A venue that is ready to run: its agents, to be placed on threads.
pub struct Venue {
    /// `order-server`, `matcher` and `publisher`.
    pub agents: Vec<Box<dyn Agent>>,
    /// Where it can be reached.
    pub endpoints: Endpoints,
    /// What can be read of it.
    pub view: VenueView,
    /// Commands to it while it runs.
    pub admin: AdminClient,
    /// Its session on the wire: the journal's, if that goes on with one, with its generation.
    pub session: Session,
    /// What it trades: also instruments that were added, and those that will be.
    pub instruments: InstrumentTable,
    /// Steps of the schedule that were due while it was down, and are carried out as it starts.
    pub missed: Vec<String>,
    /// Where it is not as its configuration says, and what is new in that, a line each.
    pub notices: Vec<String>,
    /// What the journal needs beside the agents; without its threads nothing is answered.
    pub journal: Option<VenueJournal>,
    /// Snapshots and old messages, for a thread of their own; without one nobody is served them.
    pub market_recovery: Option<MarketRecovery>,
    /// For the Deribit front, where a user has that door.
    pub front_port: Option<FrontPort>,
}

/// What a venue begins with.
struct Start {
    replica: Replica,
    session: Session,
    guard: LoginGuard<Ipv4Addr>,
    journal: Option<StartedJournal>,
    notices: Vec<String>,
}

struct StartedJournal {
    log: Box<dyn CommandLog>,
    durable: tickpath_journal::DurableView,
    drop_copy: Option<SocketAddrV4>,
    trusted: spsc::Producer<TrustedLogin>,
    archive: ArchiveSource,
    feed: Option<LogFeed>,
    rest: VenueJournal,
}

/// A tracer that a venue can be built with.
///
/// Building goes through this trait so that the whole venue is compiled once per tracer, in this crate, and not again in
/// every program that builds one.
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

impl VenueTracer for Trace {
    fn build_venue(
        settings: &VenueSettings,
        clock: TscClock,
        tracers: VenueTracers<Self>,
    ) -> anyhow::Result<Venue> {
        Venue::build_with(settings, clock, tracers)
    }
}

impl VenueTracer for NoTrace {
    fn build_venue(
        settings: &VenueSettings,
        clock: TscClock,
        tracers: VenueTracers<Self>,
    ) -> anyhow::Result<Venue> {
        Venue::build_with(settings, clock, tracers)
    }
}

impl Venue {
    /// Reads the journal, opens the venue's sockets and joins its agents by rings.
    ///
    /// # Errors
    /// A journal that is damaged, in use or another session's; an address that is in use or not this machine's;
    /// instruments that cannot be matched.
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
        let view = VenueView::new(settings);
        let start = match &settings.journal {
            None => {
                let replica = Replica::new(definition(settings))?;
                let guard = LoginGuard::new(settings.login, view.users.room());
                Start { replica, session: settings.session, guard, journal: None, notices: Vec::new() }
            }
            Some(journal) => Folder::new(&journal.folder)
                .map_err(anyhow::Error::from)
                .and_then(|folder| {
                    let mode = mode_notice(&folder)?;
                    let mut start = start_from(settings, journal, &folder, &Kernel, &view)?;
                    start.notices.extend(mode);
                    Ok(start)
                })
                .with_context(|| format!("journal {}", journal.folder.display()))?,
        };
        Venue::start(settings, start, view, &Kernel, clock, tracers)
    }

    /// The same with its journal on any `storage`, in place of the folder that the settings name.
    ///
    /// # Errors
    /// As [`Venue::build`].
    pub fn build_on<S: Storage, T: Tracer + Send + 'static>(
        settings: &VenueSettings,
        journal: &JournalSettings,
        storage: &S,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        Venue::build_in(settings, journal, storage, &Kernel, clock, tracers)
    }

    /// The same on any `network` too.
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
        let view = VenueView::new(settings);
        let start = start_from(settings, journal, storage, network, &view).context("journal")?;
        Venue::start(settings, start, view, network, clock, tracers)
    }

    fn start<N: Network, T: Tracer + Send + 'static>(
        settings: &VenueSettings,
        start: Start,
        mut view: VenueView,
        network: &N,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        let Start { mut replica, session, guard, journal, mut notices } = start;
        if settings.prefault {
            replica.prefault();
        }
        let checker = LoginChecker::start(&view.users).context("the thread that checks passwords")?;
        let (commands_in, commands_out) = spsc::channel(RING_CAPACITY);
        let (responses_in, responses_out) = spsc::channel(RING_CAPACITY);
        let (market_in, market_out) = spsc::channel(RING_CAPACITY);
        view.resume(&replica);
        let instruments = replica.streams.table.clone();
        let (admin, admin_port) = admin::channel(UserBasis {
            registry: view.users.clone(),
            instruments: instruments.clone(),
            retained_responses: retained_responses(settings),
            prefault: settings.prefault,
        });
        let mut day = Day::new(
            settings.day.clone(),
            instruments.clone(),
            Arc::clone(&view.states),
            &replica.replayed.day,
        );
        let missed = match &settings.day.schedule {
            Some(schedule) => schedule.missed(replica.replayed.day.schedule, day.has_started(), clock.now()),
            None => Vec::new(),
        };
        let entitlements: Vec<Entitlements> = settings
            .users
            .iter()
            .zip(&replica.replayed.users)
            .map(|(user, replayed)| Entitlements::new(user, replayed))
            .collect();
        for (user, entitlements) in view.users.iter().zip(&entitlements) {
            user.limits.set(&entitlements.limits);
        }
        let added = add_listed(settings, &instruments, &mut notices).context("instruments")?;
        for ((user, entitlements), replayed) in
            settings.users.iter().zip(&entitlements).zip(&replica.replayed.users)
        {
            notices.extend(entitlements.notices(&user.name, replayed, &instruments));
        }
        let opening = opening(settings, &replica, &entitlements, added, &mut day);
        let last_ts = replica.replayed.last_ts;
        let (journal, archive, feed, trusted) = match journal {
            Some(StartedJournal { log, durable, drop_copy, trusted, archive, feed, rest }) => {
                (Some((log, durable, drop_copy, rest)), Some(archive), feed, Some(trusted))
            }
            None => (None, None, None, None),
        };
        let (front_port, front_requests) = feed.map(|feed| FrontPort::new(feed, instruments.clone())).unzip();
        let basis = RecoveryBasis {
            settings: &settings.market_recovery,
            replica: &replica,
            session,
            pre_login: settings.pre_login,
            interface: settings.interface,
            packet_bytes: settings.packet_bytes,
            counters: Arc::clone(&view.market_recovery),
        };
        let (market_recovery, publisher_links) = MarketRecovery::build(network, &basis, archive)?;
        let Replica { engine, streams, .. } = replica;
        // What the venue commands at once is behind what one duty cycle may read.
        let batch = BATCH_CAPACITY + commands_max(instruments.max_id());
        let mut sequencer = Sequencer::new(commands_in, batch);
        engine.expire_times().for_each(|second| sequencer.note_expiry(second));
        let (durable, drop_copy, journal) = match journal {
            None => (None, None, None),
            Some((log, durable, drop_copy, rest)) => {
                sequencer = sequencer.with_journal(log, rest.recovery.last, last_ts);
                (Some(durable), drop_copy, Some(rest))
            }
        };

        let entry = OrderEntry {
            users: Users::new(
                &settings.users,
                &entitlements,
                streams.users.into_iter().map(|user| match is_planted(Fault::UserLogForgottenAtStart) {
                    true => SessionLog::new(user.messages.capacity()),
                    false => user.messages,
                }),
                &instruments,
                view.users.room(),
            ),
            logins: Logins::new(session, settings.max_connections, settings.pre_login, guard),
            sequencer,
            commands: InternalCommands::new(day, instruments.clone(), view.users.clone()),
        };
        let order_server = OrderServer::new(
            OrderServerConfig {
                address: settings.order_entry,
                session,
                max_connections: settings.max_connections,
                pre_login: settings.pre_login,
                soup: ServerConfig::default(),
                instruments: instruments.clone(),
                cancel_at_shutdown: settings.cancel_at_shutdown,
                is_session_kept: journal.is_some(),
                opening,
            },
            OrderServerLinks {
                entry,
                checker,
                rings: Rings { responses: responses_out, front: front_requests, trusted, admin: admin_port },
                counters: Arc::clone(&view.order_server),
                registry: view.users.clone(),
                journal: Arc::clone(&view.journal),
            },
            network,
            clock,
            tracers.order_server,
        )
        .map_err(order_entry_error)?;
        let matcher = Matcher::new(
            *engine,
            commands_out,
            responses_in,
            market_in,
            Arc::clone(&view.matcher),
            Arc::clone(&view.engine),
            tracers.matcher,
        )
        .with_states(Arc::clone(&view.states));
        let sender = |group| network.sender(group, settings.interface);
        let requests = network.endpoint(settings.retransmission).map_err(retransmission_error)?;
        let endpoints = Endpoints {
            order_entry: order_server.local_address(),
            line_a: settings.line_a,
            line_b: settings.line_b,
            retransmission: requests.local_address(),
            drop_copy,
            glimpse: market_recovery.as_ref().and_then(MarketRecovery::glimpse_address),
            snapshots: settings.market_recovery.snapshots.as_ref().map(|snapshots| snapshots.group),
        };
        let publisher = Publisher::<T, N>::new(
            PublisherConfig {
                session,
                instruments: instruments.clone(),
                packet_bytes: settings.packet_bytes,
                heartbeat: settings.heartbeat,
                store: streams.market.messages,
                durable,
                is_session_kept: journal.is_some(),
            },
            market_out,
            [sender(settings.line_a).context("line A")?, sender(settings.line_b).context("line B")?],
            requests,
            Arc::clone(&view.publisher),
            tracers.publisher,
        )
        .with_recovery(&settings.market_recovery, publisher_links);
        Ok(Venue {
            agents: vec![Box::new(order_server), Box::new(matcher), Box::new(publisher)],
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

impl VenueView {
    fn new(settings: &VenueSettings) -> VenueView {
        // Session 0 is nobody's.
        let users_max = usize::from(settings.limits.max_sessions.saturating_sub(1));
        VenueView {
            users: UserRegistry::new(&settings.users, users_max),
            engine: Arc::new(Mutex::new(None)),
            ..VenueView::default()
        }
    }

    /// Counts that go on with the session, and the states of all instruments that it has and has room for.
    fn resume(&mut self, replica: &Replica) {
        let max_id = replica.streams.table.max_id();
        self.states = (0..=max_id.0).map(|_| Counter::default()).collect();
        let (_, published) = replica.message_counts();
        self.order_server.commands.set(replica.last_command().0);
        self.order_server.is_killed.set(replica.replayed.is_killed.into());
        self.matcher.market_events.set(published);
        self.publisher.messages.set(published);
        self.journal.durable.set(replica.last_command().0);
        for (id, state) in (0..).map(InstrumentId).zip(self.states.iter()) {
            state.set(replica.engine.trading_state(id).map_or(0, |state| state.code().into()));
        }
        for (view, replayed) in self.users.iter().zip(&replica.replayed.users) {
            view.is_killed.set(replayed.is_killed.into());
        }
    }
}

/// Says that other users of the machine may read the journal, if they may.
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

fn definition(settings: &VenueSettings) -> Definition {
    Definition {
        instruments: settings.instruments.as_slice().to_vec(),
        limits: settings.limits,
        users: settings.users.iter().map(|user| user.name.clone()).collect(),
        retained_responses: retained_responses(settings),
        retained_messages: settings.retained_messages,
    }
}

/// Messages kept for each user.
fn retained_responses(settings: &VenueSettings) -> usize {
    settings.retained_responses.max(RESPONSES_PER_CYCLE)
}

fn start_from<S: Storage, N: Network>(
    settings: &VenueSettings,
    journal: &JournalSettings,
    storage: &S,
    network: &N,
    view: &VenueView,
) -> anyhow::Result<Start> {
    let new_session = SessionName::new(&settings.session.to_string())?;
    let Recovered { journal: log, worker, replica, session, recovery } =
        recover(storage, journal, new_session, definition(settings))?;
    let (durable, counters) = (log.durable_view(), Arc::clone(&view.journal));
    let follower = (journal.snapshot_every > 0).then(|| {
        let bounds = [journal.snapshot_every, journal.keep_snapshots as u64];
        Follower::new(storage.clone(), session, durable.clone(), bounds, Arc::clone(&counters))
    });
    let name = wire_name(session, recovery.generation)
        .with_context(|| format!("session {session} has more than 10 characters"))?;
    let (mut trusted_logins, notice) =
        TrustedLogins::open(storage.clone(), view.users.clone(), recovery.last > Sequence(0));
    let guard = LoginGuard::with_trusted(settings.login, trusted_logins.known());
    let trusted = trusted_logins.sink();
    let mut open_drop_copy = |drop_copy| {
        let wiring = Wiring {
            storage: storage.clone(),
            log_session: session,
            durable: durable.clone(),
            session: name,
            users: view.users.clone(),
            guard: guard.clone(),
            trusted: trusted_logins.sink(),
            pre_login: settings.pre_login,
            counters: Arc::clone(&view.drop_copy),
        };
        DropCopyDoor::open(drop_copy, network, wiring).context("drop copy")
    };
    let drop_copy = journal.drop_copy.as_ref().map(&mut open_drop_copy).transpose()?;
    let feed = settings.users.iter().any(|user| user.ports.deribit).then(|| {
        let source = Source { storage: storage.clone(), session, durable: durable.clone() };
        LogFeed::new(source, recovery.generation)
    });
    let archive = ArchiveSource::new(storage.clone(), session, durable.clone());
    Ok(Start {
        replica,
        session: name,
        guard,
        notices: notice.into_iter().collect(),
        journal: Some(StartedJournal {
            log: Box::new(JournalLog(log)),
            drop_copy: drop_copy.as_ref().map(DropCopyDoor::local_address),
            trusted,
            rest: VenueJournal::new(recovery, worker, follower, counters)
                .with_drop_copy(drop_copy)
                .with_trusted_logins(trusted_logins),
            durable,
            archive,
            feed,
        }),
    })
}

/// Adds the instruments that are new in the file to the table, so that whoever hears of them finds them.
fn add_listed(
    settings: &VenueSettings,
    table: &InstrumentTable,
    notices: &mut Vec<String>,
) -> Result<Vec<Instrument>, AddInstrumentError> {
    let listed = settings.instruments.as_slice();
    for known in table.iter().skip(listed.len()) {
        notices.push(format!("instrument {} was added before and stays: the file lacks it", known.symbol));
    }
    let new: Vec<Instrument> =
        listed.iter().filter(|instrument| instrument.id >= table.next_id()).copied().collect();
    for instrument in &new {
        table.add(*instrument)?;
        notices.push(format!("instrument {} is new in the file and is added", instrument.symbol));
    }
    Ok(new)
}

/// The venue's own first commands, as far as the log has not got them: the users' limits and what becomes of their trades
/// with themselves, the instruments that are new and, without a schedule, that the day begins and every instrument opens
/// for trading.
fn opening(
    settings: &VenueSettings,
    replica: &Replica,
    entitlements: &[Entitlements],
    added: Vec<Instrument>,
    day: &mut Day,
) -> Vec<(SessionId, CommandKind)> {
    let mut opening = Vec::new();
    for ((entitlements, replayed), session) in entitlements.iter().zip(&replica.replayed.users).zip(1..) {
        opening.extend(entitlements.commands(replayed).map(|kind| (SessionId(session), kind)));
    }
    let users = settings.users.iter().zip((1..).map(SessionId));
    opening.extend(users.filter_map(|(user, session)| {
        let (strategy, account) = (user.self_trade_prevention, session);
        let set = replica.engine.self_trade_prevention(session);
        // Deribit's clients change it themselves: what they chose last stays.
        let is_set = set == Some((strategy, account))
            || user.ports.deribit
                && set.is_some_and(|(chosen, own)| chosen != SelfTradePrevention::None && own == account);
        (!is_set).then_some((session, CommandKind::SetSelfTradePrevention { strategy, account }))
    }));
    let mut emit = |kind| opening.push((SessionId::default(), kind));
    added.into_iter().for_each(|instrument| emit(CommandKind::AddInstrument(instrument)));
    // With a schedule the day begins when it says.
    match settings.day.schedule {
        None => day.open_at_once(&mut emit),
        Some(_) => day.open_more(&mut emit),
    }
    opening
}

fn order_entry_error(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(NetError::AddressInUse { address }) => {
            anyhow::anyhow!("order entry: address {address} is in use: another venue? choose --port")
        }
        _ => error.context("order entry"),
    }
}

/// Another port for orders is no remedy here: a second venue needs market data addresses of its own.
fn retransmission_error(error: NetError) -> anyhow::Error {
    match error {
        NetError::AddressInUse { address } => anyhow::anyhow!(
            "retransmission: address {address} is in use: another venue? give this one lines and a \
             retransmission address of its own under [market_data]"
        ),
        other => anyhow::Error::from(other).context("retransmission"),
    }
}
