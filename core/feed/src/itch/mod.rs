//! Recovery of ITCH channels: MoldUDP64 retransmission, snapshots, and ITCH over SoupBinTCP.

mod recovery;
mod stream;

pub use recovery::ItchRecovery;
pub use stream::SoupStream;
