//! The live view of a running market, on a terminal or as plain lines.
//!
//! The caller fills a [`MarketView`] two to four times a second and passes it to [`View::draw`]. The view
//! does not know the source of the figures and does not change the observed market. On a terminal it is a
//! full-screen dashboard that fits 80x24 and uses more space if available. Otherwise it is one plain line a
//! second, safe to pipe.
//!
//! ```
//! use std::time::Duration;
//! use tickpath_monitor::{MarketView, Rates, plain_line};
//!
//! let view = MarketView {
//!     elapsed: Duration::from_secs(12),
//!     planned: Some(Duration::from_secs(60)),
//!     rates: Rates { orders: 12_345.0, ..Rates::default() },
//!     ..MarketView::default()
//! };
//! assert!(plain_line(&view).starts_with("00:12 of 01:00 | orders 12,345/s"));
//! ```
//!
//! Other views use the same parts: [`format`](mod@format), [`palette`], [`table`], [`terminal`].
//!
//! A complete program is `examples/sample_view.rs`: `cargo run -p tickpath-monitor --example sample_view`.

mod data;
pub mod format;
mod layout;
pub mod palette;
mod panels;
mod plain;
mod screen;
mod state;
pub mod table;
pub mod terminal;
mod view;

pub use data::{
    AgentView, FeedLine, FeedView, History, InstrumentView, LatencyView, MarketView, ParticipantView, Rates,
    Sample, ThreadView,
};
pub use plain::plain_line;
pub use screen::{Screen, render};
pub use view::{Action, Mode, View};
