//! Configuration files: loading with errors of one line, human-readable units, instruments, secrets and
//! password hashes, the guard against accidental real-money trading, and the placement of agents on threads.
//! Also the shared output of all programs: standard output and standard error, and output files that are
//! complete or absent.
//!
//! ```
//! use tickpath_config::{Instruments, parse};
//!
//! let file = r#"
//! [[instrument]]
//! symbol = "ALPHA"
//! reference_price = "100.00"
//! tick_size = "0.01"
//! collar = "10%"
//! "#;
//! let instruments: Instruments = parse("instruments.toml", file)?;
//! assert_eq!(instruments.definitions()?[0].collar_high.to_string(), "110.0000");
//! # Ok::<(), tickpath_config::ConfigError>(())
//! ```

mod check;
mod error;
mod instruments;
mod kind;
mod load;
mod output;
mod output_file;
mod paths;
mod placement;
mod pre_login;
mod real_money;
mod secret;
mod speed;
mod units;

pub use tickpath_agent::IdleStrategy;
pub use tickpath_types::{Date, ParseDateError, ParseZoneError, Zone};

pub use check::{at_least, in_range, multicast_group};
pub use error::ConfigError;
pub use instruments::{InstrumentConfig, Instruments};
pub use kind::FileKind;
pub use load::{TEXT_LEN_MAX, load, parse, read_text, to_toml};
pub use output::{Console, counted, has_reader, print_stderr, print_stderr_part, print_stdout, thousands};
pub use output_file::OutputFile;
pub use paths::{absolute, beside, folder_of};
pub use placement::{Placement, ThreadConfig};
pub use pre_login::PreLoginConfig;
pub use real_money::TradingEndpoint;
pub use secret::{HIDDEN_PASSWORD, Secret, TEST_PASSWORD};
pub use speed::Speed;
pub use units::{ByteSize, Duration, Fraction, PriceText};
