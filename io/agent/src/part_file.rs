//! A file that appears under its name only when complete.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

/// A new regular file that is written as `NAME.part` and renamed to `NAME` by [`PartFile::finish`]; if
/// dropped before, it is removed.
///
/// The part is always a newly created file; one left by a killed process is replaced. A link or another kind
/// of file under its name, or a part that another process is writing, is an error. Links are never followed.
#[derive(Debug)]
pub struct PartFile {
    /// `None` once the part was renamed.
    part: Option<PathBuf>,
    path: PathBuf,
    /// The open part, which stays locked while it is open.
    file: File,
}

impl PartFile {
    /// Begins a file that [`PartFile::finish`] will place at `path`.
    ///
    /// # Errors
    /// The system's error, or an error about an existing part that must not be replaced.
    pub fn create(path: &Path) -> io::Result<PartFile> {
        let part = PartFile::name_for(path);
        let file = match create_new(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_left_over(&part)?;
                create_new(&part)
            }
            created => created,
        }?;
        let this = PartFile { part: Some(part), path: path.to_owned(), file };
        // Another process may have taken the new part for a leftover, and locked it to remove it.
        if is_locked(&this.file) { Err(in_use()) } else { Ok(this) }
    }

    /// The name of the incomplete file for `path`.
    #[must_use]
    pub fn name_for(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        PathBuf::from(name)
    }

    /// The file, for writing.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its final name, replacing any file of that name.
    ///
    /// # Errors
    /// The system's error; the part is then removed.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(part) = &self.part {
            fs::rename(part, &self.path)?;
        }
        self.part = None;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // If this fails, the part remains, but not under the name of a complete file.
            let _ = fs::remove_file(part);
        }
    }
}

/// Creates the part. Fails if its name exists already, also as a link.
fn create_new(part: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(part)
}

/// Removes the part of a killed process; returns an error when the file is anything else.
fn remove_left_over(part: &Path) -> io::Result<()> {
    let no_part = || {
        let message = format!("{} is not a regular file: remove it, or choose another name", part.display());
        io::Error::other(message)
    };
    if !fs::symlink_metadata(part)?.is_file() {
        return Err(no_part());
    }
    let file = File::options().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(part)?;
    let opened = file.metadata()?;
    if is_locked(&file) {
        return Err(in_use());
    }
    // Its writer may have renamed or replaced the part since it was opened here.
    let here = fs::symlink_metadata(part)?;
    if (here.dev(), here.ino()) != (opened.dev(), opened.ino()) {
        return Err(in_use());
    }
    fs::remove_file(part)
}

/// Tries to lock a file: true when another process holds the lock, false on a file system without locks.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

fn in_use() -> io::Error {
    io::Error::other("another process is writing it: choose another name, or wait for its end")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let part = PartFile::name_for(&path);
        drop(PartFile::create(&path).unwrap());
        assert!(!path.exists() && !part.exists());
        // A file of a killed process is replaced.
        fs::write(&part, "left over").unwrap();
        let file = PartFile::create(&path).unwrap();
        assert!(PartFile::create(&path).unwrap_err().to_string().contains("another process is writing it"));
        file.file().write_all(b"whole").unwrap();
        assert!(part.exists() && !path.exists());
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert!(!part.exists());
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("a"), folder.path().join("victim"));
        let part = PartFile::name_for(&path);
        for is_there in [true, false] {
            if is_there {
                fs::write(&victim, "untouched").unwrap();
            }
            std::os::unix::fs::symlink(&victim, &part).unwrap();
            let error = PartFile::create(&path).unwrap_err().to_string();
            assert!(error.contains("a.part is not a regular file") && !error.contains('\n'), "{error}");
            assert!(fs::symlink_metadata(&part).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&victim).ok().as_deref(), is_there.then_some("untouched"));
            fs::remove_file(&part).unwrap();
            let _ = fs::remove_file(&victim);
        }
        // A hard link is replaced, and the file under its other name is untouched.
        fs::write(&victim, "untouched").unwrap();
        fs::hard_link(&victim, &part).unwrap();
        let file = PartFile::create(&path).unwrap();
        file.file().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    }
}
