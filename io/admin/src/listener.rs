//! A listening Unix socket that only its owner and root may connect to.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::socket::{getsockopt, sockopt};
use tickpath_agent::{ListenError, UnixListener};

/// A listening Unix socket with mode 0600. The kernel names the user at the other end of each connection. Dropped, its file is
/// removed.
#[derive(Debug)]
pub(crate) struct AdminListener(UnixListener);

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
        UnixListener::open(path, 0o600).map(AdminListener)
    }

    /// The next connection; `None` for one of another user, which is closed. Does not wait.
    ///
    /// # Errors
    /// The system's; [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none.
    pub(crate) fn accept(&self) -> io::Result<Option<Caller>> {
        let stream = self.0.accept()?;
        let Ok(peer) = getsockopt(&stream.as_fd(), sockopt::PeerCredentials) else { return Ok(None) };
        let is_served = may_connect(peer.uid(), self.0.owner()) && stream.set_nonblocking(true).is_ok();
        let (user, process) = (peer.uid(), peer.pid().unsigned_abs());
        Ok(is_served.then_some(Caller { stream, user, process }))
    }
}

fn may_connect(user: u32, owner: u32) -> bool {
    user == owner || user == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_and_root_may_connect() {
        assert!(may_connect(1_000, 1_000) && may_connect(0, 1_000));
        assert!(!may_connect(1_001, 1_000) && !may_connect(1_000, 0));
    }
}
