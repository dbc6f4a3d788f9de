//! The agents of a trader and the rings between them, on the kernel's or a simulated network.

use std::sync::Arc;

use anyhow::Context;
use tickpath_agent::TscClock;
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView};
use tickpath_lockfree::{broadcast, spsc};
use tickpath_net::{Kernel, Network};
use tickpath_timing::Tracer;
use tickpath_trading::{EngineConfig, KillSwitch, Limits, Strategy, TradeEngine, TraderView, WarmUp};
use tickpath_types::MarketUpdate;

use crate::engine::{EngineAgent, EngineIdentity, EngineRings};
use crate::gateway::{GatewaySettings, OrderGateway};

/// One tracer for each agent of a trader.
pub struct TraderTracers<T> {
    /// Tracer of the feed handler.
    pub feed_handler: T,
    /// Tracer of the engine.
    pub engine: T,
    /// Tracer of the order gateway.
    pub gateway: T,
}

/// Settings of a trader's agents, and capacities of the rings between them.
#[derive(Clone)]
pub struct AgentSettings {
    /// Settings of the feed handler.
    pub feed: FeedSettings,
    /// Configuration of the engine.
    pub engine: EngineConfig,
    /// Limits of each instrument, in the order of `gateway.instruments`.
    pub limits: Vec<Limits>,
    /// Settings of the order gateway, which include the instruments.
    pub gateway: GatewaySettings,
    /// Number of market updates that may wait for the engine; if more arrive, it loses the oldest.
    pub update_capacity: usize,
    /// Capacity of the request ring and of the answer ring between the engine and its gateway.
    pub order_capacity: usize,
}

/// The agents of a trader, joined by rings but not started: the owner runs them, on one thread or on several.
pub struct TraderAgents<S, T, N: Network = Kernel> {
    /// Receives market data and maintains the books.
    pub feed_handler: FeedHandler<T, N>,
    /// Runs the strategy, with its orders, positions and limits.
    pub engine: EngineAgent<S, T>,
    /// Sends the engine's requests to the venue and receives the answers.
    pub gateway: OrderGateway<T, N>,
    /// Stops the engine from another thread.
    pub kill: KillSwitch,
    /// State and counters of the feed handler.
    pub feed: FeedView,
    /// State and counters of the engine and the gateway.
    pub view: TraderView,
    /// A second receiver of all market updates that the engine receives, for recording.
    pub updates: broadcast::Receiver<MarketUpdate>,
}

impl<S: Strategy, T: Tracer> TraderAgents<S, T> {
    /// Creates the agents and joins the multicast lines. When the gateway starts, it connects to the venue
    /// and blocks until it is connected.
    ///
    /// # Errors
    /// A line cannot be joined, or the settings contradict one another.
    pub fn open(
        settings: &AgentSettings,
        strategy: WarmUp<S>,
        clock: TscClock,
        tracers: TraderTracers<T>,
    ) -> anyhow::Result<TraderAgents<S, T>> {
        let agents = TraderAgents::open_on(&Kernel, settings, strategy, clock, tracers)?;
        Ok(TraderAgents { gateway: agents.gateway.waiting(), ..agents })
    }
}

impl<S: Strategy, T: Tracer, N: Network> TraderAgents<S, T, N> {
    /// Like [`open`](TraderAgents::open), but on any network, and the gateway does not block: it begins to
    /// connect at its start, and its duty cycles complete the connection.
    ///
    /// # Errors
    /// As [`open`](TraderAgents::open).
    pub fn open_on(
        network: &N,
        settings: &AgentSettings,
        strategy: WarmUp<S>,
        clock: TscClock,
        tracers: TraderTracers<T>,
    ) -> anyhow::Result<TraderAgents<S, T, N>> {
        let AgentSettings { feed: feed_settings, gateway, .. } = settings;
        let (feed, kill) = (FeedView::default(), KillSwitch::default());
        let (sender, updates) = broadcast::channel(settings.update_capacity);
        let (requests_in, requests_out) = spsc::channel(settings.order_capacity);
        let (events_in, events) = spsc::channel(settings.order_capacity);
        let feed_handler =
            FeedHandler::open(network, feed_settings, sender, clock, &feed, tracers.feed_handler)
                .context("market data")?;
        let WarmUp { strategy, instance } = strategy;
        let engine = TradeEngine::new(
            &settings.engine,
            gateway.instruments.as_slice(),
            &settings.limits,
            strategy,
            tracers.engine,
        )?;
        let engine = EngineAgent::new(
            EngineIdentity { role: "engine", feed: feed_settings.feed, engine: 0, session: gateway.session },
            engine,
            EngineRings { updates: updates.clone(), events, requests: requests_in },
            kill.clone(),
        )
        .warmed_up_by(instance);
        let view = engine.view();
        let gateway = OrderGateway::on(
            network.clone(),
            gateway.clone(),
            requests_out,
            events_in,
            clock,
            Arc::clone(&view.gateway),
            tracers.gateway,
        );
        Ok(TraderAgents { feed_handler, engine, gateway, kill, feed, view, updates })
    }
}
