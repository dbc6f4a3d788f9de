//! The trader: strategy engine and order gateway, run with any `Strategy`.

mod config;
mod engine;
mod gateway;
mod order_entry;

pub use config::{LimitsConfig, MarketDataSection, OrderEntrySection, TraderConfig, TraderSettings};
pub use engine::{EngineAgent, EngineIdentity, EngineRings, KillSwitch, TraderSnapshot, TraderView};
pub use gateway::{GatewayCounters, GatewaySettings, OrderGateway};
pub use order_entry::{OrderEntry, OrderEntryError};
