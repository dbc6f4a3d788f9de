//! The door of drop copies.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use tickpath_config::ConfigError;
use tickpath_venue::UserSettings;

use crate::drop_copy::DropCopySettings;
use crate::journal::JournalSettings;

/// Connections at a time at most, of some 50 KiB each.
const CONNECTIONS_MAX: usize = 256;
/// Messages kept at most, of some hundred bytes each.
const RETAINED_MAX: usize = 1 << 24;

/// What users are told, told again to those who watch over them; needs a journal.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropCopyConfig {
    /// Where to listen.
    pub address: SocketAddrV4,
    /// Readers at a time; further logins are refused.
    pub max_connections: usize,
    /// Messages of all users together that are kept in memory; older ones are read from the log again.
    pub retained_messages: usize,
}

impl Default for DropCopyConfig {
    fn default() -> Self {
        DropCopyConfig {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_404),
            max_connections: 8,
            retained_messages: 1 << 16,
        }
    }
}

impl DropCopyConfig {
    /// Adds the door to the journal that it reads.
    pub(super) fn add_to(
        &self,
        journal: Option<&mut JournalSettings>,
        users: &[UserSettings],
    ) -> Result<(), ConfigError> {
        let Some(journal) = journal else {
            return Err(ConfigError::value("drop_copy is read from the journal, and journal.policy is off"));
        };
        for (name, value, max) in [
            ("drop_copy.max_connections", self.max_connections, CONNECTIONS_MAX),
            ("drop_copy.retained_messages", self.retained_messages, RETAINED_MAX),
        ] {
            if !(1..=max).contains(&value) {
                return Err(ConfigError::value(format!("{name} must be 1 to {max}: {value} is not")));
            }
        }
        for user in users.iter().filter(|user| user.copies_of.is_some()) {
            if !user.ports.drop_copy {
                return Err(ConfigError::value(format!(
                    "user '{}' has copies_of and may not log in for them: add \"drop_copy\" to its ports",
                    user.name
                )));
            }
        }
        let is_known = |name: &String| users.iter().any(|user| user.name.eq_ignore_ascii_case(name));
        for user in users {
            if let Some(name) = user.copies_of.iter().flatten().find(|name| !is_known(name)) {
                return Err(ConfigError::value(format!("user '{}': there is no user '{name}'", user.name)));
            }
        }
        journal.drop_copy = Some(DropCopySettings {
            address: self.address,
            max_connections: self.max_connections,
            retained_messages: self.retained_messages,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::InstrumentTable;

    use crate::config::ExchangeConfig;

    fn settings(text: &str) -> Result<Option<crate::JournalSettings>, tickpath_config::ConfigError> {
        let text = format!("instruments = 'i.toml'\n{text}");
        let config: ExchangeConfig = tickpath_config::parse("venue.toml", &text)?;
        config.settings(InstrumentTable::new(&[]), None).map(|settings| settings.journal)
    }

    const USERS: &str = "order_entry.test_users = ['ANNA']
        [[order_entry.user]]
        name = 'DESK'
        password = 'x'
        ports = ['drop_copy']";

    #[test]
    fn the_door_is_there_when_it_is_named_and_at_the_next_port() {
        assert_eq!(settings(USERS).unwrap().unwrap().drop_copy, None);
        let journal = settings(&format!("{USERS}\ncopies_of = ['anna']\n[drop_copy]")).unwrap().unwrap();
        let door = journal.drop_copy.unwrap();
        assert_eq!(door.address.to_string(), "127.0.0.1:26404");
        assert_eq!((door.max_connections, door.retained_messages), (8, 1 << 16));
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        for (text, says) in [
            ("[journal]\npolicy = 'off'\n[drop_copy]", "journal.policy is off"),
            ("[drop_copy]\nmax_connections = 0", "drop_copy.max_connections must be 1 to 256"),
            ("[drop_copy]\nmax_connections = 257", "must be 1 to 256"),
            (
                "[drop_copy]\nretained_messages = 16777217",
                "drop_copy.retained_messages must be 1 to 16777216",
            ),
            ("copies_of = ['BERT']\n[drop_copy]", "no user 'BERT'"),
            (
                "[[order_entry.user]]\nname = 'X'\npassword = 'x'\ncopies_of = []\n[drop_copy]",
                "user 'X' has copies_of and may not log in for them",
            ),
        ] {
            let error = settings(&format!("{USERS}\n{text}")).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
