//! A complete trader, run until it is stopped.

use tickpath_agent::{Agent, Runner, RunnerError, StopSignal, ThreadReport, TscClock};
use tickpath_feed::OtherSymbol;
use tickpath_feedhandler::FeedView;
use tickpath_timing::{NoTrace, Trace, Tracer};
use tickpath_trading::{
    EngineConfig, KillSwitch, LiquidityTaker, MarketMaker, RandomStrategy, Strategy, TraderView, WarmUp,
};
use tickpath_types::{InstrumentTable, SessionId};

use crate::agents::{AgentSettings, TraderAgents, TraderTracers};
use crate::config::TraderSettings;
use crate::gateway::GatewaySettings;

/// Capacity of the engine's ring of market updates.
const UPDATE_CAPACITY: usize = 1 << 14;
/// Capacity of each ring between the engine and its gateway: requests and events.
const ORDER_CAPACITY: usize = 1 << 12;

/// An agent that had an error and continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentWarning {
    /// Name of the agent.
    pub role: &'static str,
    /// Number of errors.
    pub count: u64,
    /// Message of the latest error.
    pub error: String,
}

/// A running trader: feed handler, engine and order gateway.
pub struct Trader {
    runner: Runner,
    observer: Option<usize>,
    kill: KillSwitch,
    stop: StopSignal,
    instruments: InstrumentTable,
    feed: FeedView,
    view: TraderView,
}

impl Trader {
    /// Opens the sockets and starts the threads, without timing stamps.
    ///
    /// # Errors
    /// A venue that does not answer, a line that cannot be joined, or contradictory settings.
    pub fn start<S: Strategy + Send + 'static>(
        settings: &TraderSettings,
        strategy: WarmUp<S>,
        clock: TscClock,
    ) -> anyhow::Result<Trader> {
        let tracers = TraderTracers { feed_handler: NoTrace, engine: NoTrace, gateway: NoTrace };
        Trader::start_traced(settings, strategy, clock, tracers)
    }

    /// As [`start`](Self::start), with a tracer for each agent, such as a [`Trace`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_traced<S: Strategy + Send + 'static, T: Tracer + Send + 'static>(
        settings: &TraderSettings,
        strategy: WarmUp<S>,
        clock: TscClock,
        tracers: TraderTracers<T>,
    ) -> anyhow::Result<Trader> {
        let config = &settings.config;
        let agents = TraderAgents::open(&agent_settings(settings), strategy, clock, tracers)?;
        let TraderAgents { feed_handler, engine, gateway, kill, feed, view, .. } = agents;
        let agents: Vec<Box<dyn Agent>> = vec![Box::new(feed_handler), Box::new(engine), Box::new(gateway)];
        let cores = tickpath_agent::Host::describe().cores_allowed;
        let placement = config.placement(&cores);
        let stop = StopSignal::new();
        let runner = Runner::start(placement.plan(agents)?, clock, stop.clone())?;
        let instruments = InstrumentTable::new(&settings.instruments);
        Ok(Trader { runner, observer: placement.observer, kill, stop, instruments, feed, view })
    }

    /// Returns the traded instruments.
    #[must_use]
    pub fn instruments(&self) -> &InstrumentTable {
        &self.instruments
    }

    /// Returns the state and counters of the feed handler.
    #[must_use]
    pub fn feed(&self) -> &FeedView {
        &self.feed
    }

    /// Returns the state of the engine and its gateway.
    #[must_use]
    pub fn view(&self) -> &TraderView {
        &self.view
    }

    /// Returns the core for the thread that reads state and traces, if the placement names one.
    #[must_use]
    pub const fn observer(&self) -> Option<usize> {
        self.observer
    }

    /// Returns messages about threads that could not be pinned to their cores.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.runner.warnings()
    }

    /// Returns the agents that had an error and continued, such as after a lost connection.
    pub fn last_errors(&self) -> impl Iterator<Item = AgentWarning> {
        let agents = self.runner.counters().flat_map(|thread| &thread.agents);
        agents.filter_map(|agent| {
            let error = agent.last_error()?;
            Some(AgentWarning { role: agent.role, count: agent.errors.read(), error })
        })
    }

    /// Returns a message if the venue and the instrument file have different symbols for an instrument id.
    #[must_use]
    pub fn other_symbols(&self) -> Option<String> {
        let OtherSymbol { instrument, expected, named } = self.feed.counters.other_symbol.get()?;
        let of = match self.feed.counters.other_symbols.read() {
            0 | 1 => String::new(),
            count => format!(", one of {count} that differ"),
        };
        Some(format!(
            "number {instrument} is {named} on the market data lines and {expected} in the instrument file{of}: \
             such instruments are not traded; put the file's instruments in the venue's order and restart this program"
        ))
    }

    /// Cancels all own orders and stops trading; the threads continue.
    pub fn stop_trading(&self) {
        self.kill.pull();
    }

    /// Returns true once an agent has failed, which ends all threads; [`join`](Self::join) returns its error.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Stops the threads, and waits until they have ended.
    ///
    /// # Errors
    /// The error of the agent that failed, if one did.
    pub fn join(self) -> Result<Vec<ThreadReport>, RunnerError> {
        self.stop.stop();
        self.runner.join()
    }
}

