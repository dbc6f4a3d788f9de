//! Benefit and cost of the warm-up: decision time, and the time that a packet waits in the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_agent::{Agent, AgentError, IdleStrategy, Runner, ThreadPlan};
use tickpath_feed::ArbiterConfig;
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView, LineReader, Senders, SnapshotSources};
use tickpath_lockfree::{broadcast, records, spsc};
use tickpath_nasdaq::itch50::encode_market_event;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder};
use tickpath_net::{Kernel, MulticastSender, SendStatus, free_multicast_group};
use tickpath_timing::{Hop, Stamp, StampKind, Trace};
use tickpath_trader::{EngineAgent, EngineIdentity, EngineRings};
use tickpath_trading::{EngineConfig, GatewayEvent, KillSwitch, LiquidityTaker, TradeEngine, WarmUp};
use tickpath_types::{
    CancelReason, Instrument, InstrumentId, MarketEvent, MarketEventKind, MatchId, Nanos, OrderEventKind,
    OrderId, OrderRequest, OrderState, Price, Qty, Rng, Sequence, SessionId, Side, TradingState,
};

use super::decisions::{DISTURBANCE, limits};
use super::prelude::*;
use crate::support::venue::{REFERENCE, TICK, instruments, session};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("warm_up_off_t7_t10", "ns").note(
            "read of a packet (T7) to the order that it causes (T10): feed handler and the engine of \
             decision_demo on one thread, which reads a UDP socket and is not warmed up; before each packet 4 MiB of \
             other data went through the caches, then a pause of about 100 us; p50",
        ),
        row("warm_up_off_t7k_t7", "ns")
            .note("of the same packets: receipt by the kernel (T7k) to the end of the read (T7), p50"),
        row("warm_up_off_t7k_t10", "ns").note("of the same packets: T7k to T10, p50"),
        row("warm_up_on_t7_t10", "ns")
            .note("as warm_up_off_t7_t10, with a warm-up of feed handler and engine every 5 us while idle, p50")
            .limit("warm_up_off_t7_t10"),
        row("warm_up_on_t7k_t7", "ns")
            .note("T7k to T7 with the warm-up, p50: a packet that arrives during a warm-up waits for its end")
            .limit("warm_up_off_t7k_t7"),
        row("warm_up_on_t7k_t10", "ns")
            .note("T7k to T10 with the warm-up, p50: benefit and cost together")
            .limit("warm_up_off_t7k_t10"),
    ],
    open,
)];

/// Maximum number of packets without a kernel stamp before the first one with it.
const UNSTAMPED_MAX: u64 = 2_000;
/// Number of packets in a full round.
const PACKETS: usize = 2_000;
/// Interval of the warm-up.
const WARM_UP_INTERVAL: Nanos = Nanos::from_micros(5);
/// Minimum pause before a packet, and the length of the random part that is added. The random part lets
/// packets arrive at all moments of the warm-up's interval.
const PAUSE: Nanos = Nanos::from_micros(100);
const RANDOM_PAUSE: Nanos = Nanos::from_micros(10);
/// Quantity of each of the two resting orders, and of each execution.
const RESTING: Qty = Qty(1_000_000);
const EXECUTED: Qty = Qty(10);
/// Slots of each ring, and records of each trace ring.
const RING: usize = 64;
const TRACE_RING: usize = 1 << 10;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut round = 0;
    each_round(lab, move |context| {
        let [off, on] =
            in_turn::<_, 2>(&mut round, |place| measure(context, (place == 1).then_some(WARM_UP_INTERVAL)))?;
        Ok([off[0], off[1], off[2], on[0], on[1], on[2]]
            .map(|[p50, p99]| Sample::with_note(p50, format!("p99 {p99:.0} ns"))))
    })
}

