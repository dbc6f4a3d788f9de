//! Read-only access to a journal's folder until the program is stopped.

use std::fs::File;
use std::io::{self, ErrorKind};

use tickpath_agent::StopSignal;
use tickpath_journal::{Folder, Storage, StorageFile};

/// A read-only view of a folder. Once the stop signal is raised, reads of its files fail, which ends the
/// inspection of even a very long log.
#[derive(Clone, Debug)]
pub struct ReadOnly {
    folder: Folder,
    stop: StopSignal,
}

/// A file of a [`ReadOnly`] folder. Its reads fail once the stop signal is raised.
#[derive(Debug)]
pub struct ReadOnlyFile {
    file: File,
    stop: StopSignal,
}

impl ReadOnly {
    pub fn new(folder: Folder, stop: StopSignal) -> ReadOnly {
        ReadOnly { folder, stop }
    }

    /// Returns the path of the folder, for messages.
    pub fn name(&self) -> String {
        self.folder.path().display().to_string()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(ErrorKind::Unsupported, "the journal is only read"))
}

impl Storage for ReadOnly {
    type File = ReadOnlyFile;
    type Lock = File;

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<ReadOnlyFile> {
        Ok(ReadOnlyFile { file: self.folder.open(name)?, stop: self.stop.clone() })
    }

    fn create(&self, _: &str) -> io::Result<ReadOnlyFile> {
        refused()
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        refused()
    }

    fn sync_names(&self) -> io::Result<()> {
        refused()
    }

    fn boot(&self) -> Option<u128> {
        self.folder.boot()
    }

    fn lock(&self) -> io::Result<Option<File>> {
        refused()
    }
}

impl StorageFile for ReadOnlyFile {
    fn len(&self) -> io::Result<u64> {
        StorageFile::len(&self.file)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.stop.is_stopped() {
            true => Err(io::Error::other("interrupted")),
            false => StorageFile::read_at(&self.file, out, offset),
        }
    }

    fn write_all_at(&mut self, _: &[u8], _: u64) -> io::Result<()> {
        refused()
    }

    fn sync(&mut self) -> io::Result<()> {
        refused()
    }

    fn allocate(&mut self, _: u64) -> io::Result<()> {
        refused()
    }

    fn truncate(&mut self, _: u64) -> io::Result<()> {
        refused()
    }
}

#[cfg(test)]
mod tests {
    use tickpath_journal::{InspectOptions, JournalConfig, SessionName, inspect, open};

    use super::*;

    #[test]
    fn nothing_is_changed_and_a_stop_ends_reading() {
        let folder = tempfile::tempdir().unwrap();
        let writable = Folder::new(folder.path()).unwrap();
        let (session, config) = (SessionName::new("TODAY").unwrap(), JournalConfig::default());
        let options = InspectOptions::default();
        drop(open(&writable, session, config, &options).unwrap());
        let stop = StopSignal::new();
        let folder = ReadOnly::new(writable, stop.clone());
        let names = folder.list().unwrap();
        assert!(open(&folder, session, config, &options).is_err());
        assert!(folder.create("new").is_err() && folder.remove(&names[0]).is_err());
        assert_eq!(folder.list().unwrap(), names);
        assert_eq!(inspect(&folder, &options).unwrap().session, Some(session));
        stop.stop();
        let error = inspect(&folder, &options).unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error}");
    }
}
