//! The registry of users, with each user's counters and limits, readable while the venue runs.

use std::ops::Index;
use std::sync::{Arc, OnceLock};

use tickpath_lockfree::Counter;
use tickpath_types::{InstrumentTable, Qty, UserName};

use crate::token_bucket::RateLimit;
use crate::user_limits::UserLimits;
use crate::user_settings::UserSettings;

/// A user cannot be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name must have 1 to 6 ASCII characters.
    #[error("user '{0}' must have 1 to 6 ASCII characters, without spaces around them")]
    Name(String),
    /// Another user has this name.
    #[error("there is a user '{0}' already: choose another name")]
    Taken(String),
    /// The session has its maximum number of users: begin another session.
    #[error("the session is limited to {0} users: begin another session by --new-session")]
    Full(usize),
}

/// The users in session order (1, 2, 3 ...). Clones are cheap and share one registry.
///
/// Users can be added up to a bound while other threads read; neither side waits. A user is registered before
/// a ring element or log record refers to it, so their readers find the user here.
#[derive(Clone, Debug, Default)]
pub struct UserRegistry {
    /// Users by index; entries after the last user are empty.
    places: Arc<[OnceLock<UserView>]>,
}

impl UserRegistry {
    /// A registry of these users, with capacity for `max` users in all.
    #[must_use]
    pub fn new(users: &[UserSettings], max: usize) -> UserRegistry {
        let first = users.iter().map(|user| OnceLock::from(UserView::new(user.clone())));
        let free_places = (users.len()..max).map(|_| OnceLock::new());
        UserRegistry { places: first.chain(free_places).collect() }
    }

    /// Checks that a user with this name can be added.
    ///
    /// # Errors
    /// [`RegisterError`] when the name is invalid or taken, or the registry is full.
    pub fn check(&self, name: &str) -> Result<UserName, RegisterError> {
        let checked = UserName::new(name).ok_or_else(|| RegisterError::Name(name.to_owned()))?;
        if self.find(name).is_some() {
            return Err(RegisterError::Taken(name.to_owned()));
        }
        if self.len() == self.capacity() {
            return Err(RegisterError::Full(self.capacity()));
        }
        Ok(checked)
    }

    /// Appends a user, visible in all clones. Only one thread may add users.
    ///
    /// # Errors
    /// As [`UserRegistry::check`].
    pub fn add(&self, user: UserSettings) -> Result<(), RegisterError> {
        self.check(&user.name)?;
        let full = RegisterError::Full(self.capacity());
        self.places[self.len()].set(UserView::new(user)).map_err(|_| full)
    }

    /// Index of the user with this name, ignoring case.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.iter().position(|user| user.name().eq_ignore_ascii_case(name))
    }

    /// The user with this index.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&UserView> {
        self.places.get(place)?.get()
    }

    /// All users, in session order.
    pub fn iter(&self) -> impl Iterator<Item = &UserView> {
        self.places.iter().map_while(OnceLock::get)
    }

    /// The number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// True when there are no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.get(0).is_none()
    }

    /// Maximum number of users.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Returns the new users in `users`, which must list all existing ones first. Translates the new users'
    /// instrument ids from `named`, the configuration's instruments, to `instruments`, those of the venue.
    ///
    /// # Errors
    /// A description of the mistake and of the necessary change, in one line.
    pub fn new_users(
        &self,
        mut users: Vec<UserSettings>,
        named: &InstrumentTable,
        instruments: &InstrumentTable,
    ) -> Result<Vec<UserSettings>, String> {
        let known = self.len();
        let mut pairs = self.iter().zip(&users);
        if users.len() < known || !pairs.all(|(user, listed)| user.name().eq_ignore_ascii_case(&listed.name))
        {
            let names: Vec<&str> = self.iter().map(UserView::name).collect();
            return Err(format!(
                "the users of the venue are {}: keep them in this order, with new ones behind them",
                names.join(", ")
            ));
        }
        let mut new = users.split_off(known);
        if known + new.len() > self.capacity() {
            return Err(RegisterError::Full(self.capacity()).to_string());
        }
        for user in &mut new {
            self.check(&user.name).map_err(|error| error.to_string())?;
            let name = &user.name;
            for id in user.instruments.iter_mut().flatten() {
                let symbol = named.symbol(*id);
                *id = symbol.and_then(|symbol| instruments.find(symbol)).ok_or_else(|| {
                    let symbol = symbol.map_or_else(|| id.to_string(), |symbol| symbol.to_string());
                    format!("user '{name}': the venue has no instrument '{symbol}' yet: add it first")
                })?;
            }
        }
        Ok(new)
    }

    /// True when any user's password is a hash.
    #[must_use]
    pub fn has_hashes(&self) -> bool {
        self.iter().any(|user| user.settings.password.hash().is_some())
    }
}

