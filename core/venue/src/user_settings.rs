//! The configured settings of users.

use tickpath_nasdaq::soupbintcp::Username;
use tickpath_types::{InstrumentId, Nanos, SelfTradePrevention};

use crate::password::Password;
use crate::user_limits::UserLimits;

/// The ports at which a user may log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserPorts {
    /// Order entry.
    pub order_entry: bool,
    /// Drop copies.
    pub drop_copy: bool,
    /// The Deribit front. Excludes the order entry port, because UserRefNums of the two would collide.
    pub deribit: bool,
}

impl Default for UserPorts {
    /// Order entry only.
    fn default() -> Self {
        UserPorts { order_entry: true, drop_copy: false, deribit: false }
    }
}

/// The configured settings of a user.
#[derive(Clone, Debug)]
pub struct UserSettings {
    /// The name, of at most 6 characters.
    pub name: String,
    /// The password, of at most 10 characters, or its hash.
    pub password: Password,
    /// The ports at which the user may log in.
    pub ports: UserPorts,
    /// Instruments that the user may trade; all when `None`.
    pub instruments: Option<Vec<InstrumentId>>,
    /// The user's limits.
    pub limits: UserLimits,
    /// Treatment of an incoming order that would trade with another order of the user.
    pub self_trade_prevention: SelfTradePrevention,
    /// Time from disconnect until open orders are cancelled unless the user reconnects; `None` keeps them.
    pub cancel_on_disconnect: Option<Nanos>,
    /// Names of the users whose drop copies this user receives; all users when `None`.
    pub copies_of: Option<Vec<String>>,
}

impl UserSettings {
    /// A user of the order entry port that may trade all instruments, with only the engine's limits.
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

/// Checks that users' names have 1 to 6 ASCII characters and differ, ignoring case.
///
/// # Errors
/// A description of the mistake and of the necessary change, in one line.
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

/// Checks that only users of the drop copy port have `copies_of`, and that it names existing users.
///
/// # Errors
/// A description of the mistake and of the necessary change, in one line.
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
