//! The supported file formats, one entry each.
//!
//! A format is a module in `files` with a [`FileFormat`], and an entry here. The packet protocols have their
//! registry in [`tickpath_recording`].

use tickpath_capture::Format;

use crate::file_format::FileFormat;
use crate::files::{DBN, ITCH, LOBSTER, PCAP, PCAP_NG};

static FILES: [&FileFormat; 5] = [&ITCH, &DBN, &LOBSTER, &PCAP, &PCAP_NG];

/// Returns the entry of a format.
pub(crate) fn file_format(format: Format) -> &'static FileFormat {
    FILES.into_iter().find(|file| file.format == format).expect("every format has a line")
}
