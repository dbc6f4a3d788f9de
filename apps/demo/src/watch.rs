//! Fills the live view from market updates and the agents' counters.

use std::sync::Arc;
use std::time::Duration;

use tickpath_agent::{ThreadCounters, ThreadReport, counts_allocations};
use tickpath_config::thousands;
use tickpath_monitor::{
    AgentView, FeedLine, FeedView, History, InstrumentView, LatencyView, MarketView, ParticipantView, Rates,
    Sample, ThreadView,
};
use tickpath_timing::{LiveSpan, Span};
use tickpath_trading::{Bbo, MarkTo, Position, TraderSnapshot};
use tickpath_types::{BookHealth, MarketUpdate, Nanos, UpdateKind};

use crate::market::Market;

/// The latest market data of one instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quote {
    pub(crate) bbo: Bbo,
    last: Option<(tickpath_types::Price, tickpath_types::Qty)>,
    trades: u64,
    volume: u64,
    health: BookHealth,
}

/// Counters at the last update of the view, from which the next update computes rates.
#[derive(Clone, Copy, Debug, Default)]
struct CounterSample {
    orders: u64,
    commands: u64,
    messages: u64,
    packets: u64,
    fills: u64,
    at: Nanos,
}

/// Elapsed ticks of each thread and busy ticks of its agents, at the last update of the view.
type BusyTicks = Vec<(u64, Vec<u64>)>;

/// Observes a market: receives the same updates as the engines, and reads counters.
pub(crate) struct Watch {
    pub(crate) quotes: Vec<Quote>,
    /// Number of market updates that were overwritten before they were read; their trades are not counted.
    pub(crate) lost_updates: u64,
    last_sample: CounterSample,
    busy: BusyTicks,
    /// Latest snapshot of each trader.
    snapshots: Vec<TraderSnapshot>,
    source_positions: Vec<Position>,
    history: History,
    host: String,
    /// Allocation counts of each thread's agents at the end of the market's warm-up.
    warm: Option<Vec<Vec<u64>>>,
}

/// Spans shown in the view.
const SHOWN: [Span; 4] =
    [Span::TickToTradeSoftware, Span::TickToTrade, Span::VenueResponse, Span::OrderRoundTrip];

impl Watch {
    pub(crate) fn new(instruments: usize, host: String) -> Watch {
        Watch {
            quotes: vec![Quote::default(); instruments],
            lost_updates: 0,
            last_sample: CounterSample::default(),
            busy: Vec::new(),
            snapshots: Vec::new(),
            source_positions: Vec::new(),
            history: History::default(),
            host,
            warm: None,
        }
    }

    /// Handles the waiting market updates.
    pub(crate) fn follow(&mut self, market: &mut Market) {
        loop {
            match market.updates.try_recv() {
                Ok(Some(update)) => self.take(&update),
                Ok(None) => return,
                Err(lagged) => self.lost_updates += lagged.0,
            }
        }
    }

    fn take(&mut self, update: &MarketUpdate) {
        let Some(quote) = self.quotes.get_mut(usize::from(update.instrument).wrapping_sub(1)) else { return };
        quote.bbo = Bbo { bid: update.bid(), ask: update.ask() };
        quote.health = update.health();
        if update.kind() == Some(UpdateKind::Trade) {
            quote.last = Some((tickpath_types::Price(update.price), tickpath_types::Qty(update.qty)));
            quote.trades += 1;
            quote.volume += update.qty;
        }
    }

    /// Stores the allocation counts at the end of the market's warm-up; later no duty cycle may allocate.
    pub(crate) fn mark_warm(&mut self, market: &Market) {
        if self.warm.is_none() && counts_allocations() {
            let threads = market.runner.counters();
            let count = |thread: &Arc<ThreadCounters>| -> Vec<u64> {
                thread.agents.iter().map(|agent| agent.allocations.read()).collect()
            };
            self.warm = Some(threads.map(count).collect());
        }
    }

