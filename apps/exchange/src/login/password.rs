//! Passwords as the venue keeps them.

use std::fmt;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use tickpath_nasdaq::soupbintcp;

/// Memory that checking one hash may take at most, in KiB.
const HASH_MEMORY_KIB_MAX: u32 = 256 << 10;
/// Passes over that memory that one hash may take at most.
const HASH_PASSES_MAX: u32 = 16;

/// The password of a user: itself, or its argon2 hash.
///
/// SoupBinTCP ignores the case of passwords, so what is hashed is the password in lower case. Never printed.
#[derive(Clone)]
pub struct Password(Kept);

#[derive(Clone)]
enum Kept {
    Plain(String),
    Hash(String),
}

/// A text is no password hash that this venue checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordHashError {
    /// Make one by `tickpath admin hash-password`.
    #[error("this is no argon2 hash ($argon2id$v=19$...): make one by tickpath admin hash-password")]
    NotArgon2,
    /// Make one that costs less: each login would keep a core busy for seconds.
    #[error(
        "this hash takes more than {HASH_MEMORY_KIB_MAX} KiB or {HASH_PASSES_MAX} passes: make one by tickpath admin hash-password"
    )]
    TooDear,
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
        let parsed = PasswordHash::new(hash).map_err(|_| PasswordHashError::NotArgon2)?;
        let params = Params::try_from(&parsed).map_err(|_| PasswordHashError::NotArgon2)?;
        let is_whole =
            parsed.algorithm.as_str().starts_with("argon2") && parsed.salt.is_some() && parsed.hash.is_some();
        if !is_whole {
            return Err(PasswordHashError::NotArgon2);
        }
        if params.m_cost() > HASH_MEMORY_KIB_MAX || params.t_cost() > HASH_PASSES_MAX {
            return Err(PasswordHashError::TooDear);
        }
        Ok(Password(Kept::Hash(hash.to_owned())))
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
    pub(crate) fn hash(&self) -> Option<&str> {
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
    let hash = Argon2::default().hash_password(password.trim_ascii_end()).ok()?;
    Some(hash.to_string())
}

/// Whether a password, in lower case and padded, has this hash; takes as long as the hash says.
pub(super) fn has_hash(password: &[u8; 10], hash: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password.trim_ascii_end(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_password_in_whatever_case() {
        let hash = hash_password("Secret").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
        let has = |text: &str| has_hash(&soupbintcp::Password::new(text).unwrap().to_lowercase(), &hash);
        assert!(has("secret") && has("SECRET"));
        assert!(!has("secre") && !has("secret1") && !has(""));
        assert_ne!(hash, hash_password("Secret").unwrap(), "the salt is another each time");
        assert_eq!(hash_password("elevenchars"), None);
        assert_eq!(hash_password(" "), None);
    }

    #[test]
    fn hashes_that_cannot_be_checked_are_refused() {
        let hash = hash_password("secret").unwrap();
        assert!(Password::hashed(&hash).is_ok());
        let without_hash = hash.rsplit_once('$').unwrap().0;
        for text in
            ["", "secret", "$argon2id$", "$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2g", without_hash]
        {
            assert_eq!(Password::hashed(text).unwrap_err(), PasswordHashError::NotArgon2, "{text}");
        }
        let dear = hash.replace("m=19456", "m=1048576");
        assert_eq!(Password::hashed(&dear).unwrap_err(), PasswordHashError::TooDear);
        assert_eq!(format!("{:?}", Password::plain("hunter2")), "Password(..)");
    }
}
