//! The commands of `tickpath`, and what its programs share.
//!
//! `tickpath` itself has the commands that a market on this machine needs. The others are programs beside it, so that
//! TLS, Parquet and Deribit's dialect are compiled only for who uses them; `tickpath NAME` runs `tickpath-NAME`.

// They panic once the reader has gone: `say`, `tell` and `Console` of `tickpath-config` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[expect(
    missing_docs,
    reason = "public for the programs of this package alone; the help is the documentation"
)]
pub mod commands;
mod description;
pub mod program;

/// Of every program that uses this library: lets agents' duty cycles be watched for allocations; costs an addition for each.
#[global_allocator]
static ALLOCATOR: tickpath_agent::CountingAllocator = tickpath_agent::CountingAllocator;
