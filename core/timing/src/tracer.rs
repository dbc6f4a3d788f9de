//! The interface through which an agent writes its stamps.

use tickpath_lockfree::{cpu, records};
use tickpath_types::Sequence;

use crate::{Function, Hop, RANGE_LEN_MAX, Stamp, TraceId};

/// Records the stamps of one agent. An agent has its tracer as a type parameter: [`Trace`], or [`NoTrace`],
/// which compiles to nothing. The default methods record nothing.
///
/// Stamps are observations and never input: no decision may depend on the methods' return values.
#[expect(unused_variables, reason = "nothing is taken by default")]
pub trait Tracer {
    /// False when nothing is recorded, so that work only for the trace can be skipped.
    const ENABLED: bool;

    /// The time-stamp counter, or 0 when tracing is off.
    #[inline(always)]
    fn now(&self) -> u64 {
        0
    }

    /// The time-stamp counter, read after all earlier loads have completed, such as those from shared memory.
    #[inline(always)]
    fn now_ordered(&self) -> u64 {
        0
    }

    /// Stamps a message at a hop with the current time; returns the time, or 0 when tracing is off.
    #[inline(always)]
    fn stamp<I: TraceId>(&mut self, hop: Hop, id: I) -> u64 {
        0
    }

    /// Stamps a message at a hop with an earlier time, such as that of the packet's read or of its receipt by
    /// the kernel. The joiner ignores time 0, which means unknown.
    #[inline(always)]
    fn stamp_at<I: TraceId>(&mut self, hop: Hop, id: I, tsc: u64) {}

    /// Stamps the market data messages with sequence numbers from `first` up to but excluding `end` at a hop of
    /// the venue, with an earlier time. Writes one record per [`RANGE_LEN_MAX`] messages; none if there are no
    /// messages.
    #[inline(always)]
    fn stamp_range_at(&mut self, hop: Hop, first: Sequence, end: Sequence, tsc: u64) {}

    /// Records that a message was caused by another.
    #[inline(always)]
    fn link<I: TraceId>(&mut self, child: I, parent: I::Parent) {}

    /// Records that a function took `ticks`.
    #[inline(always)]
    fn time(&mut self, function: Function, ticks: u64) {}

    /// A warm-up tracer of the same kind, without a reader. Its stamps must be [discarded](Self::discard)
    /// after each warm-up, otherwise its ring fills up.
    #[must_use]
    fn warm_up_instance(&self) -> Self;

    /// Discards the stamps since the latest [`flush`](Self::flush), except those already visible to the
    /// drain.
    #[inline(always)]
    fn discard(&mut self) {}

    /// Prefetches the memory of the next stamp; call this when idle. The drain has read the latest stamps of its
    /// cache line meanwhile, and the next stamp would wait until the line returns.
    #[inline(always)]
    fn prefetch(&self) {}

    /// Publishes the stamps to the drain. Called once at the end of a duty cycle that did work.
    #[inline(always)]
    fn flush(&mut self) {}
}

/// Capacity of a warm-up tracer's ring: at least four times the stamps of one warm-up, so that all can be
/// discarded.
const WARM_UP_CAPACITY: usize = 1 << 9;

/// Writes stamps into a separate ring, which the drain empties off the hot path.
///
/// A stamp is a read of the time-stamp counter and a store of 16 bytes. When the ring is full the stamp is
/// dropped and counted.
#[derive(Debug)]
pub struct Trace {
    ring: records::Producer<Stamp>,
}

impl Trace {
    /// Creates a tracer, and the consumer of its ring for the drain. The ring holds `capacity` records,
    /// rounded up to a power of two.
    #[must_use]
    pub fn new(capacity: usize) -> (Trace, records::Consumer<Stamp>) {
        let (ring, drain) = records::channel(capacity);
        (Trace { ring }, drain)
    }

    /// Number of stamps dropped so far because the ring was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.ring.dropped()
    }
}

impl Tracer for Trace {
    const ENABLED: bool = true;

    #[inline(always)]
    fn now(&self) -> u64 {
        cpu::rdtsc()
    }

