//! How many connections one address may have.

use std::net::Ipv4Addr;

/// Of another machine, where the file does not say.
const OTHERS_MAX: usize = 32;

/// Connections of one address at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionsPerAddress {
    others: usize,
    this_machine: usize,
}

impl ConnectionsPerAddress {
    /// As the file states it, for every address. Where it does not, 32, and no bound but that of all connections for this
    /// machine: a desk's programs all come from its one address there, and must not lock each other out.
    pub(super) fn of(stated: Option<usize>) -> ConnectionsPerAddress {
        ConnectionsPerAddress {
            others: stated.unwrap_or(OTHERS_MAX),
            this_machine: stated.unwrap_or(usize::MAX),
        }
    }

    /// How many an address may have.
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