/// Returns p50 and p99 of T7 to T10, of T7k to T7 and of T7k to T10, in nanoseconds.
fn measure(context: &Context, warm_up_interval: Option<Nanos>) -> anyhow::Result<[[f64; 2]; 3]> {
    let clock = context.clock;
    let group = free_multicast_group()?;
    let (updates, receiver) = broadcast::channel(RING);
    let (tracer, feed_stamps) = Trace::new(TRACE_RING);
    let feed =
        FeedHandler::open(&Kernel, &feed_settings(group)?, updates, clock, &FeedView::default(), tracer)?;
    let (engine, responder, engine_stamps) = engine(receiver)?;
    let answered = Arc::clone(&responder.answered);
    let agents: Vec<Box<dyn Agent>> = vec![Box::new(feed), Box::new(engine), Box::new(responder)];
    let plan = ThreadPlan {
        name: "trader".to_owned(),
        core: Some(context.far()?),
        idle: IdleStrategy::Spin,
        warm_up_interval,
        cycle: Vec::new(),
        agents,
    };
    let stop = StopSignal::new();
    let runner = Runner::start(vec![plan], clock, stop.clone())?;
    let mut source = Source {
        line: MulticastSender::new(group, std::net::Ipv4Addr::LOCALHOST)?,
        packet: PacketBuilder::new([0; DATAGRAM_LEN_MAX], session()?, Sequence(1)),
        instrument: instruments(1).as_slice()[0],
        sequence: 0,
    };
    let result = source.trade(context, &stop, &answered, [feed_stamps, engine_stamps]);
    stop.stop();
    // Report an agent's error first, because it explains a timeout of the measurement.
    runner.join()?;
    let mut samples = result?;
    Ok(samples.each_mut().map(|ticks| [0.5, 0.99].map(|wanted| context.quantile_ns(ticks, wanted))))
}

/// Settings of a feed handler that reads line A at `group`; line B has a group without a sender.
fn feed_settings(group: std::net::SocketAddrV4) -> anyhow::Result<FeedSettings> {
    let interface = std::net::Ipv4Addr::LOCALHOST;
    Ok(FeedSettings {
        feed: 0,
        line_a: group,
        line_b: free_multicast_group()?,
        interface,
        senders: Senders::of(None, interface, None),
        reader: LineReader::Sockets,
        max_instrument: InstrumentId(1),
        symbols: Vec::new(),
        max_orders: 16,
        arbiter: ArbiterConfig::default(),
        retransmission: None,
        snapshots: SnapshotSources::none(),
        loss: None,
    })
}

/// The engine's agent with its warm-up, the agent that answers its requests, and the engine's stamps.
type TakerAgent = EngineAgent<LiquidityTaker, Trace>;

fn engine(
    updates: broadcast::Receiver<tickpath_types::MarketUpdate>,
) -> anyhow::Result<(TakerAgent, Responder, records::Consumer<Stamp>)> {
    let WarmUp { strategy, instance } = WarmUp::of(|| LiquidityTaker::new(1));
    let config = EngineConfig { orders_per_second: u32::MAX, ..EngineConfig::default() };
    let (tracer, stamps) = Trace::new(TRACE_RING);
    let engine = TradeEngine::new(&config, instruments(1).as_slice(), &[limits()], strategy, tracer)?;
    let (events, events_out) = spsc::channel(RING);
    let (requests_in, requests) = spsc::channel(RING);
    let identity = EngineIdentity { role: "engine", feed: 0, engine: 0, session: SessionId(1) };
    let rings = EngineRings { updates, events: events_out, requests: requests_in };
    let agent = EngineAgent::new(identity, engine, rings, KillSwitch::default()).warmed_up_by(instance);
    agent.view().gateway.first_user_ref.set(1);
    let responder =
        Responder { requests, events, disturbance: vec![1; DISTURBANCE], answered: Arc::default() };
    Ok((agent, responder, stamps))
}

/// Answers each order as a venue that accepts it and cancels it without a fill. Then lets other data pass
/// through the caches.
struct Responder {
    requests: spsc::Consumer<OrderRequest>,
    events: spsc::Producer<GatewayEvent>,
    disturbance: Vec<u8>,
    /// Number of answered orders; counted after the disturbance.
    answered: Arc<AtomicU64>,
}

impl Agent for Responder {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let Some(request) = self.requests.try_pop() else { return Ok(0) };
        let OrderRequest::Enter(order) = request else {
            return Err(AgentError::fatal(format!("the strategy sent {request:?}")));
        };
        let count = self.answered.load(Ordering::Relaxed) + 1;
        let (order_id, state) = (OrderId(count), OrderState::Live);
        let (user_ref, decrement, reason) = (order.user_ref, order.qty, CancelReason::ImmediateOrCancel);
        for kind in [
            OrderEventKind::Accepted { order, order_id, state },
            OrderEventKind::Canceled { user_ref, decrement, reason },
        ] {
            if self.events.try_push(GatewayEvent::Answer { kind, ts: now }).is_err() {
                return Err(AgentError::fatal("the engine does not take its answers".to_owned()));
            }
        }
        black_box(&mut self.disturbance).iter_mut().step_by(64).for_each(|byte| *byte ^= 1);
        self.answered.store(count, Ordering::Release);
        Ok(1)
    }

    fn role_name(&self) -> &'static str {
        "responder"
    }
}

