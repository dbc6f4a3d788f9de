//! The faults there are.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A mistake at one place of the system.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];
        }
    };
}

faults! {
    /// A resting order that was filled in part goes to the tail of its level.
    PartialFillLosesPriority,
    /// An order that was reduced goes to the tail of its level.
    ReductionLosesPriority,
    /// At one price what is not displayed trades first.
    HiddenBeforeDisplayed,
    /// A reserve order that is refreshed shows all that is left of it.
    ReserveShowsAll,
    /// A reserve order that is refreshed keeps its reference.
    ReserveKeepsReference,
    /// An order that must not trade on entry does.
    PostOnlyTrades,
    /// What an IOC order did not trade rests.
    IocRests,
    /// An order with a minimum trades less.
    MinimumIgnored,
    /// An owner's orders trade with each other whatever it asked for.
    SelfTradesAllowed,
    /// Where both orders of an owner are to give way, only the one that came in does.
    DecrementOneSided,
    /// An order is reduced as if it had not executed anything.
    CancelForgetsExecuted,
    /// A trade takes place at the price of the order that came in.
    TradeAtTakersPrice,
    /// What an order executed does not count for the one that replaces it.
    ReplaceForgetsExecuted,
    /// Of neighbouring orders a mass cancel takes every other.
    MassCancelMissesOne,
    /// An order's time comes and nothing happens.
    GttNeverExpires,
    /// The venue forgets when an order expires, unless it is started anew.
    ExpiryForgotten,
    /// Orders expire some time after their time has come: others still trade with them.
    ExpiryLate,
    /// Orders of the day are carried into the next if they are special.
    DayOrderSurvives,
    /// A number may be used again at once.
    NumberUsedTwice,
    /// The public is not told of an order that was cancelled.
    CancelUnpublished,
    /// Whose order rested is not told of the trade.
    TradeUntold,
    /// Some executions have the number of the one before.
    MatchNumberReused,
    /// What an order did not trade neither rests nor is cancelled.
    RemainderForgotten,
    /// New orders are taken while trading is halted.
    HaltIgnored,
    /// A user's limit on the quantity of an order does not hold.
    QtyLimitIgnored,
    /// A price band does not stop trading.
    BandIgnored,
    /// A cross takes place at the lowest of the prices that are as good.
    CrossAtLowest,
    /// An execution that is void can be made void again.
    TradeBrokenTwice,
    /// An instrument is suspended and its orders stay.
    SuspensionKeepsOrders,
    /// Numbers do not begin anew with the day.
    NumbersKeptOverDay,
    /// Users are not told that the day starts or ends.
    StageUntold,
    /// A user is killed and its orders stay.
    KillKeepsOrders,
    /// The digest of the state leaves out what is not displayed.
    StateHashIgnoresHidden,
    /// The last order of a side is not in the snapshot.
    SnapshotMissesOrder,
    /// Some commands take effect and are not in the log.
    JournalSkipsRecord,
    /// Some requests stand in the log twice.
    RequestLoggedTwice,
    /// Some requests are read and forgotten.
    RequestDropped,
    /// Answers leave before their commands are safe.
    AnswerBeforeSafe,
    /// Market data leaves before its commands are safe.
    PublishBeforeSafe,
    /// Nothing is cancelled when a connection is gone.
    CancelOnDisconnectForgotten,
    /// A user that comes back in time is cancelled for all the same.
    CancelWhileConnected,
    /// Nothing is cancelled for users that do not come back after a restart.
    GraceForgottenAtStart,
    /// What was sent to users is forgotten by a restart.
    UserLogForgottenAtStart,
    /// A login that asks for messages again gets all but the first.
    LoginSkipsMessage,
    /// What was drained together is sequenced as it was read.
    ArrivalsUnsorted,
    /// What was drained together is sequenced user by user.
    ArrivalsSortedBySession,
    /// An execution that is replayed is told twice.
    FillDoubledOnReplay,
    /// What the first command behind a snapshot caused is not among the drop copies after a start.
    CopyMissed,
    /// Where a reader of drop copies goes on it gets one copy again.
    CopyRepeated,
    /// The next step of the day waits for a command that a client sent.
    DayWaitsForClients,
    /// An instrument that was added is not in the snapshot.
    SnapshotMissesAdded,
    /// Some packets are sent on line A alone.
    LineBMissesPacket,
    /// Some messages are not kept for retransmission.
    StoreForgetsMessage,
    /// Heartbeats say that one message more was sent.
    HeartbeatAhead,
    /// Messages are sent again under the number of the one before.
    RetransmissionShifted,
    /// Records are called safe before they are synced.
    DurableBeforeSync,
    /// A new segment is used before its name is safe.
    NamesUnsynced,
    /// What a crash left behind the last good record stays.
    TornTailKept,
    /// A record with a wrong checksum counts as good.
    ChecksumIgnored,
    /// After answered commands were lost the session is called as before.
    LossUnnamed,
    /// No request for missing messages is sent.
    RequestForgotten,
    /// Messages that are lost for good are passed over.
    LossUntold,
    /// Messages that came before their turn change places.
    HeldMessagesSwapped,
    /// The second copy of a message counts as well.
    DuplicatesDelivered,
    /// Some orders stay in the book though they went away.
    DeleteMissed,
    /// A trader's login after a lost connection asks for the last answer again.
    AnswerAskedForAgain,
    /// What a trader is told of the time without a connection changes nothing.
    AnswersWhileAwayForgotten,
    /// With a new connection a trader forgets its open orders.
    OrdersForgottenAtReconnect,
    /// What is not answered after a lost connection is never given up.
    UnansweredWaitForEver,
    /// A trader numbers its orders from one, whatever its user has used.
    NumbersFromOne,
    /// A trader is not told that an order gave way to another of its own.
    PreventionUnheard,
    /// A trader keeps a fill that the venue made void.
    BrokenTradeKept,
    /// A trader believes that an order is open which another has replaced.
    ReplacedOrderStays,
    /// An order that is done still counts against a trader's largest position.
    RiskNotReleased,
    /// A trader's open orders do not count against its largest position.
    OpenOrdersUnrisked,
    /// A trader's limit on open orders does not hold.
    OrderCountUnlimited,
    /// What a trader only rehearses goes to the venue.
    RehearsedRequestSent,
    /// What a trader closes keeps what it cost.
    CostNotReleased,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough() {
        assert!(Fault::ALL.len() >= 34);
    }
}
