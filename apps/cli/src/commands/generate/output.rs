//! The output file of generated data, compressed according to its name.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tickpath_config::OutputFile;

/// Size of the write buffer, in bytes.
const WRITE_LEN: usize = 1 << 20;
/// Compression level: the fastest, because slower levels hardly shrink synthetic data further.
const ZSTD_LEVEL: i32 = 1;

/// An [`OutputFile`], compressed according to its name.
pub struct Output(Encoder);

enum Encoder {
    Plain(Counted),
    Gzip(GzEncoder<Counted>),
    Zstd(zstd::Encoder<'static, Counted>),
}

struct Counted {
    inner: BufWriter<OutputFile>,
    bytes: u64,
}

impl Output {
    pub fn create(path: &Path) -> io::Result<Output> {
        let file = OutputFile::create(path)?;
        let counted = Counted { inner: BufWriter::with_capacity(WRITE_LEN, file), bytes: 0 };
        Ok(Output(match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Encoder::Gzip(GzEncoder::new(counted, Compression::fast())),
            Some("zst") => Encoder::Zstd(zstd::Encoder::new(counted, ZSTD_LEVEL)?),
            _ => Encoder::Plain(counted),
        }))
    }

    /// Writes the buffered data and gives the file its final name. Returns the number of bytes
    /// written, after compression.
    pub fn finish(self) -> io::Result<u64> {
        let counted = self.0.finish()?;
        let file = counted.inner.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.finish()?;
        Ok(counted.bytes)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Gzip(writer) => writer.write(bytes),
            Encoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Encoder::Plain(writer) => writer.flush(),
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
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
