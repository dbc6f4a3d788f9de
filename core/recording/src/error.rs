//! Reasons why a recording cannot be replayed as requested.

/// The result of a step of a replay.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

/// The reason why a recording cannot be replayed as requested. Faults in the recording are not errors: they
/// are part of its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `--from` or `--to` has a date, or a zone other than the exchange's, but the recording counts time from
    /// midnight of an unknown day: give times of the exchange without a date, or give `--date`.
    #[error(
        "the recording has times of day without dates: give --from and --to as HH:MM:SS of the exchange, or its --date"
    )]
    NoDates,
    /// The feed publishes levels or quotes, but `--orders` requests changes of orders: omit `--orders`.
    #[error("{feed} has no orders, only quantities at prices: omit --orders, and use --depth-out or --bbo")]
    NoOrders {
        /// Name of the feed.
        feed: &'static str,
    },
    /// The DBN schema has no data for a requested table: omit the option that requests the table.
    #[error("DBN schema {schema} has no data for {option}: omit it")]
    NothingFor {
        /// Name of the schema.
        schema: &'static str,
        /// Option that requests the table, such as `--bbo`.
        option: &'static str,
    },
    /// The end of the window is not after its start, so no message is in it: swap the two times.
    #[error("--to is not after --from: no message can be between them")]
    EmptyWindow,
}
