//! What is to be published, and how.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use tickpath_config::Speed;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::Nanos;

/// Bytes of messages of a channel that are kept unless it is said otherwise.
pub const STORE_BYTES_DEFAULT: usize = 64 << 20;
/// Orders or levels of a channel that snapshots have room for unless it is said otherwise.
pub const MAX_ORDERS_DEFAULT: u32 = 1 << 20;

/// What is to be published, and how.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// A capture (pcap, pcapng) or a file of ITCH messages, plain, gz or zst.
    pub file: PathBuf,
    /// Group and port of line A of the first channel; the next channels have the next ports.
    pub line_a: SocketAddrV4,
    /// The same of line B; none for one line.
    pub line_b: Option<SocketAddrV4>,
    /// Address of the interface that the lines leave by.
    pub interface: Ipv4Addr,
    /// How fast, by the recording's own time stamps.
    pub speed: Speed,
    /// Where those who lost messages are served: the first of consecutive ports, or with port 0 free ones. Nobody is
    /// without it.
    pub recovery: Option<SocketAddrV4>,
    /// Packets that line A loses on purpose, in parts per million.
    pub drop_a_ppm: u32,
    /// The same of line B.
    pub drop_b_ppm: u32,
    /// Chooses which packets are lost.
    pub seed: u64,
    /// From the opening of the doors to the first packet.
    pub start_after: Nanos,
    /// From the last packet to the end: who lost something is served meanwhile.
    pub linger: Nanos,
    /// Bytes of messages that are kept of each channel; older ones are not available any more.
    pub store_bytes: usize,
    /// Orders or levels of each channel that snapshots have room for; beyond there are no snapshots.
    pub max_orders: u32,
    /// Name of the session of a file that has none, an ITCH file's.
    pub session: Session,
}

impl PublishOptions {
    /// One line on the loopback interface, at the recording's own speed, nobody served.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>, line_a: SocketAddrV4) -> PublishOptions {
        PublishOptions {
            file: file.into(),
            line_a,
            line_b: None,
            interface: Ipv4Addr::LOCALHOST,
            speed: Speed::Hundredths(100),
            recovery: None,
            drop_a_ppm: 0,
            drop_b_ppm: 0,
            seed: 1,
            start_after: Nanos::from_secs(1),
            linger: Nanos::from_secs(10),
            store_bytes: STORE_BYTES_DEFAULT,
            max_orders: MAX_ORDERS_DEFAULT,
            session: Session::new("TICKPATH").expect("eight characters"),
        }
    }
}
