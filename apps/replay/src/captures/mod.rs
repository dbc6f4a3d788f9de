//! Captures of packets: which protocols are in them, their channels put in sequence, and books of each.
//!
//! A capture may hold several recordings: each session of ITCH is one, each feed of IEX another, and the
//! channels of each market of XDP are one. Every packet goes to its flow, every flow to its
//! protocol by what is in its packets, and every recording has books and a report of its own. Messages are taken in the
//! order of the file.

mod channel;
mod demux;
mod packets;
mod recording;
mod recordings;
mod report;

pub use channel::ChannelReport;
pub(crate) use channel::NO_LINE;
pub(crate) use packets::{CaptureProtocol, PacketReader, state_of};
pub(crate) use recording::{CapturedRecording, Origin, PacketMark, PacketProtocol, Run};
pub(crate) use recordings::{
    Delivery, Numbered, Numbers, Place, Recordings, WAIT_NS, Waiting, content, is_countable,
};
pub use report::{CaptureReport, UnknownPackets};

use std::path::Path;

use tickpath_capture::{Packets, RecordingFile};

use crate::error::Result;
use crate::report::FileReport;
use crate::session::Session;
use demux::Protocols;

/// Replays a capture: a report for each recording in it.
pub(crate) fn replay(
    path: &Path,
    file: RecordingFile,
    mut session: Session<'_>,
    protocols: &'static [&'static CaptureProtocol],
) -> Result<Vec<FileReport>> {
    let (format, meter) = (file.format(), file.meter().clone());
    let mut packets = Packets::of(file);
    let is_paced = session.pace_packets();
    let mut readers = Protocols::new(protocols, session.options.protocol.is_some());
    let mut recordings = Recordings::new(session, meter);
    let mut read_error = None;
    while !recordings.is_over() {
        match packets.fill() {
            Ok(true) => readers.handle_block(packets.block(), is_paced, &mut recordings)?,
            Ok(false) => break,
            Err(error) => {
                read_error = Some(error.to_string());
                break;
            }
        }
    }
    readers.finish(&mut recordings)?;
    let known = protocols.iter().map(|line| line.title).collect::<Vec<_>>().join("; ");
    recordings.finish(path, format, *packets.counters(), read_error, known)
}
