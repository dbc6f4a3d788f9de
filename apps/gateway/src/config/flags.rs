//! Flags of the command line or of a flag file, which override the configuration.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tickpath_config::{ConfigError, Duration, IdleStrategy};
use tickpath_types::Nanos;

use super::{FixUri, GatewayConfig};

/// Maximum size of a flag file, in bytes.
const FLAG_FILE_MAX: u64 = 64 << 10;
/// Minimum sleep of a thread that parks.
const SLEEP_MIN: Nanos = Nanos(50_000);

/// Flags; each overrides a key of the configuration if present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--config_file`: the configuration file; only read from a flag file.
    pub config_file: Option<PathBuf>,
    /// `--name`: [`GatewayConfig::name`].
    pub name: Option<String>,
    /// `--client_listen_address`: [`GatewayConfig::client_listen_address`].
    pub client_listen_address: Option<PathBuf>,
    /// `--metrics_listen_address`: [`GatewayConfig::metrics_listen_address`]; a port alone is on 127.0.0.1.
    pub metrics_listen_address: Option<SocketAddrV4>,
    /// `--ws_uri`.
    pub ws_uri: Option<String>,
    /// `--fix_uri`.
    pub fix_uri: Option<FixUri>,
    /// `--loop_sleep`: `0ns` spins, less than 50 us yields, anything longer parks.
    pub loop_sleep: Option<Duration>,
    /// `--loop_timer_freq`.
    pub loop_timer_freq: Option<Duration>,
    /// `--loop_cpu_affinity`: a core number.
    pub loop_cpu_affinity: Option<usize>,
    /// `--dry_run`.
    pub dry_run: bool,
}

impl Overrides {
    /// Reads a flag file: `--name=value` lines; empty lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// [`ConfigError`] with the line that is not a flag, or when the file cannot be read.
    pub fn load(path: &Path) -> Result<Overrides, ConfigError> {
        let text = tickpath_config::read_text(path, FLAG_FILE_MAX)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Overrides::parse(&path.display().to_string(), &text)
    }

    /// Parses the flags of `text`; errors name it `file`.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] with the line that is not a flag.
    pub fn parse(file: &str, text: &str) -> Result<Overrides, ConfigError> {
        let mut overrides = Overrides::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            overrides.take(line).map_err(|message| ConfigError::Syntax {
                file: file.to_owned(),
                line: index + 1,
                message,
            })?;
        }
        Ok(overrides)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let flag = line.trim_start_matches('-');
        if flag.len() == line.len() {
            return Err(format!("{line:?} is no flag: write --name=value"));
        }
        let (name, value) =
            flag.split_once('=').map_or((flag, ""), |(name, value)| (name.trim(), value.trim()));
        let value = value.trim_matches('"');
        // The flags of the command line have dashes.
        let name = name.replace('-', "_");
        if value.is_empty() && name != "dry_run" {
            return Err(format!("--{name} has no value: write --{name}=value"));
        }
        match name.as_str() {
            "config" | "config_file" => self.config_file = Some(value.into()),
            "name" => self.name = Some(value.to_owned()),
            "client_listen_address" => self.client_listen_address = Some(value.into()),
            "metrics_listen_address" => self.metrics_listen_address = Some(metrics_address(value)?),
            "ws_uri" => self.ws_uri = Some(value.to_owned()),
            "fix_uri" => self.fix_uri = Some(value.parse()?),
            "loop_sleep" => self.loop_sleep = Some(parsed(value)?),
            "loop_timer_freq" => self.loop_timer_freq = Some(parsed(value)?),
            "loop_cpu_affinity" => self.loop_cpu_affinity = Some(core(value)?),
            "dry_run" => self.dry_run = matches!(value, "" | "true"),
            _ => return Err(format!("there is no flag --{name}: see tickpath gateway --help")),
        }
        Ok(())
    }

    /// Returns these flags, completed by those of `others`.
    #[must_use]
    pub fn or(self, others: Overrides) -> Overrides {
        Overrides {
            config_file: self.config_file.or(others.config_file),
            name: self.name.or(others.name),
            client_listen_address: self.client_listen_address.or(others.client_listen_address),
            metrics_listen_address: self.metrics_listen_address.or(others.metrics_listen_address),
            ws_uri: self.ws_uri.or(others.ws_uri),
            fix_uri: self.fix_uri.or(others.fix_uri),
            loop_sleep: self.loop_sleep.or(others.loop_sleep),
            loop_timer_freq: self.loop_timer_freq.or(others.loop_timer_freq),
            loop_cpu_affinity: self.loop_cpu_affinity.or(others.loop_cpu_affinity),
            dry_run: self.dry_run || others.dry_run,
        }
    }

    pub(super) fn apply(&self, config: &mut GatewayConfig) {
        fn set<T: Clone>(place: &mut T, flag: Option<&T>) {
            if let Some(value) = flag {
                place.clone_from(value);
            }
        }
        set(&mut config.name, self.name.as_ref());
        set(&mut config.venue.ws_uri, self.ws_uri.as_ref());
        set(&mut config.duty_cycle.timer_interval, self.loop_timer_freq.as_ref());
        if let Some(sleep) = self.loop_sleep {
            config.duty_cycle.idle = match sleep.0 {
                Nanos::ZERO => IdleStrategy::Spin,
                // No system wakes a thread up that soon, so it yields instead.
                short if short < SLEEP_MIN => IdleStrategy::Yield,
                _ => IdleStrategy::Park,
            };
        }
        config.client_listen_address =
            self.client_listen_address.clone().or(config.client_listen_address.take());
        config.metrics_listen_address = self.metrics_listen_address.or(config.metrics_listen_address);
        config.venue.fix_uri = self.fix_uri.clone().or(config.venue.fix_uri.take());
        config.duty_cycle.core = self.loop_cpu_affinity.or(config.duty_cycle.core);
        config.dry_run |= self.dry_run;
    }
}

fn parsed<T: FromStr<Err = ConfigError>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: ConfigError| error.to_string())
}

fn core(value: &str) -> Result<usize, String> {
    value.parse().map_err(|_| format!("{value:?} is no core: write its number"))
}

/// Parses an address for metrics: `address:port`, or a port alone, which is on 127.0.0.1.
///
/// # Errors
/// A message that says what to write.
pub fn metrics_address(value: &str) -> Result<SocketAddrV4, String> {
    let port = || value.parse().ok().map(|port| SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port));
    value
        .parse()
        .ok()
        .or_else(port)
        .ok_or_else(|| format!("{value:?} is no address for metrics: write 127.0.0.1:PORT, or PORT"))
}
