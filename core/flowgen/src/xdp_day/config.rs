//! Settings of a synthetic XDP day.

use tickpath_feed::LossConfig;

use crate::{ConfigError, ItchDayConfig};

const CHANNELS_MAX: u8 = 16;
/// Maximum number of messages of a day: the wire format has only 32 bits for the number of an order.
const MESSAGES_MAX: u64 = 1_000_000_000;
/// Maximum of [`XdpDayConfig::window_ns`].
const WINDOW_NS_MAX: u64 = 1_000_000_000;

/// Settings of an [`XdpDay`](super::XdpDay). The same settings give the same bytes on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpDayConfig {
    /// Settings of the ITCH day whose order flow is converted to XDP.
    pub flow: ItchDayConfig,
    /// Number of channels, 1 to 16; the symbols are distributed over them.
    pub channels: u8,
    /// Number of lines for each channel, 1 or 2.
    pub lines: u8,
    /// Time that a partial packet waits for more messages of its channel, in nanoseconds, at most a second.
    pub window_ns: u64,
    /// True if an idle channel sends a heartbeat every second.
    pub heartbeats: bool,
    /// Packets to drop, chosen by channel, line and sequence number.
    pub loss: LossConfig,
}

impl XdpDayConfig {
    /// Flow of [`ItchDayConfig::itch_500`] on two channels and one line; packets wait for 100 microseconds.
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

    /// Flow of [`ItchDayConfig::itch_8000`] on eight channels, otherwise as [`XdpDayConfig::xdp_500`].
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
