//! Seeded generators: background order flow, ticks, and whole days of market data.
//!
//! A seed gives the same output on every machine: days and background flow are computed in integers, ticks in
//! plain IEEE 754 operations. No generator performs IO or reads a clock: the caller decides when to send.
//!
//! ```
//! use tickpath_flowgen::{BackgroundFlow, BackgroundFlowConfig};
//! use tickpath_types::{Instrument, InstrumentId, Nanos, Price, Symbol};
//!
//! let symbol = Symbol::new("ALPHA").unwrap();
//! let alpha = Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000));
//! let mut flow = BackgroundFlow::new(BackgroundFlowConfig { seed: 7, ..BackgroundFlowConfig::default() }, &[alpha]).unwrap();
//! let second = Nanos::from_secs(1);
//! let orders = std::iter::from_fn(|| flow.poll(second)).filter(|action| action.request.is_new_order());
//! assert!(orders.count() > 19_000);
//! ```

mod background_flow;
mod error;
mod itch_day;
mod live;
mod schedule;
mod ticks;
mod xdp_day;

pub use background_flow::{BackgroundFlow, BackgroundFlowConfig, FlowRequest};
pub use error::ConfigError;
pub use itch_day::{ItchDay, ItchDayConfig, ItchDayCounters};
pub use ticks::{
    MarketRegime, Tick, TickGenerator, TickGeneratorConfig, TickKind, TickStamps, TickSymbol, Ticks,
    tick_symbol_name,
};
pub use xdp_day::{XdpDay, XdpDayConfig, XdpDayCounters, XdpPacket, append_record, pcap_header, xdp_group};
