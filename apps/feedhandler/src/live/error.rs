//! Why a feed handler did not open.

use tickpath_config::ConfigError;
use tickpath_net::NetError;
use tickpath_shm::ShmError;

/// Why a feed handler did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A line cannot be joined.
    #[error("channel '{channel}': {source}")]
    Net {
        /// The channel.
        channel: String,
        /// The system's error.
        source: NetError,
    },
    /// The outputs cannot be made.
    #[error("outputs: {0}")]
    Outputs(#[from] ShmError),
}
