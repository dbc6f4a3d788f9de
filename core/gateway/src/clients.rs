//! Who is connected, and what each may see.

use tickpath_gateway_protocol::RateLimitsUpdate;

use super::download::Download;

/// Clients at a time at most.
pub const CLIENTS_MAX: usize = 1_024;

/// A user, as the core needs it.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its name in labels.
    pub tag: String,
    /// The accounts that it has, one bit each.
    pub accounts: u64,
    /// Its single orders may be counted by market maker protection.
    pub has_mmp: bool,
    /// The group of market maker protection that it quotes in; empty where it does not quote.
    pub mmp_group: super::news::GroupText,
    /// The highest order id that it has used.
    pub order_id_max: u64,
    /// What it was told to be left of its limit of requests.
    pub told_left: RateLimitsUpdate,
    /// Since when orders of an earlier life wait for a client of it that trades; none where there is one, or no order.
    pub absent_since: Option<tickpath_types::Nanos>,
}

impl User {
    /// Whether it has the account at this place.
    #[must_use]
    pub const fn has(&self, account: u16) -> bool {
        account < 64 && self.accounts >> account & 1 == 1
    }
}

/// A client that is connected.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its number, as the door has it.
    pub number: u32,
    /// Whose it is.
    pub user: u16,
    /// What it has not been told yet.
    pub download: Download,
    /// It may send orders, and wants to.
    pub may_trade: bool,
    /// It wants the market data anew.
    pub wants_again: bool,
    /// Its market data are told anew not before this time.
    pub again_at: tickpath_types::Nanos,
}

/// All clients that are connected.
#[derive(Debug, Default)]
pub struct Clients {
    list: Vec<Client>,
}

impl Clients {
    /// Room for all that may be there.
    #[must_use]
    pub fn new() -> Clients {
        Clients { list: Vec::with_capacity(CLIENTS_MAX) }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Client] {
        &self.list
    }

    /// All of them.
    pub fn all_mut(&mut self) -> &mut [Client] {
        &mut self.list
    }

    /// A client came.
    pub fn join(&mut self, client: Client) {
        self.leave(client.number);
        self.list.push(client);
    }

    /// A client is gone.
    pub fn leave(&mut self, number: u32) -> Option<Client> {
        let place = self.list.iter().position(|client| client.number == number)?;
        Some(self.list.swap_remove(place))
    }

    /// The client of a number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Client> {
        self.list.iter().find(|client| client.number == number)
    }

    /// The client of a number.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Client> {
        self.list.iter_mut().find(|client| client.number == number)
    }
}