    /// Allocations in duty cycles since the market's warm-up, by agent; `None` if they are not counted.
    pub(crate) fn warm_allocations(&self, threads: &[ThreadReport]) -> Option<Vec<(&'static str, u64)>> {
        let warm = self.warm.as_ref()?.iter().flatten();
        let agents = threads.iter().flat_map(|thread| &thread.counters.agents);
        Some(agents.zip(warm).map(|(agent, warm)| (agent.role, agent.allocations.read() - warm)).collect())
    }

    /// Profit and loss of `positions` at market prices, with their net quantity and volume.
    pub(crate) fn value(&self, positions: &[Position]) -> PositionValue {
        positions.iter().zip(&self.quotes).fold(PositionValue::default(), |sum, (position, quote)| {
            let mut position = *position;
            position.mark(&quote.bbo);
            PositionValue {
                net: sum.net + position.net_qty(),
                pnl: sum.pnl + position.total_pnl(MarkTo::Mid).0,
                volume: sum.volume + position.volume().0,
            }
        })
    }

    /// Collects the data of the live view.
    pub(crate) fn view(
        &mut self,
        market: &mut Market,
        elapsed: Nanos,
        planned: Option<Nanos>,
        mut notes: Vec<String>,
    ) -> MarketView {
        if self.lost_updates > 0 {
            notes.push(format!(
                "the view fell behind and missed {} market updates: its trades and volumes are too low",
                thousands(self.lost_updates)
            ));
        }
        let live = market.joiner.live();
        let participants = self.participants(market);
        let rates = self.rates(market);
        let software = live[Span::TickToTradeSoftware.index()];
        self.history.push(Sample {
            p50_ns: (software.count > 0).then_some(software.p50_ns.max(0) as u64),
            messages_per_s: rates.messages,
        });
        MarketView {
            elapsed: Duration::from_nanos(elapsed.0),
            planned: planned.map(|planned| Duration::from_nanos(planned.0)),
            instruments: self.instruments(market),
            participants,
            rates,
            feed: feed_view(market),
            latency: SHOWN.iter().map(|span| latency_view(&live[span.index()])).collect(),
            threads: self.threads(market),
            host: self.host.clone(),
            notes,
            history: self.history.clone(),
        }
    }

    fn instruments(&self, market: &Market) -> Vec<InstrumentView> {
        let table = market.instruments.as_slice();
        table
            .iter()
            .zip(&self.quotes)
            .map(|(instrument, quote)| InstrumentView {
                symbol: instrument.symbol,
                bid: quote.bbo.bid,
                ask: quote.bbo.ask,
                last: quote.last,
                trades: quote.trades,
                volume: quote.volume,
                health: quote.health,
            })
            .collect()
    }

    fn participants(&mut self, market: &Market) -> Vec<ParticipantView> {
        self.update_snapshots(market);
        let mut list = Vec::with_capacity(market.traders.len() + 1);
        for (trader, snapshot) in market.traders.iter().zip(&self.snapshots) {
            let PositionValue { net, pnl, volume } = self.value(&snapshot.positions);
            list.push(ParticipantView {
                name: trader.name.to_owned(),
                orders: snapshot.counters.enters + snapshot.counters.replaces,
                fills: snapshot.counters.fills,
                volume,
                open_orders: Some(snapshot.open_orders),
                position: net,
                pnl,
                refused: snapshot.counters.refused_risk,
            });
        }
        let source = &market.source;
        let PositionValue { net, pnl, volume } = self.value(&self.source_positions);
        list.push(ParticipantView {
            name: source.name.to_owned(),
            orders: source.view.counters.orders.read(),
            fills: source.view.counters.fills.read(),
            volume,
            open_orders: source.flow.is_none().then(|| source.view.counters.open_orders.read()),
            position: net,
            pnl,
            refused: 0,
        });
        list
    }

