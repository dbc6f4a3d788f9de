//! `tickpath config`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tickpath_config::{ConfigError, Instruments, say};
use tickpath_demo::DemoSettings;
use tickpath_exchange::ExchangeConfig;
use tickpath_trader::TraderSettings;

/// Check a configuration file, or show what it comes to
#[derive(clap::Subcommand)]
pub enum Args {
    /// Say whether a file can be used, and as what
    Check {
        /// A venue's, trader's, demo's or instrument file
        file: PathBuf,
    },
    /// Show a file with every default filled in
    Show {
        /// A venue's, trader's, demo's or instrument file
        file: PathBuf,
    },
}

/// A file that was read as what it is.
enum Config {
    Exchange(Box<ExchangeConfig>),
    Trader(Box<TraderSettings>),
    Demo(Box<DemoSettings>),
    Instruments(Vec<tickpath_types::Instrument>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Check { file } => say(format_args!("{}: a valid {}", file.display(), read(file)?.kind())),
        Args::Show { file } => match read(file)? {
            Config::Exchange(config) => say(format_args!("{config:#?}")),
            Config::Trader(settings) => say(format_args!("{:#?}", settings.config)),
            Config::Demo(settings) => say(format_args!("{settings:#?}")),
            Config::Instruments(list) => print_instruments(&list),
        },
    }
    Ok(ExitCode::SUCCESS)
}

impl Config {
    fn kind(&self) -> &'static str {
        match self {
            Config::Exchange(_) => "venue configuration",
            Config::Trader(_) => "trader configuration",
            Config::Demo(_) => "demo configuration",
            Config::Instruments(_) => "instrument file",
        }
    }
}

/// Tells the kinds of files apart by keys that only one of them has.
fn read(file: &Path) -> anyhow::Result<Config> {
    let table: toml::Table = tickpath_config::load(file)?;
    let has = |key: &str| table.contains_key(key);
    let logs_in =
        table.get("order_entry").is_some_and(|door| door.get("user").is_some_and(toml::Value::is_str));
    let read: Result<Config, ConfigError> = if logs_in || has("strategy") {
        TraderSettings::load(file).map(|settings| Config::Trader(Box::new(settings)))
    } else if has("instruments") {
        ExchangeConfig::load(file).map(|(config, _)| Config::Exchange(Box::new(config)))
    } else if has("instrument") && table.len() == 1 {
        Instruments::load(file).map(Config::Instruments)
    } else {
        DemoSettings::load(Some(file)).map(|settings| Config::Demo(Box::new(settings)))
    };
    Ok(read?)
}

fn print_instruments(list: &[tickpath_types::Instrument]) {
    say(format_args!(
        "{:>4}  {:<8} {:>12} {:>10} {:>6} {:>8} {:>12} {:>12}",
        "id", "symbol", "reference", "tick", "lot", "largest", "lowest", "highest"
    ));
    for instrument in list {
        say(format_args!(
            "{:>4}  {:<8} {:>12} {:>10} {:>6} {:>8} {:>12} {:>12}",
            instrument.id,
            instrument.symbol,
            instrument.reference_price,
            instrument.tick_size,
            instrument.lot_size,
            instrument.max_qty,
            instrument.collar_low,
            instrument.collar_high,
        ));
    }
}
