//! Errors of back-tests.

use tickpath_replay::ReplayError;

/// The back-test was not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BacktestError {
    /// The recording cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The settings of the engine are inconsistent.
    #[error(transparent)]
    Config(#[from] tickpath_trading::ConfigError),
    /// An option has a value that the recording does not allow.
    #[error("{0}")]
    Option(String),
    /// The recording has price levels or packets in place of orders.
    #[error(
        "{file} is {found}: a back-test takes orders, from a file of ITCH 5.0, DBN mbo or LOBSTER messages"
    )]
    NoOrders {
        /// The recording.
        file: String,
        /// Its format.
        found: String,
    },
    /// No message of the recording is about a symbol of the back-test.
    #[error(
        "the recording has no order of {symbols} in the window; tickpath replay {file} lists its symbols"
    )]
    NoSuchSymbol {
        /// The chosen symbols.
        symbols: String,
        /// The recording.
        file: String,
    },
}
