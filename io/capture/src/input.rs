//! Measures the progress of reading an input file, and the time spent reading and decompressing it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The uncompressed data of a file.
pub(crate) type Input = Box<dyn Read + Send>;

/// The progress of reading a file, and the time spent reading and decompressing it.
#[derive(Clone, Debug)]
pub struct InputMeter {
    len: u64,
    position: Arc<AtomicU64>,
    read_ns: Arc<AtomicU64>,
}

impl InputMeter {
    pub(crate) fn new(len: u64) -> InputMeter {
        InputMeter { len, position: Arc::default(), read_ns: Arc::default() }
    }

    /// Returns a reader that counts the bytes read from the file.
    pub(crate) fn count<R: Read>(&self, reader: R) -> impl Read + use<R> {
        Counted { reader, position: Arc::clone(&self.position) }
    }

    /// Returns an input that measures the time spent reading and decompressing.
    pub(crate) fn time(&self, reader: impl Read + Send + 'static) -> Input {
        Box::new(Timed { reader, read_ns: Arc::clone(&self.read_ns) })
    }

    /// Size of the file in bytes; 0 for a file without a size, such as a pipe.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// True when the size is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes read from the file so far, before decompression.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Time spent reading and decompressing the file, in nanoseconds.
    #[must_use]
    pub fn read_ns(&self) -> u64 {
        self.read_ns.load(Ordering::Relaxed)
    }
}

struct Counted<R> {
    reader: R,
    position: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buffer)?;
        self.position.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

struct Timed<R> {
    reader: R,
    read_ns: Arc<AtomicU64>,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        let result = self.reader.read(buffer);
        self.read_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }
}
