//! Counts of one day.

/// Counts of a day so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpDayCounters {
    /// Messages, each once, whatever lines it was sent on.
    pub messages: u64,
    /// Packets that arrived, on all lines.
    pub packets: u64,
    /// Packets that were lost on their way.
    pub lost: u64,
    /// Bytes of the packets that arrived.
    pub bytes: u64,
    /// Packets with messages that were sent on line A, lost or not.
    pub filled: u64,
    by_type: [u64; 256],
}

impl Default for XdpDayCounters {
    fn default() -> XdpDayCounters {
        XdpDayCounters { messages: 0, packets: 0, lost: 0, bytes: 0, filled: 0, by_type: [0; 256] }
    }
}

impl XdpDayCounters {
    /// Messages of a type.
    #[must_use]
    pub fn of_type(&self, message_type: u16) -> u64 {
        self.by_type.get(usize::from(message_type)).copied().unwrap_or(0)
    }

    /// The types that came, with their messages, in the order of their numbers.
    pub fn by_type(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.by_type).filter(|(_, count)| *count > 0)
    }

    /// Notes a message, and the time reference before it if they were two.
    pub(super) fn note(&mut self, message_type: u16, count: u64) {
        self.messages += count;
        self.by_type[usize::from(message_type)] += 1;
        self.by_type[usize::from(tickpath_nyse::SourceTimeReference::TYPE)] += count - 1;
    }
}
