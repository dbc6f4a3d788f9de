//! The machine that the figures were taken on.

use tickpath_agent::{ClockSource, Host, Jitter};
use tickpath_types::Nanos;

/// The machine, the cores that were used, and what it took away meanwhile.
#[derive(Clone, Debug)]
pub struct HostView {
    /// The machine.
    pub host: Host,
    /// What the clock reads.
    pub clock: ClockSource,
    /// Core of the thread that measured.
    pub near_core: usize,
    /// Core of the other end; none where there is only one.
    pub far_core: Option<usize>,
    /// Gaps in a thread that only spun, over all rounds.
    pub jitter: Jitter,
}

/// Gaps of two periods together.
pub(crate) fn sum(a: Jitter, b: Jitter) -> Jitter {
    Jitter {
        elapsed: a.elapsed + b.elapsed,
        gaps_over_1us: a.gaps_over_1us + b.gaps_over_1us,
        gaps_over_10us: a.gaps_over_10us + b.gaps_over_10us,
        gaps_over_100us: a.gaps_over_100us + b.gaps_over_100us,
        gaps_over_1ms: a.gaps_over_1ms + b.gaps_over_1ms,
        gap_max: Nanos(a.gap_max.0.max(b.gap_max.0)),
        lost: a.lost + b.lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_add_up_and_the_longest_stays() {
        let gaps = |lost, gap_max| Jitter {
            elapsed: Nanos(1_000),
            gaps_over_1us: 2,
            gap_max: Nanos(gap_max),
            lost: Nanos(lost),
            ..Jitter::default()
        };
        let both = sum(gaps(100, 70), gaps(300, 60));
        assert_eq!((both.elapsed, both.gaps_over_1us, both.gap_max), (Nanos(2_000), 4, Nanos(70)));
        assert_eq!(both.lost_share(), 0.2);
    }
}
