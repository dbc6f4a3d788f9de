//! The file formats, one module each; the [registry](crate::registry) lists them.

mod captures;
mod dbn;
mod events;
mod itch;
mod lobster;

pub(crate) use captures::{PCAP, PCAP_NG};
pub(crate) use dbn::DBN;
pub(crate) use itch::ITCH;
pub(crate) use lobster::LOBSTER;

use tickpath_capture::{Format, RecordingFile};
use tickpath_recording::{Listener, Pass};

use crate::cost::Output;
use crate::file_format::Reports;
use crate::session::Session;

/// Replays one open file.
pub(crate) fn replay(
    file: RecordingFile,
    session: &mut Session<'_>,
    pass: Pass<Output<'_, impl Listener>>,
) -> Reports {
    match file.format() {
        Format::Itch => itch::replay(file, session, pass),
        Format::Dbn => dbn::replay(file, session, pass),
        Format::Lobster => lobster::replay(file, session, pass),
        Format::Pcap | Format::PcapNg => captures::replay(file, session, pass),
    }
}
