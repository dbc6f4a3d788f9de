//! Limits on the number of connections per address.

use std::net::Ipv4Addr;

/// Default limit for the address of another machine.
const OTHERS_MAX: usize = 32;

/// Maximum number of simultaneous connections of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionsPerAddress {
    others: usize,
    this_machine: usize,
}

impl ConnectionsPerAddress {
    /// Uses `stated` for every address. The default is 32 for other machines, and no limit for this machine:
    /// all programs of a desk share its address there and must not lock each other out.
    pub(super) fn of(stated: Option<usize>) -> ConnectionsPerAddress {
        ConnectionsPerAddress {
            others: stated.unwrap_or(OTHERS_MAX),
            this_machine: stated.unwrap_or(usize::MAX),
        }
    }

    /// Maximum number of connections of the address.
    #[must_use]
    pub const fn max_of(&self, address: Ipv4Addr) -> usize {
        if address.is_loopback() { self.this_machine } else { self.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_bounded_where_the_file_says_so() {
        let other = Ipv4Addr::new(192, 0, 2, 1);
        let unstated = ConnectionsPerAddress::of(None);
        assert_eq!((unstated.max_of(other), unstated.max_of(Ipv4Addr::LOCALHOST)), (32, usize::MAX));
        let stated = ConnectionsPerAddress::of(Some(3));
        assert_eq!((stated.max_of(other), stated.max_of(Ipv4Addr::new(127, 0, 0, 9))), (3, 3));
    }
}
