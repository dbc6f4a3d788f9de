//! Recovery of ITCH channels: MoldUDP64 retransmission, snapshots, and ITCH over SoupBinTCP.

mod recovery;
mod snapshots;
mod stream;
mod target;

pub use recovery::ItchRecovery;
pub use stream::SoupStream;
pub use target::ItchTarget;