    #[inline(always)]
    fn now_ordered(&self) -> u64 {
        cpu::rdtsc_ordered()
    }

    #[inline(always)]
    fn stamp<I: TraceId>(&mut self, hop: Hop, id: I) -> u64 {
        let tsc = cpu::rdtsc();
        self.ring.push(Stamp::hop(hop, id, tsc));
        tsc
    }

    #[inline(always)]
    fn stamp_at<I: TraceId>(&mut self, hop: Hop, id: I, tsc: u64) {
        self.ring.push(Stamp::hop(hop, id, tsc));
    }

    #[inline(always)]
    fn stamp_range_at(&mut self, hop: Hop, mut first: Sequence, end: Sequence, tsc: u64) {
        while first < end {
            let count = (end.0 - first.0).min(RANGE_LEN_MAX);
            self.ring.push(Stamp::hop_range(hop, first, count, tsc));
            first = Sequence(first.0 + count);
        }
    }

    #[inline(always)]
    fn link<I: TraceId>(&mut self, child: I, parent: I::Parent) {
        self.ring.push(Stamp::link(child, parent));
    }

    #[inline(always)]
    fn time(&mut self, function: Function, ticks: u64) {
        self.ring.push(Stamp::time(function, ticks));
    }

    fn warm_up_instance(&self) -> Self {
        Trace::new(WARM_UP_CAPACITY).0
    }

    #[inline(always)]
    fn discard(&mut self) {
        self.ring.discard();
    }

    #[inline(always)]
    fn prefetch(&self) {
        self.ring.prefetch();
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.ring.flush();
    }
}

/// Records nothing and takes no memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    const ENABLED: bool = false;

    fn warm_up_instance(&self) -> Self {
        NoTrace
    }
}

/// Selects one call in `2^shift`, evenly spaced, because timing a call costs two reads of the counter: more
/// than many timed functions cost.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    count: u32,
    mask: u32,
}

impl Sampler {
    /// Creates a sampler that selects one call in `2^shift`; `shift` is at most 31.
    #[must_use]
    pub const fn one_in_pow2(shift: u32) -> Sampler {
        Sampler { count: 0, mask: (1 << shift) - 1 }
    }

