//! Addresses that may send market data.

use std::net::Ipv4Addr;

/// Addresses that may send the multicast packets of a channel; every address when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Senders(Vec<Ipv4Addr>);

impl Senders {
    /// Returns senders that allow every address.
    #[must_use]
    pub const fn any() -> Senders {
        Senders(Vec::new())
    }

    /// Returns the configured senders. Without a configuration: on a loopback interface the interface's
    /// address, because no other host can send there; otherwise the publisher's address if known, or every
    /// address.
    #[must_use]
    pub fn of(stated: Option<&[Ipv4Addr]>, interface: Ipv4Addr, publisher: Option<Ipv4Addr>) -> Senders {
        let publisher = if interface.is_loopback() { Some(interface) } else { publisher };
        Senders(stated.map_or_else(|| publisher.into_iter().collect(), <[Ipv4Addr]>::to_vec))
    }

    /// Returns whether packets from this address are accepted.
    #[inline]
    #[must_use]
    pub fn allows(&self, address: Ipv4Addr) -> bool {
        self.0.is_empty() || self.0.contains(&address)
    }

    /// Returns whether packets from every address are accepted: any sender can then change the books.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_senders_depend_on_the_interface() {
        let [here, there, other] =
            [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
        let allowed = |senders: Senders| [here, there, other].map(|address| senders.allows(address));
        assert_eq!(allowed(Senders::of(None, here, Some(there))), [true, false, false]);
        assert_eq!(allowed(Senders::of(None, other, Some(there))), [false, true, false]);
        assert_eq!(allowed(Senders::of(Some(&[other]), here, None)), [false, false, true]);
        for senders in [Senders::of(None, other, None), Senders::of(Some(&[]), here, None), Senders::any()] {
            assert!(senders.is_any());
            assert_eq!(allowed(senders), [true; 3]);
        }
    }
}
