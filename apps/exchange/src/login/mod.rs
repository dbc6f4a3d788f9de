//! Logging in: passwords, the thread that checks hashed ones, and the file of trusted logins.

mod checker;
mod password;
mod trusted;

pub(crate) use checker::{CheckerThread, LoginChecker, Queue};
pub use password::{Password, PasswordHashError, hash_password};
pub(crate) use trusted::{TrustedLogin, TrustedLogins};
