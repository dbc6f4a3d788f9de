//! Administration of a program: its Unix socket, password checks on another thread, and trusted logins.
//!
//! A client sends command lines, and receives a line of JSON for each. [`LineServer`] holds the connections
//! and limits them; [`AdminThread`] runs a `LineServer` on a new thread, and [`send_line`] is the client.
//! [`command_rings`] passes commands from such a thread to a duty cycle.
//!
//! ```
//! use std::time::Duration;
//! use tickpath_admin::{AdminThread, LineLimits, send_line};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("admin.sock");
//! let answer = |line: &str| match line {
//!     "status" => Ok(serde_json::json!({ "ok": true, "orders": 3 })),
//!     _ => Err("there is status".to_owned()),
//! };
//! let _thread = AdminThread::start("admin", &path, LineLimits::one_line(256), move |line, _| answer(line))?;
//! assert_eq!(send_line(&path, "status", Duration::from_secs(5))?["orders"], 3);
//! assert_eq!(send_line(&path, "launch", Duration::from_secs(5))?["error"], "there is status");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod command_rings;
mod line_server;
mod password_checker;
mod password_hash;
mod thread;
mod trusted_logins;

pub use client::{SendLineError, send_line};
pub use command_rings::{CommandReceiver, CommandSender, command_rings};
pub use line_server::{Line, LineLimits, LineServer, error_answer};
pub use password_checker::{CHECKS_MAX, CheckResult, PasswordChecker};
pub use password_hash::{PasswordHash, PasswordHashError};
pub use thread::AdminThread;
pub use tickpath_agent::ListenError;
pub use trusted_logins::{TrustedLogin, TrustedLogins};
