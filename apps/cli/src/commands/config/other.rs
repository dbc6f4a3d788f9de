//! Configuration files that only a separate program supports: those of gateways, shells and Deribit venues.

use std::path::{Path, PathBuf};

use tickpath_config::{FileKind, absolute, to_toml};
use tickpath_deribit_front::DeribitConfig;
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::process::check_secrets;
use tickpath_shell::ShellConfig;

use super::{ConfigFile, venue, with_absolute_path};

/// Loads a gateway's file, a shell's, or a venue's with a Deribit front; `None` for another file.
///
/// # Errors
/// The reason why the file is not usable.
pub fn read(file: &Path, table: &toml::Table) -> anyhow::Result<Option<Box<dyn ConfigFile>>> {
    Ok(match FileKind::of(table) {
        Some(FileKind::Gateway) => {
            let mut config = GatewayConfig::load(file)?;
            // Make the paths in the configuration absolute, so that the shown file is valid in any folder.
            let sockets = [&mut config.client_listen_address, &mut config.admin_listen_address];
            for socket in sockets.into_iter().flatten() {
                *socket = absolute(socket);
            }
            Some(Box::new(GatewayFile { config, file: file.to_owned() }))
        }
        Some(FileKind::Shell) => {
            let mut config = ShellConfig::load(file)?;
            config.check()?;
            if let Some(native) = &mut config.native {
                native.instruments = with_absolute_path(file, &native.instruments)?;
            }
            Some(Box::new(ShellFile { config, file: file.to_owned() }))
        }
        Some(FileKind::Venue) if table.contains_key("deribit") => {
            let (mut config, settings) = venue(file)?;
            if let (Some(table), Some(deribit)) = (&mut config.deribit, DeribitConfig::load(file)?) {
                deribit.settings(&settings, Some(file)).map_err(|error| error.in_file(file))?;
                // Fill in the defaults of the front's table, and remove its secrets.
                *table = toml::Table::try_from(deribit)?;
            }
            Some(Box::new(config))
        }
        _ => None,
    })
}

struct GatewayFile {
    config: GatewayConfig,
    file: PathBuf,
}

impl ConfigFile for GatewayFile {
    fn kind(&self) -> &'static str {
        "gateway configuration"
    }

    fn to_toml(&self) -> String {
        to_toml(&self.config)
    }

    fn check_secrets(&self) -> anyhow::Result<()> {
        check_secrets(&self.config, Some(&self.file))?;
        Ok(())
    }
}

struct ShellFile {
    config: ShellConfig,
    file: PathBuf,
}

impl ConfigFile for ShellFile {
    fn kind(&self) -> &'static str {
        "shell configuration"
    }

    fn to_toml(&self) -> String {
        to_toml(&self.config)
    }

    fn check_secrets(&self) -> anyhow::Result<()> {
        self.config.key(Some(&self.file), None)?;
        Ok(())
    }
}
