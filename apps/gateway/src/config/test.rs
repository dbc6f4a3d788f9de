//! Deliberate failures.

use serde::{Deserialize, Serialize};
use tickpath_config::Duration;

/// Deliberate failures, for a venue on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TestSwitches {
    /// Time after which the gateway drops each venue connection, counted from when it is ready.
    pub disconnect_after: Option<Duration>,
    /// Time after which the gateway logs in again on each connection, counted from when it is ready.
    pub logon_after: Option<Duration>,
}

impl TestSwitches {
    /// Whether no failure is configured.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == TestSwitches::default()
    }
}
