//! A listening Unix socket that only its owner and root may connect to.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{getsockopt, sockopt};

/// A socket was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another program serves it: give this one another path, or stop the other.
    #[error("socket {} is served by a running program: give this one another path", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is no socket is there: remove it, or choose another path.
    #[error("socket {}: a file that is no socket is there: choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused: see that the folder exists and may be written.
    #[error("socket {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A listening Unix socket with mode 0600. The kernel names the user at the other end of each connection. Dropped, its file is
/// removed.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that no other socket is removed at the end.
    file: (u64, u64),
    owner: u32,
}

/// A connection to an [`AdminListener`].
#[derive(Debug)]
pub(crate) struct Caller {
    /// The stream, which is non-blocking.
    pub(crate) stream: UnixStream,
    /// The id of the user at the other end.
    pub(crate) user: u32,
    /// The id of the process at the other end.
    pub(crate) process: u32,
}

impl AdminListener {
    /// Opens the socket at `path`, in place of one that no program serves.
    ///
    /// # Errors
    /// [`ListenError`].
    pub(crate) fn open(path: &Path) -> Result<AdminListener, ListenError> {
        remove_stale(path)?;
        let open = || {
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            let metadata = std::fs::metadata(path)?;
            let file = (metadata.dev(), metadata.ino());
            Ok(AdminListener { listener, path: path.to_owned(), file, owner: metadata.uid() })
        };
        open().map_err(|source| ListenError::Io { path: path.to_owned(), source })
    }

    /// The next connection; `None` for one of another user, which is closed. Does not wait.
    ///
    /// # Errors
    /// The system's; [`ErrorKind::WouldBlock`] when there is none.
    pub(crate) fn accept(&self) -> io::Result<Option<Caller>> {
        let (stream, _) = self.listener.accept()?;
        let Ok(peer) = getsockopt(&stream.as_fd(), sockopt::PeerCredentials) else { return Ok(None) };
        let is_served = may_connect(peer.uid(), self.owner) && stream.set_nonblocking(true).is_ok();
        let (user, process) = (peer.uid(), peer.pid().unsigned_abs());
        Ok(is_served.then_some(Caller { stream, user, process }))
    }
}

impl Drop for AdminListener {
    fn drop(&mut self) {
        if std::fs::metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.file) {
            // If that fails, the next program replaces it, because no program serves it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn may_connect(user: u32, owner: u32) -> bool {
    user == owner || user == 0
}

fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Io { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(source)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err(ListenError::NotASocket { path: path.to_owned() })
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(failed)
            }
            _ => Err(ListenError::InUse { path: path.to_owned() }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_and_root_may_connect() {
        assert!(may_connect(1_000, 1_000) && may_connect(0, 1_000));
        assert!(!may_connect(1_001, 1_000) && !may_connect(1_000, 0));
    }

    #[test]
    fn one_that_ends_late_leaves_its_successors_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = AdminListener::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(AdminListener::open(&path), Err(ListenError::InUse { .. })));
        std::fs::remove_file(&path).unwrap();
        let successor = AdminListener::open(&path).unwrap();
        drop(listener);
        let _caller = UnixStream::connect(&path).unwrap();
        assert_eq!(successor.accept().unwrap().unwrap().process, std::process::id());
        drop(successor);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        let over_stale = AdminListener::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(over_stale);
        std::fs::write(&path, "text").unwrap();
        assert!(matches!(AdminListener::open(&path), Err(ListenError::NotASocket { .. })));
    }
}
