//! One venue at a time on a multicast group.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Groups that this venue sends to, held against other venues of this machine as long as it runs.
///
/// The system lets anybody send to a group. A Unix socket of the group's name, which needs no file and goes with the process, says
/// that it is taken; as multicast, it is of the network namespace.
pub struct HeldLines(#[expect(dead_code, reason = "held, not used")] Vec<UnixDatagram>);

impl HeldLines {
    /// Holds the groups; those that another venue holds come back, to be warned of.
    pub fn hold(groups: &[SocketAddrV4], interface: Ipv4Addr) -> (HeldLines, Vec<SocketAddrV4>) {
        let (mut held, mut taken) = (Vec::new(), Vec::new());
        for group in groups {
            match hold(*group, interface) {
                Ok(socket) => held.push(socket),
                Err(error) if error.kind() == ErrorKind::AddrInUse => taken.push(*group),
                // Whether another one is there is not to be found out here; trading does not depend on it.
                Err(_) => {}
            }
        }
        (HeldLines(held), taken)
    }
}

fn hold(group: SocketAddrV4, interface: Ipv4Addr) -> std::io::Result<UnixDatagram> {
    let name = format!("tickpath.venue.{group}.{interface}");
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_held_by_one_until_that_is_gone() {
        let groups = [tickpath_net::free_multicast_group().unwrap()];
        let (first, taken) = HeldLines::hold(&groups, Ipv4Addr::LOCALHOST);
        assert_eq!(taken, []);
        assert_eq!(HeldLines::hold(&groups, Ipv4Addr::LOCALHOST).1, groups);
        assert_eq!(HeldLines::hold(&groups, Ipv4Addr::UNSPECIFIED).1, [], "elsewhere it is another line");
        drop(first);
        assert_eq!(HeldLines::hold(&groups, Ipv4Addr::LOCALHOST).1, []);
    }
}
