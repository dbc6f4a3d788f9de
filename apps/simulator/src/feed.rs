//! A simulated feed handler: it starts, runs and ends instances, and records their output.

use tickpath_agent::{Agent, TscClock};
use tickpath_book::BooksById;
use tickpath_feed::MessageBooks;
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView};
use tickpath_lockfree::broadcast::{self, Lagged};
use tickpath_net::NetError;
use tickpath_simnet::HostId;
use tickpath_timing::NoTrace;
use tickpath_types::{BookHealth, InstrumentId, MarketUpdate, Nanos, Side};

use crate::FeedInstance;
use crate::net::SimNetwork;

/// Upper bound of the number of updates in one duty cycle.
const UPDATES_MAX: usize = 1 << 14;

pub(crate) struct Feed {
    number: u32,
    host: HostId,
    network: SimNetwork,
    settings: FeedSettings,
    instance: Option<Instance>,
    /// Time of the next start, while the feed handler is down.
    pub(crate) restart_at: Nanos,
    pub(crate) instances: Vec<FeedInstance>,
}

struct Instance {
    agent: FeedHandler<NoTrace, SimNetwork>,
    recorder: Recorder,
    is_stale: bool,
}

impl Feed {
    /// Creates a feed handler that first starts at `joins_at`.
    pub(crate) fn new(
        number: u32,
        host: HostId,
        network: SimNetwork,
        settings: FeedSettings,
        joins_at: Nanos,
    ) -> Feed {
        Feed { number, host, network, settings, instance: None, restart_at: joins_at, instances: Vec::new() }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.instance.is_some()
    }

    /// Returns true while the feed handler lacks messages, or books of existing instruments are not trusted.
    /// Instruments that are not listed yet are ignored: no snapshot contains them.
    pub(crate) fn is_behind(&self, published: u64, instruments: u16) -> bool {
        self.instance.as_ref().is_none_or(|instance| instance.recorder.is_behind(published, instruments))
    }

    /// Returns true if the feed handler's books cannot recover without a restart.
    pub(crate) fn is_stale(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.is_stale)
    }

    /// Returns true if packets of another session of the venue arrived.
    pub(crate) fn has_session_changed(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.recorder.has_session_changed())
    }

    pub(crate) fn start(&mut self, now: Nanos) -> Result<(), NetError> {
        let (sender, updates) = broadcast::channel(UPDATES_MAX);
        let view = FeedView::default();
        TscClock::simulate(self.network.wires().network.clock(self.host));
        let (network, settings, clock) = (&self.network, &self.settings, TscClock::simulated());
        let agent = FeedHandler::open(network, settings, sender, clock, &view, NoTrace)?;
        let recorder = Recorder::new(self.number, now, view, updates, self.settings.max_instrument);
        self.instance = Some(Instance { agent, recorder, is_stale: false });
        Ok(())
    }

    /// Runs one duty cycle; returns the amount of work.
    pub(crate) fn step(&mut self) -> usize {
        let clock = self.network.wires().network.clock(self.host);
        let Some(instance) = &mut self.instance else { return 0 };
        TscClock::simulate(clock);
        let work = instance.agent.do_work(clock);
        instance.is_stale |= work.is_err();
        instance.recorder.take_updates();
        let can_recover = self.settings.snapshots.is_any();
        instance.is_stale |= !can_recover && instance.recorder.has_lost();
        work.unwrap_or(0)
    }

    /// Ends the instance and records its results; `ended_at` is `None` at the end of the run.
    pub(crate) fn end(&mut self, ended_at: Option<Nanos>) {
        let Some(mut instance) = self.instance.take() else { return };
        instance.agent.on_close();
        self.instances.push(instance.recorder.finish(ended_at));
    }
}

/// Records a feed handler's updates, and its final counters and books.
pub(crate) struct Recorder {
    view: FeedView,
    updates: broadcast::Receiver<MarketUpdate>,
    max_instrument: InstrumentId,
    recorded: FeedInstance,
}

impl Recorder {
    pub(crate) fn new(
        handler: u32,
        now: Nanos,
        view: FeedView,
        updates: broadcast::Receiver<MarketUpdate>,
        max_instrument: InstrumentId,
    ) -> Recorder {
        let recorded = FeedInstance { handler, started_at: now, ..FeedInstance::default() };
        Recorder { view, updates, max_instrument, recorded }
    }

    /// Reads the updates since the last call.
    pub(crate) fn take_updates(&mut self) {
        loop {
            match self.updates.try_recv() {
                Ok(Some(update)) => self.recorded.updates.push(update),
                Ok(None) => break,
                Err(Lagged(count)) => self.recorded.unrecorded += count,
            }
        }
    }

    /// Returns true while messages are missing, or books of existing instruments cannot be trusted.
    /// Instruments that are not listed yet are ignored: no snapshot contains them.
    pub(crate) fn is_behind(&self, published: u64, instruments: u16) -> bool {
        let absent = u64::from(self.max_instrument.0.saturating_sub(instruments));
        let counters = &self.view.counters;
        counters.open_gap.read() != 0
            || counters.messages.read() < published
            || counters.snapshots.waiting.read() > absent
    }

    /// Returns true if packets of another session of the venue arrived.
    pub(crate) fn has_session_changed(&self) -> bool {
        self.view.counters.other_sessions.read() > 0
    }

    /// Returns true if the feed handler gave up messages as lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.view.counters.messages_lost.read() > 0
    }

    /// Returns the results of a closed feed handler; `ended_at` is `None` at the end of the run.
    pub(crate) fn finish(mut self, ended_at: Option<Nanos>) -> FeedInstance {
        self.take_updates();
        let Recorder { view, mut recorded, max_instrument, .. } = self;
        recorded.ended_at = ended_at;
        recorded.lost = view.counters.messages_lost.read();
        recorded.recovered = view.counters.snapshots.recovered.read();
        if let Ok(result) = view.result.lock()
            && let Some(last) = result.as_ref()
        {
            recorded.next = last.next_sequence;
            for id in (1..=max_instrument.0).map(InstrumentId) {
                let health = last.books.instrument(id).map_or(BookHealth::default(), |state| state.health);
                recorded.health.push((id, health));
                for side in Side::BOTH {
                    recorded.orders.extend(last.books.books().orders(id, side));
                }
            }
        }
        recorded
    }
}
