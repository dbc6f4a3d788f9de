//! What a synthetic XDP day is to be.

use tickpath_feed::LossConfig;

use crate::{ConfigError, ItchDayConfig};

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

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let XdpDayConfig { channels, lines, window_ns, flow: ItchDayConfig { messages, .. }, .. } = *self;
        ConfigError::unless((1..=CHANNELS_MAX).contains(&channels), || {
            format!("channels is {channels}: choose 1 to {CHANNELS_MAX}")
        })?;
        ConfigError::unless((1..=2).contains(&lines), || {
            format!("lines is {lines}: choose 1, or 2 for lines A and B")
        })?;
        ConfigError::unless(window_ns <= WINDOW_NS_MAX, || {
            format!("window is {window_ns} ns: choose at most {WINDOW_NS_MAX}")
        })?;
        ConfigError::unless(messages <= MESSAGES_MAX, || {
            format!(
                "messages is {messages}: choose at most {MESSAGES_MAX}, as many as XDP's order numbers allow"
            )
        })
    }
}
