//! The list of faults that tests can plant.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A deliberate mistake at one point of the code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];
        }
    };
}

faults! {
    /// A partially filled resting order moves to the tail of its level.
    PartialFillLosesPriority,
    /// A reduced order moves to the tail of its level.
    ReductionLosesPriority,
    /// At the same price, hidden quantity trades before displayed quantity.
    HiddenBeforeDisplayed,
    /// A reserve order that is refreshed displays its whole remaining quantity.
    ReserveShowsAll,
    /// A reserve order that is refreshed keeps its reference number.
    ReserveKeepsReference,
    /// A post-only order trades on entry.
    PostOnlyTrades,
    /// The unfilled remainder of an IOC order rests on the book.
    IocRests,
    /// An order with a minimum quantity trades less than this minimum.
    MinimumIgnored,
    /// Self-trade prevention is ignored: orders of one owner trade with each other.
    SelfTradesAllowed,
    /// Self-trade prevention that should reduce both orders of an owner reduces only the incoming one.
    DecrementOneSided,
    /// A partial cancel treats the order's open quantity as its total quantity.
    CancelForgetsExecuted,
    /// A trade executes at the limit price of the incoming order.
    TradeAtTakersPrice,
    /// A replacement ignores the executed quantity of the order that it replaces.
    ReplaceForgetsExecuted,
    /// A mass cancel misses orders whose UserRefNum directly follows that of a cancelled order.
    MassCancelMissesOne,
    /// An order whose expiry time has passed does not expire.
    GttNeverExpires,
    /// The expiry of a new order is not scheduled until the venue is restarted.
    ExpiryForgotten,
    /// Orders expire late: after their expiry time other orders still trade with them.
    ExpiryLate,
    /// Day orders with special instructions are carried into the next day.
    DayOrderSurvives,
    /// A user's latest UserRefNum is accepted for a second request.
    NumberUsedTwice,
    /// A cancelled order is not published in the market data.
    CancelUnpublished,
    /// The owner of the resting order receives no execution report for a trade.
    TradeUntold,
    /// Some executions repeat the match number of the previous execution.
    MatchNumberReused,
    /// The unfilled remainder of an order neither rests nor is cancelled.
    RemainderForgotten,
    /// New orders are accepted while trading is halted.
    HaltIgnored,
    /// A user's limit on the order quantity is not enforced.
    QtyLimitIgnored,
    /// Price bands are not enforced.
    BandIgnored,
    /// A cross executes at the lowest of the equally good prices, not at the one nearest to the reference.
    CrossAtLowest,
    /// An execution that is already broken can be broken again.
    TradeBrokenTwice,
    /// Suspending an instrument leaves its orders open.
    SuspensionKeepsOrders,
    /// UserRefNums do not restart with a new day.
    NumbersKeptOverDay,
    /// Users receive no message when the day starts or ends.
    StageUntold,
    /// Killing a user leaves its orders open.
    KillKeepsOrders,
    /// The hash of the state omits hidden orders.
    StateHashIgnoresHidden,
    /// The last order of each side of a book is missing from the snapshot.
    SnapshotMissesOrder,
    /// Some commands take effect but are missing from the log.
    JournalSkipsRecord,
    /// Some requests are logged twice.
    RequestLoggedTwice,
    /// Some requests are read and then dropped without a response.
    RequestDropped,
    /// Responses are sent before their commands are durable.
    AnswerBeforeSafe,
    /// Market data is sent before its commands are durable.
    PublishBeforeSafe,
    /// A lost connection cancels no orders.
    CancelOnDisconnectForgotten,
    /// The orders of a user that reconnects in time are cancelled nevertheless.
    CancelWhileConnected,
    /// The orders of users that do not reconnect after a restart are not cancelled.
    GraceForgottenAtStart,
    /// A restart loses the log of messages sent to users.
    UserLogForgottenAtStart,
    /// A login that requests a replay receives all messages but the first.
    LoginSkipsMessage,
    /// Requests of one batch are sequenced in the order in which they were read, not by receive time.
    ArrivalsUnsorted,
    /// Requests of one batch are sequenced session by session, regardless of their receive times.
    ArrivalsSortedBySession,
    /// A replay appends executions twice to the user's log.
    FillDoubledOnReplay,
    /// After a restart, drop copies lack the events of the first command after the snapshot.
    CopyMissed,
    /// A client that resumes its drop copies receives one of them twice.
    CopyRepeated,
    /// The trading day's next step also waits for client commands, which are never reported as applied.
    DayWaitsForClients,
    /// An instrument that was added at runtime is missing from the snapshot.
    SnapshotMissesAdded,
    /// Some packets are sent only on line A.
    LineBMissesPacket,
    /// Some messages are not stored for retransmission.
    StoreForgetsMessage,
    /// Heartbeats announce a sequence number that is one too high.
    HeartbeatAhead,
    /// Retransmitted messages have the sequence number of the previous message.
    RetransmissionShifted,
    /// Records are reported as durable before they are synced.
    DurableBeforeSync,
    /// A new segment file is used before its directory entry is durable.
    NamesUnsynced,
    /// Data that a crash left after the last valid record is not removed.
    TornTailKept,
    /// A record with an invalid checksum is accepted.
    ChecksumIgnored,
    /// The journal's generation number is not raised when acknowledged commands may have been lost.
    LossUnnamed,
    /// No retransmission request is sent for missing messages.
    RequestForgotten,
    /// Permanently lost messages are skipped without a report.
    LossUntold,
    /// The reorder buffer delivers adjacent messages in swapped order.
    HeldMessagesSwapped,
    /// The duplicate of a message is delivered as well.
    DuplicatesDelivered,
    /// Some deleted orders stay in the book.
    DeleteMissed,
    /// When a trader logs in again after a disconnect, it requests the last response a second time.
    AnswerAskedForAgain,
    /// A trader ignores order events that occurred while it was disconnected.
    AnswersWhileAwayForgotten,
    /// A trader forgets its open orders when it reconnects.
    OrdersForgottenAtReconnect,
    /// Requests that are still unanswered after a reconnect stay pending forever.
    UnansweredWaitForEver,
    /// A trader numbers its orders from one, although its user has used higher UserRefNums.
    NumbersFromOne,
    /// A trader ignores reports that self-trade prevention has reduced one of its orders.
    PreventionUnheard,
    /// A trader keeps a fill that the venue has broken.
    BrokenTradeKept,
    /// A trader keeps a replaced order as an open order.
    ReplacedOrderStays,
    /// A closed order still counts against a trader's maximum position.
    RiskNotReleased,
    /// A trader's open orders do not count against its maximum position.
    OpenOrdersUnrisked,
    /// A trader's limit on open orders is not enforced.
    OrderCountUnlimited,
    /// A request that a trader sends during its warm-up reaches the venue.
    RehearsedRequestSent,
    /// Closing part of a position counts the entry cost of that part as zero.
    CostNotReleased,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_enough_faults() {
        assert!(Fault::ALL.len() >= 34);
    }
}
