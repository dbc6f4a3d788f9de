//! Passwords that are stored only as their argon2 hash.

use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};

/// Maximum memory that the check of an accepted hash takes, in KiB.
const MEMORY_KIB_MAX: u32 = 256 << 10;
/// Maximum number of passes over this memory that the check of an accepted hash makes.
const PASSES_MAX: u32 = 16;

/// The argon2 hash of a password: a PHC string (`$argon2id$v=19$...`) whose check has a bounded cost.
///
/// ```
/// use tickpath_admin::PasswordHash;
///
/// let hash = PasswordHash::parse(&PasswordHash::make(b"secret").ok_or("no random numbers")?)?;
/// assert!(hash.is_of(b"secret") && !hash.is_of(b"Secret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PasswordHash(String);

/// The text is not an argon2 hash, or its check would be too expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordHashError {
    /// Not an argon2 hash: make one with `tickpath admin hash-password` or `tickpath gateway hash-password`.
    #[error(
        "this is not an argon2 hash ($argon2id$v=19$...): make one by tickpath admin hash-password, for a gateway's user by tickpath gateway hash-password"
    )]
    NotArgon2,
    /// The hash is too expensive: each login would keep a core busy for seconds. Make a cheaper one.
    #[error(
        "this hash takes more than {MEMORY_KIB_MAX} KiB or {PASSES_MAX} passes: make one by tickpath admin hash-password"
    )]
    TooExpensive,
}

impl PasswordHash {
    /// Parses a hash.
    ///
    /// # Errors
    /// [`PasswordHashError`] when the text is not a valid hash, or a check of the hash takes too long.
    pub fn parse(text: &str) -> Result<PasswordHash, PasswordHashError> {
        let parsed = phc::PasswordHash::new(text).map_err(|_| PasswordHashError::NotArgon2)?;
        let params = Params::try_from(&parsed).map_err(|_| PasswordHashError::NotArgon2)?;
        let is_complete =
            parsed.algorithm.as_str().starts_with("argon2") && parsed.salt.is_some() && parsed.hash.is_some();
        if !is_complete {
            return Err(PasswordHashError::NotArgon2);
        }
        if params.m_cost() > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX {
            return Err(PasswordHashError::TooExpensive);
        }
        Ok(PasswordHash(text.to_owned()))
    }

    /// Makes the argon2id hash of a password, with a random salt. Takes some milliseconds and 19 MiB. `None`
    /// when the system has no random numbers.
    #[must_use]
    pub fn make(password: &[u8]) -> Option<String> {
        Argon2::default().hash_password(password).ok().map(|hash| hash.to_string())
    }

    /// True if this is the hash of `password`. Takes milliseconds or more: do not call it in a duty cycle.
    #[must_use]
    pub fn is_of(&self, password: &[u8]) -> bool {
        phc::PasswordHash::new(&self.0)
            .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
    }

    /// The hash as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_cannot_be_checked_are_refused() {
        let hash = PasswordHash::make(b"secret").unwrap();
        assert_eq!(PasswordHash::parse(&hash).unwrap().as_str(), hash);
        assert_ne!(hash, PasswordHash::make(b"secret").unwrap(), "the salt is another each time");
        let error = |text: &str| PasswordHash::parse(text).err();
        let without_hash = hash.rsplit_once('$').unwrap().0;
        for text in ["", "x", "$argon2id$", "$scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2g", without_hash] {
            assert_eq!(error(text), Some(PasswordHashError::NotArgon2), "{text}");
        }
        assert_eq!(error(&hash.replace("m=19456", "m=1048576")), Some(PasswordHashError::TooExpensive));
    }
}
