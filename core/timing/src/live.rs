//! What a live view shows: rates and the latest quantiles, a few times a second.

use tickpath_types::Nanos;

use crate::series::Series;
use crate::{Calibration, Counters, Span};

/// What happened since the last look.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The time that the figures are about; zero at the first look, when rates are zero too.
    pub elapsed: Nanos,
    /// Market data messages that settled, per second.
    pub markets_per_s: f64,
    /// Commands that settled, per second.
    pub commands_per_s: f64,
    /// Order tokens that settled, per second.
    pub tokens_per_s: f64,
    /// Records read from the rings, per second.
    pub records_per_s: f64,
    /// Each span, since the last look and since the start.
    pub spans: [LiveSpan; Span::COUNT],
    /// Counts since the start.
    pub counters: Counters,
}

/// One span in a live view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSpan {
    /// The span.
    pub span: Span,
    /// How many settled since the last look.
    pub count: u64,
    /// The median since the last look, in nanoseconds; 0 when there was none.
    pub p50_ns: i64,
    /// The 99 % quantile since the last look, in nanoseconds; 0 when there was none.
    pub p99_ns: i64,
    /// How many settled since the start.
    pub total_count: u64,
    /// The median since the start, in nanoseconds; 0 when there was none.
    pub total_p50_ns: i64,
    /// The 99 % quantile since the start, in nanoseconds; 0 when there was none.
    pub total_p99_ns: i64,
    /// The longest since the start, in nanoseconds; 0 when there was none.
    pub total_max_ns: i64,
}

/// What is kept from one look to the next.
pub(crate) struct LiveState {
    spans: Vec<Series>,
    last: Option<(u64, Counters)>,
}

impl LiveState {
    pub(crate) fn new() -> LiveState {
        LiveState { spans: Span::ALL.map(|_| Series::new()).into(), last: None }
    }

    pub(crate) fn record(&mut self, span: Span, ticks: i64, calibration: &Calibration) {
        self.spans[span.index()].record(ticks, calibration);
    }

    /// The figures since the last look, at `now` in ticks. `totals` has each span since the start, in the order of
    /// [`Span::ALL`].
    pub(crate) fn look(
        &mut self,
        now: u64,
        counters: Counters,
        totals: &[Series],
        calibration: &Calibration,
    ) -> Live {
        let (last_now, last) = self.last.replace((now, counters)).unwrap_or((now, counters));
        let elapsed = calibration.nanos(now.saturating_sub(last_now));
        let per_s = |count: u64| if elapsed.0 == 0 { 0.0 } else { count as f64 / elapsed.as_secs_f64() };
        let spans = Span::ALL.map(|span| self.look_at_span(span, &totals[span.index()], calibration));
        Live {
            elapsed,
            markets_per_s: per_s(counters.markets.settled() - last.markets.settled()),
            commands_per_s: per_s(counters.commands.settled() - last.commands.settled()),
            tokens_per_s: per_s(counters.tokens.settled() - last.tokens.settled()),
            records_per_s: per_s(counters.records - last.records),
            spans,
            counters,
        }
    }

    fn look_at_span(&mut self, span: Span, total: &Series, calibration: &Calibration) -> LiveSpan {
        let latest = &mut self.spans[span.index()];
        let live = LiveSpan {
            span,
            count: latest.count(),
            p50_ns: latest.quantile_ns(0.5, calibration),
            p99_ns: latest.quantile_ns(0.99, calibration),
            total_count: total.count(),
            total_p50_ns: total.quantile_ns(0.5, calibration),
            total_p99_ns: total.quantile_ns(0.99, calibration),
            total_max_ns: total.max_ns(calibration),
        };
        if live.count > 0 {
            latest.reset();
        }
        live
    }
}
