//! A user's password.

use std::fmt;

use tickpath_nasdaq::soupbintcp;

/// The password of a user, as plain text or as an argon2 hash.
///
/// SoupBinTCP ignores the case of passwords, so a hash is of the lower-case password. `Debug` prints neither.
#[derive(Clone)]
pub struct Password(StoredPassword);

#[derive(Clone)]
enum StoredPassword {
    Plain(String),
    Hash(String),
}

impl Password {
    /// A plain-text password.
    pub fn plain(password: impl Into<String>) -> Password {
        Password(StoredPassword::Plain(password.into()))
    }

    /// A password known only by its hash, a PHC string that the caller has validated. Checking against a hash
    /// takes milliseconds, so it happens outside of this crate.
    pub fn of_hash(hash: impl Into<String>) -> Password {
        Password(StoredPassword::Hash(hash.into()))
    }

    /// Compares `password` with this one if it is plain text; `None` if only its hash is known.
    #[must_use]
    pub fn matches_at_once(&self, password: &soupbintcp::Password) -> Option<bool> {
        if let StoredPassword::Plain(known) = &self.0 { Some(password.matches(known)) } else { None }
    }

    /// The hash, if only the hash is known.
    #[must_use]
    pub fn hash(&self) -> Option<&str> {
        if let StoredPassword::Hash(hash) = &self.0 { Some(hash) } else { None }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_printed() {
        for password in [Password::plain("hunter2"), Password::of_hash("$argon2id$")] {
            assert_eq!(format!("{password:?}"), "Password(..)");
        }
    }
}
