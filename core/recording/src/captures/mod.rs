//! Replays packet captures: identifies protocols, puts channels in sequence, and builds books per recording.
//!
//! A capture may hold several recordings: an ITCH session, an IEX feed, or all channels of an XDP market is
//! one recording. Every packet belongs to a flow; the content of a flow's packets identifies its protocol.
//! Every recording has separate books and a report. Messages are applied in the order of the file.

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
pub(crate) use recording::{CapturedRecording, MessageRun, Origin, PacketMark, PacketProtocol};
pub(crate) use recordings::{
    ChannelEntry, ChannelLine, Delivery, PacketNumbers, Recordings, WAIT_NS, WaitingPacket, content,
    is_countable,
};
pub use report::{CaptureReport, UnknownPackets};
