//! Captures of packets: which protocols are in them, their channels put in sequence, and books of each.
//!
//! A capture may hold several recordings: each session of ITCH is one, each feed of IEX another, and the
//! channels of each market of XDP are one. Every packet goes to its flow, every flow to its
//! protocol by what is in its packets, and every recording has books and a report of its own. Messages are taken in the
//! order of the file.

mod channel;
mod demux;
pub(crate) mod iex;
mod market;
mod protocol;
mod refresh;
mod report;
mod soup;
pub(crate) mod xdp;

pub use channel::ChannelReport;
pub use protocol::{ParseProtocolError, Protocol};
pub use report::{CaptureReport, UnknownPackets};

use std::path::Path;

use tickpath_capture::{Packets, RecordingFile};

use crate::report::FileReport;
use crate::run::ReplayError;
use crate::session::Session;
use demux::Demux;

/// Replays a capture: a report for each recording in it.
pub(crate) fn replay(
    path: &Path,
    file: RecordingFile,
    mut session: Session<'_>,
) -> Result<Vec<FileReport>, ReplayError> {
    let (format, meter) = (file.format(), file.meter().clone());
    let mut packets = Packets::of(file);
    let is_paced = session.pace_packets();
    let mut demux = Demux::new(session, meter.clone());
    let mut read_error = None;
    while !demux.is_over() {
        match packets.fill() {
            Ok(true) => demux.handle_block(packets.block(), is_paced)?,
            Ok(false) => break,
            Err(error) => {
                read_error = Some(error.to_string());
                break;
            }
        }
    }
    demux.finish(path, format, *packets.counters(), read_error)
}
