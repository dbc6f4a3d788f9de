//! `tickpath config`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tickpath_agent::Host;
use tickpath_config::{ConfigError, HIDDEN_PASSWORD, Instruments, absolute, beside, say, to_toml};
use tickpath_demo::DemoConfig;
use tickpath_deribit_front::DeribitConfig;
use tickpath_exchange::ExchangeConfig;
use tickpath_feedhandler::live::LiveConfig;
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::process::check_secrets;
use tickpath_shell::ShellConfig;
use tickpath_trader::{TraderConfig, TraderSettings, strategy_by_name};
use tickpath_types::Instrument;

/// Check a configuration file, or show what it comes to
#[derive(clap::Subcommand)]
pub enum Args {
    /// Say whether a file can be used, and as what
    Check {
        /// A venue's, trader's, feed handler's, shell's, gateway's, demo's or instrument file
        file: PathBuf,
    },
    /// Show a file with every default filled in, as a file that can be edited and used
    ///
    /// Threads are placed as on this host. A password that stands in the file is not shown.
    Show {
        /// A venue's, trader's, feed handler's, shell's, gateway's, demo's or instrument file
        file: PathBuf,
    },
}

/// A file that was read as what it is, checked, with every default filled in.
enum Config {
    Exchange(Box<ExchangeConfig>),
    Trader(Box<TraderConfig>),
    Feed(Box<LiveConfig>),
    Shell(Box<ShellConfig>),
    Gateway(Box<GatewayConfig>),
    Demo(Box<DemoConfig>),
    Instruments(Instruments, Vec<Instrument>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Check { file } => {
            let config = read(file)?;
            config.check_secrets(file)?;
            say(format_args!("{}: a valid {}", file.display(), config.kind()))?;
        }
        Args::Show { file } => say(read(file)?.to_text(file).trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Config {
    fn kind(&self) -> &'static str {
        match self {
            Config::Exchange(_) => "venue configuration",
            Config::Trader(_) => "trader configuration",
            Config::Feed(_) => "feed handler configuration",
            Config::Shell(_) => "shell configuration",
            Config::Gateway(_) => "gateway configuration",
            Config::Demo(_) => "demo configuration",
            Config::Instruments(..) => "instrument file",
        }
    }

    /// Keys and passwords are looked for as at a start. Those of venues and traders are read with the file.
    fn check_secrets(&self, file: &Path) -> anyhow::Result<()> {
        match self {
            Config::Feed(config) => config.check_secrets(file)?,
            Config::Shell(config) => drop(config.key(Some(file), None)?),
            Config::Gateway(config) => drop(check_secrets(config, Some(file))?),
            Config::Exchange(_) | Config::Trader(_) | Config::Demo(_) | Config::Instruments(..) => {}
        }
        Ok(())
    }

    /// TOML that is read as the same configuration.
    fn to_text(&self, file: &Path) -> String {
        let toml = match self {
            Config::Exchange(config) => to_toml(config),
            Config::Trader(config) => to_toml(config),
            Config::Feed(config) => to_toml(config),
            Config::Shell(config) => to_toml(config),
            Config::Gateway(config) => to_toml(config),
            Config::Demo(config) => to_toml(config),
            Config::Instruments(list, definitions) => to_toml(list) + &prices_allowed(definitions),
        };
        let hidden = if toml.contains(HIDDEN_PASSWORD) {
            format!(
                "# A password that stands in the file is not shown: {HIDDEN_PASSWORD} stands in its place.\n"
            )
        } else {
            String::new()
        };
        format!("# The {} {} with every default filled in.\n{hidden}\n{toml}", self.kind(), file.display())
    }
}

/// Tells the kinds of files apart by keys that only one of them has.
fn read(file: &Path) -> anyhow::Result<Config> {
    let table: toml::Table = tickpath_config::load(file)?;
    let has = |key: &str| table.contains_key(key);
    let logs_in =
        table.get("order_entry").is_some_and(|door| door.get("user").is_some_and(toml::Value::is_str));
    let cores = Host::describe().cores_allowed;
    Ok(if logs_in || has("strategy") {
        let settings = TraderSettings::load(file)?;
        strategy_by_name(&settings)?;
        let mut config = settings.config.filled(&cores);
        config.instruments = from_anywhere(file, &config.instruments)?;
        Config::Trader(Box::new(config))
    } else if has("channel") || has("outputs") {
        let mut config = LiveConfig::load(file)?;
        for named in [&mut config.admin.socket, &mut config.outputs.folder].into_iter().flatten() {
            *named = absolute(named);
        }
        Config::Feed(Box::new(config))
    } else if has("users") || has("accounts") {
        Config::Gateway(Box::new(gateway(file)?))
    } else if has("url") || has("client_id") {
        let mut config = ShellConfig::load(file)?;
        config.check()?;
        if let Some(native) = &mut config.native {
            native.instruments = from_anywhere(file, &native.instruments)?;
        }
        Config::Shell(Box::new(config))
    } else if has("instruments") {
        let (config, settings) = ExchangeConfig::load(file)?;
        let mut config = config.filled(&cores);
        if let (Some(table), Some(deribit)) = (&mut config.deribit, DeribitConfig::load(file)?) {
            deribit.settings(&settings, Some(file)).map_err(|error| error.in_file(file))?;
            // With its defaults, and without its secrets.
            *table = toml::Table::try_from(deribit)?;
        }
        config.instruments = from_anywhere(file, &config.instruments)?;
        config.journal.folder = absolute(&config.journal.folder);
        if let Some(admin) = &mut config.admin {
            admin.socket = absolute(&admin.socket);
        }
        Config::Exchange(Box::new(config))
    } else if has("instrument") && table.len() == 1 {
        let definitions = Instruments::load(file)?;
        Config::Instruments(tickpath_config::load(file)?, definitions)
    } else {
        Config::Demo(Box::new(DemoConfig::load(Some(file))?.filled(&cores)?))
    })
}

/// With its paths as they read from any folder.
fn gateway(file: &Path) -> anyhow::Result<GatewayConfig> {
    let mut config = GatewayConfig::load(file)?;
    let sockets = [&mut config.client_listen_address, &mut config.admin_listen_address];
    for socket in sockets.into_iter().flatten() {
        *socket = absolute(socket);
    }
    Ok(config)
}

/// A path that a file names relative to itself, as it reads from any folder.
fn from_anywhere(file: &Path, named: &Path) -> Result<PathBuf, ConfigError> {
    let path = beside(file, named);
    std::fs::canonicalize(&path).map_err(|source| ConfigError::Read { path, source })
}

/// What the collars come to, as comments.
fn prices_allowed(list: &[Instrument]) -> String {
    let mut text = format!("\n# {:>4}  {:<8} {:>12} {:>12}\n", "id", "symbol", "lowest", "highest");
    for instrument in list {
        let Instrument { id, symbol, collar_low, collar_high, .. } = instrument;
        text += &format!("# {id:>4}  {symbol:<8} {collar_low:>12} {collar_high:>12}\n");
    }
    text
}
