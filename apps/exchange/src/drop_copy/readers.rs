//! Who may read drop copies, and of whom.

use tickpath_nasdaq::soupbintcp::Username;

use super::store::Watched;
use crate::login::{Password, hash_password};
use crate::users::UserSettings;

/// A user that may come in by this door.
pub(super) struct ReaderUser {
    pub(super) name: String,
    pub(super) password: Password,
    /// False for a user of other doors alone.
    pub(super) may_read: bool,
    pub(super) watched: Watched,
    /// The connection that is logged in.
    pub(super) connection: Option<usize>,
}

/// All users, by their places; those of other doors too, so that a wrong door is told from a wrong name by nobody.
pub(super) fn readers(users: &[UserSettings]) -> Vec<ReaderUser> {
    let is_watched = |reader: &UserSettings, user: &UserSettings| match &reader.copies_of {
        None => true,
        Some(names) => names.iter().any(|name| name.eq_ignore_ascii_case(&user.name)),
    };
    let reader = |reader: &UserSettings| ReaderUser {
        name: reader.name.clone(),
        password: reader.password.clone(),
        may_read: reader.doors.drop_copy,
        watched: users.iter().map(|user| is_watched(reader, user)).collect(),
        connection: None,
    };
    users.iter().map(reader).collect()
}

/// What a password is checked against whose name is nobody's, where users have hashes: it takes as long to refuse.
pub(super) fn nobody(users: &[UserSettings]) -> Option<Password> {
    users.iter().find_map(|user| user.password.hash())?;
    Password::hashed(&hash_password("*nobody*")?).ok()
}

pub(super) fn find(readers: &[ReaderUser], name: &Username) -> Option<usize> {
    readers.iter().position(|reader| name.matches(&reader.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_has_costs_what_a_name_costs() {
        let plain = UserSettings::new("ANNA", Password::plain("secret"));
        let hash = hash_password("secret").unwrap();
        let hashed = UserSettings::new("BERT", Password::hashed(&hash).unwrap());
        assert!(nobody(std::slice::from_ref(&plain)).is_none(), "no password takes time to check");
        let nobody = nobody(&[plain, hashed]).unwrap();
        assert!(nobody.hash().is_some_and(|nobody| nobody.split('$').nth(3) == hash.split('$').nth(3)));
    }
}
