//! The settings of a server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use tickpath_config::{ConfigError, Fraction};
use tickpath_flowgen::TickGeneratorConfig;
use tickpath_types::Nanos;

/// Target rate of generated ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickRate {
    /// This number of ticks a second, 1 to 100 million, evenly spaced.
    PerSecond(u32),
    /// As many as the fastest subscriber reads; none while there is no subscriber.
    Max,
}

/// The highest numeric rate, in ticks per second.
const RATE_MAX: u32 = 100_000_000;

impl FromStr for TickRate {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<TickRate, ConfigError> {
        if text == "max" {
            return Ok(TickRate::Max);
        }
        let number = text.strip_suffix("/s").unwrap_or(text);
        let (digits, scale) = match number.as_bytes().last() {
            Some(b'K' | b'k') => (&number[..number.len() - 1], 1_000),
            Some(b'M') => (&number[..number.len() - 1], 1_000_000),
            _ => (number, 1),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let rate = digits.parse::<u32>().ok().filter(|_| is_number).and_then(|rate| rate.checked_mul(scale));
        rate.filter(|rate| (1..=RATE_MAX).contains(rate)).map(TickRate::PerSecond).ok_or_else(|| {
            ConfigError::value(format!(
                "'{text}' is not a rate: write e.g. 500, 10K/s, 2M/s (up to 100M/s), max"
            ))
        })
    }
}

impl fmt::Display for TickRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TickRate::Max => f.write_str("max"),
            TickRate::PerSecond(rate) if rate % 1_000_000 == 0 => write!(f, "{}M/s", rate / 1_000_000),
            TickRate::PerSecond(rate) if rate % 1_000 == 0 => write!(f, "{}K/s", rate / 1_000),
            TickRate::PerSecond(rate) => write!(f, "{rate}/s"),
        }
    }
}

/// Policy for a subscriber that reads more slowly than ticks come, once its lag exceeds half of the backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowClient {
    /// Drops the waiting ticks, reports their number, and continues with the newest tick.
    #[default]
    Drop,
    /// Of the waiting ticks, sends only the latest quote of each subscribed symbol. Reports the number of
    /// ticks omitted between these quotes.
    Sample,
    /// Reports the reason to the subscriber and disconnects it.
    Disconnect,
}

impl FromStr for SlowClient {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<SlowClient, ConfigError> {
        match text {
            "drop" => Ok(SlowClient::Drop),
            "sample" => Ok(SlowClient::Sample),
            "disconnect" => Ok(SlowClient::Disconnect),
            _ => {
                Err(ConfigError::value(format!("'{text}' is not a policy: write drop, sample or disconnect")))
            }
        }
    }
}

impl fmt::Display for SlowClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SlowClient::Drop => "drop",
            SlowClient::Sample => "sample",
            SlowClient::Disconnect => "disconnect",
        })
    }
}

/// Frequencies of injected faults, which are random and independent for each subscriber. Zero disables a
/// fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSettings {
    /// Share of ticks at which a gap begins: one to five ticks are omitted without a report.
    pub gaps: Fraction,
    /// Share of ticks in which one bit is flipped.
    pub corrupt: Fraction,
    /// Mean time between two stalls. During a stall nothing is sent, not even heartbeats.
    pub stall: Nanos,
    /// Mean time between two disconnections, which come without an End of Stream message.
    pub disconnect: Nanos,
}

impl FaultSettings {
    /// Returns true if all faults are disabled.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == FaultSettings::default()
    }
}

impl FromStr for FaultSettings {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<FaultSettings, ConfigError> {
        let mut faults = FaultSettings::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let time = |text: &str| text.parse::<tickpath_config::Duration>().map(|time| time.0);
            match part.split_once('=') {
                Some(("gaps", share)) => faults.gaps = share.parse()?,
                Some(("corrupt", share)) => faults.corrupt = share.parse()?,
                Some(("stall", mean)) => faults.stall = time(mean)?,
                Some(("disconnect", mean)) => faults.disconnect = time(mean)?,
                _ => {
                    return Err(ConfigError::value(format!(
                        "'{part}' is not a fault: write e.g. gaps=0.01%,corrupt=0.01%,stall=5s,disconnect=30s"
                    )));
                }
            }
        }
        Ok(faults)
    }
}

