//! Settings of a synthetic day.

use super::announce::announcements;
use crate::ConfigError;

/// Minimum number of messages per live order: fewer could not fill and empty the books.
const MESSAGES_PER_LIVE_MIN: u64 = 8;
/// Minimum number of messages per security.
const MESSAGES_PER_SYMBOL_MIN: u64 = 32;
/// Bounds of the number of messages of a day.
const MESSAGES_MIN: u64 = 1_000;
const MESSAGES_MAX: u64 = 10_000_000_000;
/// Minimum number of messages per security after `with_messages` has made a day smaller.
const MESSAGES_PER_SYMBOL_SMALL: u64 = 1_000;
/// Minimum number of live orders per security: one per side.
const LIVE_PER_SYMBOL_MIN: u32 = 2;
/// Maximum number of live orders; their books occupy about five gigabytes.
const LIVE_MAX: u32 = 1 << 26;

/// Settings of an [`ItchDay`](super::ItchDay). The same settings give the same bytes on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItchDayConfig {
    /// Exact number of messages of the whole day.
    pub messages: u64,
    /// Number of securities, 1 to 65,535.
    pub symbols: u32,
    /// Target number of resting orders while the market is open.
    pub live: u32,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl ItchDayConfig {
    /// `itch-500`: 20 million messages, 500 securities, 200 thousand live orders.
    #[must_use]
    pub const fn itch_500() -> ItchDayConfig {
        ItchDayConfig { messages: 20_000_000, symbols: 500, live: 200_000, seed: 1 }
    }

    /// `itch-8000`: 50 million messages, 8,000 securities, 1.5 million live orders.
    #[must_use]
    pub const fn itch_8000() -> ItchDayConfig {
        ItchDayConfig { messages: 50_000_000, symbols: 8_000, live: 1_500_000, seed: 1 }
    }

    /// Scales messages, securities and live orders down by a divisor, so that the book of each security keeps
    /// its size. `divisor` is 1 or more; at least one security remains.
    #[must_use]
    pub const fn scaled(self, divisor: u32) -> ItchDayConfig {
        let symbols = if self.symbols < divisor { 1 } else { self.symbols / divisor };
        ItchDayConfig { messages: self.messages / divisor as u64, symbols, live: self.live / divisor, ..self }
    }

    /// Changes the number of messages. A smaller day has proportionally fewer live orders and at most one
    /// security per thousand messages, so that its settings are valid for every valid number of messages.
    #[must_use]
    pub fn with_messages(self, messages: u64) -> ItchDayConfig {
        if messages >= self.messages {
            return ItchDayConfig { messages, ..self };
        }
        let symbols = u32::try_from(messages / MESSAGES_PER_SYMBOL_SMALL).unwrap_or(u32::MAX);
        let symbols = symbols.clamp(1, self.symbols);
        let live = u128::from(self.live) * u128::from(messages) / u128::from(self.messages);
        ItchDayConfig { messages, symbols, live: live as u32, ..self }.with_symbols(symbols)
    }

    /// Changes the number of securities. Increases the live orders if they do not cover both sides of each
    /// security.
    #[must_use]
    pub fn with_symbols(self, symbols: u32) -> ItchDayConfig {
        ItchDayConfig { symbols, live: self.live.max(symbols.saturating_mul(LIVE_PER_SYMBOL_MIN)), ..self }
    }

    /// Returns the number of securities if all settings are within their bounds.
    pub(super) fn check(&self) -> Result<u16, ConfigError> {
        let ItchDayConfig { messages, symbols, live, .. } = *self;
        let securities = u16::try_from(symbols).ok().filter(|count| *count > 0).ok_or_else(|| {
            ConfigError(format!("symbols is {symbols}: choose 1 to 65535, as many as ITCH can number"))
        })?;
        let min = LIVE_PER_SYMBOL_MIN * symbols;
        ConfigError::unless((min..=LIVE_MAX).contains(&live), || {
            format!("live is {live}: choose {min} to {LIVE_MAX}, two or more for each symbol")
        })?;
        let min = (u64::from(live) * MESSAGES_PER_LIVE_MIN)
            .max(u64::from(symbols) * MESSAGES_PER_SYMBOL_MIN)
            .max(MESSAGES_MIN);
        ConfigError::unless((min..=MESSAGES_MAX).contains(&messages), || {
            format!(
                "messages is {messages}: choose {min} to {MESSAGES_MAX} (8 for each live order, 32 for each \
                 symbol, 1000 in all), or fewer live orders or symbols"
            )
        })?;
        Ok(securities)
    }

    pub(super) const fn order_flow_messages(&self) -> u64 {
        self.messages - announcements(self.symbols as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let small = ItchDayConfig { messages: 8_000, symbols: 10, live: 1_000, seed: 1 };
        let error = |config: ItchDayConfig| config.check().unwrap_err().to_string();
        assert_eq!(small.check(), Ok(10));
        assert!(error(ItchDayConfig { messages: 7_999, ..small }).contains("messages is 7999: choose 8000"));
        assert!(error(ItchDayConfig { messages: 0, ..small }).contains("messages is 0"));
        assert!(error(ItchDayConfig { messages: MESSAGES_MAX + 1, ..small }).contains("10000000000"));
        assert!(error(ItchDayConfig { symbols: 0, ..small }).contains("symbols is 0"));
        assert!(error(ItchDayConfig { symbols: 65_536, ..small }).contains("choose 1 to 65535"));
        assert!(error(ItchDayConfig { live: 19, ..small }).contains("live is 19: choose 20"));
        assert_eq!(ItchDayConfig { live: 20, ..small }.check(), Ok(10));
        assert!(
            error(ItchDayConfig { live: LIVE_MAX + 1, messages: MESSAGES_MAX, ..small }).contains("live")
        );
        let smallest = ItchDayConfig { messages: 1_000, symbols: 1, live: 2, seed: 1 };
        assert_eq!(smallest.check(), Ok(1));
        assert!(error(ItchDayConfig { messages: 999, ..smallest }).contains("choose 1000"));
    }

    #[test]
    fn a_day_of_any_number_of_messages_can_be_made() {
        for day in [ItchDayConfig::itch_500(), ItchDayConfig::itch_8000()] {
            for messages in [1_000, 10_000, 123_456, 2_000_000, day.messages - 1, day.messages, 100_000_000] {
                let small = day.with_messages(messages);
                assert_eq!((small.messages, small.check().is_ok()), (messages, true), "{small:?}");
            }
            assert_eq!(day.with_messages(day.messages), day);
            assert_eq!(day.with_messages(2 * day.messages).live, day.live);
        }
        let small = ItchDayConfig::itch_500().with_messages(10_000);
        assert_eq!((small.symbols, small.live), (10, 100));
        assert_eq!(small.with_symbols(200).live, 400);
    }

    #[test]
    fn the_standard_days_and_their_tenths_can_be_made() {
        for config in [ItchDayConfig::itch_500(), ItchDayConfig::itch_8000()] {
            assert!(config.check().is_ok() && config.scaled(10).check().is_ok());
        }
        let tenth = ItchDayConfig::itch_8000().scaled(10);
        assert_eq!((tenth.messages, tenth.symbols, tenth.live), (5_000_000, 800, 150_000));
        assert_eq!(ItchDayConfig::itch_500().scaled(1_000).symbols, 1);
    }
}
