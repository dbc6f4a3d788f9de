//! The log of all messages.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_config::{ByteSize, ConfigError, Duration};
use tickpath_types::Nanos;

use super::duration;

/// Storage of the log of all messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventLogConfig {
    /// Folder of the log; files are named `<ISO week>/<name>/<start in ms>`. No log when absent.
    pub folder: Option<PathBuf>,
    /// Number of bytes written after which the file is synced to disk.
    pub flush_bytes: ByteSize,
    /// Time after which written bytes are synced to disk.
    pub flush_interval: Duration,
    /// Buffer between the duty cycle and the writer thread; messages that do not fit are counted and lost.
    pub buffer: ByteSize,
}

impl Default for EventLogConfig {
    fn default() -> EventLogConfig {
        EventLogConfig {
            folder: None,
            flush_bytes: ByteSize(1 << 20),
            flush_interval: Duration(Nanos::from_secs(300)),
            buffer: ByteSize(32 << 20),
        }
    }
}

impl EventLogConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let size = |key: &str, value: ByteSize, least: ByteSize, most: ByteSize| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(ConfigError::value(format!("event_log.{key} is {value}: write {least} to {most}")))
        };
        size("flush_bytes", self.flush_bytes, ByteSize(4 << 10), ByteSize(1 << 30))?;
        size("buffer", self.buffer, ByteSize(64 << 10), ByteSize(1 << 30))?;
        duration(
            "event_log.flush_interval",
            self.flush_interval,
            Nanos::from_millis(10),
            Nanos::from_secs(3_600),
        )
    }
}
