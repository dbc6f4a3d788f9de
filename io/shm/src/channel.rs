//! A pair of rings between a server and one client, in shared memory, set up over a Unix socket.
//!
//! A server listens on a socket in the file system ([`ChannelListener`]). The kernel reports the process that
//! connects ([`Peer`]). The server exchanges names, passwords or other messages with the [`Caller`] over the
//! socket, then [grants](Caller::grant) it a [`Channel`]. The channel's memory has no name, is sealed so that
//! neither end can truncate it, and is passed over the socket. The socket stays open: when it closes, the
//! other end has dropped the channel, or its process has ended.
//!
//! Neither end trusts the memory: [`shared_spsc`] copies each item, and detects invalid positions
//! that the peer writes.
//!
//! ```
//! use std::time::Duration;
//! use tickpath_shm::channel::{Channel, ChannelListener, call};
//!
//! # let place = tempfile::tempdir()?;
//! # let path = place.path().join("gateway.sock");
//! let listener = ChannelListener::bind(&path)?;
//! let caller = call(&path)?;
//! let accepted = listener.try_accept()?.ok_or("no caller")?;
//! assert_eq!(accepted.peer().pid, std::process::id());
//! let mut server: Channel<[u64; 2], u64> = accepted.grant(64)?;
//! let mut client: Channel<u64, [u64; 2]> = caller.receive(Duration::from_secs(5))?;
//!
//! client.sender.try_push(7)?;
//! assert_eq!(server.receiver.try_pop(), Some(7));
//! server.sender.try_push([7, 8])?;
//! assert_eq!(client.receiver.try_pop(), Some([7, 8]));
//! assert!(!client.is_peer_disconnected());
//! drop(server);
//! assert!(client.is_peer_disconnected());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use tickpath_agent::{ListenError, UnixListener};
use tickpath_lockfree::shared_spsc::{self, Consumer, Producer};
use tickpath_lockfree::{LINE_LEN, Payload, SharedLines};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub use tickpath_agent::Peer;

use crate::mapping;

/// First field of a [`Greeting`]: `TICKCHAN` as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"TICKCHAN");
/// Version of the greeting and of the ring layout.
const VERSION: u32 = 1;
/// Maximum number of descriptors that the kernel passes with one message (`SCM_MAX_FD`). With a smaller
/// buffer, a message could overflow it: `cmsgs` would fail, and the received descriptors would stay open.
const DESCRIPTORS_MAX: usize = 253;
/// Maximum number of items in each ring of a channel.
pub const CHANNEL_CAPACITY_MAX: u64 = 1 << 20;
/// Maximum length of an item, in bytes.
const ITEM_LEN_MAX: usize = 4_096;
/// Seals that prevent either end from changing the memory's length, and from lifting the seals.
const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_SEAL);
/// File mode of a socket: accessible to its owner only.
const SOCKET_MODE: u32 = 0o600;

/// Error when setting up a channel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The socket cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The other end closed the connection without granting a channel.
    #[error("the other end has refused the channel")]
    Refused,
    /// The greeting is of another version, or states other item lengths: use the same version on both sides.
    #[error("the other end offers another kind of channel: use the same version on both sides")]
    Greeting,
    /// The other end could truncate the received memory.
    #[error("the received memory is not sealed: it was refused")]
    Unsealed,
    /// The capacity or the length of an item exceeds its maximum: lower it.
    #[error("a channel holds 1 to {CHANNEL_CAPACITY_MAX} items of up to {ITEM_LEN_MAX} bytes each way")]
    Bounds,
    /// A system call failed.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation, as a verb and its object.
        what: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> ChannelError {
    move |error| ChannelError::System { what, error: error.into() }
}

/// The message that carries the memory's descriptor over the socket.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Greeting {
    magic: u64,
    version: u32,
    /// Length of an item sent to the server, in bytes.
    to_server_len: u32,
    /// Length of an item sent to the client, in bytes.
    to_client_len: u32,
    /// Capacity of the ring to the server, in items; 0 if it equals `capacity`.
    to_server_capacity: u32,
    /// Capacity of the ring to the client, in items.
    capacity: u64,
    /// Length of the memory, in bytes.
    len: u64,
}

