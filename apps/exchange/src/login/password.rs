//! Passwords as the venue keeps them.

use std::fmt;

use tickpath_config::PasswordHash;
pub use tickpath_config::PasswordHashError;
use tickpath_nasdaq::soupbintcp;

/// The password of a user: itself, or its argon2 hash.
///
/// SoupBinTCP ignores the case of passwords, so what is hashed is the password in lower case. Never printed.
#[derive(Clone)]
pub struct Password(Kept);

#[derive(Clone)]
enum Kept {
    Plain(String),
    Hash(PasswordHash),
}

impl Password {
    /// A password that is kept as it is.
    pub fn plain(password: impl Into<String>) -> Password {
        Password(Kept::Plain(password.into()))
    }

    /// A password of which only the hash is known, a PHC string as [`hash_password`] makes it.
    ///
    /// # Errors
    /// [`PasswordHashError`] when it is none, or one that takes too long to check.
    pub fn hashed(hash: &str) -> Result<Password, PasswordHashError> {
        PasswordHash::parse(hash).map(|hash| Password(Kept::Hash(hash)))
    }

    /// Whether this is it, where that takes no time to tell; `None` where it is to be hashed first.
    pub(crate) fn matches_at_once(&self, password: &soupbintcp::Password) -> Option<bool> {
        match &self.0 {
            Kept::Plain(known) => Some(password.matches(known)),
            Kept::Hash(_) => None,
        }
    }

    /// Whether this is it; takes as long as a hash takes. Not for a duty cycle.
    pub(crate) fn is(&self, password: &soupbintcp::Password) -> bool {
        match &self.0 {
            Kept::Plain(known) => password.matches(known),
            Kept::Hash(hash) => has_hash(&password.to_lowercase(), hash),
        }
    }

    /// The hash, where only that is known.
    pub(crate) fn hash(&self) -> Option<&PasswordHash> {
        match &self.0 {
            Kept::Plain(_) => None,
            Kept::Hash(hash) => Some(hash),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// The argon2id hash of a password, with a salt of its own: `$argon2id$v=19$...`.
///
/// Takes some milliseconds and 19 MiB. `None` when the password is empty, longer than SoupBinTCP's 10
/// characters or not ASCII.
#[must_use]
pub fn hash_password(password: &str) -> Option<String> {
    let password =
        soupbintcp::Password::new(password).filter(|_| !password.trim().is_empty())?.to_lowercase();
    PasswordHash::make(password.trim_ascii_end())
}

/// Whether a password, in lower case and padded, has this hash; takes as long as the hash says.
pub(super) fn has_hash(password: &[u8; 10], hash: &PasswordHash) -> bool {
    hash.is_of(password.trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_password_in_whatever_case() {
        let hash = hash_password("Secret").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
        let parsed = PasswordHash::parse(&hash).unwrap();
        let has = |text: &str| has_hash(&soupbintcp::Password::new(text).unwrap().to_lowercase(), &parsed);
        assert!(has("secret") && has("SECRET"));
        assert!(!has("secre") && !has("secret1") && !has(""));
        assert_ne!(hash, hash_password("Secret").unwrap(), "the salt is another each time");
        assert_eq!(hash_password("elevenchars"), None);
        assert_eq!(hash_password(" "), None);
    }

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(format!("{:?}", Password::plain("hunter2")), "Password(..)");
        assert!(Password::hashed("secret").is_err());
    }
}
