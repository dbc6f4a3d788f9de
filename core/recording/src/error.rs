//! Reasons for which a recording cannot be replayed as it is wanted.

/// The result of a step of a replay.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

/// Why a recording cannot be replayed as it is wanted. What is wrong inside it is part of its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A time has a date or another zone than the exchange's, and the recording counts from midnight of a day that is not
    /// known: give the exchange's times, or the day.
    #[error(
        "the recording has times of day without dates: give --from and --to as HH:MM:SS of the exchange, or its --date"
    )]
    NoDates,
    /// The feed publishes levels or quotes, and `--orders` wants changes of orders: leave it out.
    #[error(
        "{feed} has no orders, only what rests at prices: leave out --orders, and use --depth-out or --bbo"
    )]
    NoOrders {
        /// The feed.
        feed: &'static str,
    },
    /// The schema has nothing that a table could be made of: leave its option out.
    #[error("DBN of schema {schema} has nothing for {option}: leave it out")]
    NothingFor {
        /// The schema.
        schema: &'static str,
        /// The option of the table.
        option: &'static str,
    },
    /// The end of the window is not after its start, so no message can be in it: exchange them.
    #[error("--to is not after --from: no message can be between them")]
    EmptyWindow,
}
