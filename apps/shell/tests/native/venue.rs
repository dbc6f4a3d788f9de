//! A native venue on its own threads, and its shells.

use std::net::SocketAddrV4;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tickpath_deribit::session::Key;
use tickpath_exchange::Endpoints;
use tickpath_net::free_multicast_group;
use tickpath_shell::{Interrupt, Link, Shell, ShellConfig};
use tickpath_test_venue::{RunningVenue, configs};

/// Trading users, one of them without the drop copy port, and one who reads the copies of all.
const USERS: &str = "
[[order_entry.user]]
name = 'ANNA'
password = 'test'
ports = ['order_entry', 'drop_copy']
copies_of = ['ANNA']
[[order_entry.user]]
name = 'BERT'
password = 'test'
ports = ['order_entry', 'drop_copy']
[[order_entry.user]]
name = 'CARL'
password = 'test'
[[order_entry.user]]
name = 'DESK'
password = 'test'
ports = ['drop_copy']
";

/// A running venue.
pub struct Running {
    venue: RunningVenue,
    pub endpoints: Endpoints,
    folder: PathBuf,
}

impl Running {
    /// Starts a venue at free addresses that continues the log in a folder, if there is one.
    pub fn start(folder: &Path) -> Running {
        let path = folder.join("venue.toml");
        let group = || free_multicast_group().unwrap();
        let text = format!(
            "instruments = '{}'\n[order_entry]\naddress = '127.0.0.1:0'\n{USERS}\n[market_data]\nline_a = '{}'\n\
             line_b = '{}'\nretransmission = '127.0.0.1:0'\nheartbeat = '100ms'\n[market_data.snapshots]\nglimpse = '127.0.0.1:0'\n\
             group = '{}'\n[journal]\npolicy = 'group'\nfolder = 'journal'\n[drop_copy]\naddress = '127.0.0.1:0'\n",
            configs().join("instruments.toml").display(),
            group(),
            group(),
            group()
        );
        std::fs::write(&path, text).unwrap();
        // The file contains passwords.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let venue = RunningVenue::from_file(&path);
        Running { endpoints: venue.endpoints, venue, folder: folder.to_owned() }
    }

    pub fn stop(mut self) {
        self.venue.stop();
    }

    /// A shell's configuration for an order entry port; `native` adds or overrides settings.
    fn text(&self, orders: SocketAddrV4, native: &str) -> String {
        let Endpoints { line_a, line_b, retransmission, drop_copy, glimpse, snapshots, .. } = &self.endpoints;
        let copies = match native.contains("drop_copy = ") {
            true => String::new(),
            false => format!("drop_copy = '{}'", drop_copy.unwrap()),
        };
        format!(
            "url = 'ouch://{orders}'\nrequest_timeout = '30s'\n[native]\ninstruments = '{}'\n{copies}\n{native}\n\
             [native.market_data]\nline_a = '{line_a}'\nline_b = '{line_b}'\nretransmission = '{retransmission}'\n\
             glimpse = '{}'\nsnapshots = '{}'\nmax_orders = 4096\n",
            configs().join("instruments.toml").display(),
            glimpse.unwrap(),
            snapshots.unwrap()
        )
    }

    fn shell_from(&self, text: &str, key: Option<Key>, is_dry_run: bool) -> Shell {
        let config: ShellConfig = tickpath_config::parse("shell.toml", text).unwrap();
        let url = config.checked_venue().unwrap();
        let link = Link::open(config, url, key.clone()).unwrap();
        Shell::new(link, key, is_dry_run, Interrupt::default())
    }

    /// A shell for a user.
    pub fn shell(&self, user: &str) -> Shell {
        self.shell_of(Some(Key::new(user, "test")), "")
    }

    pub fn shell_of(&self, key: Option<Key>, native: &str) -> Shell {
        self.shell_from(&self.text(self.endpoints.order_entry, native), key, false)
    }

    pub fn shell_by(&self, orders: SocketAddrV4, user: &str, native: &str) -> Shell {
        self.shell_from(&self.text(orders, native), Some(Key::new(user, "test")), false)
    }

    pub fn shell_limited(&self, user: &str, limits: &str, is_dry_run: bool) -> Shell {
        let text = format!("{}{limits}\n", self.text(self.endpoints.order_entry, ""));
        self.shell_from(&text, Some(Key::new(user, "test")), is_dry_run)
    }

    /// Writes a configuration file, and returns its path and contents.
    pub fn config(&self, user: &str, native: &str) -> (PathBuf, ShellConfig) {
        let path = self.folder.join(format!("shell-{user}.toml"));
        std::fs::write(&path, self.text(self.endpoints.order_entry, native)).unwrap();
        let config = tickpath_config::load(&path).unwrap();
        (path, config)
    }

    pub fn key_file(&self, user: &str) -> PathBuf {
        let path = self.folder.join(format!("key-{user}.toml"));
        std::fs::write(&path, format!("client_id = '{user}'\nclient_secret = 'test'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}
