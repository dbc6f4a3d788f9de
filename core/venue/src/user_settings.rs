//! Users as the configuration describes them.

use tickpath_types::{InstrumentId, Nanos, SelfTradePrevention};

use crate::password::Password;
use crate::user_limits::UserLimits;

/// The ports where a user may log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserPorts {
    /// Order entry.
    pub order_entry: bool,
    /// The executions of users, as copies.
    pub drop_copy: bool,
    /// The Deribit front, and no other port that takes orders: their numbers would be used twice.
    pub deribit: bool,
}

impl Default for UserPorts {
    /// Order entry alone.
    fn default() -> Self {
        UserPorts { order_entry: true, drop_copy: false, deribit: false }
    }
}

/// A user as the configuration describes it.
#[derive(Clone, Debug)]
pub struct UserSettings {
    /// At most 6 characters.
    pub name: String,
    /// At most 10 characters, or the hash of those.
    pub password: Password,
    /// The ports where the user may log in.
    pub ports: UserPorts,
    /// Instruments that the user may trade; all when `None`.
    pub instruments: Option<Vec<InstrumentId>>,
    /// The user's limits.
    pub limits: UserLimits,
    /// The treatment of an order of the user that would trade with another one of the user.
    pub self_trade_prevention: SelfTradePrevention,
    /// The time after the end of the connection until the open orders are cancelled, unless the user is back by then;
    /// they stay when `None`.
    pub cancel_on_disconnect: Option<Nanos>,
    /// Names of the users whose drop copies this one gets; those of all when `None`.
    pub copies_of: Option<Vec<String>>,
}

impl UserSettings {
    /// A user that may trade everything without limits beside the engine's.
    pub fn new(name: impl Into<String>, password: Password) -> UserSettings {
        UserSettings {
            name: name.into(),
            password,
            ports: UserPorts::default(),
            instruments: None,
            limits: UserLimits::default(),
            self_trade_prevention: SelfTradePrevention::None,
            cancel_on_disconnect: None,
            copies_of: None,
        }
    }
}
