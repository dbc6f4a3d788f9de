//! Configuration files: loading with errors that fit one line, human units, instruments, secrets and the
//! placement of agents on threads; and standard output, which every program of this project writes alike.
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

mod error;
mod instruments;
mod load;
mod output;
mod placement;
mod secret;
mod units;

pub use error::ConfigError;
pub use instruments::{InstrumentConfig, Instruments};
pub use load::{load, parse};
pub use output::{say, thousands};
pub use placement::{IdleConfig, Placement, ThreadConfig};
pub use secret::{Secret, TEST_PASSWORD};
pub use units::{ByteSize, Duration, Fraction, PriceText};
