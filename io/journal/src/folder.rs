//! A real folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use crate::{Storage, StorageFile};

/// Name of the file whose lock keeps other processes out.
const LOCK_FILE: &str = "journal.lock";

/// Where Linux says by which start it runs: a random number of 128 bits.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A folder of the file system, on any disk whose `fdatasync` keeps its promise.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, made if there is none.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Folder> {
        fs::create_dir_all(&path)?;
        Ok(Folder { path: path.as_ref().to_owned() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Storage for Folder {
    type File = File;
    type Lock = File;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not text is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        // Files that are only read need not be writable.
        match OpenOptions::new().read(true).write(true).open(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(self.path.join(name)),
            opened => opened,
        }
    }

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn boot(&self) -> Option<u128> {
        let id = fs::read_to_string(BOOT_ID).ok()?.trim().replace('-', "");
        u128::from_str_radix(&id, 16).ok().filter(|boot| *boot != 0)
    }

    fn lock(&self) -> io::Result<Option<File>> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.path.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl StorageFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, out, offset)
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn allocate(&mut self, len: u64) -> io::Result<()> {
        match fallocate(&*self, FallocateFlags::empty(), 0, len.try_into().unwrap_or(i64::MAX)) {
            // A file system that cannot take the room beforehand takes it as the file is written.
            Err(Errno::EOPNOTSUPP) => self.set_len(len),
            done => Ok(done?),
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}
