//! Flags that override the configuration, from the command line or a flag file.

use std::net::SocketAddrV4;
use std::path::PathBuf;

use tickpath_config::Duration;
use tickpath_gateway::config::{FixUri, GatewayConfig, Overrides, metrics_address};

use crate::program::MissingArgument;

#[derive(clap::Args)]
pub struct Flags {
    /// Configuration file, such as configs/gateway.toml
    #[arg(long, visible_alias = "config_file", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// File of flags, one --name=value per line; the command line takes precedence
    #[arg(long, value_name = "FILE", global = true)]
    flagfile: Option<PathBuf>,
    /// The gateway's name
    #[arg(id = "gateway_name", long = "name", value_name = "NAME", global = true)]
    name: Option<String>,
    /// Unix socket for clients
    #[arg(long, visible_alias = "client_listen_address", value_name = "PATH")]
    client_listen_address: Option<PathBuf>,
    /// Address of the metrics endpoint: 127.0.0.1:PORT, or PORT
    #[arg(
        long, visible_alias = "metrics_listen_address", value_name = "ADDRESS",
        value_parser = metrics_address
    )]
    metrics_listen_address: Option<SocketAddrV4>,
    /// WebSocket URL of the venue
    #[arg(long, visible_alias = "ws_uri", value_name = "URL")]
    ws_uri: Option<String>,
    /// FIX endpoint of the venue, tcp://host:port or tls://host:port
    #[arg(long, visible_alias = "fix_uri", value_name = "URL")]
    fix_uri: Option<FixUri>,
    /// Loop sleep time: 0ns spins, less than 50us yields, longer times sleep
    #[arg(long, visible_alias = "loop_sleep", value_name = "TIME")]
    loop_sleep: Option<Duration>,
    /// Interval at which timers are checked
    #[arg(long, visible_alias = "loop_timer_freq", value_name = "TIME")]
    loop_timer_freq: Option<Duration>,
    /// Core of the gateway's thread
    #[arg(long, visible_alias = "loop_cpu_affinity", value_name = "CORE")]
    loop_cpu_affinity: Option<usize>,
    /// Check and acknowledge orders without sending them to the venue
    #[arg(long, visible_alias = "dry_run")]
    dry_run: bool,
}

impl Flags {
    /// Returns the name in `--name`.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns whether `--config` was passed, or `--flagfile`, whose file may name a configuration.
    pub const fn has_config(&self) -> bool {
        self.config.is_some() || self.flagfile.is_some()
    }

    /// Returns a flag that was passed and is valid only when a gateway is started, if any.
    pub fn of_a_start(&self) -> Option<&'static str> {
        let all = [
            (self.client_listen_address.is_some(), "--client-listen-address"),
            (self.metrics_listen_address.is_some(), "--metrics-listen-address"),
            (self.ws_uri.is_some(), "--ws-uri"),
            (self.fix_uri.is_some(), "--fix-uri"),
            (self.loop_sleep.is_some(), "--loop-sleep"),
            (self.loop_timer_freq.is_some(), "--loop-timer-freq"),
            (self.loop_cpu_affinity.is_some(), "--loop-cpu-affinity"),
            (self.dry_run, "--dry-run"),
        ];
        all.into_iter().find(|(is_set, _)| *is_set).map(|(_, flag)| flag)
    }

    /// Returns a flag that was passed and selects the gateway, if any.
    pub fn of_a_place(&self) -> Option<&'static str> {
        let all = [
            (self.config.is_some(), "--config"),
            (self.flagfile.is_some(), "--flagfile"),
            (self.name.is_some(), "--name"),
        ];
        all.into_iter().find(|(is_set, _)| *is_set).map(|(_, flag)| flag)
    }

    /// Loads the configuration and applies the flags to it. Returns it and the path of its file.
    pub fn config(&self) -> anyhow::Result<(GatewayConfig, PathBuf)> {
        let file = match &self.flagfile {
            Some(path) => Overrides::load(path)?,
            None => Overrides::default(),
        };
        let overrides = self.overrides().or(file);
        let path = overrides.config_file.clone();
        let path = path.ok_or(MissingArgument(
            "name the gateway's configuration: --config FILE, such as configs/gateway.toml",
        ))?;
        Ok((GatewayConfig::load_with(&path, &overrides)?, path))
    }

    fn overrides(&self) -> Overrides {
        Overrides {
            config_file: self.config.clone(),
            name: self.name.clone(),
            client_listen_address: self.client_listen_address.clone(),
            metrics_listen_address: self.metrics_listen_address,
            ws_uri: self.ws_uri.clone(),
            fix_uri: self.fix_uri.clone(),
            loop_sleep: self.loop_sleep,
            loop_timer_freq: self.loop_timer_freq,
            loop_cpu_affinity: self.loop_cpu_affinity,
            dry_run: self.dry_run,
        }
    }
}
