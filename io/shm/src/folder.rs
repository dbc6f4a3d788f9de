//! The folder that holds the segments' files, and the names of segments.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use crate::ShmError;

/// Suffix of a segment's file.
const SUFFIX: &str = ".seg";
/// Suffix of a file that is being created.
const NEW_SUFFIX: &str = ".new";
/// Maximum length of a segment's name, in characters.
const NAME_LEN_MAX: usize = 64;
/// Write permissions of group and others, which a segment must not have.
const OTHERS_WRITE: u32 = 0o022;
/// Maximum number of files examined when a folder is listed.
const FILES_MAX: usize = 4_096;

/// The name of a segment within its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName(String);

impl SegmentName {
    /// Creates a name of 1 to 64 letters, digits, `-`, `_` and `.`, the first not `.`.
    ///
    /// # Errors
    /// [`ShmError::Name`].
    pub fn new(name: &str) -> Result<SegmentName, ShmError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_name = (1..=NAME_LEN_MAX).contains(&name.len())
            && name.bytes().all(is_allowed)
            && !name.starts_with('.');
        if is_name { Ok(SegmentName(name.to_owned())) } else { Err(ShmError::Name(name.to_owned())) }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SegmentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// A folder of segments that belongs to this user and that no other user may write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Returns the default folder of segments: `/dev/shm/tickpath-UID`, in memory.
    #[must_use]
    pub fn usual_path() -> PathBuf {
        PathBuf::from(format!("/dev/shm/tickpath-{}", geteuid()))
    }

    /// Opens the folder at `path`, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`ShmError::NotPrivate`], or the system's error.
    pub fn create(path: &Path) -> Result<Folder, ShmError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(system("make", path))?;
        Folder::open(path)
    }

    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// [`ShmError::NotPrivate`], or the system's error.
    pub fn open(path: &Path) -> Result<Folder, ShmError> {
        let found = fs::metadata(path).map_err(system("look into", path))?;
        if !found.is_dir() || !is_private(&found) {
            return Err(ShmError::NotPrivate(path.to_owned()));
        }
        Ok(Folder { path: path.to_owned() })
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a segment's file.
    #[must_use]
    pub fn file(&self, name: &SegmentName) -> PathBuf {
        self.path.join(format!("{name}{SUFFIX}"))
    }

    /// Returns the temporary path of a segment's file until the writer renames it.
    pub(crate) fn new_file(&self, name: &SegmentName, number: u32) -> PathBuf {
        self.path.join(format!(".{name}.{}.{number}{NEW_SUFFIX}", std::process::id()))
    }

    /// Returns the names of the segments, sorted; only some in a folder with more than 4,096 files.
    ///
    /// # Errors
    /// The system's error.
    pub fn names(&self) -> Result<Vec<SegmentName>, ShmError> {
        let mut names: Vec<_> = self
            .file_names()?
            .iter()
            .filter_map(|file| SegmentName::new(file.strip_suffix(SUFFIX)?).ok())
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the temporary files that no writer has renamed yet. A live writer renames its file within
    /// milliseconds.
    pub(crate) fn unfinished(&self) -> Result<Vec<PathBuf>, ShmError> {
        let is_new = |file: &String| file.starts_with('.') && file.ends_with(NEW_SUFFIX);
        Ok(self.file_names()?.into_iter().filter(is_new).map(|file| self.path.join(file)).collect())
    }

    fn file_names(&self) -> Result<Vec<String>, ShmError> {
        let entries = fs::read_dir(&self.path).map_err(system("list", &self.path))?;
        // A file whose name is not UTF-8 is not a segment.
        Ok(entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }

    /// Opens a segment's file for reading: a plain file of this user that no other user may write to.
    pub(crate) fn open_segment(&self, name: &SegmentName) -> Result<(PathBuf, File, Metadata), ShmError> {
        let path = self.file(name);
        // Refuse symbolic links, and do not block on opening a FIFO.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(&path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ShmError::Missing { name: name.to_string(), folder: self.path.clone() });
            }
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
                return Err(ShmError::NotAFile(path));
            }
            opened => opened.map_err(system("open", &path))?,
        };
        let found = file.metadata().map_err(system("look at", &path))?;
        if !found.is_file() {
            return Err(ShmError::NotAFile(path));
        }
        if !is_private(&found) {
            return Err(ShmError::NotPrivate(path));
        }
        Ok((path, file, found))
    }
}

/// Returns whether the file belongs to this user and no other user may write to it.
fn is_private(found: &Metadata) -> bool {
    found.uid() == geteuid().as_raw() && found.mode() & OTHERS_WRITE == 0
}

/// Returns whether `path` names the file with this metadata.
pub(crate) fn is_at(file: &Metadata, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|at| (at.dev(), at.ino()) == (file.dev(), file.ino()))
}

/// Returns a function that adds the operation and the path to a system error.
pub(crate) fn system(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ShmError {
    let path = path.to_owned();
    move |error| ShmError::System { what, path, error }
}
