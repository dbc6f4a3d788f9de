//! Who may read drop copies, and of whom.

use tickpath_nasdaq::soupbintcp::Username;

use crate::login::{Password, hash_password};
use crate::roster::{Roster, UserView};

/// A user that may come in by this door.
pub(super) struct ReaderUser {
    pub(super) name: String,
    pub(super) password: Password,
    /// False for a user of other doors alone.
    pub(super) may_read: bool,
    /// Of each user, by its place.
    pub(super) watched: Vec<bool>,
    /// The connection that is logged in.
    pub(super) connection: Option<usize>,
}

/// Adds the users of the roster that are not among the readers yet, and has everybody who watches them do so. Those of other
/// doors are added too, so that a wrong door is told from a wrong name by nobody.
pub(super) fn enlist(readers: &mut Vec<ReaderUser>, roster: &Roster) {
    for UserView { settings, .. } in roster.iter().skip(readers.len()) {
        readers.push(ReaderUser {
            name: settings.name.clone(),
            password: settings.password.clone(),
            may_read: settings.doors.drop_copy,
            watched: Vec::with_capacity(roster.room()),
            connection: None,
        });
    }
    let names: Vec<String> = readers.iter().map(|reader| reader.name.clone()).collect();
    for (reader, UserView { settings, .. }) in readers.iter_mut().zip(roster.iter()) {
        let is_watched = |user: &String| match &settings.copies_of {
            None => true,
            Some(watched) => watched.iter().any(|name| name.eq_ignore_ascii_case(user)),
        };
        let known = reader.watched.len();
        reader.watched.extend(names[known..].iter().map(is_watched));
    }
}

/// What a password is checked against whose name is nobody's, where users have hashes: it takes as long to refuse.
pub(super) fn nobody(roster: &Roster) -> Option<Password> {
    if !roster.has_hashes() {
        return None;
    }
    Password::hashed(&hash_password("*nobody*")?).ok()
}

pub(super) fn find(readers: &[ReaderUser], name: &Username) -> Option<usize> {
    readers.iter().position(|reader| name.matches(&reader.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::UserSettings;

    fn user(name: &str, copies_of: Option<&[&str]>) -> UserSettings {
        let copies_of = copies_of.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        UserSettings { copies_of, ..UserSettings::new(name, Password::plain("secret")) }
    }

    #[test]
    fn a_name_that_nobody_has_costs_what_a_name_costs() {
        let roster = Roster::new(&[user("ANNA", None)], 2);
        assert!(nobody(&roster).is_none(), "no password takes time to check");
        let hash = hash_password("secret").unwrap();
        roster.add(UserSettings::new("BERT", Password::hashed(&hash).unwrap())).unwrap();
        let nobody = nobody(&roster).unwrap();
        assert!(
            nobody.hash().is_some_and(|nobody| nobody.as_str().split('$').nth(3) == hash.split('$').nth(3))
        );
    }

    #[test]
    fn who_comes_later_watches_and_is_watched_as_the_others() {
        let roster = Roster::new(&[user("ANNA", None), user("CLERK", Some(&["anna", "dora"]))], 4);
        let mut readers = Vec::new();
        enlist(&mut readers, &roster);
        let watched = |readers: &[ReaderUser]| -> Vec<Vec<bool>> {
            readers.iter().map(|reader| reader.watched.clone()).collect()
        };
        assert_eq!(watched(&readers), [[true, true], [true, false]]);
        roster.add(user("Dora", Some(&["CLERK"]))).unwrap();
        roster.add(user("EMIL", None)).unwrap();
        enlist(&mut readers, &roster);
        assert_eq!(
            watched(&readers),
            [[true; 4], [true, false, true, false], [false, true, false, false], [true; 4]]
        );
        assert_eq!(find(&readers, &Username::new("DORA").unwrap()), Some(2));
    }
}
