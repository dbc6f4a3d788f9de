//! Reports the readiness of many sockets with one system call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// The events to report for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data can be read, or the other end closed.
    Read,
    /// As `Read`, and data can be written. For use while bytes are pending.
    ReadWrite,
}

/// A ready socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The key passed to [`Poller::add`].
    pub key: u64,
    /// Data, or the end of the stream, can be read.
    pub is_readable: bool,
    /// Data can be written.
    pub is_writable: bool,
    /// The other end closed its side, or the connection is lost. There may still be bytes to read.
    pub is_closed: bool,
}

/// Reports the ready sockets. Every poll reports a socket again until it is read (epoll, level-triggered).
///
/// Never waits. Reading sockets in turn costs a system call each, about 200 ns without data. A poll costs one
/// call for all sockets: about 120 ns for 1 to 64 idle ones, and 130 ns more for each ready one (2-core
/// virtual machine, x86-64). So a poller pays off from the first mostly idle connection, and costs one more
/// call for a connection that always has data.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Poller {
    /// Creates a poller that reports up to `events_max` sockets per poll; the next polls report the others.
    ///
    /// # Errors
    /// The system's error, usually because the limit of open files is reached.
    ///
    /// # Panics
    /// When `events_max` is 0.
    pub fn new(events_max: usize) -> io::Result<Poller> {
        assert!(events_max > 0, "a poller needs room for an event");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Poller { epoll, events: vec![EpollEvent::empty(); events_max] })
    }

    /// Adds a socket, whose readiness for `interest` is reported with `key`. Dropping the socket removes it.
    ///
    /// # Errors
    /// The system's error: the socket is already watched, or the limit of watches is reached.
    pub fn add(&self, socket: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(self.epoll.add(socket, EpollEvent::new(flags(interest), key))?)
    }

    /// Changes the events to report for a watched socket.
    ///
    /// # Errors
    /// The system's error: the socket is not watched.
    pub fn modify(&self, socket: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(self.epoll.modify(socket, &mut EpollEvent::new(flags(interest), key))?)
    }

    /// Removes a socket.
    ///
    /// # Errors
    /// The system's error: the socket is not watched.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(socket)?)
    }

    /// Returns the sockets that are ready now.
    #[inline]
    pub fn poll(&mut self) -> io::Result<impl ExactSizeIterator<Item = Ready> + use<'_>> {
        let count = match self.epoll.wait(&mut self.events, EpollTimeout::ZERO) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(self.events[..count].iter().map(|event| ready(*event)))
    }
}

/// The descriptor is readable while a socket is ready, so that another poller or a thread can wait for it.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

fn flags(interest: Interest) -> EpollFlags {
    let read = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
    match interest {
        Interest::Read => read,
        Interest::ReadWrite => read | EpollFlags::EPOLLOUT,
    }
}

fn ready(event: EpollEvent) -> Ready {
    let closed = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
    Ready {
        key: event.data(),
        is_readable: event.events().intersects(EpollFlags::EPOLLIN | closed),
        is_writable: event.events().contains(EpollFlags::EPOLLOUT),
        is_closed: event.events().intersects(closed),
    }
}
