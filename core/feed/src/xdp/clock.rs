//! Conversion of a channel's seconds and nanoseconds to times of the day.

use tickpath_nyse::SendTime;
use tickpath_types::Nanos;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The clock of one channel. Messages state only nanoseconds; the last time reference gives the second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChannelClock {
    /// Start of the current second, in nanoseconds since midnight. Before any reference, the send time of the
    /// packet gives the second.
    second_ns: u64,
    has_reference: bool,
    /// Nanoseconds within the second at which the packet was sent, while there is no reference.
    sent_nanos: u32,
}

impl ChannelClock {
    /// Sets the current second to that of a time reference.
    #[inline]
    pub fn refer(&mut self, source_time: u32, midnight_secs: u64) {
        self.has_reference = true;
        self.second_ns = since_midnight(source_time, midnight_secs);
    }

    /// Begins a packet. Its send time applies until there is a time reference.
    #[inline]
    pub fn begin_packet(&mut self, sent: SendTime, midnight_secs: u64) {
        if !self.has_reference {
            self.second_ns = since_midnight(sent.secs, midnight_secs);
            self.sent_nanos = sent.nanos;
        }
    }

    /// Returns the time of a message since midnight.
    #[inline(always)]
    pub fn time(&self, source_time_ns: u32) -> Nanos {
        let nanos = u64::from(source_time_ns);
        if self.has_reference {
            return Nanos(self.second_ns + nanos);
        }
        // An event precedes its packet, so a larger nanosecond part belongs to the previous second.
        let is_earlier = source_time_ns > self.sent_nanos;
        Nanos((self.second_ns + nanos).saturating_sub(if is_earlier { NANOS_PER_SECOND } else { 0 }))
    }
}

/// Converts a Unix time in seconds to nanoseconds since midnight; zero if it is before midnight.
pub(super) const fn since_midnight(secs: u32, midnight_secs: u64) -> u64 {
    (secs as u64).saturating_sub(midnight_secs) * NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_gives_the_second() {
        let mut clock = ChannelClock::default();
        clock.refer(1_000, 990);
        assert_eq!(clock.time(7), Nanos(10_000_000_007));
        clock.begin_packet(SendTime { secs: 2_000, nanos: 0 }, 990);
        assert_eq!(clock.time(7), Nanos(10_000_000_007), "the packet's time does not matter then");
        clock.refer(1, 990);
        assert_eq!(clock.time(7), Nanos(7));
    }

    #[test]
    fn without_a_reference_the_packet_gives_it() {
        let mut clock = ChannelClock::default();
        clock.begin_packet(SendTime { secs: 1_000, nanos: 500 }, 990);
        assert_eq!(clock.time(499), Nanos(10_000_000_499));
        assert_eq!(clock.time(501), Nanos(9_000_000_501), "the second before");
    }
}
