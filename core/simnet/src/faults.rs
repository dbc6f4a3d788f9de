//! Fault rates of a network, and counters of the faults that occurred.

use tickpath_types::Nanos;

/// Fault rates for datagrams; faults are drawn separately for each receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFaults {
    /// Rate of lost datagrams, in parts per million.
    pub loss_ppm: u32,
    /// Rate of duplicated datagrams, in parts per million.
    pub duplicate_ppm: u32,
    /// Minimum delay of a datagram.
    pub delay_min: Nanos,
    /// Mean of the additional, exponentially distributed delay; later datagrams can overtake earlier ones.
    pub jitter: Nanos,
    /// Rate of datagrams with a delay spike, in parts per million.
    pub spike_ppm: u32,
    /// Upper bound of the uniformly distributed, additional delay of a spike.
    pub spike_max: Nanos,
}

impl DatagramFaults {
    /// No faults: every datagram takes 2 us.
    pub const NONE: DatagramFaults = DatagramFaults {
        loss_ppm: 0,
        duplicate_ppm: 0,
        delay_min: Nanos(2_000),
        jitter: Nanos(0),
        spike_ppm: 0,
        spike_max: Nanos(0),
    };
}

/// Fault rates for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFaults {
    /// Minimum delay of a segment.
    pub delay_min: Nanos,
    /// Mean of the additional, exponentially distributed delay; segments never overtake each other.
    pub jitter: Nanos,
    /// Rate of segments with a delay spike, as from a retransmission, in parts per million.
    pub spike_ppm: u32,
    /// Upper bound of the uniformly distributed, additional delay of a spike.
    pub spike_max: Nanos,
    /// Maximum number of bytes in flight or unread in one direction; writes beyond it are not accepted.
    pub window: usize,
    /// Rate of writes that are accepted only in part, in parts per million.
    pub short_write_ppm: u32,
    /// Rate of reads that return only part of the available bytes, in parts per million.
    pub short_read_ppm: u32,
    /// Rate of writes that reset both ends, in parts per million; a random prefix of data in flight arrives.
    pub reset_ppm: u32,
    /// Rate of connections refused although a listener exists, in parts per million.
    pub refusal_ppm: u32,
}

impl StreamFaults {
    /// No faults: every segment takes 5 us.
    pub const NONE: StreamFaults = StreamFaults {
        delay_min: Nanos(5_000),
        jitter: Nanos(0),
        spike_ppm: 0,
        spike_max: Nanos(0),
        window: 64 << 10,
        short_write_ppm: 0,
        short_read_ppm: 0,
        reset_ppm: 0,
        refusal_ppm: 0,
    };
}

/// Declares `NetworkCounters` and its `iter`, which names each counter after its field.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a network's events since its creation.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct NetworkCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl NetworkCounters {
            /// Returns each counter with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

counters! {
    /// Datagrams sent, counted once for each receiver.
    datagrams,
    /// Datagrams lost by chance.
    datagrams_lost,
    /// Datagrams lost because the two hosts could not reach each other.
    datagrams_cut,
    /// Datagrams duplicated.
    datagrams_duplicated,
    /// Datagrams that overtook an earlier one.
    datagrams_reordered,
    /// Datagrams with a delay spike.
    datagrams_delayed,
    /// Datagrams dropped because their receiver's buffer was full.
    datagrams_overflowed,
    /// Datagrams to an address without a receiver.
    datagrams_unreceived,
    /// Connections established.
    connections,
    /// Connections refused by chance.
    connections_refused,
    /// Connections refused because the address had no listener.
    connections_unheard,
    /// Connections refused because the listener's backlog was full.
    connections_above_backlog,
    /// Connection attempts while the hosts could not reach each other, or the other host had no power.
    connections_cut,
    /// Segments sent.
    segments,
    /// Segments with a delay spike.
    segments_delayed,
    /// Writes that were accepted only in part.
    short_writes,
    /// Writes that were not accepted because the peer's window was full.
    full_windows,
    /// Reads that returned only part of the available bytes.
    short_reads,
    /// Connections reset by the network.
    resets,
    /// Connections reset because one end closed with unread bytes.
    resets_by_close,
    /// Half-closes: one end of a connection closed its sending direction.
    half_closes,
    /// Partitions between two hosts.
    partitions,
    /// Host processes that ended; all their connections were closed.
    deaths,
    /// Hosts that lost power, without notice to their peers.
    power_losses,
}
