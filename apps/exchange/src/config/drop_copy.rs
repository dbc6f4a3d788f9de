//! The configuration of the drop copy endpoint.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_config::{ConfigError, in_range};
use tickpath_venue::{UserSettings, check_watched};

use super::Result;
use crate::drop_copy::DropCopySettings;
use crate::journal::JournalSettings;

/// Maximum number of simultaneous connections, at about 50 KiB each.
const CONNECTIONS_MAX: usize = 256;
/// Maximum number of messages retained, at some hundred bytes each.
const RETAINED_MAX: usize = 1 << 24;

impl Default for DropCopySettings {
    fn default() -> Self {
        DropCopySettings {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_404),
            max_connections: 8,
            retained_messages: 1 << 16,
        }
    }
}

impl DropCopySettings {
    /// Checks these settings, and adds them to those of the journal that the endpoint reads.
    pub(super) fn add_to(&self, journal: Option<&mut JournalSettings>, users: &[UserSettings]) -> Result<()> {
        let Some(journal) = journal else {
            bail!("drop_copy reads the journal, and journal.policy is off: choose another policy");
        };
        in_range("drop_copy.max_connections", self.max_connections, 1..=CONNECTIONS_MAX)?;
        in_range("drop_copy.retained_messages", self.retained_messages, 1..=RETAINED_MAX)?;
        check_watched(users).map_err(ConfigError::value)?;
        journal.drop_copy = Some(self.clone());
        Ok(())
    }
}
