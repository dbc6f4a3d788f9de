//! The commands of `tickpath`, and the code shared by its programs.
//!
//! `tickpath` has the commands for a market on this machine. The other commands are separate programs, so
//! that TLS, Parquet and the Deribit API are compiled only for those who need them; `tickpath NAME` runs
//! `tickpath-NAME`.

// `println!` and `eprintln!` panic once the reader has disconnected; `print_stdout`, `print_stderr` and
// `Console` of `tickpath-config` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[expect(
    missing_docs,
    reason = "public for the programs of this package alone; the help is the documentation"
)]
pub mod commands;
mod description;
pub mod program;

/// Allocator of every program that uses this library. It counts allocations, at the cost of an addition.
#[global_allocator]
static ALLOCATOR: tickpath_agent::CountingAllocator = tickpath_agent::CountingAllocator;
