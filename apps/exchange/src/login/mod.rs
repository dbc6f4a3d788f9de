//! Hashed passwords of users, and a thread that checks them.

mod checker;
mod password;

pub(crate) use checker::{HashChecker, HashChecks, LoginChecker, start_hash_checker};
pub use password::{PasswordHashError, hash_password, hashed_password};
pub(crate) use tickpath_admin::TrustedLogin;
