//! The users that may read drop copies, and those that each of them watches.

use tickpath_nasdaq::soupbintcp::Username;

use crate::password::Password;
use crate::user_registry::{UserRegistry, UserView};

/// A user of the drop copy port.
pub struct ReaderUser {
    /// The name, in the configuration's case.
    pub name: String,
    /// The password.
    pub password: Password,
    /// False for a user of other ports alone.
    pub may_read: bool,
    /// True for each user that it watches, by the user's place.
    pub watched: Vec<bool>,
    /// The connection that is logged in.
    pub connection: Option<usize>,
}

/// Adds the users of the registry that are not among the readers yet, also to the lists of the readers that watch them.
/// Users of other ports alone are added too, so that a reader cannot tell a wrong port from a wrong name.
pub fn enlist(readers: &mut Vec<ReaderUser>, registry: &UserRegistry) {
    for UserView { settings, .. } in registry.iter().skip(readers.len()) {
        readers.push(ReaderUser {
            name: settings.name.clone(),
            password: settings.password.clone(),
            may_read: settings.ports.drop_copy,
            watched: Vec::with_capacity(registry.room()),
            connection: None,
        });
    }
    let names: Vec<String> = readers.iter().map(|reader| reader.name.clone()).collect();
    for (reader, UserView { settings, .. }) in readers.iter_mut().zip(registry.iter()) {
        let is_watched = |user: &String| match &settings.copies_of {
            None => true,
            Some(watched) => watched.iter().any(|name| name.eq_ignore_ascii_case(user)),
        };
        let known = reader.watched.len();
        reader.watched.extend(names[known..].iter().map(is_watched));
    }
}

/// The place of the reader of this name.
#[must_use]
pub fn find(readers: &[ReaderUser], name: &Username) -> Option<usize> {
    readers.iter().position(|reader| name.matches(&reader.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_settings::UserSettings;

    fn user(name: &str, copies_of: Option<&[&str]>) -> UserSettings {
        let copies_of = copies_of.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        UserSettings { copies_of, ..UserSettings::new(name, Password::plain("secret")) }
    }

    #[test]
    fn who_comes_later_watches_and_is_watched_as_the_others() {
        let registry = UserRegistry::new(&[user("ANNA", None), user("CLERK", Some(&["anna", "dora"]))], 4);
        let mut readers = Vec::new();
        enlist(&mut readers, &registry);
        let watched = |readers: &[ReaderUser]| -> Vec<Vec<bool>> {
            readers.iter().map(|reader| reader.watched.clone()).collect()
        };
        assert_eq!(watched(&readers), [[true, true], [true, false]]);
        registry.add(user("Dora", Some(&["CLERK"]))).unwrap();
        registry.add(user("EMIL", None)).unwrap();
        enlist(&mut readers, &registry);
        assert_eq!(
            watched(&readers),
            [[true; 4], [true, false, true, false], [false, true, false, false], [true; 4]]
        );
        assert_eq!(find(&readers, &Username::new("DORA").unwrap()), Some(2));
    }
}
