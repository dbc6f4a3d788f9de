//! Compares data structures for order-by-order books: each decodes and applies the same day of ITCH 5.0.
//!
//! `cargo bench -p tickpath-flowgen --bench structures` generates the standard days in memory and runs each
//! through every structure. For each structure it prints nanoseconds per message (median of interleaved
//! rounds, minimum and maximum), instructions, mispredicted branches and cache misses per message (callgrind
//! on a smaller day), and peak memory. Every structure must give the same digest eight times in the day
//! (levels, quantities, order counts, the queue of every level), and the same best prices after each message.
//!
//! `-- --help` lists the options and the running time. In `cargo test --benches`, or with `--test`, the bench
//! runs tiny days and one with odd prices, and checks only that all structures equal the reference model.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench reads the clock and files")]

mod books;
mod callgrind;
mod catalogue;
mod day;
mod dense_ladder;
mod driver;
mod host;
mod id_map;
mod measure;
mod odd_day;
mod options;
mod ordered_sets;
mod queues;
mod red_black;
mod report;

use std::process::ExitCode;

use tickpath_flowgen::ItchDayConfig;
use tickpath_test_support::allocations::{CountingAllocator, HeldBytes};

use day::Day;
use options::{Command, Options};
use report::{Conditions, DaySummary, Measured, Table};

#[global_allocator]
static ALLOCATOR: CountingAllocator<HeldBytes> = CountingAllocator::new();

/// Divisors by which a quick run and a test scale down the standard days.
const QUICK_DIVISOR: u32 = 10;
const TEST_DIVISOR: u32 = 1_000;

fn main() -> ExitCode {
    let result = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            let names: Vec<_> = catalogue::ALL.iter().map(|entry| entry.name).collect();
            println!("{}{}", options::HELP, names.join(", "));
            Ok(())
        }
        Ok(Command::Test) => test(),
        Ok(Command::Count { structure, file, limits }) => callgrind::run_counted(&structure, &file, limits),
        Ok(Command::Measure(options)) => measure_all(&options),
        Err(error) => Err(format!("{error}\n{}", options::USAGE)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("structures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<(), String> {
    options::check();
    let standard = STANDARD_DAYS.map(|(name, config)| Day::make(name, config.scaled(TEST_DIVISOR)));
    for day in standard.iter().chain([&odd_day::make()]) {
        let expected = measure::digests(&catalogue::REFERENCE, day);
        for entry in catalogue::ALL {
            measure::verify(entry, day, &expected);
        }
    }
    println!("structures: {} books are equal to their reference model", catalogue::ALL.len());
    Ok(())
}

const STANDARD_DAYS: [(&str, ItchDayConfig); 2] =
    [("itch-500", ItchDayConfig::itch_500()), ("itch-8000", ItchDayConfig::itch_8000())];

fn measure_all(options: &Options) -> Result<(), String> {
    let entries = catalogue::chosen(&options.structures)?;
    let conditions = Conditions::at_start(options);
    println!("{}", conditions.to_text());
    let mut tables = Vec::new();
    for (name, config) in STANDARD_DAYS {
        if options.is_chosen(name) {
            tables.push(measure_day(options, name, config, &entries));
            println!("\n{}", tables[tables.len() - 1].to_text());
            // Written after each day, because the next one takes long and may be interrupted.
            write(options.json.as_deref(), &report::to_json(&conditions, &tables))?;
            write(options.markdown.as_deref(), &report::to_markdown(&conditions, &tables))?;
        }
    }
    Ok(())
}

fn measure_day(
    options: &Options,
    name: &'static str,
    config: ItchDayConfig,
    entries: &[&'static catalogue::Entry],
) -> Table {
    let divisor = if options.is_quick { QUICK_DIVISOR } else { 1 };
    let day = Day::make(name, config.scaled(divisor));
    println!("\n{}", day.describe());
    let (end, bytes_max) = measure::verify_all(entries, &day);
    let nanos = measure::rounds(entries, &day, options.rounds, end);
    let summary = DaySummary::from(&day);
    drop(day);
    let (counts, counted) = callgrind::count_all(entries, name, config, options.is_quick);
    Table::new(&summary, entries, Measured { digest: end.books, nanos, bytes_max, counts, counted })
}

fn write(path: Option<&str>, text: &str) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text).map_err(|error| format!("cannot write {path}: {error}"))?;
    eprintln!("structures: wrote {path}");
    Ok(())
}
