//! Admission control of listening endpoints: a client without credentials cannot block one.
//!
//! [`PreLogin`] bounds the connections that have not logged in, in total and by peer, and selects the one to
//! close for a new one. [`LoginGuard`] counts login attempts by pair of user and peer and returns the delay
//! of each password check. [`TrustedPeers`] are the pairs of user and peer that logged in before; the program
//! saves them as text across a restart. A peer is an address, or the process or user at the other end of a
//! Unix socket. None of these performs IO or reads a clock. None allocates after its creation, except for the
//! text.
//!
//! ```
//! use tickpath_admission::{PreLogin, PreLoginLimits};
//! use tickpath_types::Nanos;
//!
//! let limits = PreLoginLimits { connections: 4, per_address: 2, deadline: Nanos::from_secs(5) };
//! let mut waiting = PreLogin::new(limits);
//! let (now, flood, client) = (Nanos::from_secs(1), "10.0.0.1", "10.0.0.2");
//! waiting.admit(now, 1, flood);
//! waiting.admit(now, 2, flood);
//! assert_eq!(waiting.victim(flood), Some(1), "the oldest of an address that has as many as it may");
//! assert_eq!(waiting.victim(client), None);
//! ```

mod guard;
mod pre_login;
mod trusted;

pub use guard::{LoginGuard, LoginPolicy};
pub use pre_login::{PreLogin, PreLoginLimits};
pub use trusted::{TRUSTED_TEXT_LEN_MAX, TrustedPeers, TrustedPeersDamaged};
