//! A listening Unix socket whose file exists only while it listens.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{self, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{getsockopt, sockopt};

/// Error when opening a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another program serves the socket: choose another path, or stop that program.
    #[error("socket {} is served by a running program: give this one another path", .0.display())]
    InUse(PathBuf),
    /// Another kind of file is at the path: remove it, or choose another path.
    #[error("socket {}: the file at this path is not a socket: choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The system refused: check that the folder exists and is writable.
    #[error("socket {}: {source}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A non-blocking listening Unix socket. Dropping it removes its file.
#[derive(Debug)]
pub struct UnixListener {
    socket: net::UnixListener,
    path: PathBuf,
    /// Device and inode of the socket's file, so that no other file is removed on drop.
    file: (u64, u64),
    owner: u32,
}

impl UnixListener {
    /// Opens the socket at `path`, with the file mode `mode`, and replaces a socket that no program serves.
    ///
    /// # Errors
    /// [`ListenError`] when the path is in use, or the system refuses to open the socket.
    pub fn open(path: &Path, mode: u32) -> Result<UnixListener, ListenError> {
        remove_stale(path)?;
        let open = || {
            let socket = net::UnixListener::bind(path)?;
            fs::set_permissions(path, Permissions::from_mode(mode))?;
            socket.set_nonblocking(true)?;
            let metadata = fs::metadata(path)?;
            let file = (metadata.dev(), metadata.ino());
            Ok(UnixListener { socket, path: path.to_owned(), file, owner: metadata.uid() })
        };
        open().map_err(|source| ListenError::Io { path: path.to_owned(), source })
    }

    /// Accepts the next connection. Returns its stream, in the system's default blocking mode, and its peer.
    ///
    /// # Errors
    /// The system's error; [`ErrorKind::WouldBlock`] when no connection is pending.
    pub fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        let (stream, _) = self.socket.accept()?;
        let peer = Peer::of(&stream)?;
        Ok((stream, peer))
    }

    /// The id of the user who owns the socket's file.
    #[must_use]
    pub const fn owner(&self) -> u32 {
        self.owner
    }
}

/// The process at the other end of a connection, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id; another process may reuse it after this one has ended.
    pub pid: u32,
    /// Id of the user that the process runs as.
    pub uid: u32,
}

impl Peer {
    /// Returns the process at the other end of a stream.
    ///
    /// # Errors
    /// The system's error.
    pub fn of(stream: &UnixStream) -> io::Result<Peer> {
        let found = getsockopt(stream, sockopt::PeerCredentials)?;
        Ok(Peer { pid: found.pid().unsigned_abs(), uid: found.uid() })
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        if fs::metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.file) {
            // If this fails, the next program replaces the file, because no program serves the socket.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Io { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(source)),
        Ok(metadata) if !metadata.file_type().is_socket() => Err(ListenError::NotASocket(path.to_owned())),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)
            }
            _ => Err(ListenError::InUse(path.to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<UnixListener, ListenError> {
        UnixListener::open(path, 0o600)
    }

    #[test]
    fn a_late_end_keeps_the_successors_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(open(&path), Err(ListenError::InUse(_))));
        fs::remove_file(&path).unwrap();
        let successor = open(&path).unwrap();
        drop(listener);
        let _caller = UnixStream::connect(&path).unwrap();
        assert!(successor.accept().is_ok());
        drop(successor);
        assert!(!path.exists());
    }

    #[test]
    fn only_the_socket_of_a_killed_program_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        // The standard library's listener leaves its file behind, as a killed process does.
        drop(net::UnixListener::bind(&path).unwrap());
        let over_stale = open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(over_stale);
        fs::write(&path, "text").unwrap();
        assert!(matches!(open(&path), Err(ListenError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }
}
