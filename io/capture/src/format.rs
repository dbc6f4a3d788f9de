//! Detection of a file's format from its contents.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use nix::libc::O_NONBLOCK;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tickpath_agent::StopSignal;
use tickpath_nasdaq::itch50::message_len;

use crate::error::Stopped;
use crate::input::{Input, InputMeter};
use crate::{CaptureError, ReadError, lobster};

/// Number of uncompressed bytes that are read to detect the format.
const SAMPLE_LEN: usize = 1024;
/// Interval in ms between checks of the stop signal while a read from a pipe waits.
const PIPE_WAIT_MS: u16 = 50;

/// A format of recorded market data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Databento DBN; readable only with the Cargo feature `dbn`.
    Dbn,
    /// A LOBSTER message file, see [`LobsterReader`](crate::LobsterReader).
    Lobster,
    /// An ITCH 5.0 BinaryFILE, see [`ItchReader`](crate::ItchReader).
    Itch,
    /// A pcap capture, see [`Packets`](crate::Packets).
    Pcap,
    /// A pcapng capture, see [`Packets`](crate::Packets).
    PcapNg,
}

impl Format {
    /// True for packet captures.
    #[must_use]
    pub const fn is_capture(self) -> bool {
        matches!(self, Format::Pcap | Format::PcapNg)
    }

    /// Detects the format from the first bytes of uncompressed data.
    ///
    /// # Errors
    /// A description of the detected contents.
    pub fn of_bytes(data: &[u8]) -> Result<Format, &'static str> {
        match data {
            [b'D', b'B', b'N', ..] => Ok(Format::Dbn),
            [0, 0, message_type, ..] if message_len(*message_type).is_some() => Ok(Format::Itch),
            [high, low, message_type, ..]
                if message_len(*message_type)
                    .is_some_and(|len| len == usize::from(u16::from_be_bytes([*high, *low]))) =>
            {
                Ok(Format::Itch)
            }
            [0xd4, 0xc3, 0xb2, 0xa1, ..]
            | [0xa1, 0xb2, 0xc3, 0xd4, ..]
            | [0x4d, 0x3c, 0xb2, 0xa1, ..]
            | [0xa1, 0xb2, 0x3c, 0x4d, ..] => Ok(Format::Pcap),
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Ok(Format::PcapNg),
            [b'P', b'A', b'R', b'1', ..] => Err("a Parquet file"),
            [b'P', b'K', 3, 4, ..] => Err("a zip archive (unpack it first)"),
            _ => of_text(data),
        }
    }
}

/// Detects a LOBSTER message file by its first line of events; the error describes any other text.
fn of_text(data: &[u8]) -> Result<Format, &'static str> {
    let mut lines =
        data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let line = if lobster::is_header(first) { lines.next().unwrap_or(first) } else { first };
    if lobster::parse(line).is_ok() {
        return Ok(Format::Lobster);
    }
    let columns = line.split(|byte| *byte == b',').count();
    let is_numeric = line.iter().all(|byte| byte.is_ascii_digit() || b",.-".contains(byte));
    Err(match (columns, is_numeric) {
        (4.., true) if columns.is_multiple_of(4) => "a LOBSTER order book file (its message file is needed)",
        (2.., _) if data.is_ascii() => "comma-separated text of other columns",
        _ if data.is_ascii() => "some other text",
        _ => "of no known format",
    })
}

/// An open file of a known format, before its first read.
///
/// The file is opened only once, so that a pipe can be a recording too.
pub struct RecordingFile {
    pub(crate) path: PathBuf,
    pub(crate) input: Input,
    format: Format,
    meter: InputMeter,
}

impl RecordingFile {
    /// Opens a file and detects its format, also inside gzip and Zstandard; the name is irrelevant.
    ///
    /// # Errors
    /// [`CaptureError`] when the file cannot be read, is empty or a directory, or has no known format.
    pub fn open(path: impl AsRef<Path>) -> Result<RecordingFile, CaptureError> {
        RecordingFile::open_until(path, &StopSignal::new())
    }

    /// As [`RecordingFile::open`]; once `stop` is raised, waiting for a pipe fails as [`ReadError::Stopped`].
    ///
    /// # Errors
    /// As [`RecordingFile::open`].
    pub fn open_until(path: impl AsRef<Path>, stop: &StopSignal) -> Result<RecordingFile, CaptureError> {
        let path = path.as_ref().to_owned();
        let (mut input, meter) = open(&path, stop)?;
        let mut sample = Vec::with_capacity(SAMPLE_LEN);
        // The beginning of a truncated or damaged file may still identify the format.
        let failure = input.by_ref().take(SAMPLE_LEN as u64).read_to_end(&mut sample).err();
        if sample.is_empty() {
            return Err(match failure {
                Some(error) => CaptureError::Read { path, source: ReadError::of_io(error, 0) },
                None => CaptureError::Empty { path },
            });
        }
        match Format::of_bytes(&sample) {
            Ok(format) => {
                let input = Box::new(Sampled { sample: io::Cursor::new(sample), failure, rest: input });
                Ok(RecordingFile { path, input, format, meter })
            }
            Err(found) => Err(CaptureError::UnknownFormat { path, found }),
        }
    }

