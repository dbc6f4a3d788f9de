//! Exclusive use of a multicast group by one venue.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The groups to which this venue sends, locked against other venues of this machine while it runs.
///
/// The system lets every process send to a group. An abstract Unix socket named after the group is the lock.
/// The socket needs no file and disappears with the process. Like multicast, it is local to the network
/// namespace.
pub struct LineLocks(#[expect(dead_code, reason = "held, not used")] Vec<UnixDatagram>);

impl LineLocks {
    /// Locks the groups. Returns those that another venue holds, for a warning.
    pub fn acquire(groups: &[SocketAddrV4], interface: Ipv4Addr) -> (LineLocks, Vec<SocketAddrV4>) {
        let (mut locks, mut taken) = (Vec::new(), Vec::new());
        for group in groups {
            match lock(*group, interface) {
                Ok(socket) => locks.push(socket),
                Err(error) if error.kind() == ErrorKind::AddrInUse => taken.push(*group),
                // Ignore other failures, because trading does not depend on the lock.
                Err(_) => {}
            }
        }
        (LineLocks(locks), taken)
    }
}

fn lock(group: SocketAddrV4, interface: Ipv4Addr) -> std::io::Result<UnixDatagram> {
    let name = format!("tickpath.venue.{group}.{interface}");
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_lock_is_exclusive_until_it_is_dropped() {
        let groups = [tickpath_net::free_multicast_group().unwrap()];
        let (first, taken) = LineLocks::acquire(&groups, Ipv4Addr::LOCALHOST);
        assert_eq!(taken, []);
        assert_eq!(LineLocks::acquire(&groups, Ipv4Addr::LOCALHOST).1, groups);
        assert_eq!(LineLocks::acquire(&groups, Ipv4Addr::UNSPECIFIED).1, [], "elsewhere it is another line");
        drop(first);
        assert_eq!(LineLocks::acquire(&groups, Ipv4Addr::LOCALHOST).1, []);
    }
}
