//! Distribution of the day's messages over time.

use tickpath_types::{Nanos, Rng};

use super::weights::power_law;

/// Part of the trading day between two system events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Session {
    /// The time from the start of system hours to the opening.
    PreMarket,
    /// The time from the opening to the close.
    Market,
    /// The time from the close to the end of system hours.
    PostMarket,
}

/// An interval with a constant rate.
#[derive(Clone, Copy, Debug)]
struct Span {
    session: Session,
    /// Bounds in minutes since midnight.
    from: u64,
    to: u64,
    /// Share of the session's messages, in hundredths.
    share: u64,
    /// True if imbalances are published before the cross at the end of the span.
    has_imbalances: bool,
}

const fn span(session: Session, from: u64, to: u64, share: u64) -> Span {
    Span { session, from, to, share, has_imbalances: false }
}

const fn before_cross(session: Session, from: u64, to: u64, share: u64) -> Span {
    Span { has_imbalances: true, ..span(session, from, to, share) }
}

const fn at(hour: u64, minute: u64) -> u64 {
    hour * 60 + minute
}

/// Message rate over the day: quiet morning, rush at the opening, flat noon, rush to the close.
const SPANS: [Span; 19] = {
    use Session::{Market, PostMarket, PreMarket};
    [
        span(PreMarket, at(4, 0), at(7, 0), 10),
        span(PreMarket, at(7, 0), at(8, 0), 15),
        span(PreMarket, at(8, 0), at(9, 0), 25),
        span(PreMarket, at(9, 0), at(9, 25), 20),
        before_cross(PreMarket, at(9, 25), at(9, 30), 30),
        span(Market, at(9, 30), at(9, 35), 6),
        span(Market, at(9, 35), at(10, 0), 14),
        span(Market, at(10, 0), at(10, 30), 11),
        span(Market, at(10, 30), at(11, 0), 8),
        span(Market, at(11, 0), at(12, 0), 11),
        span(Market, at(12, 0), at(13, 0), 8),
        span(Market, at(13, 0), at(14, 0), 8),
        span(Market, at(14, 0), at(15, 0), 11),
        span(Market, at(15, 0), at(15, 30), 8),
        span(Market, at(15, 30), at(15, 50), 7),
        before_cross(Market, at(15, 50), at(16, 0), 8),
        span(PostMarket, at(16, 0), at(16, 5), 70),
        span(PostMarket, at(16, 5), at(17, 0), 15),
        span(PostMarket, at(17, 0), at(20, 0), 15),
    ]
};

/// Minimum number of pre-market messages per live order, in tenths: enough to fill the books.
const PRE_MARKET_TENTHS_PER_LIVE: u64 = 25;
/// Minimum number of post-market messages per live order, in tenths: enough to empty the books.
const POST_MARKET_TENTHS_PER_LIVE: u64 = 20;
/// Minimum percentage of the day's messages in the pre-market and in the post-market.
const PRE_MARKET_PERCENT_MIN: u64 = 4;
const POST_MARKET_PERCENT_MIN: u64 = 2;

/// Maximum number of messages in a cluster, and the mean under this maximum.
const CLUSTER_LEN_MAX: u64 = 512;
pub(super) const CLUSTER_LEN_MEAN: u64 = 7;
/// Gap between messages of a cluster: the minimum plus a random excess with this median.
const CLUSTER_GAP_NS_MEDIAN: u64 = 800;
const CLUSTER_GAP_NS_MIN: u64 = 40;

/// Number of messages of the pre-market, the market and the post-market session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionLens([u64; 3]);

impl SessionLens {
    pub fn new(messages: u64, live: u64) -> SessionLens {
        let pre_market =
            (live * PRE_MARKET_TENTHS_PER_LIVE / 10).max(messages * PRE_MARKET_PERCENT_MIN / 100);
        let post_market =
            (live * POST_MARKET_TENTHS_PER_LIVE / 10).max(messages * POST_MARKET_PERCENT_MIN / 100);
        SessionLens([pre_market, messages - pre_market - post_market, post_market])
    }

    pub fn of(&self, session: Session) -> u64 {
        self.0[session as usize]
    }
}

/// Time slot of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub ts: Nanos,
    /// True for the first message of a cluster.
    pub is_head: bool,
    pub has_imbalances: bool,
}

/// Assigns the times of one day's messages.
///
/// Messages come in clusters with random gaps between them; within a cluster, messages follow one another
/// within microseconds. Cluster sizes have a power-law tail. The rate is recomputed for each cluster from
/// the time and the messages that remain in the span, so that every span has exactly its share.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    lens: SessionLens,
    /// Index of the current span, its end in nanoseconds since midnight, and its remaining messages.
    span: usize,
    end_ns: u64,
    span_left: u64,
    session_left: u64,
    cluster_left: u64,
    /// Mean interval between messages in the rest of the span; maximum gap within a cluster.
    pace_ns: u64,
    now_ns: u64,
}

