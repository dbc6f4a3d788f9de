//! Captures of packets: which protocols are in them, their channels put in sequence, and books of each.
//!
//! A capture may hold several recordings: each session of ITCH is one, each feed of IEX another, and the
//! channels of each market of XDP are one. Every packet goes to its flow, every flow to its
//! protocol by the content of its packets, and every recording has separate books and a report. Messages are taken in the
//! order of the file.

mod channel;
mod demux;
mod packets;
mod recording;
mod recordings;
mod report;

pub use channel::ChannelReport;
pub(crate) use channel::NO_LINE;
pub use demux::Captures;
pub(crate) use packets::{PacketFormat, PacketReader, state_of};
pub(crate) use recording::{CapturedRecording, Origin, PacketMark, PacketProtocol, Run};
pub(crate) use recordings::{
    Delivery, Numbered, Numbers, Place, Recordings, WAIT_NS, Waiting, content, is_countable,
};
pub use report::{CaptureReport, UnknownPackets};