    /// Returns true if this call is to be timed; the first call is.
    #[inline(always)]
    pub fn is_due(&mut self) -> bool {
        let is_due = self.count & self.mask == 0;
        self.count = self.count.wrapping_add(1);
        is_due
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{SessionId, UserRefNum};

    use super::*;
    use crate::{CommandId, MarketId, StampKind, Token};

    fn one_cycle<T: Tracer>(tracer: &mut T) -> u64 {
        let command = CommandId(Sequence(3));
        let start = tracer.now();
        let tsc = tracer.stamp(Hop::T2, command);
        tracer.link(command, Token::new(SessionId(1), UserRefNum(2), true));
        tracer.stamp_at(Hop::T4, MarketId::new(Sequence(8)), 44);
        tracer.time(Function::Match, 55);
        tracer.flush();
        assert!(tsc >= start);
        tsc
    }

    #[test]
    fn a_cycle_arrives_in_order() {
        let (mut trace, mut drain) = Trace::new(16);
        let tsc = one_cycle(&mut trace);
        let mut seen = Vec::new();
        drain.drain(16, |stamp| seen.extend(stamp.decode()));
        assert_eq!(
            seen,
            [
                StampKind::Hop { hop: Hop::T2, id: 3, tsc },
                StampKind::CommandFromToken(
                    CommandId(Sequence(3)),
                    Token::new(SessionId(1), UserRefNum(2), true)
                ),
                StampKind::Hop { hop: Hop::T4, id: 8, tsc: 44 },
                StampKind::Time { function: Function::Match, ticks: 55 },
            ]
        );
    }

    #[test]
    fn a_long_range_takes_several_records() {
        let (mut trace, mut drain) = Trace::new(16);
        trace.stamp_range_at(Hop::T5, Sequence(7), Sequence(7), 1);
        trace.stamp_range_at(Hop::T6, Sequence(7), Sequence(7 + 2 * RANGE_LEN_MAX + 3), 9);
        trace.flush();
        let mut ranges = Vec::new();
        drain.drain(16, |stamp| match stamp.decode() {
            Some(StampKind::HopRange { hop, first, count, tsc }) => {
                ranges.push((hop, first.sequence().0, count, tsc));
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(ranges, [(Hop::T6, 7, 256, 9), (Hop::T6, 263, 256, 9), (Hop::T6, 519, 3, 9)]);
    }

    #[test]
    fn a_full_ring_drops_and_counts() {
        let (mut trace, mut drain) = Trace::new(4);
        for sequence in 0..5 {
            trace.stamp(Hop::T2, CommandId(Sequence(sequence)));
        }
        trace.flush();
        assert_eq!((trace.dropped(), drain.dropped()), (1, 1));
        assert_eq!(drain.drain(16, |_| ()), 4);
    }

    fn sequences(drain: &mut records::Consumer<Stamp>) -> Vec<u64> {
        let mut seen = Vec::new();
        drain.drain(1 << 16, |stamp| {
            if let Some(StampKind::Hop { id, .. }) = stamp.decode() {
                seen.push(id);
            }
        });
        seen
    }

    #[test]
    fn discard_drops_stamps_since_the_latest_flush() {
        let (mut trace, mut drain) = Trace::new(64);
        trace.stamp(Hop::T2, CommandId(Sequence(1)));
        trace.flush();
        trace.stamp(Hop::T2, CommandId(Sequence(2)));
        trace.link(CommandId(Sequence(2)), Token::new(SessionId(1), UserRefNum(2), true));
        trace.time(Function::Match, 9);
        trace.discard();
        trace.flush();
        trace.stamp(Hop::T2, CommandId(Sequence(3)));
        trace.flush();
        assert_eq!(sequences(&mut drain), [1, 3]);
    }

    #[test]
    fn warm_up_stamps_are_discarded() {
        let (mut trace, mut drain) = Trace::new(16);
        let mut warm_up_instance = trace.warm_up_instance();
        trace.stamp(Hop::T2, CommandId(Sequence(1)));
        // The stamps of many warm-ups: far more than the ring's capacity.
        for sequence in 0..10 * WARM_UP_CAPACITY as u64 {
            for _ in 0..WARM_UP_STAMPS {
                warm_up_instance.stamp(Hop::T2, CommandId(Sequence(100 + sequence)));
            }
            warm_up_instance.discard();
        }
        assert_eq!(warm_up_instance.dropped(), 0, "what is discarded takes no room");
        trace.flush();
        warm_up_instance.flush();
        assert_eq!((sequences(&mut drain), trace.dropped()), (vec![1], 0));
        drop(warm_up_instance);
        assert!(!drain.is_disconnected(), "the tracer is still there");
    }

    /// Maximum number of stamps of a warm-up: a quarter of the warm-up ring's capacity.
    const WARM_UP_STAMPS: usize = WARM_UP_CAPACITY / 4;

    #[test]
    fn an_ordered_reading_is_not_before_one_that_preceded_it() {
        let (trace, _drain) = Trace::new(1);
        let start = trace.now_ordered();
        assert!(start > 0 && trace.now_ordered() >= start);
        assert_eq!(NoTrace.now_ordered(), 0);
    }

    #[test]
    fn no_trace_records_nothing() {
        assert_eq!(size_of::<NoTrace>(), 0);
        assert_eq!(one_cycle(&mut NoTrace), 0);
        const { assert!(!NoTrace::ENABLED && Trace::ENABLED) };
    }

    #[test]
    fn one_call_in_sixteen_is_due() {
        let mut sampler = Sampler::one_in_pow2(4);
        let due: Vec<usize> = (0..40).filter(|_| sampler.is_due()).collect();
        assert_eq!(due, [0, 16, 32]);
        let mut always = Sampler::one_in_pow2(0);
        assert!((0..5).all(|_| always.is_due()));
    }
}
