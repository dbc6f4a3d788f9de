//! The venue's Deribit front: clients of Deribit's API v2 trade on the same matching engine as all others.
//!
//! The front runs beside the venue on a separate thread. It sends its clients' orders to the order server
//! through a [`FrontPort`](tickpath_exchange::FrontPort), and reads all outcomes and the market from the log.
//! Orders, trades, positions and balances therefore follow from the log, and are the same after a restart.
//!
//! [`Front`] has no sockets and no clock; [`DeribitServer`] gives it both.

mod account;
mod config;
mod connection;
mod day_stats;
mod fault;
mod faults;
mod fix_door;
mod front;
mod json;
mod labels;
mod ledger;
mod line_file;
mod listing;
mod market;
mod marks;
mod options;
mod order;
mod pending;
mod rebase;
mod record;
mod scope;
mod server;
mod side_files;
mod trusted_file;

pub use config::{
    AccountConfig, AccountSettings, BeyondBand, ConnectionsPerAddress, DeribitConfig, FaultsConfig,
    FrontSettings, IndexConfig, KeyConfig, KeySettings, KindConfig, ListingConfig, TickStepConfig, TlsConfig,
};
pub use connection::{Frame, Transport};
pub use faults::{FaultKind, FaultPlan, FaultSwitch, Outage};
pub use fix_door::FixCounters;
pub use front::{Front, FrontCounters, HttpCall};
pub use labels::Labels;
pub use listing::Listing;
pub use rebase::{LogStart, Rebased};
pub use record::RecordError;
pub use scope::{Access, Scope};
pub use server::{DeribitServer, DeribitThread, DeribitView, DoorCounters, LabelStore};
pub use side_files::SideFileError;
