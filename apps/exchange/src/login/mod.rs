//! Logging in: hashed passwords, their checks on another thread, and the file of trusted logins.

mod checker;
mod password;
mod trusted;

pub(crate) use checker::{HashChecker, LoginChecker, start_hash_checker};
pub use password::{PasswordHashError, hash_password, hashed_password};
pub(crate) use password::{has_password, unknown_password};
pub(crate) use tickpath_admin::TrustedLogin;
pub(crate) use trusted::open_trusted_logins;
