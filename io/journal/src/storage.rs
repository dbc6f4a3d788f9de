//! What the journal needs of a disk.

use std::io;

/// A folder on some disk. Names are plain file names, without folders. Each error is the system's.
#[expect(clippy::missing_errors_doc, reason = "each is the system's")]
pub trait Storage: Clone + Send + 'static {
    /// An open file.
    type File: StorageFile;
    /// Keeps others out while it lives.
    type Lock: Send + Sync;

    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Makes an empty file, in place of one of that name.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, in place of a file that has it; on the disk after [`Storage::sync_names`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; on the disk after [`Storage::sync_names`].
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when all names are on the disk.
    fn sync_names(&self) -> io::Result<()>;

    /// Which run of the system this is: as long as it is the same, what was written and not synced is still there. `None`
    /// when that cannot be known. Never zero.
    fn boot(&self) -> Option<u128>;

    /// Keeps other processes out; `None` when one keeps this one out.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// True when there is a file of this name.
    fn has(&self, name: &str) -> io::Result<bool> {
        Ok(self.list()?.iter().any(|known| known == name))
    }

    /// Puts a file of these bytes in place of one of that name; when this returns it is on the disk. It is written under the
    /// name `unfinished`, so that at any time there is the old file or the new one.
    fn replace(&self, unfinished: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create(unfinished)?;
        file.write_all_at(bytes, 0)?;
        file.sync()?;
        self.rename(unfinished, name)?;
        self.sync_names()
    }
}

/// An open file. Each error is the system's.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
#[expect(clippy::missing_errors_doc, reason = "each is the system's")]
pub trait StorageFile: Send + 'static {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Reads from `offset` on; 0 only at the end.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Reads from the start until `out` is full or the file ends; returns the number of bytes.
    fn read_start(&self, out: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while len < out.len() {
            match self.read_at(&mut out[len..], len as u64)? {
                0 => break,
                more => len += more,
            }
        }
        Ok(len)
    }

    /// Writes all bytes at `offset`, where a process that dies leaves them.
    /// After an error part may have been written.
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when everything written is on the disk. After an error nothing is known of what was written
    /// before, and trying again proves nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Makes the file `len` bytes long, with zeroes where nothing was written and the room for them taken.
    fn allocate(&mut self, len: u64) -> io::Result<()>;

    /// Makes the file `len` bytes long, which is no more than it was.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// The first `len` bytes of the file, which is as long, for writing without a system call.
    /// `Unsupported` where nothing is written.
    fn share(self, len: usize) -> io::Result<Box<dyn SharedBytes>>
    where
        Self: Sized,
    {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The start of a file in memory that the death of the process leaves as it is.
#[expect(clippy::missing_errors_doc, reason = "each is the system's")]
pub trait SharedBytes: Send {
    /// Writes `bytes`, whole words of 8 at a multiple of 8 from the start, word by word. Neither waits nor fails.
    fn write(&mut self, bytes: &[u8], at: usize);

    /// Returns when everything written is on the disk.
    fn flush(&mut self) -> io::Result<()>;
}
