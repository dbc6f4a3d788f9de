//! `tickpath config`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tickpath_agent::Host;
use tickpath_config::{
    ConfigError, FileKind, HIDDEN_PASSWORD, Instruments, absolute, beside, print_stdout, to_toml,
};
use tickpath_demo::DemoConfig;
use tickpath_exchange::{ExchangeConfig, VenueSettings};
use tickpath_feedhandler::live::LiveConfig;
use tickpath_trader::{TraderConfig, TraderSettings, strategy_by_name};
use tickpath_types::Instrument;

use crate::program;

mod class;
#[cfg(feature = "full")]
pub mod other;

/// Check a configuration file, or show it with its defaults
#[derive(clap::Subcommand)]
pub enum Args {
    /// Check whether a file is usable, and report its kind
    Check {
        /// A venue's, trader's, feed handler's, shell's, gateway's, demo's or instrument file
        file: PathBuf,
    },
    /// Print a file with every default filled in, as a usable file
    ///
    /// Cores are assigned to threads as on this host. A password written out in the file is not shown.
    Show {
        /// A venue's, trader's, feed handler's, shell's, gateway's, demo's or instrument file
        file: PathBuf,
    },
    /// Write the files of an exchange for a class: the venue's, and one for the shell of each student
    ///
    /// Each student is a user with a random password. Only you can read the files.
    Class(class::Args),
}

/// A configuration file of a known kind: loaded, checked, with every default filled in.
pub trait ConfigFile {
    /// Returns the name of the kind, such as "venue configuration".
    fn kind(&self) -> &'static str;

    /// Returns TOML that loads as the same configuration.
    fn to_toml(&self) -> String;

    /// Checks keys and passwords as the program that uses this file does at its start. Those of venues and
    /// traders were checked when the file was loaded.
    ///
    /// # Errors
    /// A key or password that cannot be used.
    fn check_secrets(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Function that loads a configuration file of a separate program; it returns `None` for any other file.
pub type ReadOther = fn(&Path, &toml::Table) -> anyhow::Result<Option<Box<dyn ConfigFile>>>;

/// Checks or prints a file. If its kind needs a separate program and `read_other` is `None`, runs the program
/// `tickpath-config`, which supports all kinds.
///
/// # Errors
/// The reason why the file is not usable.
pub fn run(args: &Args, read_other: Option<ReadOther>) -> anyhow::Result<ExitCode> {
    let file = match args {
        Args::Check { file } | Args::Show { file } => file,
        Args::Class(args) => return class::run(args),
    };
    let table: toml::Table = tickpath_config::load(file)?;
    let other = match read_other {
        Some(read) => read(file, &table)?,
        None if is_of_separate_program(&table) => {
            return Err(program::run_separate(
                "config",
                "full",
                "this kind of file",
                program::arguments_of_command(),
            ));
        }
        None => None,
    };
    let config = other.map_or_else(|| read(file, &table), Ok)?;
    if let Args::Check { .. } = args {
        config.check_secrets()?;
        print_stdout(format_args!("{}: a valid {}", file.display(), config.kind()))?;
    } else {
        print_stdout(text_of(config.as_ref(), file).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text_of(config: &dyn ConfigFile, file: &Path) -> String {
    let toml = config.to_toml();
    let hidden = if toml.contains(HIDDEN_PASSWORD) {
        format!("# Secrets in the file are not shown; {HIDDEN_PASSWORD} replaces them.\n")
    } else {
        String::new()
    };
    format!("# The {} {} with every default filled in.\n{hidden}\n{toml}", config.kind(), file.display())
}

fn is_of_separate_program(table: &toml::Table) -> bool {
    match FileKind::of(table) {
        Some(FileKind::Gateway | FileKind::Shell) => true,
        Some(FileKind::Venue) => table.contains_key("deribit"),
        _ => false,
    }
}

impl ConfigFile for ExchangeConfig {
    fn kind(&self) -> &'static str {
        "venue configuration"
    }

    fn to_toml(&self) -> String {
        to_toml(self)
    }
}

impl ConfigFile for TraderConfig {
    fn kind(&self) -> &'static str {
        "trader configuration"
    }

    fn to_toml(&self) -> String {
        to_toml(self)
    }
}

impl ConfigFile for DemoConfig {
    fn kind(&self) -> &'static str {
        "demo configuration"
    }

    fn to_toml(&self) -> String {
        to_toml(self)
    }
}

struct FeedFile {
    config: LiveConfig,
    file: PathBuf,
}

impl ConfigFile for FeedFile {
    fn kind(&self) -> &'static str {
        "feed handler configuration"
    }

    fn to_toml(&self) -> String {
        to_toml(&self.config)
    }

    fn check_secrets(&self) -> anyhow::Result<()> {
        Ok(self.config.check_secrets(&self.file)?)
    }
}

struct InstrumentFile {
    list: Instruments,
    definitions: Vec<Instrument>,
}

impl ConfigFile for InstrumentFile {
    fn kind(&self) -> &'static str {
        "instrument file"
    }

