//! A recording opened from a file.

use std::path::{Path, PathBuf};

use tickpath_types::Symbol;

use crate::input::{Input, InputMeter};
use crate::{
    CaptureError, Depth, EventReader, Format, ItchReader, LobsterReader, RecordedEvent, RecordingFile,
};

/// An open DBN, LOBSTER or ITCH file, read as events.
pub struct Recording {
    path: PathBuf,
    format: Format,
    meter: InputMeter,
    reader: Reader,
}

enum Reader {
    #[cfg(feature = "dbn")]
    Dbn(Box<crate::DbnReader<Input>>),
    Lobster(LobsterReader<Input>),
    Itch(ItchReader<Input>),
}

impl Recording {
    /// Opens a file, detects its format and reads its metadata, if the format has any.
    ///
    /// # Errors
    /// [`CaptureError`] when the file cannot be read or is not a recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Recording, CaptureError> {
        Recording::of(RecordingFile::open(path)?)
    }

    /// Creates a recording from an open file; reads its metadata, if the format has any.
    ///
    /// # Errors
    /// [`CaptureError`] when the file cannot be read or is not a recording.
    pub fn of(file: RecordingFile) -> Result<Recording, CaptureError> {
        let (format, meter) = (file.format(), file.meter().clone());
        let RecordingFile { path, input, .. } = file;
        let reader = match format {
            #[cfg(feature = "dbn")]
            Format::Dbn => match crate::DbnReader::new(input) {
                Ok(reader) => Reader::Dbn(Box::new(reader)),
                Err(source) => return Err(CaptureError::Read { path, source }),
            },
            #[cfg(not(feature = "dbn"))]
            Format::Dbn => {
                let what = "this program was built without DBN: build it with the feature `dbn`".to_owned();
                return Err(CaptureError::Read { path, source: crate::ReadError::Unsupported { what } });
            }
            Format::Lobster => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let Some(symbol) = lobster_symbol(&name) else { return Err(CaptureError::NoSymbol { path }) };
                let depth = Depth::Partial { levels: lobster_levels(&name) };
                Reader::Lobster(LobsterReader::new(input, symbol, depth))
            }
            Format::Itch => Reader::Itch(ItchReader::new(input)),
            Format::Pcap | Format::PcapNg => return Err(CaptureError::Packets { path }),
        };
        Ok(Recording { path, format, meter, reader })
    }

    #[cfg(feature = "dbn")]
    /// Creates a recording from a DBN input whose metadata, the first `len` bytes, was already read.
    pub(crate) fn of_dbn(
        path: PathBuf,
        meter: InputMeter,
        input: Input,
        metadata: &dbn::Metadata,
        len: u64,
    ) -> Recording {
        let reader = Reader::Dbn(Box::new(crate::DbnReader::after_metadata(input, metadata, len)));
        Recording { path, format: Format::Dbn, meter, reader }
    }

    /// Format of the file.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Meter of the bytes read from the file, and of the time spent reading.
    #[must_use]
    pub const fn meter(&self) -> &InputMeter {
        &self.meter
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError::Read`]. If [`CaptureError::is_truncation`] is true, all events before the truncation
    /// were returned, and the next call returns `None`.
    pub fn next_event(&mut self) -> Result<Option<RecordedEvent>, CaptureError> {
        let mut event = RecordedEvent::NOTHING;
        Ok(self.read_event(&mut event)?.then_some(event))
    }

    /// Reads the next event into `event`, as [`EventReader::read_event`] does; false at the end.
    ///
    /// # Errors
    /// As [`Recording::next_event`].
    #[inline(always)]
    pub fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, CaptureError> {
        let read = match &mut self.reader {
            #[cfg(feature = "dbn")]
            Reader::Dbn(reader) => reader.read_event(event),
            Reader::Lobster(reader) => reader.read_event(event),
            Reader::Itch(reader) => reader.read_event(event),
        };
        read.map_err(|source| CaptureError::Read { path: self.path.clone(), source })
    }

    /// The reader, which has the position, the symbols and the properties of the recording.
    #[must_use]
    pub fn reader(&self) -> &dyn EventReader {
        match &self.reader {
            #[cfg(feature = "dbn")]
            Reader::Dbn(reader) => reader.as_ref(),
            Reader::Lobster(reader) => reader,
            Reader::Itch(reader) => reader,
        }
    }
}

/// The ticker at the start of a LOBSTER file name: `AMZN_2012-06-21_34200000_57600000_message_10.csv`.
fn lobster_symbol(name: &str) -> Option<&str> {
    let symbol = name.split(['_', '.']).next()?;
    Symbol::new(symbol).is_ok().then_some(symbol)
}

/// The number of levels that a LOBSTER file name states, as `_message_10` or, in some collections, `level10`.
fn lobster_levels(name: &str) -> Option<u32> {
    ["level", "message_"].iter().find_map(|marker| {
        let (_, after) = name.rsplit_once(marker)?;
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after[..digits].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lobster_files_give_ticker_and_depth() {
        for (name, symbol, levels) in [
            ("AMZN_2012-06-21_34200000_57600000_message_10.csv", Some("AMZN"), Some(10)),
            ("AMZN_2012-06-21_message_level1_part1.csv.gz", Some("AMZN"), Some(1)),
            ("SPY.csv", Some("SPY"), None),
            ("_message_5.csv", None, Some(5)),
            ("a-very-long-name.csv", None, None),
        ] {
            assert_eq!((lobster_symbol(name), lobster_levels(name)), (symbol, levels), "{name}");
        }
    }
}