impl Greeting {
    /// Creates a greeting for these item types. `None` if an item is too long or a capacity is
    /// invalid. A `to_server_capacity` of 0 is valid: it stands for `capacity`.
    fn new<ToServer: Payload, ToClient: Payload>(to_server_capacity: u64, capacity: u64) -> Option<Greeting> {
        let is_bounded =
            |capacity: u64| (1..=CHANNEL_CAPACITY_MAX).contains(&capacity) && capacity.is_power_of_two();
        let fits = size_of::<ToServer>() <= ITEM_LEN_MAX && size_of::<ToClient>() <= ITEM_LEN_MAX;
        let to_server = if to_server_capacity == 0 { capacity } else { to_server_capacity };
        let lines = || [lines_of::<ToServer>(to_server), lines_of::<ToClient>(capacity)];
        (is_bounded(capacity) && is_bounded(to_server) && fits).then(|| Greeting {
            magic: MAGIC,
            version: VERSION,
            to_server_len: size_of::<ToServer>() as u32,
            to_client_len: size_of::<ToClient>() as u32,
            to_server_capacity: to_server_capacity as u32,
            capacity,
            len: LINE_LEN as u64 * lines().iter().sum::<usize>() as u64,
        })
    }

    /// Returns the capacity of the ring to the server, in items.
    const fn server_ring(&self) -> u64 {
        if self.to_server_capacity == 0 { self.capacity } else { self.to_server_capacity as u64 }
    }
}

fn lines_of<T: Payload>(capacity: u64) -> usize {
    shared_spsc::lines_of::<T>(capacity as usize)
}

/// The listening socket of a server.
#[derive(Debug)]
pub struct ChannelListener(UnixListener);

impl ChannelListener {
    /// Listens on a socket at `path`, and replaces one left by a killed process. Only this process's user
    /// and users whose privileges override file permissions may connect.
    ///
    /// # Errors
    /// [`ChannelError::Listen`].
    pub fn bind(path: &Path) -> Result<ChannelListener, ChannelError> {
        Ok(ChannelListener(UnixListener::open(path, SOCKET_MODE)?))
    }

