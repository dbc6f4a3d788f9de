//! Storage in a folder of the file system.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use crate::mapping::Mapping;
use crate::{SharedBytes, Storage, StorageFile};

/// Name of the lock file that excludes other processes.
const LOCK_FILE: &str = "journal.lock";

/// Modes of the folder and of its files: a journal holds every order, so only its owner may read it.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// File with the random 128-bit id of the current system boot on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A folder of the file system, on any disk with a reliable `fdatasync`.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder at `path`, and creates it with mode 0700 if it does not exist.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Folder> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&path)?;
        Ok(Folder { path: path.as_ref().to_owned() })
    }

    /// Returns the name and mode of each file whose mode is not 0600 and each folder whose mode is not 0700.
    /// The folder itself is checked too, as `.`.
    ///
    /// # Errors
    /// The system's error.
    pub fn other_modes(&self) -> io::Result<Vec<(String, u32)>> {
        let mut others = Vec::new();
        let mut check_mode = |name: String, metadata: fs::Metadata| {
            let mode = metadata.permissions().mode() & 0o7777;
            if mode != if metadata.is_dir() { FOLDER_MODE } else { FILE_MODE } {
                others.push((name, mode));
            }
        };
        check_mode(".".to_owned(), fs::metadata(&self.path)?);
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) => check_mode(entry.file_name().to_string_lossy().into_owned(), metadata),
                // The file was removed after the folder was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        others.sort_unstable();
        Ok(others)
    }

    /// Returns the path of the folder.
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
            // Skip names that are not UTF-8: they do not belong to the journal.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        // A file without write permission can still be read.
        match OpenOptions::new().read(true).write(true).open(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(self.path.join(name)),
            opened => opened,
        }
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(FILE_MODE);
        let file = options.open(self.path.join(name))?;
        // The mode above applies only to a new file.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        Ok(file)
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
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(self.path.join(LOCK_FILE))?;
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
            // A file system without preallocation allocates the space during writes.
            Err(Errno::EOPNOTSUPP) => self.set_len(len),
            done => Ok(done?),
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn share(self, len: usize) -> io::Result<Box<dyn SharedBytes>> {
        Ok(Box::new(Mapping::new(self, len)?))
    }
}
