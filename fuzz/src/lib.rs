//! Properties of every decoder for any bytes, one function each: it never panics, it decodes encoded messages
//! unchanged, and accepted bytes encode to the same bytes.
//!
//! A function takes raw bytes and panics when a property fails. The targets in `targets/` run the functions
//! under libFuzzer (`cargo +nightly fuzz run --fuzz-dir fuzz/targets itch`); `tests/smoke.rs` runs them on
//! mutations of [`seeds`] with any compiler (`cargo test -p tickpath-fuzz`).
//!
//! ```
//! tickpath_fuzz::itch(b"no message");
//! for seed in tickpath_fuzz::seeds::itch() {
//!     tickpath_fuzz::itch(&seed);
//! }
//! ```

mod capture;
mod deribit;
mod fix;
mod fix_door;
mod front;
mod gateway;
mod gateway_log;
mod iex;
mod inputs;
mod journal;
pub mod mutation;
mod nasdaq;
mod nyse;
mod recovery;
pub mod seeds;
mod shm;
mod ticks;
mod web;

pub use capture::{compressed, dbn, itch_blocks, lobster, lobster_book, packets, replay_file};
pub use deribit::{deribit_inbound, deribit_request};
pub use fix::{fix, fix_session};
pub use fix_door::fix_door;
pub use front::deribit_front;
pub use gateway::gateway_frame;
pub use gateway_log::gateway_log;
pub use iex::{iex_books, iex_recovery, iex_segment};
pub use inputs::inputs;
pub use journal::{command, journal};
pub use nasdaq::{binaryfile, itch, itch_books, mold, ouch_inbound, ouch_outbound, soup_client, soup_server};
pub use nyse::xdp;
pub use recovery::{drop_copy, glimpse};
pub use shm::segment;
pub use ticks::{ticks, ticks_requests};
pub use web::web;