    fn to_toml(&self) -> String {
        to_toml(&self.list) + &prices_allowed(&self.definitions)
    }
}

/// Loads a file. If no key identifies its kind, it is a demo's file, in which every key has a default.
fn read(file: &Path, table: &toml::Table) -> anyhow::Result<Box<dyn ConfigFile>> {
    let cores = Host::describe().cores_allowed;
    Ok(match FileKind::of(table) {
        Some(FileKind::Trader) => {
            let settings = TraderSettings::load(file)?;
            strategy_by_name(&settings)?;
            let mut config = settings.config.filled(&cores);
            config.instruments = with_absolute_path(file, &config.instruments)?;
            Box::new(config)
        }
        Some(FileKind::Feed) => {
            let mut config = LiveConfig::load(file)?;
            for named in [&mut config.admin.socket, &mut config.outputs.folder].into_iter().flatten() {
                *named = absolute(named);
            }
            Box::new(FeedFile { config, file: file.to_owned() })
        }
        Some(FileKind::Venue) => Box::new(venue(file)?.0),
        Some(FileKind::Instruments) => {
            let definitions = Instruments::load(file)?;
            Box::new(InstrumentFile { list: tickpath_config::load(file)?, definitions })
        }
        _ => Box::new(DemoConfig::load(Some(file))?.filled(&cores)?),
    })
}

/// Loads a venue's file, and makes the paths in it absolute.
fn venue(file: &Path) -> anyhow::Result<(ExchangeConfig, VenueSettings)> {
    let (config, settings) = ExchangeConfig::load(file)?;
    let mut config = config.filled(&Host::describe().cores_allowed);
    config.instruments = with_absolute_path(file, &config.instruments)?;
    config.journal.folder = absolute(&config.journal.folder);
    if let Some(admin) = &mut config.admin {
        admin.socket = absolute(&admin.socket);
    }
    Ok((config, settings))
}

/// Returns the absolute path of `named`, a path relative to the folder of the configuration `file`.
fn with_absolute_path(file: &Path, named: &Path) -> Result<PathBuf, ConfigError> {
    let path = beside(file, named);
    std::fs::canonicalize(&path).map_err(|source| ConfigError::Read { path, source })
}

/// Formats the price range of each instrument's collar, as TOML comments.
fn prices_allowed(list: &[Instrument]) -> String {
    let mut text = format!("\n# {:>4}  {:<8} {:>12} {:>12}\n", "id", "symbol", "collar low", "collar high");
    for instrument in list {
        let Instrument { id, symbol, collar_low, collar_high, .. } = instrument;
        text += &format!("# {id:>4}  {symbol:<8} {collar_low:>12} {collar_high:>12}\n");
    }
    text
}
