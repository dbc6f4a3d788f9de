//! Connected clients, and the permissions of users.

use tickpath_gateway_protocol::RateLimitsUpdate;

use super::download::Download;

/// Maximum number of connected clients.
pub const CLIENTS_MAX: usize = 1_024;

/// A user's state in the core.
#[derive(Clone, Debug)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// Name of the user in labels.
    pub tag: String,
    /// Accounts of the user, one bit each.
    pub accounts: u64,
    /// Whether market maker protection may count the user's single orders.
    pub has_mmp: bool,
    /// Market maker protection group for the user's quotes; empty if the user does not quote.
    pub mmp_group: super::news::GroupText,
    /// Highest order id that the user has used.
    pub order_id_max: u64,
    /// Remaining requests as last sent to the user's clients.
    pub told_left: RateLimitsUpdate,
    /// Time since when an earlier instance's orders wait for a trading client of the user; none if none wait.
    pub absent_since: Option<tickpath_types::Nanos>,
}

impl User {
    /// Whether the user has the account with this index.
    #[must_use]
    pub const fn has(&self, account: u16) -> bool {
        account < 64 && self.accounts >> account & 1 == 1
    }
}

/// A connected client.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Number of the client, assigned by the event sink.
    pub number: u32,
    /// Index of the client's user.
    pub user: u16,
    /// Progress of the client's download.
    pub download: Download,
    /// The client may send orders and wants to.
    pub may_trade: bool,
    /// The client has requested another market data download.
    pub wants_again: bool,
    /// Earliest start of the next market data download.
    pub again_at: tickpath_types::Nanos,
}

/// All connected clients.
#[derive(Debug, Default)]
pub struct Clients {
    list: Vec<Client>,
}

impl Clients {
    /// An empty list with capacity for [`CLIENTS_MAX`].
    #[must_use]
    pub fn new() -> Clients {
        Clients { list: Vec::with_capacity(CLIENTS_MAX) }
    }

    /// All clients.
    #[must_use]
    pub fn all(&self) -> &[Client] {
        &self.list
    }

    /// All clients, mutable.
    pub fn all_mut(&mut self) -> &mut [Client] {
        &mut self.list
    }

    /// Adds a client that has connected.
    pub fn join(&mut self, client: Client) {
        self.leave(client.number);
        self.list.push(client);
    }

    /// Removes a client that has disconnected.
    pub fn leave(&mut self, number: u32) -> Option<Client> {
        let place = self.list.iter().position(|client| client.number == number)?;
        Some(self.list.swap_remove(place))
    }

    /// Returns the client with this number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Client> {
        self.list.iter().find(|client| client.number == number)
    }

    /// Returns the client with this number, mutable.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Client> {
        self.list.iter_mut().find(|client| client.number == number)
    }
}