impl Index<usize> for UserRegistry {
    type Output = UserView;

    /// # Panics
    /// When there is no user with this index.
    fn index(&self, place: usize) -> &UserView {
        self.get(place).expect("places are those of users")
    }
}

/// One user's settings, counters and limits, readable while the venue runs.
#[derive(Debug)]
pub struct UserView {
    /// Settings with which the user was added.
    pub settings: UserSettings,
    /// 1 while the user is logged in.
    pub is_connected: Counter,
    /// 1 while the user is killed individually, so that its new orders are refused.
    pub is_killed: Counter,
    /// Logins accepted.
    pub logins: Counter,
    /// Logins with a wrong password.
    pub wrong_passwords: Counter,
    /// Requests refused before they reached the engine.
    pub requests_refused: Counter,
    /// The user's current limits.
    pub limits: LimitsView,
}

impl UserView {
    fn new(settings: UserSettings) -> UserView {
        let limits = LimitsView::default();
        limits.set(&settings.limits);
        UserView {
            settings,
            is_connected: Counter::default(),
            is_killed: Counter::default(),
            logins: Counter::default(),
            wrong_passwords: Counter::default(),
            requests_refused: Counter::default(),
            limits,
        }
    }

    /// The user's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }
}

/// A user's limits, readable while another thread sets them; a read gives each limit's old or new value.
#[derive(Debug, Default)]
pub struct LimitsView {
    /// Messages per second in the upper 32 bits, burst in the lower ones. In all fields, 0 means no limit.
    rate: Counter,
    open_orders: Counter,
    order_qty: Counter,
    order_notional: Counter,
}

impl LimitsView {
    /// Sets all limits.
    pub fn set(&self, limits: &UserLimits) {
        let UserLimits { rate, open_orders, order_qty, order_notional } = *limits;
        let rate = rate.map(|rate| u64::from(rate.per_second) << 32 | u64::from(rate.burst));
        self.rate.set(rate.unwrap_or(0));
        self.open_orders.set(open_orders.unwrap_or(0).into());
        self.order_qty.set(order_qty.map_or(0, |qty| qty.0));
        self.order_notional.set(order_notional.unwrap_or(0));
    }

    /// Reads all limits.
    #[must_use]
    pub fn read(&self) -> UserLimits {
        let limit = |counter: &Counter| Some(counter.read()).filter(|limit| *limit != 0);
        UserLimits {
            rate: limit(&self.rate)
                .map(|rate| RateLimit { per_second: (rate >> 32) as u32, burst: rate as u32 }),
            open_orders: limit(&self.open_orders).map(|limit| limit as u32),
            order_qty: limit(&self.order_qty).map(Qty),
            order_notional: limit(&self.order_notional),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::password::Password;

    fn user(name: &str) -> UserSettings {
        UserSettings::new(name, Password::plain("secret"))
    }

    #[test]
    fn users_are_added_to_all_clones_up_to_the_capacity() {
        let registry = UserRegistry::new(&[user("ANNA")], 3);
        let reader = registry.clone();
        assert_eq!((reader.len(), reader.capacity(), reader.is_empty()), (1, 3, false));
        registry.add(user("Bert")).unwrap();
        assert_eq!((reader.find("BERT"), reader[1].name(), reader.len()), (Some(1), "Bert", 2));
        for (name, expected) in [
            ("", "1 to 6 ASCII"),
            ("SEVENCH", "1 to 6 ASCII"),
            ("\u{e4}", "1 to 6 ASCII"),
            ("CLEO ", "without spaces around"),
            ("bert", "a user 'bert' already"),
        ] {
            let error = registry.add(user(name)).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
        registry.add(user("CLEO")).unwrap();
        let error = registry.add(user("DORA")).unwrap_err();
        assert!(matches!(error, RegisterError::Full(3)), "{error}");
        assert!(UserRegistry::default().is_empty() && reader.get(3).is_none());
        assert_eq!(reader.iter().map(UserView::name).collect::<Vec<_>>(), ["ANNA", "Bert", "CLEO"]);
    }

    #[test]
    fn limits_are_read_as_they_were_set() {
        let view = LimitsView::default();
        assert_eq!(view.read(), UserLimits::default());
        for rate in [None, Some(RateLimit { per_second: u32::MAX, burst: 1 })] {
            let limits =
                UserLimits { rate, open_orders: Some(5), order_qty: None, order_notional: Some(u64::MAX) };
            view.set(&limits);
            assert_eq!(view.read(), limits);
        }
    }
}
