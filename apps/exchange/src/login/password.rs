//! Passwords that are known only by their argon2 hash.

use tickpath_admin::PasswordHash;
pub use tickpath_admin::PasswordHashError;
use tickpath_nasdaq::soupbintcp;
use tickpath_venue::Password;

/// A hash for logins of unknown users, which no known password has. Its check takes as long as that of a hash
/// from [`hash_password`].
pub(super) const UNKNOWN_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$YW4gdW5rbm93biB1c2VyIQ$\
                                       O3vFV/EUZKNR68s53033Lulr6Lek9piwpOIy9ZCXICw";

/// Creates a password known only by its hash, a PHC string as from [`hash_password`].
///
/// # Errors
/// [`PasswordHashError`] when the string is not a valid hash, or a check of the hash takes too long.
pub fn hashed_password(hash: &str) -> Result<Password, PasswordHashError> {
    PasswordHash::parse(hash).map(|hash| Password::of_hash(hash.as_str()))
}

/// Makes the argon2id hash of a password, with a random salt: `$argon2id$v=19$...`.
///
/// Takes some milliseconds and 19 MiB. `None` if the password is empty, not ASCII, or over 10 characters.
#[must_use]
pub fn hash_password(password: &str) -> Option<String> {
    let password =
        soupbintcp::Password::new(password).filter(|_| !password.trim().is_empty())?.to_lowercase();
    PasswordHash::make(password.trim_ascii_end())
}

/// True if `password`, lower-case and padded, has this hash. The check takes as long as the hash prescribes.
pub(super) fn has_hash(password: &[u8], hash: &str) -> bool {
    PasswordHash::parse(hash).is_ok_and(|hash| hash.is_of(password.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_matches_its_password_in_any_case() {
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
    fn an_invalid_hash_is_refused() {
        assert!(hashed_password("secret").is_err());
    }

    #[test]
    fn an_unknown_name_costs_the_same_as_a_known_one() {
        let hash = hash_password("secret").unwrap();
        assert_eq!(UNKNOWN_HASH.split('$').nth(3), hash.split('$').nth(3));
    }
}
