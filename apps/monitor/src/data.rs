//! The data that the view shows: structures without behaviour, which the caller fills.

use std::collections::VecDeque;
use std::time::Duration;

use tickpath_types::{BookHealth, Price, Qty, Symbol};

/// One snapshot of a running market.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarketView {
    /// Time for which the market has been running.
    pub elapsed: Duration,
    /// Planned duration of the run; `None` when the market runs until stopped.
    pub planned: Option<Duration>,
    /// Every instrument, in the order to show.
    pub instruments: Vec<InstrumentView>,
    /// Every participant, in the order to show.
    pub participants: Vec<ParticipantView>,
    /// Requests, commands, messages, packets and executions per second.
    pub rates: Rates,
    /// The market data feed, as seen by its receiver.
    pub feed: FeedView,
    /// Latency spans, the most important first: the history shows the p50 of the first one.
    pub latency: Vec<LatencyView>,
    /// The threads that run the agents.
    pub threads: Vec<ThreadView>,
    /// The machine in one line, e.g. `"AMD EPYC, 2 CPUs, TSC 2.600 GHz"`.
    pub host: String,
    /// Notes for the user, oldest first, e.g. a limit that is unavailable.
    pub notes: Vec<String>,
    /// Recent samples of latency and message rate, for the sparklines.
    pub history: History,
}

/// One instrument's market.
#[derive(Clone, Debug, PartialEq)]
pub struct InstrumentView {
    /// Ticker of the instrument.
    pub symbol: Symbol,
    /// Best bid and the quantity there.
    pub bid: Option<(Price, Qty)>,
    /// Best ask and the quantity there.
    pub ask: Option<(Price, Qty)>,
    /// Price and quantity of the last trade.
    pub last: Option<(Price, Qty)>,
    /// Number of trades since the start.
    pub trades: u64,
    /// Quantity traded since the start.
    pub volume: u64,
    /// Health of the book that is built from the feed.
    pub health: BookHealth,
}

/// One participant: a strategy or a background trader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParticipantView {
    /// Name of the participant.
    pub name: String,
    /// Number of orders and replacements entered since the start.
    pub orders: u64,
    /// Number of executions received.
    pub fills: u64,
    /// Quantity bought plus quantity sold.
    pub volume: u64,
    /// Number of orders that rest at the venue; `None` if they are not counted.
    pub open_orders: Option<u64>,
    /// Net position, summed over the instruments; negative when short.
    pub position: i64,
    /// Realised plus unrealised profit and loss, in price units of 10^-4.
    pub pnl: i128,
    /// Number of requests that the participant's pre-trade risk check refused.
    pub refused: u64,
}

/// Rates per second over the time since the previous snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Requests that participants sent, per second.
    pub orders: f64,
    /// Commands that the venue sequenced, per second.
    pub commands: f64,
    /// Messages that the venue published, per second.
    pub messages: f64,
    /// Packets with published messages, per second on one line: every line carries the same packets.
    pub packets: f64,
    /// Executions per second.
    pub fills: f64,
}

/// The market data feed, as seen by its receiver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedView {
    /// The lines of the feed, A first.
    pub lines: Vec<FeedLine>,
    /// Number of gaps in the stream that is merged from all lines.
    pub gaps: u64,
    /// Number of gaps closed by packets of another line.
    pub recovered_by_line: u64,
    /// Number of gaps closed by the retransmission server.
    pub recovered_by_retransmit: u64,
    /// True while messages are missing.
    pub gap_open: bool,
    /// Number of messages that could not be recovered from any source.
    pub lost_messages: u64,
}

/// One line of the feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedLine {
    /// Name, e.g. `"A"`.
    pub name: String,
    /// Number of packets received on the line.
    pub packets: u64,
    /// Number of messages that did not arrive on this line.
    pub lost_messages: u64,
    /// Number of messages that arrived on this line first.
    pub first_arrivals: u64,
}

/// The distribution of one latency span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyView {
    /// The span's name, e.g. `"tick_to_trade"`.
    pub name: String,
    /// Median latency in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds.
    pub p99_ns: u64,
    /// Maximum latency in nanoseconds.
    pub max_ns: u64,
    /// Number of measurements.
    pub count: u64,
}

/// One thread and the agents it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadView {
    /// Name of the thread.
    pub name: String,
    /// The core that the thread is pinned to; `None` when it is not pinned.
    pub core: Option<usize>,
    /// Fraction of the last interval in which the thread did work, 0 to 1.
    pub utilisation: f64,
    /// The agents, in the order in which they are invoked.
    pub agents: Vec<AgentView>,
}

/// One agent of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentView {
    /// Role of the agent, e.g. `"matcher"`.
    pub role: String,
    /// Fraction of the last interval in which the agent did work, 0 to 1.
    pub utilisation: f64,
}

/// One point of the [`History`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Median of the first latency span since the previous sample, in nanoseconds; `None` if not measured.
    pub p50_ns: Option<u64>,
    /// Market data messages per second since the previous sample.
    pub messages_per_s: f64,
}

/// Samples for the sparklines: the newest [`History::CAPACITY`]; older ones are dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// Number of samples kept: two minutes at four a second.
    pub const CAPACITY: usize = 480;

    /// Adds the newest sample.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.len() == Self::CAPACITY {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Returns the samples, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = Sample> {
        self.samples.iter().rev().copied()
    }

    /// Returns true when there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_keeps_the_newest() {
        let mut history = History::default();
        assert!(history.is_empty());
        for p50 in 0..=History::CAPACITY as u64 {
            history.push(Sample { p50_ns: Some(p50), messages_per_s: 0.0 });
        }
        let kept: Vec<_> = history.newest_first().filter_map(|sample| sample.p50_ns).collect();
        assert_eq!(kept.len(), History::CAPACITY);
        assert_eq!((kept[0], kept[History::CAPACITY - 1]), (History::CAPACITY as u64, 1));
    }
}