fn agent_settings(settings: &TraderSettings) -> AgentSettings {
    let config = &settings.config;
    let instruments = InstrumentTable::new(&settings.instruments);
    AgentSettings {
        feed: config.market_data.feed_settings(&instruments, config.seed),
        engine: EngineConfig {
            orders_per_second: config.orders_per_second,
            silence_stop: config.stop_after_silence.map(|duration| duration.0),
            disconnect_stop: Some(config.disconnect_stop.0),
            ..EngineConfig::default()
        },
        limits: settings.limits.clone(),
        gateway: GatewaySettings {
            role: "order-gateway",
            address: config.order_entry.address,
            user: config.order_entry.user.clone(),
            password: settings.password.clone(),
            session: SessionId(1),
            instruments,
            reconcile_after: config.order_entry.settle_after.0,
        },
        update_capacity: UPDATE_CAPACITY,
        order_capacity: ORDER_CAPACITY,
    }
}

/// A strategy whose type is chosen at run time.
pub type BoxedStrategy = Box<dyn Strategy + Send>;

/// Returns the strategy that a configuration names, with an instance for its warm-up.
///
/// # Errors
/// An unknown name.
pub fn strategy_by_name(settings: &TraderSettings) -> anyhow::Result<WarmUp<BoxedStrategy>> {
    let (count, seed) = (settings.instruments.len(), settings.config.seed);
    let random = || RandomStrategy::new(seed, Default::default());
    Ok(match settings.config.strategy.as_str() {
        "maker" => MarketMaker::warmed_up(Default::default()).map(|maker| Box::new(maker) as BoxedStrategy),
        "taker" => WarmUp::of(|| Box::new(LiquidityTaker::new(count)) as BoxedStrategy),
        "random" => WarmUp::of(|| Box::new(random()) as BoxedStrategy),
        other => anyhow::bail!("strategy '{other}' is not known: choose maker, taker or random"),
    })
}

/// Returns a tracer for each agent, and the consumers of their stamps.
#[must_use]
pub fn traces(
    capacity: usize,
) -> (TraderTracers<Trace>, [tickpath_lockfree::records::Consumer<tickpath_timing::Stamp>; 3]) {
    let (feed_handler, feed_ring) = Trace::new(capacity);
    let (engine, engine_ring) = Trace::new(capacity);
    let (gateway, gateway_ring) = Trace::new(capacity);
    (TraderTracers { feed_handler, engine, gateway }, [feed_ring, engine_ring, gateway_ring])
}