impl Schedule {
    pub fn new(lens: SessionLens) -> Schedule {
        let mut schedule = Schedule {
            lens,
            span: 0,
            end_ns: 0,
            span_left: 0,
            session_left: lens.of(Session::PreMarket),
            cluster_left: 0,
            pace_ns: 0,
            now_ns: 0,
        };
        schedule.enter(0);
        schedule
    }

    /// Number of messages in all spans with imbalances; approximate, because shares are rounded.
    pub fn messages_before_crosses(lens: SessionLens) -> u64 {
        let before = SPANS.iter().filter(|span| span.has_imbalances);
        before.map(|span| lens.of(span.session) * span.share / 100).sum()
    }

    pub fn session(&self) -> Session {
        SPANS[self.span].session
    }

    /// Number of messages assigned so far in the session, and the session's total.
    pub fn progress(&self) -> (u64, u64) {
        let len = self.lens.of(self.session());
        (len - self.session_left, len)
    }

    /// Returns the slot of the next message; `None` at the end of the session.
    #[inline]
    pub fn next(&mut self, rng: &mut Rng) -> Option<Slot> {
        while self.span_left == 0 {
            if self.session_left == 0 {
                return None;
            }
            self.enter(self.span + 1);
        }
        let is_head = self.cluster_left == 0;
        let gap = if is_head { self.begin_cluster(rng) } else { self.gap_within_cluster(rng) };
        self.now_ns = (self.now_ns + gap).min(self.end_ns - 1);
        self.cluster_left -= 1;
        self.span_left -= 1;
        self.session_left -= 1;
        Some(Slot { ts: Nanos(self.now_ns), is_head, has_imbalances: SPANS[self.span].has_imbalances })
    }

    /// Advances to the next session; returns false if there is none.
    pub fn next_session(&mut self) -> bool {
        let Some(next) = SPANS.get(self.span + 1) else { return false };
        self.session_left = self.lens.of(next.session);
        self.enter(self.span + 1);
        true
    }

    fn enter(&mut self, index: usize) {
        let span = SPANS[index];
        let is_last = SPANS.get(index + 1).is_none_or(|next| next.session != span.session);
        self.span = index;
        self.span_left =
            if is_last { self.session_left } else { self.lens.of(span.session) * span.share / 100 };
        self.now_ns = Nanos::from_secs(span.from * 60).0;
        self.end_ns = Nanos::from_secs(span.to * 60).0;
        self.cluster_left = 0;
    }

    fn begin_cluster(&mut self, rng: &mut Rng) -> u64 {
        self.cluster_left = (1 + power_law(rng, 1)).min(CLUSTER_LEN_MAX);
        let time_left = self.end_ns - self.now_ns;
        self.pace_ns = time_left / self.span_left;
        rng.exponential(time_left / (self.span_left / CLUSTER_LEN_MEAN + 1))
    }

    #[inline]
    fn gap_within_cluster(&mut self, rng: &mut Rng) -> u64 {
        (CLUSTER_GAP_NS_MIN + power_law(rng, CLUSTER_GAP_NS_MEDIAN)).min(self.pace_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_follow_one_another_and_shares_are_whole() {
        assert!(SPANS.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].from < pair[0].to));
        for session in [Session::PreMarket, Session::Market, Session::PostMarket] {
            let shares = SPANS.iter().filter(|span| span.session == session).map(|span| span.share);
            assert_eq!(shares.sum::<u64>(), 100, "{session:?}");
        }
    }

    #[test]
    fn every_session_deals_exactly_its_messages_within_its_hours() {
        for (messages, live) in [(100_000, 12_000), (100_000, 50), (300, 3)] {
            let lens = SessionLens::new(messages, live);
            let mut schedule = Schedule::new(lens);
            let mut rng = Rng::new(1);
            let mut last = Nanos::ZERO;
            let mut total = 0;
            loop {
                let session = schedule.session();
                let mut count = 0;
                while let Some(slot) = schedule.next(&mut rng) {
                    assert!(slot.ts >= last && schedule.session() == session);
                    last = slot.ts;
                    count += 1;
                }
                assert_eq!(count, lens.of(session), "{session:?} of {messages}");
                total += count;
                if !schedule.next_session() {
                    break;
                }
            }
            assert_eq!(total, messages);
            assert!(last < Nanos::from_secs(20 * 3_600));
        }
    }

    #[test]
    fn times_are_clustered() {
        let lens = SessionLens::new(200_000, 1_000);
        let (mut schedule, mut rng) = (Schedule::new(lens), Rng::new(2));
        while schedule.session() == Session::PreMarket {
            while schedule.next(&mut rng).is_some() {}
            schedule.next_session();
        }
        let times: Vec<u64> = std::iter::from_fn(|| schedule.next(&mut rng)).map(|slot| slot.ts.0).collect();
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
        let short = gaps.iter().filter(|gap| **gap < mean / 100).count();
        assert!(short * 10 > gaps.len() * 7, "{short} of {}: independent ones have 1 in 100", gaps.len());
    }
}
