//! Seeded generators: background order flow, ticks, and whole days of market data.
//!
//! A seed gives the same output on every machine: prices and quantities are computed in integers, without any
//! mathematics library. Nothing here performs IO or reads a clock; the caller follows the schedule.
//!
//! ```
//! use tickpath_flowgen::{Crowd, CrowdConfig};
//! use tickpath_types::{Instrument, InstrumentId, Nanos, Price, Symbol};
//!
//! let symbol = Symbol::new("ALPHA").unwrap();
//! let alpha = Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000));
//! let mut crowd = Crowd::new(CrowdConfig { seed: 7, ..CrowdConfig::default() }, &[alpha]).unwrap();
//! let second = Nanos::from_secs(1);
//! let orders = std::iter::from_fn(|| crowd.poll(second)).filter(|action| action.request.is_new_order());
//! assert!(orders.count() > 19_000);
//! ```

mod crowd;
mod error;
mod itch_day;
mod live;
mod schedule;
mod ticks;
mod xdp_day;

pub use crowd::{Crowd, CrowdAction, CrowdConfig};
pub use error::ConfigError;
pub use itch_day::{ItchDay, ItchDayConfig, ItchDayCounters};
pub use ticks::{
    MarketMood, Tick, TickGenerator, TickGeneratorConfig, TickKind, TickStamps, TickSymbol, Ticks,
    tick_symbol_name,
};
pub use xdp_day::{XdpDay, XdpDayConfig, XdpDayCounters, XdpPacket, append_record, pcap_header, xdp_group};
