//! What a synthetic XDP day is to be.

use tickpath_feed::LossConfig;

use crate::{ItchDayConfig, ItchDayError};

/// Channels of a day at most.
const CHANNELS_MAX: u8 = 16;
/// An order's number on the wire has 32 bits for the order itself.
const MESSAGES_MAX: u64 = 1_000_000_000;
/// A venue waits no longer for a packet to fill.
const WINDOW_NS_MAX: u64 = 1_000_000_000;

/// Settings of an [`XdpDay`](super::XdpDay). The same settings give the same bytes on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpDayConfig {
    /// The order flow: messages, symbols, live orders and seed of the ITCH day that has the same one.
    pub flow: ItchDayConfig,
    /// Channels that the symbols are dealt to, 1 to 16.
    pub channels: u8,
    /// Lines on which each channel is sent, 1 or 2.
    pub lines: u8,
    /// How long a packet that is not full waits for more messages of its channel, in nanoseconds, at most a second.
    pub window_ns: u64,
    /// Whether a channel without messages says every second that it is alive.
    pub heartbeats: bool,
    /// Packets that are lost on their way, chosen by channel, line and number.
    pub loss: LossConfig,
}

impl XdpDayConfig {
    /// The flow of [`ItchDayConfig::itch_500`] on two channels and one line; a packet waits for 100 microseconds.
    #[must_use]
    pub const fn xdp_500() -> XdpDayConfig {
        XdpDayConfig {
            flow: ItchDayConfig::itch_500(),
            channels: 2,
            lines: 1,
            window_ns: 100_000,
            heartbeats: false,
            loss: LossConfig { seed: 0, loss_ppm: 0, common_ppm: 0 },
        }
    }

    /// The flow of [`ItchDayConfig::itch_8000`] on eight channels, otherwise the same.
    #[must_use]
    pub const fn xdp_8000() -> XdpDayConfig {
        XdpDayConfig { flow: ItchDayConfig::itch_8000(), channels: 8, ..XdpDayConfig::xdp_500() }
    }

    pub(super) const fn check(&self) -> Result<(), XdpDayError> {
        if self.channels == 0 || self.channels > CHANNELS_MAX {
            return Err(XdpDayError::Channels { channels: self.channels });
        }
        if self.lines == 0 || self.lines > 2 {
            return Err(XdpDayError::Lines { lines: self.lines });
        }
        if self.window_ns > WINDOW_NS_MAX {
            return Err(XdpDayError::Window { window_ns: self.window_ns });
        }
        if self.flow.messages > MESSAGES_MAX {
            return Err(XdpDayError::Messages { messages: self.flow.messages });
        }
        Ok(())
    }
}

/// A day cannot be made of these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XdpDayError {
    /// The order flow cannot be made.
    #[error(transparent)]
    Flow(#[from] ItchDayError),
    /// Too many channels, or none.
    #[error("channels is {channels}: choose 1 to {CHANNELS_MAX}")]
    Channels {
        /// The setting.
        channels: u8,
    },
    /// Neither one line nor two.
    #[error("lines is {lines}: choose 1, or 2 for lines A and B")]
    Lines {
        /// The setting.
        lines: u8,
    },
    /// Packets would wait too long.
    #[error("window is {window_ns} ns: choose at most {WINDOW_NS_MAX}")]
    Window {
        /// The setting.
        window_ns: u64,
    },
    /// More orders than their numbers can tell apart.
    #[error("messages is {messages}: choose at most {MESSAGES_MAX}, as many as XDP's order numbers allow")]
    Messages {
        /// The setting.
        messages: u64,
    },
}
