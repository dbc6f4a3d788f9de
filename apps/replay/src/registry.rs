//! The formats of files that can be replayed, a line for each.
//!
//! A format is a file in `files` with a [`FileFormat`], and a line here. The protocols of packets have their registry in
//! [`tickpath_recording`].

use tickpath_capture::Format;

use crate::file_format::FileFormat;
use crate::files::{DBN, ITCH, LOBSTER, PCAP, PCAP_NG};

static FILES: [&FileFormat; 5] = [&ITCH, &DBN, &LOBSTER, &PCAP, &PCAP_NG];

/// The line of a format.
pub(crate) fn file_format(format: Format) -> &'static FileFormat {
    FILES.into_iter().find(|file| file.format == format).expect("every format has a line")
}
