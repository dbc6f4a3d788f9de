//! The options of a publication.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use tickpath_config::Speed;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::Nanos;

/// Default size of a channel's message store, in bytes.
pub const STORE_BYTES_DEFAULT: usize = 64 << 20;
/// Default capacity of a channel's snapshots, in orders or levels.
pub const MAX_ORDERS_DEFAULT: u32 = 1 << 20;

/// The options of a publication.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// A capture (pcap, pcapng) or a file of ITCH messages, plain, gz or zst.
    pub file: PathBuf,
    /// Group and port of line A of the first channel; the next channels have the next ports.
    pub line_a: SocketAddrV4,
    /// Group and port of line B; `None` publishes line A only.
    pub line_b: Option<SocketAddrV4>,
    /// Address of the interface on which the lines are sent.
    pub interface: Ipv4Addr,
    /// Speed relative to the recording's time stamps.
    pub speed: Speed,
    /// Address of the first recovery service; further services have the next ports. With port 0, the system
    /// chooses free ports. `None` disables recovery.
    pub recovery: Option<SocketAddrV4>,
    /// Packets that line A drops on purpose, in parts per million.
    pub drop_a_ppm: u32,
    /// Packets that line B drops on purpose, in parts per million.
    pub drop_b_ppm: u32,
    /// Seed for the choice of dropped packets.
    pub seed: u64,
    /// Time from opening the services to the first packet.
    pub start_after: Nanos,
    /// Time from the last packet to the end; recovery is served meanwhile.
    pub linger: Nanos,
    /// Bytes of messages stored for each channel; older messages become unavailable.
    pub store_bytes: usize,
    /// Capacity of each channel's snapshots, in orders or levels; a channel that exceeds it serves no
    /// snapshots.
    pub max_orders: u32,
    /// Session name for an ITCH file, which contains none.
    pub session: Session,
}

impl PublishOptions {
    /// Returns options for one line on the loopback interface, at the recorded speed, without recovery.
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
