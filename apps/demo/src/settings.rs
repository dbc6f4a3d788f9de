//! What a demonstration is told.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tickpath_config::{ConfigError, Fraction, IdleConfig, InstrumentConfig, Instruments, Placement};
use tickpath_feedhandler::LineReader;
use tickpath_monitor::Mode;
use tickpath_trader::LimitsConfig;
use tickpath_types::{Instrument, Nanos};

pub use crate::flow::Speed;

/// Instruments of a demonstration that names no others.
const INSTRUMENTS: &str = include_str!("../../../configs/instruments.toml");

/// The configuration file of a demonstration; flags override it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DemoConfig {
    /// New orders of the crowd a second.
    pub rate: Option<u64>,
    /// Seed of the crowd and of the losses.
    pub seed: Option<u64>,
    /// How long the market trades, in seconds.
    pub seconds: Option<u64>,
    /// Packets lost on each line.
    pub loss: Option<Fraction>,
    /// The instruments; those built in when there are none.
    #[serde(rename = "instrument")]
    pub instruments: Vec<InstrumentConfig>,
    /// Limits of the maker.
    pub maker: Option<LimitsConfig>,
    /// Limits of the taker.
    pub taker: Option<LimitsConfig>,
    /// How market data is read: `auto`, `ring` or `sockets`.
    pub reader: LineReader,
    /// Which agents run on which threads.
    pub placement: Option<Placement>,
}

/// A demonstration, ready to run.
#[derive(Clone, Debug)]
pub struct DemoSettings {
    /// New orders of the crowd a second; cancels, reductions and replacements come in addition.
    pub rate: u64,
    /// Seed of the crowd and of the losses.
    pub seed: u64,
    /// How long the market trades; until it is stopped when `None`.
    pub duration: Option<Nanos>,
    /// Packets lost on each line, parts in a million.
    pub loss_ppm: u32,
    /// Share of these losses that strikes both lines, parts in a million.
    pub common_loss_ppm: u32,
    /// A recorded order flow that drives the venue in place of the crowd.
    pub flow: Option<PathBuf>,
    /// How fast it is played.
    pub speed: Speed,
    /// What is traded; a recorded flow brings its own.
    pub instruments: Vec<Instrument>,
    /// Limits of the maker in each instrument.
    pub maker: LimitsConfig,
    /// Limits of the taker in each instrument.
    pub taker: LimitsConfig,
    /// Which agents run on which threads; by the number of cores when `None`.
    pub placement: Option<Placement>,
    /// How market data is read.
    pub reader: LineReader,
    /// How the market is shown while it runs.
    pub view: ViewMode,
}

/// How the market is shown while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMode {
    /// Not at all.
    Silent,
    /// As the monitor does.
    Monitor(Mode),
}

impl DemoSettings {
    /// The settings of a configuration file, or the default ones.
    ///
    /// # Errors
    /// [`ConfigError`] when the file is wrong.
    pub fn load(file: Option<&Path>) -> Result<DemoSettings, ConfigError> {
        let config = file.map(tickpath_config::load::<DemoConfig>).transpose()?.unwrap_or_default();
        let listed = if config.instruments.is_empty() {
            tickpath_config::parse("the built-in instruments", INSTRUMENTS)?
        } else {
            Instruments { instruments: config.instruments }
        };
        let settings = DemoSettings {
            rate: config.rate.unwrap_or(20_000),
            seed: config.seed.unwrap_or(1),
            duration: Some(Nanos::from_secs(config.seconds.unwrap_or(20))),
            loss_ppm: config.loss.map_or(1_000, |loss| loss.ppm),
            common_loss_ppm: 100_000,
            flow: None,
            speed: Speed::Max,
            instruments: listed.definitions()?,
            maker: config.maker.unwrap_or_else(LimitsConfig::maker),
            taker: config.taker.unwrap_or_else(LimitsConfig::taker),
            placement: config.placement,
            reader: config.reader,
            view: ViewMode::Monitor(Mode::Auto),
        };
        if settings.rate == 0 {
            return Err(ConfigError::value("rate must be at least 1 order a second"));
        }
        Ok(settings)
    }

    /// Address of everything: nothing of a demonstration leaves the machine.
    pub(crate) const INTERFACE: Ipv4Addr = Ipv4Addr::LOCALHOST;
}

/// Threads that suit a host of so many cores; `source` is the crowd's or the flow's agent, `traders` the
/// engines and gateways in turn.
pub(crate) fn default_placement(cores: usize, source: &str, traders: &[&str]) -> Placement {
    // The source writes to TCP most of all: on the traders' core its writes would drive their code out of the caches.
    let venue = ["order-server", "matcher", "order-server", "publisher", source];
    let trader: Vec<&str> = std::iter::once("feed-handler").chain(traders.iter().copied()).collect();
    match cores {
        // The observer turns over whatever cache it runs beside, which costs an order more than an answer.
        0..4 => Placement::new(IdleConfig::Yield, cores, &[("venue", &venue), ("trader", &trader)])
            .observed_beside("venue"),
        4..8 => Placement::new(
            IdleConfig::Yield,
            cores,
            &[
                ("venue", &["order-server", "matcher"]),
                ("publisher", &["publisher"]),
                ("trader", &trader),
                ("source", &[source]),
            ],
        )
        .observed_beside("source"),
        _ => {
            let (engines, gateways): (Vec<&str>, Vec<&str>) =
                traders.iter().partition(|role| !role.ends_with("-gateway"));
            Placement::new(
                IdleConfig::Spin,
                cores,
                &[
                    ("order-server", &["order-server"]),
                    ("matcher", &["matcher"]),
                    ("publisher", &["publisher"]),
                    ("feed-handler", &["feed-handler"]),
                    ("engines", &engines),
                    ("gateways", &gateways),
                    ("source", &[source]),
                ],
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_instruments_trade() {
        let settings = DemoSettings::load(None).unwrap();
        assert_eq!(settings.instruments.len(), 8);
        assert_eq!((settings.rate, settings.loss_ppm), (20_000, 1_000));
    }

    #[test]
    fn every_agent_is_placed_on_any_host() {
        let traders = ["maker", "maker-gateway", "taker", "taker-gateway"];
        for cores in 1..=16 {
            let placement = default_placement(cores, "crowd", &traders);
            let placed: Vec<&String> = placement.threads.iter().flat_map(|thread| &thread.agents).collect();
            for role in
                traders.iter().chain(&["crowd", "order-server", "matcher", "publisher", "feed-handler"])
            {
                assert!(placed.iter().any(|placed| placed == role), "{role} on {cores} cores");
            }
            let pinned = placement.threads.iter().all(|thread| thread.core.is_some());
            assert_eq!(pinned, cores >= placement.threads.len());
        }
    }
}