/// The settings of a [`TicksServer`](super::TicksServer).
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Address to listen on; port 0 selects a free port.
    pub listen: SocketAddrV4,
    /// Configuration of the generated market.
    pub market: TickGeneratorConfig,
    /// Target rate of generated ticks.
    pub rate: TickRate,
    /// Threads that generate ticks; with 1 the server generates them itself.
    pub threads: usize,
    /// Maximum number of subscribers, and also of connections without a subscription.
    pub clients_max: usize,
    /// Capacity of the backlog in ticks; rounded up to a power of two of at least 2^12.
    pub backlog: usize,
    /// Policy for subscribers that are too far behind.
    pub slow_client: SlowClient,
    /// Interval between writes to a subscriber, so that one write has many ticks; 0: due ticks are written at
    /// once. Ticks are written earlier once [`fill_bytes`](ServeSettings::fill_bytes) of them wait.
    pub coalesce: Nanos,
    /// Bytes of waiting ticks that trigger a write before [`coalesce`](ServeSettings::coalesce) is over.
    pub fill_bytes: usize,
    /// Interval of heartbeats, 1 to 65,535 milliseconds.
    pub heartbeat_ms: u16,
    /// Bytes that the kernel buffers for a subscriber that does not read; `None`: the system's default.
    pub send_buffer: Option<usize>,
    /// Fault injection.
    pub faults: FaultSettings,
    /// Seed of the random faults.
    pub seed: u64,
}

impl ServeSettings {
    /// Creates settings for a server of `market` on a free port of the loopback interface, otherwise with the
    /// defaults of `tickpath ticks serve`.
    #[must_use]
    pub fn new(market: TickGeneratorConfig) -> ServeSettings {
        ServeSettings {
            listen: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            seed: market.seed,
            market,
            rate: TickRate::PerSecond(10_000),
            threads: 1,
            clients_max: 1_100,
            backlog: 1 << 15,
            slow_client: SlowClient::Drop,
            coalesce: Nanos::ZERO,
            fill_bytes: 56 << 10,
            heartbeat_ms: 1_000,
            send_buffer: Some(256 << 10),
            faults: FaultSettings::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_a_second() {
        for (text, rate) in [
            ("1", TickRate::PerSecond(1)),
            ("10K/s", TickRate::PerSecond(10_000)),
            ("10k", TickRate::PerSecond(10_000)),
            ("100M/s", TickRate::PerSecond(100_000_000)),
            ("1500/s", TickRate::PerSecond(1_500)),
            ("max", TickRate::Max),
        ] {
            assert_eq!(text.parse::<TickRate>().unwrap(), rate, "{text}");
            assert_eq!(rate.to_string().parse::<TickRate>().unwrap(), rate);
        }
        for text in ["", "0", "K", "-1", "+1", "1.5M", "101M/s", "99999999999", "fast", "1/m"] {
            assert!(text.parse::<TickRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn faults_are_a_list() {
        let faults: FaultSettings = "gaps=0.1%,corrupt=5ppm,stall=5s,disconnect=1m".parse().unwrap();
        assert_eq!((faults.gaps.ppm, faults.corrupt.ppm), (1_000, 5));
        assert_eq!((faults.stall, faults.disconnect), (Nanos::from_secs(5), Nanos::from_secs(60)));
        assert!("".parse::<FaultSettings>().unwrap().is_none());
        for text in ["gaps", "gaps=", "gaps=5", "losses=1%", "stall=1%"] {
            assert!(text.parse::<FaultSettings>().is_err(), "{text}");
        }
    }

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in [SlowClient::Drop, SlowClient::Sample, SlowClient::Disconnect] {
            assert_eq!(policy.to_string().parse::<SlowClient>().unwrap(), policy);
        }
        assert!("wait".parse::<SlowClient>().is_err());
    }
}
