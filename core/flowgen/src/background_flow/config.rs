//! Settings of the background flow.

use tickpath_types::{Instrument, Nanos};

use crate::ConfigError;

/// Divisor of fractions that are in parts per million.
pub(super) const PPM: u64 = 1_000_000;
/// Units of the hidden price per tick.
pub(super) const SUBTICKS: i64 = 1_024;

/// Settings of a [`BackgroundFlow`](crate::BackgroundFlow).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundFlowConfig {
    /// Seed of the whole flow.
    pub seed: u64,
    /// New orders per second over all instruments, 1 to [`BackgroundFlowConfig::RATE_MAX`]. Other requests are extra.
    pub rate: u32,
    /// Order entry sessions that share the flow, 1 to [`BackgroundFlowConfig::SESSIONS_MAX`].
    pub sessions: u16,
    /// Maximum number of open orders per instrument, 16 to [`BackgroundFlowConfig::LIVE_ORDERS_MAX`]. About three
    /// quarters of it are open once the market has filled up.
    pub live_orders_max: u32,
    /// Fraction of new orders that trade at once (IOC orders that cross the hidden price), in parts per
    /// million.
    pub marketable_ppm: u32,
    /// Mean distance of resting orders from the hidden price, in ticks, except for one in 16 placed near it.
    pub depth_ticks: u32,
    /// Step of the hidden price per new order, up or down, in 1/1024 of a tick.
    pub step_subticks: u32,
    /// Minimum quantity of an order, in lots; orders have multiples of it.
    pub qty_lots: u32,
    /// Price levels per side that the opening builds.
    pub opening_levels: u32,
    /// Opening orders per price level.
    pub opening_orders_per_level: u32,
    /// Opening orders per second.
    pub opening_rate: u32,
}

impl Default for BackgroundFlowConfig {
    fn default() -> Self {
        BackgroundFlowConfig {
            seed: 1,
            rate: 20_000,
            sessions: 4,
            live_orders_max: 2_500,
            marketable_ppm: 80_000,
            depth_ticks: 8,
            step_subticks: 160,
            qty_lots: 100,
            opening_levels: 20,
            opening_orders_per_level: 10,
            opening_rate: 100_000,
        }
    }
}

impl BackgroundFlowConfig {
    /// Highest valid value of `rate` and of `opening_rate`.
    pub const RATE_MAX: u32 = 100_000_000;
    /// Maximum number of sessions.
    pub const SESSIONS_MAX: u16 = 1_024;
    /// Maximum number of open orders per instrument.
    pub const LIVE_ORDERS_MAX: u32 = 1 << 20;

    /// Number of opening orders for this many instruments.
    pub(super) fn opening_len(&self, instrument_count: usize) -> u64 {
        2 * instrument_count as u64
            * u64::from(self.opening_levels)
            * u64::from(self.opening_orders_per_level)
    }

    /// Due time of opening order `index`, since the start of the flow.
    pub(super) fn opening_due(&self, index: u64) -> Nanos {
        Nanos(index * 1_000_000_000 / u64::from(self.opening_rate))
    }

    pub(super) fn check(&self, instruments: &[Instrument]) -> Result<(), ConfigError> {
        let live_min = self.opening_len(1).max(16);
        for (name, value, min, max) in [
            ("rate", self.rate.into(), 1, BackgroundFlowConfig::RATE_MAX.into()),
            ("opening_rate", self.opening_rate.into(), 1, BackgroundFlowConfig::RATE_MAX.into()),
            ("sessions", self.sessions.into(), 1, BackgroundFlowConfig::SESSIONS_MAX.into()),
            (
                "live_orders_max",
                self.live_orders_max.into(),
                live_min,
                BackgroundFlowConfig::LIVE_ORDERS_MAX.into(),
            ),
            ("marketable_ppm", self.marketable_ppm.into(), 0, PPM),
            ("qty_lots", self.qty_lots.into(), 1, u32::MAX.into()),
            ("opening_levels", self.opening_levels.into(), 1, 1_000),
            ("opening_orders_per_level", self.opening_orders_per_level.into(), 1, 1_000),
        ] {
            ConfigError::unless((min..=max).contains(&value), || {
                format!("{name} is {value}: choose {min} to {max}")
            })?;
        }
        ConfigError::unless(!instruments.is_empty(), || {
            "no instruments: a crowd needs at least one".to_owned()
        })?;
        let narrow = instruments.iter().find(|instrument| !self.fits_opening(instrument));
        narrow.map_or(Ok(()), |Instrument { id, .. }| {
            Err(ConfigError(format!(
                "instrument {id} has no room for the opening: widen its collar, or choose fewer opening_levels"
            )))
        })
    }

    fn fits_opening(&self, instrument: &Instrument) -> bool {
        let tick = instrument.tick_size.0;
        if tick <= 0 || instrument.lot_size.is_zero() || instrument.max_qty < instrument.lot_size {
            return false;
        }
        let margin = i64::from(self.opening_levels) * tick;
        let reference = instrument.reference_price.0;
        instrument.collar_low.0.saturating_add(margin) <= reference
            && reference <= instrument.collar_high.0.saturating_sub(margin)
            && instrument.collar_high.0 < i64::MAX / SUBTICKS
            && instrument.collar_low.0 >= 0
    }
}
