//! Failures on purpose.

use serde::{Deserialize, Serialize};
use tickpath_config::Duration;

/// Failures on purpose, for a venue on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TestSwitches {
    /// The gateway drops each connection to the venue when it has been ready so long.
    pub disconnect_after: Option<Duration>,
    /// The gateway logs in anew on each connection when it has been ready so long.
    pub logon_after: Option<Duration>,
}

impl TestSwitches {
    /// Whether nothing fails on purpose.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == TestSwitches::default()
    }
}
