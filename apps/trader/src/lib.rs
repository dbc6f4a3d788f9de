//! The trader: strategy engine and order gateway, run with any `Strategy`.
//!
//! A custom strategy needs no fork of Tickpath: implement [`Strategy`](tickpath_trading::Strategy) and call
//! [`run`] with a configuration file; the example `own-strategy` is such a program.
//!
//! ```text
//! lines A and B -> feed handler -> [updates] -> engine -> [requests] -> order gateway -> TCP
//!                                                 ^                        |
//!                                                 +------ [events] <-------+
//! ```
//!
//! [`FeedStream`] runs a strategy on the books of `tickpath feed`, without order entry.

mod agents;
mod config;
mod engine;
mod feed_stream;
mod gateway;
mod order_entry;
mod run;
mod system;

pub use agents::{AgentSettings, TraderAgents, TraderTracers};
pub use config::{
    LimitsTable, MarketDataSection, OrderEntrySection, RecoveryConfig, TraderConfig, TraderSettings,
};
pub use engine::{EngineAgent, EngineIdentity, EngineRings};
pub use feed_stream::FeedStream;
pub use gateway::{GatewaySettings, OrderGateway};
pub use order_entry::{OrderEntry, OrderEntryError};
pub use run::{run, run_with};
pub use system::{AgentWarning, BoxedStrategy, Trader, strategy_by_name, traces};