    /// Format of the file.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The progress of reading the file, and the time spent on it.
    #[must_use]
    pub const fn meter(&self) -> &InputMeter {
        &self.meter
    }
}

/// Input that returns the sample, then the read error that ended the sample, if any, then the data after it.
struct Sampled {
    sample: io::Cursor<Vec<u8>>,
    failure: Option<io::Error>,
    rest: Input,
}

impl Read for Sampled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.sample.read(buffer)? {
            0 => match self.failure.take() {
                Some(error) => Err(error),
                None => self.rest.read(buffer),
            },
            len => Ok(len),
        }
    }
}

/// Opens a file and decompresses it; after the stop signal, waiting for a pipe fails.
pub(crate) fn open(path: &Path, stop: &StopSignal) -> Result<(Input, InputMeter), CaptureError> {
    let failed = |source| CaptureError::Open { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(CaptureError::Directory { path: path.to_owned() });
    }
    let meter = InputMeter::new(metadata.len());
    let input = if metadata.is_file() {
        decompress(meter.count(File::open(path).map_err(failed)?))
    } else {
        // Without `O_NONBLOCK`, opening a pipe would wait for its first writer.
        let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path).map_err(failed)?;
        decompress(meter.count(Pipe { file, stop: stop.clone() }))
    };
    let input = match input {
        Err(_) if stop.is_stopped() && !metadata.is_file() => {
            return Err(CaptureError::Read { path: path.to_owned(), source: ReadError::Stopped });
        }
        input => input.map_err(failed)?,
    };
    Ok((meter.time(input), meter))
}

/// A pipe or another non-regular file. A read waits for a writer and for bytes, until the stop signal.
struct Pipe {
    file: File,
    stop: StopSignal,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.is_stopped() {
                return Err(io::Error::other(Stopped));
            }
            let mut waited = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            if poll(&mut waited, PollTimeout::from(PIPE_WAIT_MS))? == 0 {
                continue;
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// Decompresses gzip or Zstandard, detected from the first bytes; other data passes unchanged.
///
/// # Errors
/// Errors of the first read, or of the decompressor's memory allocation.
pub fn decompress(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::with_capacity(4);
    reader.by_ref().take(4).read_to_end(&mut magic)?;
    let whole = |magic| io::Cursor::new(magic).chain(reader);
    Ok(match magic[..] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole(magic))),
        #[cfg(feature = "zstd")]
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::new(whole(magic))?),
        #[cfg(not(feature = "zstd"))]
        [0x28, 0xb5, 0x2f, 0xfd] => {
            return Err(io::Error::other(
                "this program was built without Zstandard: build it with the feature `zstd`",
            ));
        }
        _ => Box::new(whole(magic)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_pipe_ends_at_the_stop_signal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // A pipe without a writer, or with a writer that pauses, is not at its end.
        let writer =
            |is_there: bool| is_there.then(|| File::options().read(true).write(true).open(&path).unwrap());
        for is_there in [false, true] {
            let mut writer = writer(is_there);
            if let Some(writer) = &mut writer {
                std::io::Write::write_all(writer, b"DBN").unwrap();
            }
            let stop = StopSignal::new();
            let reader = {
                let (path, stop) = (path.clone(), stop.clone());
                std::thread::spawn(move || RecordingFile::open_until(path, &stop).map(|file| file.format()))
            };
            stop.stop();
            let error = reader.join().unwrap().unwrap_err();
            assert!(matches!(error, CaptureError::Read { source: ReadError::Stopped, .. }), "{error}");
        }
        let mut writer = writer(true).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut text = Vec::new();
                open(&path, &StopSignal::new()).unwrap().0.take(7).read_to_end(&mut text).unwrap();
                text
            }
        });
        std::io::Write::write_all(&mut writer, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
    }

    #[test]
    fn the_first_bytes_identify_the_format() {
        let itch = [&[0, 12, b'S'][..], &[0; 11]].concat();
        for (data, expected) in [
            (&b"DBN\x01\0\0\0\0"[..], Ok(Format::Dbn)),
            (&itch, Ok(Format::Itch)),
            (b"\0\0S", Ok(Format::Itch)),
            (b"Time,Type,OrderId,Size,Price,Direction\n1.5,1,2,3,4,-1\n", Ok(Format::Lobster)),
            (b"1.5,1,2,3,4,-1,null", Ok(Format::Lobster)),
            (b"\x0a\x0d\x0d\x0a0000", Ok(Format::PcapNg)),
            (b"\x4d\x3c\xb2\xa1\x02\0", Ok(Format::Pcap)),
            (b"2239500,100,2231800,100\n", Err("a LOBSTER order book file (its message file is needed)")),
            (b"a,b\n1,2\n", Err("comma-separated text of other columns")),
            (b"hello", Err("some other text")),
            (b"\xff\xfe\xfd", Err("of no known format")),
        ] {
            assert_eq!(Format::of_bytes(data), expected, "{data:?}");
        }
    }
}
