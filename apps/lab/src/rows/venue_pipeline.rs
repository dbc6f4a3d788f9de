//! Rate of the whole venue without sockets: order server with sequencer and journal, matcher, publisher.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickpath_agent::{Agent, AgentError, IdleStrategy, Runner, ThreadPlan, TscClock};
use tickpath_book::FastBooks;
use tickpath_exchange::{
    FrontPort, FrontRequest, FrontRequestKind, JournalSettings, Password, UserPorts, UserSettings, Venue,
    VenueJournal, VenueSettings, VenueView,
};
use tickpath_journal::{Folder, Policy};
use tickpath_matching::workload::Workload;
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentTable, MarketEvent, MarketEventKind, OrderEvent, OrderRequest, SessionId};

use super::matching::{COMMANDS, SLICE, pass};
use super::prelude::*;
use crate::support::load::workload;
use crate::support::no_sockets::NoSockets;
use crate::support::venue::{self, NO_TRACERS, USER};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("pipeline_matching", "M/s").note(
            "commands of the matching row's load, matched on one core; mean rate over the whole load, in turns \
             with the two rows below",
        ),
        row("pipeline_async", "M/s")
            .note(
                "the same orders and cancels through the venue's agents without sockets, journal policy async: \
                 from the ring into the sequencer until every answer is encoded in its user's log and every \
                 market data packet, of both lines, is in memory; order server and the journal's thread on one \
                 core, matcher and publisher on the other; journal_async_rate is the figure with sockets",
            )
            .limit("pipeline_matching")
            .goal(Goal::RatioAtLeast(0.2)),
        row("pipeline_group", "M/s")
            .note("the same under policy group, on the disk of the temporary folder")
            .limit("pipeline_matching")
            .goal(Goal::RatioAtLeast(0.1)),
    ],
    open,
)];

/// Number of requests that the feeder adds to the venue's ring in one duty cycle.
const REQUESTS_PER_CYCLE: usize = 512;
/// Maximum time of a round's venue.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Interval at which the measuring thread, which sleeps, checks whether the venue has ended its work.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let workload = Arc::new(workload(&lab.context, COMMANDS));
    let opened: Engine<FastBooks<Owner>> = workload.opened();
    let expected = Expected::of(&workload);
    let mut round = 0;
    each_round(lab, move |context| {
        in_turn::<_, 3>(&mut round, |place| match place {
            0 => {
                let ticks = pass(context, &workload, opened.clone(), SLICE)?;
                let count = (ticks.len() * SLICE) as u64;
                Ok(1_000.0 / context.nanos_each(ticks.iter().sum(), count))
            }
            1 => rate(context, Policy::Async, &workload, &expected),
            _ => rate(context, Policy::Group, &workload, &expected),
        })
    })
}

