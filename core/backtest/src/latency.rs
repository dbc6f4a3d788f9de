//! Latency between a strategy and its venue.

use std::collections::VecDeque;

use tickpath_types::{Nanos, Rng};

/// The time that messages take in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Every message takes this time.
    Constant(Nanos),
    /// A message takes at least `min`, and more by an exponentially distributed time with the mean `mean_extra`.
    Jitter {
        /// Minimum time.
        min: Nanos,
        /// Mean of the time above the minimum.
        mean_extra: Nanos,
    },
    /// A message takes one of these times, each with the same probability. Not empty.
    Sampled(Vec<Nanos>),
}

impl Latency {
    fn draw(&self, rng: &mut Rng) -> Nanos {
        match self {
            Latency::Constant(time) => *time,
            Latency::Jitter { min, mean_extra } => *min + Nanos(rng.exponential(mean_extra.0)),
            Latency::Sampled(times) => times[rng.below(times.len() as u64) as usize],
        }
    }
}

/// The latency of each leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// From an event at the venue to the strategy's knowledge of it.
    pub market_data: Latency,
    /// From the strategy's request to the venue's matching engine.
    pub request: Latency,
    /// From the matching engine to the strategy's knowledge of the answer.
    pub answer: Latency,
}

impl Latencies {
    /// Latencies with which every message takes `time` on each leg.
    #[must_use]
    pub fn constant(time: Nanos) -> Latencies {
        let leg = Latency::Constant(time);
        Latencies { market_data: leg.clone(), request: leg.clone(), answer: leg }
    }
}

/// Messages on their way. None overtakes an earlier one, as over TCP and in sequenced market data.
#[derive(Debug)]
pub(crate) struct Leg<T> {
    latency: Latency,
    rng: Rng,
    /// The messages with the times of their arrivals.
    waiting: VecDeque<(Nanos, T)>,
    /// Arrival of the last message sent.
    last: Nanos,
}

impl<T> Leg<T> {
    pub(crate) fn new(latency: Latency, seed: u64) -> Leg<T> {
        Leg { latency, rng: Rng::new(seed), waiting: VecDeque::new(), last: Nanos::ZERO }
    }

    #[inline]
    pub(crate) fn send(&mut self, now: Nanos, message: T) {
        self.last = self.last.max(now + self.latency.draw(&mut self.rng));
        self.waiting.push_back((self.last, message));
    }

    /// Time of the next arrival; [`NEVER`] if no message is on its way.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Nanos {
        self.waiting.front().map_or(NEVER, |(at, _)| *at)
    }

    #[inline]
    pub(crate) fn receive(&mut self) -> Option<T> {
        self.waiting.pop_front().map(|(_, message)| message)
    }
}

/// A time after all others.
pub(crate) const NEVER: Nanos = Nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_their_order_after_their_latency() {
        let mut leg = Leg::new(Latency::Sampled(vec![Nanos(5), Nanos(500)]), 1);
        for number in 0..1_000 {
            leg.send(Nanos(number * 10), number);
        }
        let mut last = Nanos::ZERO;
        for number in 0..1_000 {
            let at = leg.next_arrival();
            assert!(at >= last && at >= Nanos(number * 10 + 5), "{number} arrives at {at:?}");
            assert_eq!(leg.receive(), Some(number));
            last = at;
        }
        assert_eq!((leg.next_arrival(), leg.receive()), (NEVER, None));
    }

    #[test]
    fn latency_is_drawn_from_its_distribution() {
        let mut rng = Rng::new(7);
        let jitter = Latency::Jitter { min: Nanos(1_000), mean_extra: Nanos(200) };
        let times: Vec<u64> = (0..10_000).map(|_| jitter.draw(&mut rng).0).collect();
        let mean = times.iter().sum::<u64>() / 10_000;
        assert!(times.iter().all(|time| *time >= 1_000) && (1_190..1_210).contains(&mean), "{mean}");
        assert_eq!(Latency::Constant(Nanos(7)).draw(&mut rng), Nanos(7));
    }
}
