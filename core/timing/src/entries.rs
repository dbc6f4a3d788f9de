//! The joiner's table entries: one type for each of the three id spaces.

use crate::measure::Stamps;
use crate::{CommandId, ENGINES_MAX, FEEDS_MAX, Hop, MarketId, Pair, Token};

/// Hops at which the venue stamps a market data message.
pub(crate) const VENUE_HOPS: [Hop; 4] = [Hop::T4, Hop::T5, Hop::T6w, Hop::T6];
/// Hops at which a feed handler stamps a market data message.
pub(crate) const FEED_HOPS: [Hop; 3] = [Hop::T7k, Hop::T7, Hop::T8];
/// Hops at which a command is stamped.
pub(crate) const COMMAND_HOPS: [Hop; 6] = [Hop::T2, Hop::T3, Hop::T4t, Hop::T5t, Hop::T6tw, Hop::T6t];
/// Hops at which an order token is stamped.
pub(crate) const TOKEN_HOPS: [Hop; 9] =
    [Hop::T1k, Hop::T1, Hop::T10, Hop::T11, Hop::T12w, Hop::T12, Hop::T7t, Hop::T8t, Hop::T9t];

/// Pairs recorded when a command is finalised, and kept for the reconciliation check.
pub(crate) const COMMAND_PAIRS: [Pair; 6] =
    [Pair::T1T2, Pair::T2T3, Pair::T3T4t, Pair::T4tT5t, Pair::T5tT6tw, Pair::T6twT6t];

/// Position of each hop in the list above that contains it, by [`Hop::index`].
const POSITIONS: [u8; Hop::COUNT] = {
    const fn fill<const N: usize>(mut positions: [u8; Hop::COUNT], hops: [Hop; N]) -> [u8; Hop::COUNT] {
        let mut position = 0;
        while position < N {
            positions[hops[position].index()] = position as u8;
            position += 1;
        }
        positions
    }
    fill(fill(fill(fill([0; Hop::COUNT], VENUE_HOPS), FEED_HOPS), COMMAND_HOPS), TOKEN_HOPS)
};

/// Times at `N` hops, in ticks, in the order of a list such as [`VENUE_HOPS`]; 0 if unknown.
#[derive(Clone, Copy, Default)]
pub(crate) struct Times<const N: usize>([u64; N])
where
    [u64; N]: Default;

impl<const N: usize> Times<N>
where
    [u64; N]: Default,
{
    /// Sets the time at a hop unless it is already set; returns true if it was unset.
    pub(crate) fn keep(&mut self, hop: Hop, tsc: u64) -> bool {
        keep_first(&mut self.0[usize::from(POSITIONS[hop.index()])], tsc)
    }

    pub(crate) fn copy_to(&self, hops: [Hop; N], stamps: &mut Stamps) {
        for (hop, tsc) in hops.into_iter().zip(self.0) {
            stamps.set(hop, tsc);
        }
    }
}

fn keep_first(slot: &mut u64, tsc: u64) -> bool {
    let is_first = *slot == 0;
    if is_first {
        *slot = tsc;
    }
    is_first
}

/// Entry of a market data message: the times at the venue, each feed handler and each engine.
#[derive(Clone, Copy, Default)]
pub(crate) struct MarketEntry {
    pub(crate) command: Option<CommandId>,
    pub(crate) venue: Times<4>,
    pub(crate) feeds: [FeedTimes; FEEDS_MAX],
    pub(crate) engines: [EngineTimes; ENGINES_MAX],
}

#[derive(Clone, Copy, Default)]
pub(crate) struct FeedTimes {
    pub(crate) times: Times<3>,
    /// Recorded duration of `T7_T8`, in ticks.
    pub(crate) t7_t8: Option<i64>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct EngineTimes {
    pub(crate) t9: u64,
    /// The feed handler that delivered the message.
    pub(crate) feed: u8,
    /// Recorded duration of `T8_T9`, in ticks.
    pub(crate) t8_t9: Option<i64>,
}

impl MarketEntry {
    /// Sets the time at a hop unless it is already set; returns true if it was unset. The feed handler and
    /// engine numbers of `id` must be below [`FEEDS_MAX`] and [`ENGINES_MAX`].
    pub(crate) fn keep(&mut self, hop: Hop, id: MarketId, tsc: u64) -> bool {
        let feed = &mut self.feeds[usize::from(id.feed())];
        match hop {
            Hop::T7k | Hop::T7 | Hop::T8 => feed.times.keep(hop, tsc),
            Hop::T9 => {
                let engine = &mut self.engines[usize::from(id.engine())];
                let is_first = keep_first(&mut engine.t9, tsc);
                if is_first {
                    engine.feed = id.feed();
                }
                is_first
            }
            _ => self.venue.keep(hop, tsc),
        }
    }

    /// Copies the times at the feed handler and the engine that `id` names to `stamps`.
    pub(crate) fn copy_path(&self, id: MarketId, stamps: &mut Stamps) {
        self.copy_feed(id.feed(), stamps);
        stamps.set(Hop::T9, self.engines[usize::from(id.engine())].t9);
    }

    /// Copies the times at one feed handler to `stamps`.
    pub(crate) fn copy_feed(&self, feed: u8, stamps: &mut Stamps) {
        self.feeds[usize::from(feed)].times.copy_to(FEED_HOPS, stamps);
    }
}

/// Entry of a command in the venue's log.
#[derive(Clone, Copy, Default)]
pub(crate) struct CommandEntry {
    pub(crate) token: Option<Token>,
    pub(crate) times: Times<6>,
    /// Recorded durations of the [`COMMAND_PAIRS`], in ticks.
    pub(crate) pairs: [Option<i64>; COMMAND_PAIRS.len()],
}

/// Entry of a client's request.
#[derive(Clone, Copy, Default)]
pub(crate) struct TokenEntry {
    pub(crate) trigger: Option<MarketId>,
    pub(crate) command: Option<CommandId>,
    pub(crate) times: Times<9>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IdSpace;

    #[test]
    fn every_hop_is_in_the_list_of_its_space() {
        for hop in Hop::ALL {
            let is_listed = match hop.space() {
                IdSpace::Market => VENUE_HOPS.contains(&hop) || FEED_HOPS.contains(&hop) || hop == Hop::T9,
                IdSpace::Command => COMMAND_HOPS.contains(&hop),
                IdSpace::Token => TOKEN_HOPS.contains(&hop),
            };
            assert!(is_listed, "{hop}");
        }
    }

    #[test]
    fn times_keep_the_first() {
        let mut times = Times::<9>::default();
        assert!(times.keep(Hop::T12, 5));
        assert!(!times.keep(Hop::T12, 6));
        let mut stamps = Stamps::NONE;
        times.copy_to(TOKEN_HOPS, &mut stamps);
        assert_eq!(stamps.at(Hop::T12), 5);
        assert_eq!(stamps.0.iter().filter(|tsc| **tsc != 0).count(), 1);
    }
}
