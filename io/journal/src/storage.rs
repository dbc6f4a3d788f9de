//! The storage interface of the journal.

use std::io;

/// A folder on a disk. Names are plain file names, without folders. Errors are those of the system calls.
#[expect(clippy::missing_errors_doc, reason = "each is the system's")]
pub trait Storage: Clone + Send + 'static {
    /// An open file.
    type File: StorageFile;
    /// The exclusive lock of the folder, released on drop.
    type Lock: Send + Sync;

    /// Returns the names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Creates an empty file, which replaces an existing one of that name.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Renames a file and replaces an existing one. The change is on the disk after [`Storage::sync_names`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. The change is on the disk after [`Storage::sync_names`].
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Syncs the folder's file names to the disk: all creations, renames and removals.
    fn sync_names(&self) -> io::Result<()>;

    /// Returns the id of the current system boot. Unsynced writes still exist while the id is the same.
    /// `None` when it is unknown. Never zero.
    fn boot(&self) -> Option<u128>;

    /// Takes the lock that excludes other processes; `None` when another process holds it.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// Returns whether a file of this name exists.
    fn has(&self, name: &str) -> io::Result<bool> {
        Ok(self.list()?.iter().any(|known| known == name))
    }

    /// Replaces the file `name` by one with these bytes, which is on the disk when this returns. The new file
    /// is written as `unfinished` and then renamed, so that the old or the new file exists at any time.
    fn replace(&self, unfinished: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create(unfinished)?;
        file.write_all_at(bytes, 0)?;
        file.sync()?;
        self.rename(unfinished, name)?;
        self.sync_names()
    }
}

/// An open file. Errors are those of the system calls.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
#[expect(clippy::missing_errors_doc, reason = "each is the system's")]
pub trait StorageFile: Send + 'static {
    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Reads from `offset` into `out`. Returns the number of bytes, 0 only at the end of the file.
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

    /// Writes all bytes at `offset`; they survive the death of the process.
    /// After an error some of them may have been written.
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Syncs all data written so far to the disk. After an error the state of earlier writes is unknown,
    /// and a successful retry proves nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Extends the file to `len` bytes with zeroes, and allocates the space.
    fn allocate(&mut self, len: u64) -> io::Result<()>;

    /// Truncates the file to `len` bytes, at most its present length.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Maps the first `len` bytes of the file, which has that length, for writing without a system call.
    /// `Unsupported` if this file cannot be mapped.
    fn share(self, len: usize) -> io::Result<Box<dyn SharedBytes>>
    where
        Self: Sized,
    {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A memory mapping of the start of a file. The contents survive the death of the process.
#[expect(clippy::missing_errors_doc, reason = "each is the system's")]
pub trait SharedBytes: Send {
    /// Writes whole words of 8 bytes, one by one, at offset `at`, a multiple of 8. Neither waits nor fails.
    fn write(&mut self, bytes: &[u8], at: usize);

    /// Syncs all data written so far to the disk.
    fn flush(&mut self) -> io::Result<()>;
}
