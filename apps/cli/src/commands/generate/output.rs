//! Where generated data goes: a file that is whole or not there, a device, or standard output.

use std::fs::{self, File};
use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes that are written to the system at a time.
const WRITE_LEN: usize = 1 << 20;
/// Synthetic data compresses about as well at the fastest levels.
const ZSTD_LEVEL: i32 = 1;

/// An output, compressed as its name says.
///
/// A file is written beside its place, as `NAME.part`, and put there by [`Output::finish`]; dropped before
/// that, the part is removed. What is not a regular file, such as a pipe, is written as it is.
pub struct Output {
    writer: Option<Encoder>,
    place: Place,
}

struct Place {
    /// What the user named.
    path: PathBuf,
    /// Where the bytes are until they are whole.
    part: Option<PathBuf>,
}

enum Encoder {
    Plain(Counted),
    Gzip(GzEncoder<Counted>),
    Zstd(zstd::Encoder<'static, Counted>),
}

struct Counted {
    inner: BufWriter<Sink>,
    bytes: u64,
}

enum Sink {
    File(File),
    Standard(Stdout),
}

impl Output {
    pub fn create(path: &Path) -> anyhow::Result<Output> {
        let (sink, part) = open(path).with_context(|| format!("cannot write {}", path.display()))?;
        let place = Place { path: path.to_owned(), part };
        let counted = Counted { inner: BufWriter::with_capacity(WRITE_LEN, sink), bytes: 0 };
        let writer = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Encoder::Gzip(GzEncoder::new(counted, Compression::fast())),
            Some("zst") => {
                Encoder::Zstd(zstd::Encoder::new(counted, ZSTD_LEVEL).context("the compressor cannot start")?)
            }
            _ => Encoder::Plain(counted),
        };
        Ok(Output { writer: Some(writer), place })
    }

    /// Writes what is left and puts a file in its place. Returns the bytes that were written.
    pub fn finish(mut self) -> anyhow::Result<u64> {
        let writer = self.writer.take().expect("finish is called once");
        let bytes = writer.finish().and_then(|mut counted| {
            counted.inner.flush()?;
            Ok(counted.bytes)
        });
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => return Err(self.failed(error)),
        };
        if let Some(part) = &self.place.part {
            let moved = fs::rename(part, &self.place.path);
            moved.with_context(|| format!("cannot write {}", self.place.path.display()))?;
            self.place.part = None;
        }
        Ok(bytes)
    }

    /// A failed write, with what was being written.
    pub fn failed(&self, error: io::Error) -> anyhow::Error {
        anyhow::Error::new(error).context(format!("cannot write {}", self.place.path.display()))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writer.as_mut().expect("nothing is written after finish") {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Gzip(writer) => writer.write(bytes),
            Encoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.writer.as_mut().expect("nothing is written after finish") {
            Encoder::Plain(writer) => writer.flush(),
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // When it cannot be removed it still does not carry the name of a whole file.
            let _ = fs::remove_file(part);
        }
    }
}

impl Encoder {
    fn finish(self) -> io::Result<Counted> {
        match self {
            Encoder::Plain(writer) => Ok(writer),
            Encoder::Gzip(writer) => writer.finish(),
            Encoder::Zstd(writer) => writer.finish(),
        }
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.bytes += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Standard(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Standard(stdout) => stdout.flush(),
        }
    }
}

fn open(path: &Path) -> io::Result<(Sink, Option<PathBuf>)> {
    if path.as_os_str() == "-" {
        return Ok((Sink::Standard(stdout()), None));
    }
    // A rename would put a file in the place of a device or a pipe.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok((Sink::File(File::options().write(true).open(path)?), None));
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    Ok((Sink::File(File::create(&part)?), Some(part)))
}
