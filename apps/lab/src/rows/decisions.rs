//! Decision times of the same strategy after a pause, as part of the demo and of `tickpath trader --config`.

use tickpath_agent::Agent;
use tickpath_lockfree::{broadcast, spsc};
use tickpath_timing::NoTrace;
use tickpath_trader::{EngineAgent, EngineIdentity, EngineRings, TraderSettings, strategy_by_name};
use tickpath_trading::{
    EngineConfig, GatewayEvent, KillSwitch, Limits, LiquidityTaker, Strategy, TradeEngine, WarmUp,
};
use tickpath_types::{
    BookHealth, CancelReason, MarketUpdate, Nanos, OrderEventKind, OrderId, OrderRequest, OrderState,
    PriceLevel, Qty, SessionId, UpdateKind,
};

use super::prelude::*;
use crate::support::venue::{REFERENCE, TICK, instruments};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("decision_demo", "ns").note(
            "market update taken to the request that it causes, of the taker as the demo has it, after a \
             pause of 100 us in which 4 MiB of other data went through the caches and the engine was warmed \
             up; p50",
        ),
        row("decision_trader", "ns")
            .note(
                "the same of the same strategy as `tickpath trader --config` has it, by its name and behind \
                 a box, on a thread that is awake; one that sleeps, `idle = \"park\"`, does not warm up and \
                 decides as decision_cold does; p50",
            )
            .limit("decision_demo")
            .goal(Goal::RatioAtMost(1.25)),
        row("decision_cold", "ns").note("the same without a warm-up, p50").limit("decision_demo"),
    ],
    open,
)];

/// Number of decisions in a full round.
const DECISIONS: usize = 2_000;
/// Number of warm-up steps between two decisions: as in a pause of 100 us with a step every 5 us.
const WARM_UPS: usize = 20;
/// Bytes of other data that pass through the caches between two decisions.
pub(super) const DISTURBANCE: usize = 4 << 20;
const RING: usize = 64;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let config = "strategy = 'taker'\ninstruments = 'none.toml'\n[order_entry]\naddress = '127.0.0.1:1'\nuser = 'LAB'\n\
                  password = 'LAB'\n";
    let settings = TraderSettings {
        config: tickpath_config::parse("the lab's trader", config)?,
        instruments: instruments(1).as_slice().to_vec(),
        limits: vec![limits()],
        password: String::new(),
    };
    each_round(lab, move |context| {
        let demo = median(context, WarmUp::of(|| LiquidityTaker::new(1)))?;
        let trader = median(context, strategy_by_name(&settings)?)?;
        let cold = median(context, WarmUp::from(strategy_by_name(&settings)?.strategy))?;
        Ok([demo, trader, cold])
    })
}

fn median<S: Strategy + Send>(context: &Context, strategy: WarmUp<S>) -> anyhow::Result<f64> {
    let mut engine = Engine::new(strategy)?;
    let mut disturbance = vec![1_u8; DISTURBANCE];
    let mut ticks = Vec::new();
    for step in 1..=context.effort.count(DECISIONS) as u64 {
        black_box(&mut disturbance).iter_mut().step_by(64).for_each(|byte| *byte ^= 1);
        ticks.push(engine.decide(context, step)?);
    }
    Ok(context.quantile_ns(&mut ticks, 0.5))
}

/// Limits that let the strategy follow every trade.
pub(super) fn limits() -> Limits {
    Limits { threshold: 1, max_position: Qty(1_000_000), ..Limits::default() }
}

/// An engine's agent, and the other ends of its rings.
struct Engine<S> {
    agent: EngineAgent<S, NoTrace>,
    updates: broadcast::Sender<MarketUpdate>,
    events: spsc::Producer<GatewayEvent>,
    requests: spsc::Consumer<OrderRequest>,
}

impl<S: Strategy + Send> Engine<S> {
    fn new(strategy: WarmUp<S>) -> anyhow::Result<Engine<S>> {
        let WarmUp { strategy, instance } = strategy;
        let config = EngineConfig { orders_per_second: u32::MAX, ..EngineConfig::default() };
        let engine = TradeEngine::new(&config, instruments(1).as_slice(), &[limits()], strategy, NoTrace)?;
        let (updates, receiver) = broadcast::channel(RING);
        let (events, events_out) = spsc::channel(RING);
        let (requests_in, requests) = spsc::channel(RING);
        let identity = EngineIdentity { role: "engine", feed: 0, engine: 0, session: SessionId(1) };
        let rings = EngineRings { updates: receiver, events: events_out, requests: requests_in };
        let agent = EngineAgent::new(identity, engine, rings, KillSwitch::default()).warmed_up_by(instance);
        agent.view().gateway.first_user_ref.set(1);
        let mut engine = Engine { agent, updates, events, requests };
        // The strategy follows a trade only if it knows the best prices before it.
        engine.updates.send(MarketUpdate { kind: UpdateKind::Add as u8, ..trade(0) });
        engine.agent.do_work(Nanos::ZERO)?;
        Ok(engine)
    }

    fn push_answer(&mut self, kind: OrderEventKind, now: Nanos) -> anyhow::Result<()> {
        self.events
            .try_push(GatewayEvent::Answer { kind, ts: now })
            .ok()
            .context("the engine takes its answers")
    }

    /// Returns the ticks from a market update to the order that it triggers. Before the update it runs the
    /// warm-up steps of a pause.
    fn decide(&mut self, context: &Context, step: u64) -> anyhow::Result<u64> {
        let now = context.clock.now();
        for _ in 0..WARM_UPS {
            self.agent.warm_up(now);
        }
        self.updates.send(trade(step));
        let start = context.clock.ticks();
        self.agent.do_work(now)?;
        let ticks = context.clock.ticks() - start;
        let Some(OrderRequest::Enter(order)) = self.requests.try_pop() else {
            anyhow::bail!("the strategy did not follow a trade");
        };
        // Answer as a venue that accepts the order and cancels it without a fill.
        let (user_ref, decrement, reason) = (order.user_ref, order.qty, CancelReason::ImmediateOrCancel);
        self.push_answer(
            OrderEventKind::Accepted { order, order_id: OrderId(step), state: OrderState::Live },
            now,
        )?;
        self.push_answer(OrderEventKind::Canceled { user_ref, decrement, reason }, now)?;
        while self.agent.do_work(now)? > 0 {}
        ensure!(self.requests.is_empty(), "answers cause no request");
        Ok(ticks)
    }
}

/// Builds a trade that takes a part of the quantity at the best price.
fn trade(step: u64) -> MarketUpdate {
    MarketUpdate {
        sequence: step,
        ts_event: step,
        order_id: step,
        price: REFERENCE.0,
        qty: 200,
        bid: PriceLevel { price: REFERENCE.0, qty: 200 },
        ask: PriceLevel { price: REFERENCE.0 + 2 * TICK, qty: 200 },
        instrument: 1,
        kind: UpdateKind::Trade as u8,
        side: (step % 2) as u8,
        health: BookHealth::Live as u8,
        ..MarketUpdate::default()
    }
}
