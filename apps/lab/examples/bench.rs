//! Prints the table of the host: `cargo run --release -p tickpath-lab --example bench [-- ROW...]`.

use tickpath_lab::{BenchOptions, bench};

fn main() -> anyhow::Result<()> {
    let filter = std::env::args().skip(1).collect();
    println!("{}", bench(&BenchOptions { filter, show_progress: true, ..BenchOptions::default() })?);
    Ok(())
}