    /// Accepts the next caller; `None` when no client is connecting. Does not wait.
    ///
    /// # Errors
    /// The system's error.
    pub fn try_accept(&self) -> Result<Option<Caller>, ChannelError> {
        match self.0.accept() {
            Ok((stream, peer)) => {
                stream.set_nonblocking(false).map_err(system("set up the connection"))?;
                Ok(Some(Caller { stream, peer }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(system("accept a client")(error)),
        }
    }
}

/// Connects to the server that listens at `path`.
///
/// # Errors
/// The system's error.
pub fn call(path: &Path) -> Result<Caller, ChannelError> {
    let stream = UnixStream::connect(path).map_err(system("connect to the server"))?;
    let peer = Peer::of(&stream).map_err(system("identify the peer"))?;
    Ok(Caller { stream, peer })
}

/// One end of a connection before a channel is granted. Dropping it closes the connection, so that the other
/// end's `receive` returns [`ChannelError::Refused`].
#[derive(Debug)]
pub struct Caller {
    stream: UnixStream,
    peer: Peer,
}

impl Caller {
    /// Returns the process at the other end.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the connection, for messages before the channel is granted. Both ends must have read all of
    /// these messages by then.
    #[must_use]
    pub const fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// For the server: creates the memory and passes it to the client. Each ring holds `capacity` items,
    /// rounded up to a power of two.
    ///
    /// # Errors
    /// [`ChannelError::Bounds`], and the system's errors.
    pub fn grant<S: Payload, R: Payload>(self, capacity: u64) -> Result<Channel<S, R>, ChannelError> {
        let capacity = capacity.min(CHANNEL_CAPACITY_MAX + 1).next_power_of_two();
        self.grant_rings(Rings::allocate(Greeting::new::<R, S>(0, capacity).ok_or(ChannelError::Bounds)?)?)
    }

    /// For the server: passes existing rings to the client, which takes only microseconds.
    ///
    /// # Errors
    /// The system's error.
    pub fn grant_rings<S: Payload, R: Payload>(
        self,
        rings: Rings<S, R>,
    ) -> Result<Channel<S, R>, ChannelError> {
        let Rings { greeting, memory, lines, .. } = rings;
        let (to_server, to_client) = split_rings::<R, S>(&lines, &greeting)?;
        let sent = sendmsg::<()>(
            self.stream.as_raw_fd(),
            &[IoSlice::new(greeting.as_bytes())],
            &[ControlMessage::ScmRights(&[memory.as_raw_fd()])],
            MsgFlags::MSG_NOSIGNAL,
            None,
        )
        .map_err(system("send the channel"))?;
        // A stream socket sends a message this short in one piece.
        debug_assert_eq!(sent, size_of::<Greeting>());
        Channel::over(to_client, to_server, self)
    }

    /// For the client: waits for the memory, up to `timeout`, and checks it.
    ///
    /// # Errors
    /// [`ChannelError::Refused`], [`ChannelError::Greeting`], [`ChannelError::Unsealed`], and system errors.
    pub fn receive<S: Payload, R: Payload>(self, timeout: Duration) -> Result<Channel<S, R>, ChannelError> {
        self.stream.set_read_timeout(Some(timeout)).map_err(system("wait for the channel"))?;
        let (greeting, memory) = self.receive_memory()?;
        // The greeting must state the lengths that follow from these item types and its capacities.
        let expected = Greeting::new::<S, R>(u64::from(greeting.to_server_capacity), greeting.capacity);
        if expected != Some(greeting) {
            return Err(ChannelError::Greeting);
        }
        check_memory(&memory, greeting.len)?;
        let lines = mapping::map(&memory, greeting.len, true).map_err(system("map the channel's memory"))?;
        let (to_server, to_client) = split_rings::<S, R>(&lines, &greeting)?;
        Channel::over(to_server, to_client, self)
    }

    fn receive_memory(&self) -> Result<(Greeting, File), ChannelError> {
        let mut greeting = Greeting::new_zeroed();
        let mut buffer = nix::cmsg_space!([std::os::fd::RawFd; DESCRIPTORS_MAX]);
        let mut bytes = [IoSliceMut::new(greeting.as_mut_bytes())];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_WAITALL;
        let message = recvmsg::<()>(self.stream.as_raw_fd(), &mut bytes, Some(&mut buffer), flags)
            .map_err(system("receive the channel"))?;
        let len = message.bytes;
        let mut memory = Vec::new();
        for control in message.cmsgs().map_err(system("receive the channel"))? {
            if let ControlMessageOwned::ScmRights(descriptors) = control {
                // SAFETY: the kernel has just created the descriptors for this process; nothing else has
                // them.
                memory.extend(descriptors.into_iter().map(|it| unsafe { OwnedFd::from_raw_fd(it) }));
            }
        }
        let is_whole = len == size_of::<Greeting>() && memory.len() == 1;
        match memory.pop() {
            None if len == 0 => Err(ChannelError::Refused),
            Some(memory) if is_whole => Ok((greeting, File::from(memory))),
            _ => Err(ChannelError::Greeting),
        }
    }
}

/// The memory of a channel that is not granted yet. Creating it takes milliseconds for large rings, because
/// all of its pages are allocated. The server sends `S` and receives `R`.
pub struct Rings<S, R> {
    greeting: Greeting,
    memory: File,
    lines: SharedLines,
    items: PhantomData<fn(R) -> S>,
}

impl<S: Payload, R: Payload> Rings<S, R> {
    /// Creates rings with these capacities, rounded up to powers of two.
    ///
    /// # Errors
    /// [`ChannelError::Bounds`], and the system's errors.
    pub fn new(to_server: u64, to_client: u64) -> Result<Rings<S, R>, ChannelError> {
        let [to_server, to_client] =
            [to_server, to_client].map(|it| it.min(CHANNEL_CAPACITY_MAX + 1).next_power_of_two());
        Rings::allocate(Greeting::new::<R, S>(to_server, to_client).ok_or(ChannelError::Bounds)?)
    }

    fn allocate(greeting: Greeting) -> Result<Rings<S, R>, ChannelError> {
        let memory = sealed_memory(greeting.len)?;
        let lines = mapping::map(&memory, greeting.len, true).map_err(system("map the channel's memory"))?;
        Ok(Rings { greeting, memory, lines, items: PhantomData })
    }
}

impl<S, R> fmt::Debug for Rings<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rings").field("lines", &self.lines).finish_non_exhaustive()
    }
}

/// Returns the cache lines of the ring to the server, then those of the ring to the client.
fn split_rings<ToServer: Payload, ToClient: Payload>(
    lines: &SharedLines,
    greeting: &Greeting,
) -> Result<(SharedLines, SharedLines), ChannelError> {
    let first = lines_of::<ToServer>(greeting.server_ring());
    let to_server = lines.part(0, first).ok_or(ChannelError::Greeting)?;
    let to_client =
        lines.part(first, lines_of::<ToClient>(greeting.capacity)).ok_or(ChannelError::Greeting)?;
    Ok((to_server, to_client))
}

/// Returns zeroed memory whose length is sealed.
fn sealed_memory(len: u64) -> Result<File, ChannelError> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let memory = memfd_create("tickpath-channel", flags).map_err(system("create the channel's memory"))?;
    let memory = File::from(memory);
    memory.set_len(len).map_err(system("size the channel's memory"))?;
    fcntl(&memory, FcntlArg::F_ADD_SEALS(SEALS)).map_err(system("seal the channel's memory"))?;
    Ok(memory)
}

