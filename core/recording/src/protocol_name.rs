//! The name of a protocol whose messages come in packets.

use std::fmt;

/// A protocol of market data whose messages come in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    name: &'static str,
    title: &'static str,
}

impl Protocol {
    pub(crate) const fn new(name: &'static str, title: &'static str) -> Protocol {
        Protocol { name, title }
    }

    /// Name of the protocol on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Name of the protocol for display, such as `ITCH 5.0 in MoldUDP64 or SoupBinTCP`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.title
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
