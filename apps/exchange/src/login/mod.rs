//! Logging in: passwords, the thread that checks hashed ones, and the guard against guessing.

mod checker;
mod guard;
mod password;

pub(crate) use checker::{CheckerThread, LoginChecker};
pub(crate) use guard::LoginGuard;
pub use guard::LoginPolicy;
pub use password::{Password, PasswordHashError, hash_password};
