//! `tickpath backtest` as a separate program.

use std::process::ExitCode;

use tickpath::commands::backtest;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath backtest", backtest::run)
}
