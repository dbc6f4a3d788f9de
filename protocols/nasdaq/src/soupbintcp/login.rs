//! Login requests and the server's answers.

use std::fmt;

use tickpath_types::{Nanos, Sequence};
use tickpath_wire::codes;

use super::Session;
use crate::wire::Alpha;

/// A user's name, 6 characters, case-insensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Username(pub Alpha<6>);

impl Username {
    /// Pads a name to 6 characters; `None` when it is longer or not ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Username> {
        Alpha::new(text).map(Username)
    }

    /// Returns true if `name` is this name, ignoring case.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        Username::new(name).is_some_and(|other| self.0.0.eq_ignore_ascii_case(&other.0.0))
    }
}

impl fmt::Display for Username {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_str())
    }
}

/// A password, 10 characters, case-insensitive; `Debug` does not show it.
#[derive(Clone, Copy)]
pub struct Password(pub(super) Alpha<10>);

impl Password {
    /// Pads a password to 10 characters; `None` when it is longer or not ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Password> {
        Alpha::new(text).map(Password)
    }

    /// Returns true if `password` is this password, ignoring case; compares in constant time.
    #[must_use]
    pub fn matches(&self, password: &str) -> bool {
        let Some(other) = Password::new(password) else { return false };
        let differences = self.0.0.iter().zip(other.0.0).fold(0, |differences, (ours, theirs)| {
            differences | (ours.to_ascii_lowercase() ^ theirs.to_ascii_lowercase())
        });
        differences == 0
    }

    /// Returns the password in lower case, padded with spaces, for hashing: the protocol ignores its case.
    #[must_use]
    pub fn to_lowercase(&self) -> [u8; 10] {
        self.0.0.map(|byte| byte.to_ascii_lowercase())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// Login Request (`L`): the user, the session, and the first requested message.
///
/// Source: SoupBinTCP 3.00 and 4.1, "Login Request Packet"; 49 bytes with the length field,
/// 54 in edition 4.1.
#[derive(Clone, Copy, Debug)]
pub struct LoginRequest {
    /// Name of the user.
    pub username: Username,
    /// Password of the user.
    pub password: Password,
    /// Name of the session; blank for the current one.
    pub session: Session,
    /// Sequence number of the first requested message: 1 for all messages, 0 for new ones only.
    pub sequence: Sequence,
    /// Duration of the client's silence after which the server ends the connection; `None` in edition 3.00.
    pub heartbeat_timeout: Option<Nanos>,
}

impl LoginRequest {
    /// Creates an edition 3.00 login that requests all messages of the current session. `None` when the name
    /// is longer than 6 characters, the password longer than 10, or either is not ASCII.
    #[must_use]
    pub fn new(username: &str, password: &str) -> Option<LoginRequest> {
        Some(LoginRequest {
            username: Username::new(username)?,
            password: Password::new(password)?,
            session: Session::BLANK,
            sequence: Sequence(1),
            heartbeat_timeout: None,
        })
    }
}

/// Login Accepted (`A`): the server accepted the login.
///
/// Source: SoupBinTCP 3.00, "Login Accepted Packet"; 33 bytes with the length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginAccepted {
    /// Name of the session that the client joined.
    pub session: Session,
    /// Sequence number of the next sequenced message.
    pub next_sequence: Sequence,
}

codes! {
    /// The reason why a login was refused.
    LoginRejectReason {
        NOT_AUTHORIZED = b'A' "not authorized: check user name and password",
        SESSION_NOT_AVAILABLE = b'S' "session not available: check the requested session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_ignore_case_and_padding() {
        let username = Username::new("Usr").unwrap();
        assert!(username.matches("uSR") && !username.matches("us") && !username.matches("toolong"));
        let password = Password::new("secret").unwrap();
        assert!(password.matches("SECRET"));
        assert_eq!(Password::new("SeCret").unwrap().to_lowercase(), *b"secret    ");
        for wrong in ["", "secre", "secret1", "Secrez", "elevenchars"] {
            assert!(!password.matches(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let request = LoginRequest::new("USR", "hunter2").unwrap();
        let shown = format!("{request:?} {request:#?}");
        assert!(
            shown.contains("USR") && shown.contains("Password(..)") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
