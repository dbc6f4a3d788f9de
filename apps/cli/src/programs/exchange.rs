//! `tickpath exchange` with the Deribit front.

use std::process::ExitCode;

use tickpath::commands::exchange::{self, deribit};

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath exchange", |args| exchange::run(args, Some(deribit::open)))
}
