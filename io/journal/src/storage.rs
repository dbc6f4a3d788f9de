//! What the journal needs of a disk.

use std::io;

/// A folder on some disk. Names are plain file names, without folders.
pub trait Storage: Clone + Send + 'static {
    /// An open file.
    type File: StorageFile;
    /// Keeps others out while it lives.
    type Lock: Send + Sync;

    /// Names of all files, in any order.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Makes an empty file, in place of one of that name.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, in place of a file that has it; on the disk after [`Storage::sync_names`].
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; on the disk after [`Storage::sync_names`].
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when all names are on the disk.
    ///
    /// # Errors
    /// What the system says.
    fn sync_names(&self) -> io::Result<()>;

    /// Which run of the system this is: as long as it is the same, what was written and not synced is still there. `None`
    /// when that cannot be known. Never zero.
    fn boot(&self) -> Option<u128>;

    /// Keeps other processes out; `None` when one keeps this one out.
    ///
    /// # Errors
    /// What the system says.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
pub trait StorageFile: Send + 'static {
    /// Its length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self) -> io::Result<u64>;

    /// Reads from `offset` on; 0 only at the end.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at `offset`, where a process that dies leaves them.
    ///
    /// # Errors
    /// What the system says; part may have been written.
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when everything written is on the disk. After an error nothing is known of what was written
    /// before, and trying again proves nothing.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;

    /// Makes the file `len` bytes long, with zeroes where nothing was written and the room for them taken.
    ///
    /// # Errors
    /// What the system says; the disk may be full.
    fn allocate(&mut self, len: u64) -> io::Result<()>;

    /// Makes the file `len` bytes long, which is no more than it was.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// The first `len` bytes of the file, which is as long, for writing without a system call.
    ///
    /// # Errors
    /// As the system says; `Unsupported` where nothing is written.
    fn share(self, len: usize) -> io::Result<Box<dyn SharedBytes>>
    where
        Self: Sized,
    {
        let _ = len;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The start of a file in memory that the death of the process leaves as it is.
pub trait SharedBytes: Send {
    /// Writes `bytes`, whole words of 8 at a multiple of 8 from the start, word by word. Neither waits nor fails.
    fn write(&mut self, bytes: &[u8], at: usize);

    /// Returns when everything written is on the disk.
    ///
    /// # Errors
    /// As the system says.
    fn flush(&mut self) -> io::Result<()>;
}
