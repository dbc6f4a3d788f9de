//! The market data feeds that IEX-TP carries.

/// One of the feeds, identified by the Message Protocol ID of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feed {
    /// TOPS 1.5: best quotes and trades; retired.
    Tops15,
    /// TOPS 1.6: best quotes and trades.
    Tops16,
    /// DEEP 1.0: the displayed quantity of each price level.
    Deep10,
    /// DEEP+ 1.0: each displayed order.
    DeepPlus10,
}

impl Feed {
    /// All feeds.
    pub const ALL: [Feed; 4] = [Feed::Tops15, Feed::Tops16, Feed::Deep10, Feed::DeepPlus10];

    /// Returns the feed of a Message Protocol ID; `None` for an unknown one.
    #[must_use]
    pub const fn of(protocol_id: u16) -> Option<Feed> {
        // The ids are consecutive.
        match protocol_id.wrapping_sub(Feed::Tops15.protocol_id()) {
            place @ 0..4 => Some(Feed::ALL[place as usize]),
            _ => None,
        }
    }

    /// Returns the feed's Message Protocol ID, its name with version, and its message types as a bit mask.
    const fn specification(self) -> (u16, &'static str, u128) {
        match self {
            Feed::Tops15 => (0x8002, "TOPS 1.5", mask(b"QTB")),
            Feed::Tops16 => (0x8003, "TOPS 1.6", mask(b"SDHIOPEQTBXA")),
            Feed::Deep10 => (0x8004, "DEEP 1.0", mask(b"SDHIOPE85TBXA")),
            Feed::DeepPlus10 => (0x8005, "DEEP+ 1.0", mask(b"SDHIOPETBaMRLC")),
        }
    }

    /// Returns the feed's Message Protocol ID.
    #[must_use]
    pub const fn protocol_id(self) -> u16 {
        self.specification().0
    }

    /// Returns the feed's name and version.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.specification().1
    }

    /// Returns true if the feed's specification lists messages of this type. For TOPS 1.6 this includes
    /// Security Event, which its SNAP service lists.
    #[inline]
    #[must_use]
    pub const fn has_message_type(self, message_type: u8) -> bool {
        message_type < 128 && self.specification().2 >> message_type & 1 == 1
    }
}

const fn mask(types: &[u8]) -> u128 {
    let mut mask = 0;
    let mut at = 0;
    while at < types.len() {
        mask |= 1 << types[at];
        at += 1;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feed_has_its_number_and_its_messages() {
        for feed in Feed::ALL {
            assert_eq!(Feed::of(feed.protocol_id()), Some(feed));
            assert!(
                feed.has_message_type(b'T') && !feed.has_message_type(b'z') && !feed.has_message_type(0xff),
                "{}",
                feed.name()
            );
        }
        assert_eq!(Feed::of(0x8001), None);
        assert!(
            Feed::Deep10.has_message_type(b'8')
                && !Feed::Deep10.has_message_type(b'Q')
                && !Feed::Deep10.has_message_type(b'a')
        );
        assert!(
            Feed::Tops16.has_message_type(b'Q')
                && Feed::DeepPlus10.has_message_type(b'L')
                && !Feed::Tops15.has_message_type(b'H')
        );
    }
}