    /// Reads each participant's published state, or keeps the last one read while a new one is being written.
    fn update_snapshots(&mut self, market: &Market) {
        self.snapshots.resize_with(market.traders.len(), TraderSnapshot::default);
        for (trader, snapshot) in market.traders.iter().zip(&mut self.snapshots) {
            if let Ok(newer) = trader.view.snapshot() {
                *snapshot = newer;
            }
        }
        if let Ok(newer) = market.source.view.positions() {
            self.source_positions = newer;
        }
    }

    fn rates(&mut self, market: &Market) -> Rates {
        let now = CounterSample {
            orders: market.venue.order_server.requests.read(),
            commands: market.venue.matcher.commands.read(),
            messages: market.venue.publisher.messages.read(),
            packets: market.venue.publisher.packets.read(),
            fills: market.venue.matcher.executions.read(),
            at: market.clock.now(),
        };
        let before = std::mem::replace(&mut self.last_sample, now);
        let seconds = now.at.since(before.at).as_secs_f64();
        if before.at == Nanos::ZERO || seconds <= 0.0 {
            return Rates::default();
        }
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
        Rates {
            orders: rate(now.orders, before.orders),
            commands: rate(now.commands, before.commands),
            messages: rate(now.messages, before.messages),
            packets: rate(now.packets, before.packets),
            fills: rate(now.fills, before.fills),
        }
    }

    /// Returns the utilisation of each thread since the last call.
    fn threads(&mut self, market: &Market) -> Vec<ThreadView> {
        let mut views = Vec::new();
        let mut now = BusyTicks::new();
        for (index, thread) in market.runner.counters().enumerate() {
            let busy: Vec<u64> = thread.agents.iter().map(|agent| agent.busy_ticks.read()).collect();
            let (elapsed_before, busy_before) = self.busy.get(index).cloned().unwrap_or_default();
            let elapsed = thread.elapsed_ticks().saturating_sub(elapsed_before).max(1) as f64;
            let share = |agent: usize| {
                let before = busy_before.get(agent).copied().unwrap_or(0);
                (busy[agent].saturating_sub(before) as f64 / elapsed).min(1.0)
            };
            let agents: Vec<AgentView> = thread
                .agents
                .iter()
                .enumerate()
                .map(|(agent, counters)| AgentView {
                    role: counters.role.to_owned(),
                    utilisation: share(agent),
                })
                .collect();
            views.push(ThreadView {
                name: thread.name.clone(),
                core: market.cores[index],
                utilisation: agents.iter().map(|agent| agent.utilisation).sum::<f64>().min(1.0),
                agents,
            });
            now.push((thread.elapsed_ticks(), busy));
        }
        self.busy = now;
        views
    }
}

/// The value of positions at market prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PositionValue {
    pub(crate) net: i64,
    pub(crate) pnl: i128,
    pub(crate) volume: u64,
}

fn latency_view(span: &LiveSpan) -> LatencyView {
    let ns = |value: i64| value.max(0) as u64;
    LatencyView {
        name: span.span.name().to_owned(),
        p50_ns: ns(span.total_p50_ns),
        p99_ns: ns(span.total_p99_ns),
        max_ns: ns(span.total_max_ns),
        count: span.total_count,
    }
}

fn feed_view(market: &Market) -> FeedView {
    let counters = &market.feed.counters;
    let line = |name: &str, index: usize| FeedLine {
        name: name.to_owned(),
        packets: counters.packets[index].read(),
        lost_messages: counters.missed_messages[index].read(),
        first_arrivals: counters.first_messages[index].read(),
    };
    FeedView {
        lines: vec![line("A", 0), line("B", 1)],
        gaps: counters.gaps_opened.read(),
        recovered_by_line: counters.gaps_healed_by_line.read(),
        recovered_by_retransmit: counters.gaps_healed_by_retransmission.read(),
        gap_open: counters.open_gap.read() == 1,
        lost_messages: counters.messages_lost.read(),
    }
}
