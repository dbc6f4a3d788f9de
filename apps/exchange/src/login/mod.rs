//! Logging in: passwords, and the thread that checks hashed ones.

mod checker;
mod password;

pub(crate) use checker::{CheckerThread, LoginChecker};
pub use password::{Password, PasswordHashError, hash_password};