/// Returns the rate at which a venue executes the load, in millions of commands per second.
fn rate(context: &Context, policy: Policy, load: &Arc<Workload>, expected: &Expected) -> anyhow::Result<f64> {
    let (folder, network) = (tempfile::tempdir()?, NoSockets::default());
    let journal = JournalSettings { snapshot_every: 0, ..JournalSettings::new(folder.path(), policy) };
    let sessions = load.limits.max_sessions;
    let user = |number| UserSettings {
        // Requests of users with this port come over a ring, in place of a connection.
        ports: UserPorts { order_entry: false, drop_copy: false, deribit: true },
        ..UserSettings::new(format!("{USER}{number}"), Password::plain(USER))
    };
    let settings = VenueSettings {
        users: (1..=sessions).map(user).collect(),
        limits: EngineLimits { max_sessions: sessions + 1, ..load.limits },
        ..venue::settings(InstrumentTable::new(&load.instruments), 0)?
    };
    let venue = Venue::build_in(
        &settings,
        &journal,
        &Folder::new(folder.path())?,
        &network,
        context.clock,
        NO_TRACERS,
    )?;
    let Venue { agents, view, journal, front_port, .. } = venue;
    let _journal = journal.map(VenueJournal::start).transpose()?;
    let mut agents = agents.into_iter();
    let (Some(order_server), Some(matcher), Some(publisher), None) =
        (agents.next(), agents.next(), agents.next(), agents.next())
    else {
        bail!("a venue has three agents");
    };
    let progress = Arc::new(Progress::default());
    let feeder = Feeder {
        port: front_port.context("a user has the port of the front")?,
        clock: context.clock,
        view: view.clone(),
        load: Arc::clone(load),
        phase_ends: [
            expected.opening.order_events,
            expected.opening.order_events + expected.load.order_events,
        ],
        phase: 0,
        next: 0,
        sent: 0,
        progress: Arc::clone(&progress),
    };
    let plan = |name: &str, core, agents: Vec<Box<dyn Agent>>| ThreadPlan {
        name: name.to_owned(),
        core: Some(core),
        // Idle threads yield, so that the thread that writes to the disk gets a core.
        idle: IdleStrategy::Yield,
        warm_up_interval: None,
        cycle: Vec::new(),
        agents,
    };
    let plans = vec![
        plan("order-server", context.near, vec![order_server, Box::new(feeder)]),
        plan("matcher", context.far()?, vec![matcher, publisher]),
    ];
    let stop = StopSignal::new();
    let runner = Runner::start(plans, context.clock, stop.clone())?;
    let deadline = Instant::now() + TIMEOUT;
    while !progress.has_ended() && !stop.is_stopped() && Instant::now() < deadline {
        thread::sleep(CHECK_INTERVAL);
    }
    stop.stop();
    runner.join()?;
    ensure!(
        progress.has_ended(),
        "the venue answered {} of {} events",
        view.order_server.responses.read(),
        expected.opening.order_events + expected.load.order_events
    );
    expected.check(&view, &progress, &network)?;
    let [start, end] = [&progress.start, &progress.end].map(|ticks| ticks.load(Ordering::Acquire));
    Ok(1_000.0 / context.nanos_each(end - start, load.commands.len() as u64))
}

/// Times and counts of a venue's run, written by the feeder's thread.
#[derive(Default)]
struct Progress {
    /// Ticks at the first request of the load.
    start: AtomicU64,
    /// Ticks at which the load's last answer and market event were encoded; 0 before.
    end: AtomicU64,
    /// Number of market events before the load.
    market_events_before: AtomicU64,
}

impl Progress {
    fn has_ended(&self) -> bool {
        self.end.load(Ordering::Acquire) != 0
    }
}

/// Sends the requests that open the books and then, when these are executed, those of the load.
struct Feeder {
    port: FrontPort,
    clock: TscClock,
    view: VenueView,
    load: Arc<Workload>,
    /// Number of responses to users at the end of each phase: of the opening, and of the load.
    phase_ends: [u64; 2],
    phase: usize,
    /// Position of the next command in the phase.
    next: usize,
    /// Number of requests sent; also the receive time of the last one, which keeps the load in order.
    sent: u64,
    progress: Arc<Progress>,
}

impl Feeder {
    fn commands(&self) -> &[Command] {
        match self.phase {
            0 => &self.load.opening,
            _ => &self.load.commands,
        }
    }

    /// Sends some requests; returns their number.
    fn send(&mut self) -> usize {
        let Feeder { port, load, phase, next, sent, .. } = self;
        let commands = if *phase == 0 { &load.opening } else { &load.commands };
        let before = *sent;
        for command in commands[*next..].iter().take(REQUESTS_PER_CYCLE) {
            // The venue opens its instruments itself.
            if let CommandKind::Order(request) = command.kind {
                let received_ns = *sent + 1;
                if port.try_request(front_request(command.session, received_ns, request)).is_err() {
                    break;
                }
                *sent += 1;
            }
            *next += 1;
        }
        (*sent - before) as usize
    }

    /// True when all responses of the phase are encoded, and all market events of the matcher are published.
    fn is_executed(&self) -> bool {
        let VenueView { order_server, matcher, publisher, .. } = &self.view;
        order_server.responses.read() >= self.phase_ends[self.phase]
            && matcher.commands.read() >= order_server.commands.read()
            && publisher.messages.read() == matcher.market_events.read()
    }
}

