//! The results of a run as plain values: a report at its end, and live statistics a few times a second.

use tickpath_types::Nanos;

use crate::joiner::Joiner;
use crate::trades::Trade;
use crate::{
    CommandId, Counters, Function, Group, Hop, MarketId, Pair, ReconciliationCheck, Span, Summary, Token,
};

/// All results from the stamps of a run; `Display` renders them as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Time from the first stamp to the last.
    pub elapsed: Nanos,
    /// Spans, pairs of hops and functions, grouped in the order of [`Group::ALL`]; those without samples are
    /// omitted.
    pub rows: Vec<Row>,
    /// The reconciliation checks of hops and spans.
    pub checks: [ReconciliationCheck; 3],
    /// Counters of the records read, and of those that were not joined.
    pub counters: Counters,
    /// The recent trade whose `tick_to_ack` is nearest to the median; if no trade has one, the trade whose
    /// `tick_to_trade` is nearest to the median.
    pub median_trade: Option<TradeTimeline>,
}

/// One line of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Name, such as `T7_T8`, `tick_to_trade` or `book_apply`.
    pub name: &'static str,
    /// Group of the row.
    pub group: Group,
    /// Description of the timed work.
    pub description: &'static str,
    /// Statistics of the row.
    pub summary: Summary,
}

/// The timeline of one trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeTimeline {
    /// Token of the order.
    pub token: Token,
    /// The market data message that triggered the order.
    pub trigger: Option<MarketId>,
    /// Command that carried the order in the venue's log, if the venue is traced.
    pub command: Option<CommandId>,
    /// Steps in order, without a gap; they add up to `total_ns`.
    pub steps: Vec<TimelineStep>,
    /// Time from the first hop to the last, in nanoseconds.
    pub total_ns: i64,
}

/// One step of a [`TradeTimeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineStep {
    /// The two hops of the step.
    pub pair: Pair,
    /// Start of the step, in nanoseconds since the first hop of the trade.
    pub start_ns: i64,
    /// Duration in nanoseconds; may be negative.
    pub duration_ns: i64,
}

/// Live statistics of one span, as returned by [`Joiner::live`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSpan {
    /// The measured span.
    pub span: Span,
    /// Number of durations of the span since the previous call of `live`.
    pub count: u64,
    /// Median of the durations since the previous call of `live`, in nanoseconds; 0 if there are none.
    pub p50_ns: i64,
    /// Number of durations of the span since the start.
    pub total_count: u64,
    /// Median duration since the start, in nanoseconds; 0 if there are none.
    pub total_p50_ns: i64,
    /// 99 % quantile of the durations since the start, in nanoseconds; 0 if there are none.
    pub total_p99_ns: i64,
    /// Longest duration since the start, in nanoseconds; 0 if there are none.
    pub total_max_ns: i64,
}

/// Timeline steps when the venue is traced too; the network steps start when the write begins.
const VENUE_PATH: [Pair; 14] = [
    Pair::T7T8,
    Pair::T8T9,
    Pair::T9T10,
    Pair::T10T11,
    Pair::T11T12w,
    Pair::T12wT1,
    Pair::T1T2,
    Pair::T2T3,
    Pair::T3T4t,
    Pair::T4tT5t,
    Pair::T5tT6tw,
    Pair::T6twT7t,
    Pair::T7tT8t,
    Pair::T8tT9t,
];
/// Timeline steps when only the trader is traced.
const TRADER_PATH: [Pair; 6] =
    [Pair::T7T8, Pair::T8T9, Pair::T9T10, Pair::T10T11, Pair::T11T12w, Pair::T12wT12];

impl Joiner {
    /// Returns statistics of each span since the previous call and since the start, in the order of
    /// [`Span::ALL`]. Does not allocate; takes some tens of microseconds.
    pub fn live(&mut self) -> [LiveSpan; Span::COUNT] {
        Span::ALL.map(|span| {
            let (latest, total) = (&mut self.latest[span.index()], &self.spans[span.index()]);
            let live = LiveSpan {
                span,
                count: latest.count(),
                p50_ns: latest.quantile_ns(0.5),
                total_count: total.count(),
                total_p50_ns: total.quantile_ns(0.5),
                total_p99_ns: total.quantile_ns(0.99),
                total_max_ns: total.max_ns(),
            };
            if live.count > 0 {
                latest.reset();
            }
            live
        })
    }

    /// Returns the results of all finalised entries. Allocates: call it at the end, or off the hot path.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            elapsed: self.calibration.nanos(self.stamped[1].saturating_sub(self.stamped[0])),
            rows: self.rows(),
            checks: self.checks(),
            counters: self.counters,
            median_trade: self.median_trade().map(|trade| self.timeline(trade)),
        }
    }

    /// The timeline of a trade.
    fn timeline(&self, trade: &Trade) -> TradeTimeline {
        let path: &[Pair] = if trade.at(Hop::T1).is_some() { &VENUE_PATH } else { &TRADER_PATH };
        let start = trade.at(Hop::T7).unwrap_or_default();
        let since_start = |hop| {
            let ticks = trade.at(hop)?.wrapping_sub(start) as i64;
            Some(self.calibration.signed_nanos(ticks))
        };
        let step = |pair: &Pair| {
            let (start_ns, end_ns) = (since_start(pair.from())?, since_start(pair.to())?);
            Some(TimelineStep { pair: *pair, start_ns, duration_ns: end_ns - start_ns })
        };
        let steps: Vec<TimelineStep> = path.iter().map_while(step).collect();
        TradeTimeline {
            token: trade.token,
            trigger: trade.trigger,
            command: trade.command,
            total_ns: steps.last().map_or(0, |step| step.start_ns + step.duration_ns),
            steps,
        }
    }

    /// Returns the recent trade whose `tick_to_ack` is nearest to the median; if no trade has one, the recent
    /// trade whose `tick_to_trade` is nearest to the median.
    fn median_trade(&self) -> Option<&Trade> {
        [Span::TickToAck, Span::TickToTrade].into_iter().find_map(|span| {
            let series = &self.spans[span.index()];
            let ticks = self.calibration.ticks(Nanos(series.quantile_ns(0.5).max(0) as u64));
            self.trades.nearest(span, ticks)
        })
    }

    fn rows(&self) -> Vec<Row> {
        let spans = Span::ALL
            .into_iter()
            .map(|span| (span.name(), span.group(), span.describe(), &self.spans[span.index()]));
        let pairs = Pair::ALL
            .into_iter()
            .map(|pair| (pair.name(), pair.group(), pair.describe(), &self.pairs[pair.index()]));
        let functions = Function::ALL.into_iter().map(|function| {
            let series = &self.functions[function.index()];
            (function.name(), Group::Function, function.describe(), series)
        });
        // Pairs are declared group by group, so this is the order of the groups.
        let rows = spans.chain(pairs).chain(functions);
        let rows = rows.map(|(name, group, description, series)| Row {
            name,
            group,
            description,
            summary: series.summary(),
        });
        rows.filter(|row| row.summary.count > 0).collect()
    }
}

impl Report {
    /// Returns the row with a name, as in `report.row("T7_T8")`; `None` when it has no sample.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }
}
