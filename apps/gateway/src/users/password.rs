//! Passwords of the gateway's users.

use std::fmt;

use tickpath_admin::{PasswordHash, PasswordHashError};
use tickpath_gateway_protocol::frame::PASSWORD_LEN_MAX;

/// Password of a user: plain text or its argon2 hash. Never printed.
#[derive(Clone)]
pub struct UserPassword(Kept);

#[derive(Clone)]
enum Kept {
    Plain(String),
    Hash(PasswordHash),
}

/// A password is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordError {
    /// The password is empty, or longer than a client can send.
    #[error("a password has 1 to {PASSWORD_LEN_MAX} bytes")]
    Length,
    /// The text starts like a hash and is not one that can be checked.
    #[error(transparent)]
    Hash(#[from] PasswordHashError),
}

impl UserPassword {
    /// Creates a password from its configured text; a hash starts with `$argon2`.
    ///
    /// # Errors
    /// [`PasswordError`] if the text is not usable.
    pub fn new(text: &str) -> Result<UserPassword, PasswordError> {
        if !text.starts_with("$argon2") {
            return match text.len() {
                1..=PASSWORD_LEN_MAX => Ok(UserPassword(Kept::Plain(text.to_owned()))),
                _ => Err(PasswordError::Length),
            };
        }
        Ok(UserPassword(Kept::Hash(PasswordHash::parse(text)?)))
    }

    /// Whether `guess` is the password. Takes as long as hashing; for a plain password equally long for every
    /// guess. Not for a duty cycle.
    #[must_use]
    pub fn is(&self, guess: &[u8]) -> bool {
        match &self.0 {
            Kept::Plain(known) => is_same(known.as_bytes(), guess),
            Kept::Hash(hash) => hash.is_of(guess),
        }
    }

    /// Whether it is stored as a hash.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        matches!(self.0, Kept::Hash(_))
    }
}

impl fmt::Debug for UserPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserPassword(..)")
    }
}

/// Compares all bytes, independent of the position of the first difference.
fn is_same(known: &[u8], guess: &[u8]) -> bool {
    let mut difference = known.len() ^ guess.len();
    for place in 0..PASSWORD_LEN_MAX {
        let [known, guess] = [known, guess].map(|bytes| bytes.get(place).copied().unwrap_or(0));
        difference |= usize::from(std::hint::black_box(known ^ guess));
    }
    difference == 0
}

#[cfg(test)]
pub(super) mod tests {
    use argon2::password_hash::PasswordHasher;
    use argon2::{Argon2, Params};

    use super::*;

    /// Returns a hash of `password` with a cheap check.
    pub(in crate::users) fn cheap_hash(password: &str) -> String {
        let params = Params::new(8, 1, 1, None).unwrap();
        let argon2 = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        argon2.hash_password(password.as_bytes()).unwrap().to_string()
    }

    #[test]
    fn a_password_is_itself_alone() {
        for password in
            [UserPassword::new("Secret").unwrap(), UserPassword::new(&cheap_hash("Secret")).unwrap()]
        {
            assert!(password.is(b"Secret"));
            for guess in ["", "secret", "Secre", "Secret1", "Secret\0"] {
                assert!(!password.is(guess.as_bytes()), "{guess}");
            }
            assert_eq!(format!("{password:?}"), "UserPassword(..)");
        }
        assert!(!UserPassword::new("x").unwrap().is(&[b'x'; 65]));
    }

    #[test]
    fn what_cannot_be_checked_is_refused() {
        let hash = cheap_hash("x");
        let error = |text: &str| UserPassword::new(text).unwrap_err();
        assert_eq!((error(""), error(&"x".repeat(65))), (PasswordError::Length, PasswordError::Length));
        assert_eq!(error("$argon2id$v=19$"), PasswordError::Hash(PasswordHashError::NotArgon2));
        let dear = hash.replace("m=8", "m=1048576");
        assert_eq!(error(&dear), PasswordError::Hash(PasswordHashError::TooExpensive));
    }
}
