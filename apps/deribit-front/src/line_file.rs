//! A file of lines that is appended to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

/// Bytes that may wait for the file to take them. Once there are more, nothing is added any more: what is in the file stays
/// what was first.
const WAITING_MAX: usize = 16 << 20;

/// Bytes that are set aside on the disk for further lines: a full disk is noticed before a line needs what is not there.
const ROOM: u64 = 4 << 20;

/// The file, open at its end.
pub(crate) struct LineFile {
    file: File,
    path: PathBuf,
    is_synced: bool,
    /// Of the whole lines in the file.
    len: u64,
    /// Lines that the file did not take, whole: they come before all that follow, as their places mean something.
    waiting: Vec<u8>,
    is_given_up: bool,
    /// The disk has room for the file up to here.
    room_to: u64,
}

impl LineFile {
    /// Opens the file, which may be new, for its owner alone, and reads what is there. A last line that was cut short is
    /// taken away.
    pub(crate) fn open(path: &Path, is_synced: bool) -> io::Result<(LineFile, Vec<u8>)> {
        use std::os::unix::fs::OpenOptionsExt as _;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut bytes = std::fs::read(path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            bytes.truncate(whole);
        }
        let file = LineFile {
            file,
            path: path.to_owned(),
            is_synced,
            len: whole as u64,
            waiting: Vec::new(),
            is_given_up: false,
            room_to: 0,
        };
        Ok((file, bytes))
    }

    /// Puts whole lines in the place of all that are there: at any time the file has the ones or the others. False when that
    /// could not be done, and the others stay.
    pub(crate) fn replace(&mut self, lines: &[u8]) -> bool {
        self.try_replace(lines).is_ok()
    }

    fn try_replace(&mut self, lines: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        new.write_all(lines)?;
        new.sync_data()?;
        std::fs::rename(&beside, &self.path)?;
        if self.is_synced
            && let Some(folder) = self.path.parent()
        {
            // Else a power cut may bring the old ones back.
            File::open(folder)?.sync_all()?;
        }
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        (self.len, self.room_to, self.is_given_up) = (lines.len() as u64, 0, false);
        self.waiting.clear();
        Ok(())
    }

    /// Whether further lines will be taken, as many as come in some time: sets room aside for them where there is less than
    /// half of it left. A file system that cannot do that is believed until it refuses a line.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.room_to < self.len + ROOM / 2 {
            match fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, self.len as i64, ROOM as i64) {
                Ok(()) => self.room_to = self.len + ROOM,
                Err(Errno::EOPNOTSUPP | Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
        // What was refused is tried again.
        self.waiting.is_empty() || self.append(b"")
    }

    /// Adds whole lines; false when they could not be written. They are tried again with the next, in their order.
    pub(crate) fn append(&mut self, lines: &[u8]) -> bool {
        self.is_given_up |= self.waiting.len() + lines.len() > WAITING_MAX && !self.waiting.is_empty();
        if self.is_given_up {
            return false;
        }
        self.waiting.extend_from_slice(lines);
        if self.file.write_all(&self.waiting).is_err() {
            // A part of a line in the middle would make the file unreadable.
            self.is_given_up = self.file.set_len(self.len).is_err();
            return false;
        }
        self.len += self.waiting.len() as u64;
        self.waiting.clear();
        !self.is_synced || self.file.sync_data().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_not_taken_come_before_those_that_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut file = LineFile::open(&path, false).unwrap().0;
        assert!(file.append(b"1\n"));
        // A file that cannot be written, as one on a full disk.
        let good = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        assert!(!file.append(b"2\n"));
        assert!(!file.has_room(), "what waits is refused still");
        (file.file, file.is_given_up, file.room_to) = (good, false, 0);
        assert!(file.has_room() && file.append(b"3\n"));
        assert_eq!(LineFile::open(&path, false).unwrap().1, b"1\n2\n3\n");
        assert!(file.replace(b"4\n") && file.append(b"5\n"));
        assert_eq!(LineFile::open(&path, false).unwrap().1, b"4\n5\n");
        (file.file, file.waiting) = (File::open(&path).unwrap(), vec![b'\n'; WAITING_MAX]);
        assert!(!file.append(b"4\n") && file.is_given_up, "no more than may wait");
    }
}
