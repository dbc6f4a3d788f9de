//! What the engine is told, in the order of the log.

use tickpath_types::{
    CancelReason, ClientOrderId, InstrumentId, Nanos, OrderRequest, RejectReason, Sequence, SessionId,
    SystemEventCode, TradingState, UserRefNum,
};

/// One entry of the sequenced command log: plain data of fixed size, so that it crosses a ring as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its place in the log, dense from 1.
    pub sequence: Sequence,
    /// Whose request it is; of no meaning for the venue's own commands.
    pub session: SessionId,
    /// When it was sequenced, since midnight; every event that it causes carries this time.
    pub ts: Nanos,
    /// What to do.
    pub kind: CommandKind,
}

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// A client's request.
    Order(OrderRequest),
    /// A client's new order or replacement that the door could read and may not pass on. It goes through the
    /// log so that the answers to a session, and which numbers it has used, follow from the log alone.
    Refuse {
        /// Number of the refused order, which is used up.
        user_ref: UserRefNum,
        /// Why.
        reason: RejectReason,
        /// Echoed.
        client_order_id: ClientOrderId,
    },
    /// A client asks which number it may use next. It goes through the log for the same reason.
    AccountQuery,
    /// Every open order of the session is cancelled, in the order of entry.
    CancelAll {
        /// Why: the user asked, the login ended, or supervision.
        reason: CancelReason,
    },
    /// The trading day reaches a stage, which is published; whether an instrument trades is its state's matter.
    System(SystemEventCode),
    /// The instrument's definition and its first state are published. Until then it is halted.
    OpenInstrument {
        /// Which.
        instrument: InstrumentId,
        /// Its first state.
        state: TradingState,
    },
    /// The instrument halts, quotes or trades from now on.
    SetTradingState {
        /// Which.
        instrument: InstrumentId,
        /// Its new state.
        state: TradingState,
    },
}

// A ring slot of two cache lines has 120 bytes beside its sequence number.
const _: () = assert!(size_of::<Command>() <= 120);
