//! Both ends of connections over the loopback interface.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use anyhow::bail;
use tickpath_net::{MulticastReceiver, MulticastSender, free_multicast_group};

/// Loopback address with any free port.
pub(crate) const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Returns both ends of a TCP connection, non-blocking and with `TCP_NODELAY`.
pub(crate) fn tcp_pair() -> io::Result<[TcpStream; 2]> {
    let listener = TcpListener::bind(ANY_PORT)?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    Ok([client, server])
}

/// Reads once; `None` if no data are available.
///
/// # Errors
/// The connection was closed or failed.
pub(crate) fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<Option<usize>> {
    match stream.read(buffer) {
        Ok(0) => bail!("the connection was closed"),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns both ends of a multicast line.
pub(crate) fn line() -> anyhow::Result<(MulticastSender, MulticastReceiver)> {
    let group = free_multicast_group()?;
    let receiver = MulticastReceiver::join(group, Ipv4Addr::LOCALHOST)?;
    Ok((MulticastSender::new(group, Ipv4Addr::LOCALHOST)?, receiver))
}
