//! What goes wrong on a network, how often, and how often it did.

use tickpath_types::Nanos;

/// What goes wrong with datagrams on their way to each receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFaults {
    /// Datagrams lost, in a million.
    pub loss_ppm: u32,
    /// Datagrams that arrive twice, in a million.
    pub duplicate_ppm: u32,
    /// Shortest way.
    pub delay_min: Nanos,
    /// Mean of what comes on top of it, which is exponentially distributed: later datagrams overtake earlier ones.
    pub jitter: Nanos,
    /// Datagrams that are held up, in a million.
    pub spike_ppm: u32,
    /// For at most so long.
    pub spike_max: Nanos,
}

impl DatagramFaults {
    /// Nothing goes wrong: every datagram takes the same time.
    pub const NONE: DatagramFaults = DatagramFaults {
        loss_ppm: 0,
        duplicate_ppm: 0,
        delay_min: Nanos(2_000),
        jitter: Nanos(0),
        spike_ppm: 0,
        spike_max: Nanos(0),
    };
}

/// What goes wrong with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFaults {
    /// Shortest way of a segment.
    pub delay_min: Nanos,
    /// Mean of what comes on top of it, which is exponentially distributed; what follows waits.
    pub jitter: Nanos,
    /// Segments that are held up, as by a retransmission, in a million.
    pub spike_ppm: u32,
    /// For at most so long.
    pub spike_max: Nanos,
    /// Bytes of one direction that may be on their way or wait to be read; further ones are not taken.
    pub window: usize,
    /// Writes of which a part alone is taken, in a million.
    pub short_write_ppm: u32,
    /// Reads that bring a part of what is there, in a million.
    pub short_read_ppm: u32,
    /// Writes upon which the connection is reset at both ends, in a million; of what is on its way any prefix arrives.
    pub reset_ppm: u32,
    /// Connections refused although somebody listens, in a million.
    pub refusal_ppm: u32,
}

impl StreamFaults {
    /// Nothing goes wrong.
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

/// Declares the counters with their names.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened on a network so far.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct NetworkCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl NetworkCounters {
            /// Each counter and its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

counters! {
    /// Datagrams sent, counted for each receiver.
    datagrams,
    /// Datagrams lost by chance.
    datagrams_lost,
    /// Datagrams lost because the two hosts could not reach each other.
    datagrams_cut,
    /// Datagrams that arrived twice.
    datagrams_duplicated,
    /// Datagrams that arrived before one that was sent earlier.
    datagrams_reordered,
    /// Datagrams that were held up.
    datagrams_delayed,
    /// Datagrams dropped because their receiver did not read.
    datagrams_overflowed,
    /// Datagrams to where nobody receives.
    datagrams_unreceived,
    /// Connections made.
    connections,
    /// Connections refused by chance.
    connections_refused,
    /// Connections refused because nobody listened.
    connections_unheard,
    /// Connections refused because too many waited to be accepted.
    connections_above_backlog,
    /// Connections that were begun while the two hosts could not reach each other, or the other was off.
    connections_cut,
    /// Segments sent.
    segments,
    /// Segments that were held up.
    segments_delayed,
    /// Writes of which a part was taken.
    short_writes,
    /// Writes of which nothing was taken, as nobody read.
    full_windows,
    /// Reads that brought a part of what was there.
    short_reads,
    /// Connections that the network reset.
    resets,
    /// Connections that one end closed with bytes unread, which resets them.
    resets_by_close,
    /// Connections of which one end ended one direction.
    half_closes,
    /// Times that two hosts could not reach each other any more.
    partitions,
    /// Processes that died, all their connections with them.
    deaths,
    /// Hosts that lost power, of which nobody was told.
    power_losses,
}
