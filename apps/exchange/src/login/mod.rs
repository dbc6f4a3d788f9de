//! Logging in: hashed passwords, the thread that checks them, and the file of trusted logins.

mod checker;
mod password;
mod trusted;

pub(crate) use checker::{CheckerThread, LoginChecker};
pub use password::{PasswordHashError, hash_password, hashed_password};
pub(crate) use password::{has_password, unknown_password};
pub(crate) use trusted::{TrustedLogin, TrustedLogins};
