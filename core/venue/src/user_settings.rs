//! Users as configured.

use tickpath_nasdaq::soupbintcp::Username;
use tickpath_types::{InstrumentId, Nanos, SelfTradePrevention};

use crate::password::Password;
use crate::user_limits::UserLimits;

/// The ports where a user may log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserPorts {
    /// Order entry.
    pub order_entry: bool,
    /// Drop copies: copies of the messages to users.
    pub drop_copy: bool,
    /// The Deribit front, and no other order entry port: their order numbers would collide.
    pub deribit: bool,
}

impl Default for UserPorts {
    /// Order entry alone.
    fn default() -> Self {
        UserPorts { order_entry: true, drop_copy: false, deribit: false }
    }
}

/// A user as configured.
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
    /// Treatment of an order of the user that would trade with another order of the user.
    pub self_trade_prevention: SelfTradePrevention,
    /// Time from disconnect to the cancel of open orders, unless the user reconnects; they stay if `None`.
    pub cancel_on_disconnect: Option<Nanos>,
    /// Names of the users whose drop copies this one receives; all users when `None`.
    pub copies_of: Option<Vec<String>>,
}

impl UserSettings {
    /// A user that may trade everything, limited only by the engine.
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

/// Checks the names of all users.
///
/// # Errors
/// One line that describes the mistake and the necessary change.
pub fn check_names(users: &[UserSettings]) -> Result<(), String> {
    for (place, UserSettings { name, .. }) in users.iter().enumerate() {
        if Username::new(name).is_none() || name.is_empty() {
            return Err(format!("user '{name}' must have 1 to 6 ASCII characters"));
        }
        if users[..place].iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
            return Err(format!("user '{name}' is named twice"));
        }
    }
    Ok(())
}

/// Checks the lists of users whose drop copies a user receives.
///
/// # Errors
/// One line that describes the mistake and the necessary change.
pub fn check_watched(users: &[UserSettings]) -> Result<(), String> {
    if let Some(user) = users.iter().find(|user| user.copies_of.is_some() && !user.ports.drop_copy) {
        return Err(format!(
            "user '{}' has copies_of and may not log in for them: add \"drop_copy\" to its ports",
            user.name
        ));
    }
    let is_known = |name: &String| users.iter().any(|user| user.name.eq_ignore_ascii_case(name));
    for user in users {
        if let Some(name) = user.copies_of.iter().flatten().find(|name| !is_known(name)) {
            return Err(format!("user '{}': there is no user '{name}'", user.name));
        }
    }
    Ok(())
}