/// Checks that the memory has the seals [`SEALS`] and the length `len`.
fn check_memory(memory: &File, len: u64) -> Result<(), ChannelError> {
    let seals = match fcntl(memory, FcntlArg::F_GET_SEALS) {
        // This kind of file does not support seals.
        Err(Errno::EINVAL) => return Err(ChannelError::Unsealed),
        seals => SealFlag::from_bits_truncate(seals.map_err(system("read the memory's seals"))?),
    };
    if !seals.contains(SEALS) {
        return Err(ChannelError::Unsealed);
    }
    let found = memory.metadata().map_err(system("inspect the channel's memory"))?;
    if found.len() == len { Ok(()) } else { Err(ChannelError::Greeting) }
}

/// One end of a channel: sends `S` and receives `R`.
#[derive(Debug)]
pub struct Channel<S, R> {
    /// Ring to the other end.
    pub sender: Producer<S>,
    /// Ring from the other end.
    pub receiver: Consumer<R>,
    peer: Peer,
    stream: UnixStream,
}

impl<S: Payload, R: Payload> Channel<S, R> {
    fn over(send: SharedLines, receive: SharedLines, caller: Caller) -> Result<Channel<S, R>, ChannelError> {
        let wrong = |_| ChannelError::Greeting;
        Ok(Channel {
            sender: Producer::over(send).map_err(wrong)?,
            receiver: Consumer::over(receive).map_err(wrong)?,
            peer: caller.peer,
            stream: caller.stream,
        })
    }

    /// Returns the process at the other end, as identified when the connection was established.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns whether the other end is closed: its channel was dropped, or its process ended for any reason.
    /// Items that it sent before can still be received. This is a system call, so do not call it often.
    #[must_use]
    pub fn is_peer_disconnected(&self) -> bool {
        // Poll instead of reading: a read returns the peer's unread data before it reports the end.
        let mut polled = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        let ends = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        match poll(&mut polled, PollTimeout::ZERO) {
            Ok(_) => polled[0].revents().is_none_or(|found| found.intersects(ends)),
            Err(error) => !matches!(error, Errno::EAGAIN | Errno::EINTR),
        }
    }
}
