//! Persistence of the kill switch across restarts of the gateway.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tickpath_config::folder_of;

use crate::config::GatewayConfig;

/// A file that exists while the kill switch is on. Not for a duty cycle.
#[derive(Clone, Debug)]
pub struct KillMarker {
    path: PathBuf,
}

impl KillMarker {
    /// Marker of a gateway: `NAME.killed` in the [state folder](GatewayConfig::state_folder), which is
    /// created if missing. It does not depend on where the gateway is started.
    ///
    /// # Errors
    /// The system's error.
    pub fn of(config: &GatewayConfig) -> io::Result<KillMarker> {
        let folder = std::path::absolute(config.state_folder())?;
        fs::create_dir_all(&folder)?;
        Ok(KillMarker { path: folder.join(format!("{}.killed", config.name)) })
    }

    /// Marker next to a socket: `FILE.killed`.
    #[must_use]
    pub fn beside(socket: &Path) -> KillMarker {
        let mut path = socket.as_os_str().to_owned();
        path.push(".killed");
        KillMarker { path: path.into() }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the switch was last turned on. A file whose existence cannot be checked counts as present.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.path.try_exists().unwrap_or(true)
    }

    /// Records that the switch is on or off; returns once that is on disk.
    ///
    /// # Errors
    /// The system's error.
    pub fn set(&self, is_killed: bool) -> io::Result<()> {
        if is_killed {
            let file = fs::File::create(&self.path)?;
            file.sync_all()?;
        } else if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        fs::File::open(folder_of(&self.path))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_while_the_switch_is_on() {
        let place = tempfile::tempdir().unwrap();
        let marker = KillMarker::beside(&place.path().join("g.admin.sock"));
        assert!(!marker.is_there());
        for _ in 0..2 {
            marker.set(true).unwrap();
            assert!(marker.is_there() && marker.path().ends_with("g.admin.sock.killed"));
        }
        for _ in 0..2 {
            marker.set(false).unwrap();
            assert!(!marker.is_there());
        }
        assert!(KillMarker::beside(&place.path().join("none/x")).set(true).is_err());
    }

    #[test]
    fn it_lies_where_the_gateway_is_started_or_not() {
        let place = tempfile::tempdir().unwrap();
        let base = "[venue]\nws_uri = 'ws://127.0.0.1:9/'\n[accounts.A1]\nlogin = 'x'\nsecret = 'test'\n\
                    [users.u]\npassword = 'test'\n";
        let path = place.path().display();
        for (head, folder) in [
            (format!("state_folder = '{path}/a/b'\nclient_listen_address = '/nowhere/c.sock'\n"), "a/b"),
            (
                format!("admin_listen_address = '{path}/c/g.admin.sock'\nclient_listen_address = 'c.sock'\n"),
                "c",
            ),
            (format!("client_listen_address = '{path}/d/c.sock'\n"), "d"),
        ] {
            let config = GatewayConfig::parse("g.toml", &format!("name = 'g'\n{head}{base}")).unwrap();
            let marker = KillMarker::of(&config).unwrap();
            assert_eq!(marker.path(), place.path().join(folder).join("g.killed"));
            marker.set(true).unwrap();
        }
        let config = GatewayConfig::parse("g.toml", base).unwrap();
        assert!(config.state_folder().ends_with("tickpath"), "{:?}", config.state_folder());
    }
}
