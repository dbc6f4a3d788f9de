//! Checks, message by message, that the times between hops add up to their span.

use crate::Span;

/// Compares, for each complete message, the sum of the recorded times between hops with the whole span.
///
/// The times between hops come from three id spaces, and each is recorded when its message is finalised. The
/// span is computed later from its first and last stamp. The two agree only if every stamp was joined to the
/// right message and had the same value at each use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconciliationCheck {
    /// The span that is checked.
    pub span: Span,
    /// Number of messages with a stamp at every hop of the span.
    pub messages: u64,
    /// Number of these messages whose times between hops did not add up to the span.
    pub mismatches: u64,
    /// Sum of the times between hops over all these messages, in ticks.
    pub hops_ticks: i128,
    /// Sum of the spans over all these messages, in ticks.
    pub span_ticks: i128,
}

impl ReconciliationCheck {
    pub(crate) const fn new(span: Span) -> ReconciliationCheck {
        ReconciliationCheck { span, messages: 0, mismatches: 0, hops_ticks: 0, span_ticks: 0 }
    }

    /// True when no message has a mismatch and the two sums are exactly equal. Also true without any message:
    /// check `messages` too.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.mismatches == 0 && self.hops_ticks == self.span_ticks
    }

    /// Checks one message; does nothing if the span or the time of a hop is unknown.
    pub(crate) fn check(&mut self, hops: impl IntoIterator<Item = Option<i64>>, span: Option<i64>) {
        let Some(span) = span else { return };
        let Some(hops) = hops.into_iter().map(|hop| hop.map(i128::from)).sum::<Option<i128>>() else {
            return;
        };
        self.messages += 1;
        self.mismatches += u64::from(hops != i128::from(span));
        self.hops_ticks += hops;
        self.span_ticks += i128::from(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tick_off_is_a_mismatch_and_gaps_are_skipped() {
        let mut check = ReconciliationCheck::new(Span::TickToTrade);
        check.check([Some(5), Some(-2)], Some(3));
        check.check([Some(5), None], Some(3));
        check.check([Some(5)], None);
        assert!(check.holds());
        assert_eq!((check.messages, check.hops_ticks, check.span_ticks), (1, 3, 3));
        check.check([Some(1), Some(1)], Some(3));
        check.check([Some(1), Some(1)], Some(1));
        assert_eq!((check.messages, check.mismatches), (3, 2));
        assert!(!check.holds(), "although the totals agree");
        assert_eq!(check.hops_ticks, check.span_ticks);
    }
}