/// The source of market data: an instrument with an order on either side, of which each packet executes a
/// part.
struct Source {
    line: MulticastSender,
    packet: PacketBuilder<[u8; DATAGRAM_LEN_MAX]>,
    instrument: Instrument,
    sequence: u64,
}

impl Source {
    /// Sends the market's opening and then the packets, each after the order that the one before it caused.
    /// Returns the ticks of T7 to T10, T7k to T7, and T7k to T10 of each packet.
    fn trade(
        &mut self,
        context: &Context,
        stop: &StopSignal,
        answered: &AtomicU64,
        mut stamps: [records::Consumer<Stamp>; 2],
    ) -> anyhow::Result<[Vec<u64>; 3]> {
        let add = |side: Side| MarketEventKind::Add {
            order_id: order_of(side),
            side,
            price: Price(REFERENCE.0 - side.sign() * TICK),
            qty: RESTING,
        };
        let opening = [
            MarketEventKind::Directory,
            MarketEventKind::TradingAction(TradingState::Trading),
            add(Side::Buy),
            add(Side::Sell),
        ];
        self.send(&opening)?;
        let (mut rng, mut samples) = (Rng::new(1), [(); 3].map(|()| Vec::new()));
        let count = context.effort.count(PACKETS);
        for step in 1.. {
            if samples[0].len() == count {
                break;
            }
            context.spin(PAUSE + Nanos(rng.below(RANDOM_PAUSE.0)));
            stamps.iter_mut().for_each(|ring| _ = ring.drain(TRACE_RING, |_| ()));
            let order_id = order_of(Side::BOTH[(step % 2) as usize]);
            self.send(&[MarketEventKind::Executed { order_id, qty: EXECUTED, match_id: MatchId(step) }])?;
            wait_for(stop, || Ok((answered.load(Ordering::Acquire) == step).then_some(())))?;
            // The feed handler stamps a packet in its next duty cycle; T7k is 0 if the kernel did not stamp it.
            let mut found = [None; 3];
            let [t7k, t7, t10] = wait_for(stop, || {
                times(&mut stamps, &mut found);
                let [t7k, t7, t10] = found;
                Ok(t7k.zip(t7).zip(t10).map(|((t7k, t7), t10)| [t7k, t7, t10]))
            })?;
            // The kernel begins to stamp some time after the socket asks for it.
            if t7k == 0 && samples[0].is_empty() && step < UNSTAMPED_MAX {
                continue;
            }
            ensure!(t7k != 0, "the kernel did not stamp packet {step}");
            ensure!(t7 != 0 && t10 > t7, "packet {step} has no stamps T7 and T10 in this order");
            // The clocks of T7k and T7 are compared to within some tens of nanoseconds.
            for (ticks, (from, to)) in samples.iter_mut().zip([(t7, t10), (t7k, t7), (t7k, t10)]) {
                ticks.push(to.saturating_sub(from));
            }
        }
        ensure!(stamps.iter().all(|ring| ring.dropped() == 0), "some stamps found their ring full");
        Ok(samples)
    }

    /// Sends the events in one packet.
    fn send(&mut self, events: &[MarketEventKind]) -> anyhow::Result<()> {
        for kind in events {
            self.sequence += 1;
            let sequence = Sequence(self.sequence);
            let (ts, instrument) = (Nanos(self.sequence * 1_000), self.instrument.id);
            let event = MarketEvent { sequence, command: sequence, ts, instrument, kind: *kind };
            let instrument = Some(&self.instrument);
            let pushed = self.packet.push_with(|buffer| encode_market_event(&event, instrument, buffer));
            ensure!(pushed.is_ok(), "event {sequence} cannot be encoded");
        }
        let sent = self.line.send(self.packet.finish())?;
        ensure!(sent == SendStatus::Sent, "a packet was not sent");
        self.packet.start_next();
        Ok(())
    }
}

/// Id of the resting order on `side`.
fn order_of(side: Side) -> OrderId {
    OrderId(1 + side as u64)
}

/// Takes the times T7k, T7 and T10 of the packet in flight from the rings.
fn times(stamps: &mut [records::Consumer<Stamp>; 2], times: &mut [Option<u64>; 3]) {
    for ring in stamps {
        ring.drain(TRACE_RING, |stamp| {
            let Some(StampKind::Hop { hop, tsc, .. }) = stamp.decode() else { return };
            match hop {
                Hop::T7k => times[0] = Some(tsc),
                Hop::T7 => times[1] = Some(tsc),
                Hop::T10 => times[2] = Some(tsc),
                _ => {}
            }
        });
    }
}
