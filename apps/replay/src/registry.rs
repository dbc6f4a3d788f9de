//! Everything that can be replayed, a line for each: detection, names, errors and reports derive from these tables.
//!
//! A protocol is a file in `protocols` with an implementation of [`RecordedProtocol`](crate::protocol::RecordedProtocol),
//! and a line here.

use std::path::Path;
use std::str::FromStr;

use tickpath_capture::{Format, RecordingFile};

use crate::captures::{self, CaptureProtocol};
use crate::error::ReplayError;
use crate::file_format::FileFormat;
use crate::options::Protocol;
use crate::protocols::{dbn, iex, itch, lobster, xdp};
use crate::report::FileReport;
use crate::session::Session;

/// Formats of files.
static FILES: [&FileFormat; 5] = [&itch::FILE, &dbn::FILE, &lobster::FILE, &PCAP, &PCAP_NG];

/// Protocols of packets in captures; a packet that can be of two is of the later one.
static PACKETS: [&CaptureProtocol; 3] = [&itch::PACKETS, &iex::PACKETS, &xdp::PACKETS];

static PCAP: FileFormat = capture(Format::Pcap, "pcap");
static PCAP_NG: FileFormat = capture(Format::PcapNg, "pcapng");

const fn capture(format: Format, json_name: &'static str) -> FileFormat {
    FileFormat {
        format,
        json_name,
        title: |report| {
            let format = file_format(report.format).json_name;
            report.capture.as_ref().map_or(format.to_owned(), |capture| format!("{format}, {}", capture.name))
        },
        has_dates: true,
        date_in_name: |_| None,
        has_order_book_files: false,
        replay: replay_capture,
    }
}

fn replay_capture(
    path: &Path,
    file: RecordingFile,
    session: Session<'_>,
) -> Result<Vec<FileReport>, ReplayError> {
    captures::replay(path, file, session, &PACKETS)
}

/// The line of a format.
pub(crate) fn file_format(format: Format) -> &'static FileFormat {
    FILES.into_iter().find(|file| file.format == format).expect("every format has a line")
}

impl Protocol {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Protocol> {
        PACKETS.into_iter().map(|line| line.protocol)
    }
}

/// The text names no protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a protocol that can be replayed: write {}", names())]
pub struct ParseProtocolError {
    text: String,
}

fn names() -> String {
    Protocol::all().map(Protocol::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Protocol {
    type Err = ParseProtocolError;

    fn from_str(text: &str) -> Result<Protocol, ParseProtocolError> {
        let found = Protocol::all().find(|protocol| protocol.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ParseProtocolError { text: text.to_owned() })
    }
}
