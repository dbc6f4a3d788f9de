//! The latest quantiles, for a live view, a few times a second.

use crate::Span;
use crate::joiner::Joiner;

/// One span in a live view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSpan {
    /// The span.
    pub span: Span,
    /// How many settled since the last look.
    pub count: u64,
    /// The median since the last look, in nanoseconds; 0 when there was none.
    pub p50_ns: i64,
    /// How many settled since the start.
    pub total_count: u64,
    /// The median since the start, in nanoseconds; 0 when there was none.
    pub total_p50_ns: i64,
    /// The 99 % quantile since the start, in nanoseconds; 0 when there was none.
    pub total_p99_ns: i64,
    /// The longest since the start, in nanoseconds; 0 when there was none.
    pub total_max_ns: i64,
}

impl Joiner {
    /// Each span since the last look and since the start, in the order of [`Span::ALL`]; the next look starts from here.
    /// Does not allocate; takes some tens of microseconds.
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
}