impl Agent for Feeder {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        if self.next < self.commands().len() {
            return Ok(self.send());
        }
        if self.is_executed() && !self.progress.has_ended() {
            let now = self.clock.ticks();
            if self.phase == 0 {
                self.progress
                    .market_events_before
                    .store(self.view.matcher.market_events.read(), Ordering::Release);
                self.progress.start.store(now, Ordering::Release);
                (self.phase, self.next) = (1, 0);
            } else {
                self.progress.end.store(now, Ordering::Release);
            }
        }
        Ok(0)
    }

    fn role_name(&self) -> &'static str {
        "feeder"
    }
}

/// Returns the request of the load's session; session 0 belongs to the venue, so sessions are shifted by one.
fn front_request(session: SessionId, received_ns: u64, request: OrderRequest) -> FrontRequest {
    FrontRequest { session: SessionId(session.0 + 1), received_ns, kind: FrontRequestKind::Order(request) }
}

/// Numbers of events of some commands, by the reference model.
#[derive(Clone, Copy, Default)]
struct EventCounts {
    order_events: u64,
    market_events: u64,
}

/// Results of the load, by the reference model.
struct Expected {
    opening: EventCounts,
    load: EventCounts,
    executions: u64,
    open_orders: u64,
    /// Traded quantity of each instrument, indexed by its id.
    volumes: Vec<u64>,
}

/// Listener that counts the events of the reference model.
struct Counting {
    counts: EventCounts,
    volumes: Vec<u64>,
}

impl EventListener for Counting {
    fn on_order_event(&mut self, _event: &OrderEvent) {
        self.counts.order_events += 1;
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.counts.market_events += 1;
        if let MarketEventKind::Executed { qty, .. } = event.kind {
            self.volumes[usize::from(event.instrument.0)] += qty.0;
        }
    }
}

impl Expected {
    fn of(workload: &Workload) -> Expected {
        let mut engine: Engine<ReferenceBooks<Owner>> =
            Engine::new(&workload.instruments, workload.limits).expect("the load has valid instruments");
        let volumes = vec![0; workload.instruments.len() + 1];
        let mut counting = Counting { counts: EventCounts::default(), volumes };
        for command in &workload.opening {
            engine.apply(command, &mut counting);
        }
        let opening = std::mem::take(&mut counting.counts);
        for command in &workload.commands {
            engine.apply(command, &mut counting);
        }
        Expected {
            opening,
            load: counting.counts,
            executions: engine.counters().executions,
            open_orders: engine.open_order_count(),
            volumes: counting.volumes,
        }
    }

    /// Checks that the venue executed the load as the reference model, and sent each market event on both lines.
    fn check(&self, view: &VenueView, progress: &Progress, network: &NoSockets) -> anyhow::Result<()> {
        let engine = view.engine.lock().ok().and_then(|mut engine| engine.take());
        let engine = engine.context("the matcher left no engine")?;
        let counters = engine.counters();
        ensure!(
            counters.rejected + counters.ignored + counters.duplicates == 0,
            "the venue did not accept every request: {counters:?}"
        );
        let found = (counters.executions, engine.open_order_count());
        let wanted = (self.executions, self.open_orders);
        ensure!(found == wanted, "{found:?} executions and open orders in place of {wanted:?}");
        let volumes = view.trades.iter().map(|totals| totals.volume.read());
        ensure!(
            volumes.eq(self.volumes.iter().copied()),
            "the traded quantities differ from the reference model's"
        );
        let responses = view.order_server.responses.read();
        ensure!(
            responses == self.opening.order_events + self.load.order_events,
            "the venue answered {responses} events in place of {}",
            self.opening.order_events + self.load.order_events
        );
        let published = view.publisher.messages.read();
        let load = published - progress.market_events_before.load(Ordering::Acquire);
        let (wanted, sent) = (self.load.market_events, network.messages.read());
        ensure!(load == wanted, "the venue published {load} market events of the load in place of {wanted}");
        ensure!(sent == 2 * published, "both lines have {sent} messages in place of twice {published}");
        Ok(())
    }
}
