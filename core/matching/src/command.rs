//! The commands that the engine executes, in the order of the log.
//!
//! The log has other commands too, which only the venue interprets: their tags are not used here.

use tickpath_types::{
    BrokenReason, CancelOrder, CancelReason, ClientOrderId, CrossKind, EnterOrder, Instrument, InstrumentId,
    MatchId, Nanos, OrderRequest, Price, Qty, RejectReason, SelfTradePrevention, Sequence, SessionId,
    SystemEventCode, TradingState, UserRefNum,
};

use crate::codec::orders::{CANCEL, ENTER, Forced};
use crate::codec::{CodecError, CommandLayouts, Field, FieldReader, Header, Spaced};
use crate::command_layouts;

/// One command of the log that the engine executes: plain data of fixed size, so that it crosses a ring as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its place in the log, which is dense from 1.
    pub sequence: Sequence,
    /// Whose request it is, or whom it is about; of no meaning for the venue's own commands.
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
    /// The venue's own order for the session, to close what its owner can no longer pay for: the rules of the session, a kill
    /// of it included, do not hold for it. While the venue is killed it is refused as every other.
    Force(EnterOrder),
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
    /// The instrument halts, collects orders or trades from now on. If it is to trade and its book is crossed, a
    /// cross of the kind [`CrossKind::Halt`] comes first.
    SetTradingState {
        /// Which.
        instrument: InstrumentId,
        /// Its new state.
        state: TradingState,
    },
    /// What rests and is crossed trades at one price: the one at which the most trades, then the least is left over,
    /// then the nearest to the last trade's. Then the state changes.
    Uncross {
        /// Which.
        instrument: InstrumentId,
        /// What the cross is called.
        kind: CrossKind,
        /// The state after it.
        state: TradingState,
    },
    /// What a cross would do now is published.
    PublishImbalance {
        /// Of which instrument.
        instrument: InstrumentId,
        /// The cross that is expected.
        kind: CrossKind,
    },
    /// Trading pauses from now on before a trade further than `width` from `reference`. A cross moves the reference to
    /// its own price. Ignored if the reference lies outside the collar or the width is negative.
    SetPriceBand {
        /// Which.
        instrument: InstrumentId,
        /// The middle.
        reference: Price,
        /// The greatest distance allowed; zero ends the watch.
        width: Price,
    },
    /// A new instrument, halted; see [`CommandKind::OpenInstrument`].
    AddInstrument(Instrument),
    /// The instrument halts, and all orders in it are cancelled.
    SuspendInstrument {
        /// Which.
        instrument: InstrumentId,
    },
    /// An execution is void. Orders and books stay as they are.
    BreakTrade {
        /// Which.
        match_id: MatchId,
        /// Why.
        reason: BrokenReason,
    },
    /// Every GTT order whose time has come is cancelled, in the order of entry: by the venue, before what comes then.
    ExpireOrders,
    /// The day ends. All orders but GTC ones are cancelled; references, numbers and executions start anew, and GTC
    /// orders get the first of them, in the order of entry.
    EndDay,
    /// What the session's orders may be from now on. Orders that are open stay.
    SetLimits {
        /// Open orders at once; `u32::MAX` for no limit.
        open_orders: u32,
        /// Quantity of one order; `u64::MAX` for no limit.
        order_qty: Qty,
        /// Price times quantity of an order, in 10^-4; `u64::MAX` for no limit. A market order counts at the collar's limit.
        order_notional: u64,
    },
    /// What happens from now on when an order of the session that comes in would trade with one of its owner.
    SetSelfTradePrevention {
        /// What.
        strategy: SelfTradePrevention,
        /// The owner: sessions of one account are one owner's. At first each session is an account of its own.
        account: SessionId,
    },
    /// The session's new orders are refused, and its open ones cancelled; or it may enter orders again.
    KillSession {
        /// Which of the two.
        is_killed: bool,
    },
    /// All sessions' new orders are refused, and all open ones cancelled; or orders may be entered again.
    KillVenue {
        /// Which of the two.
        is_killed: bool,
    },
}

command_layouts! {
    CommandKind {
        5 = Refuse { user_ref: UserRefNum, reason: Spaced<RejectReason>, client_order_id: ClientOrderId },
        6 = AccountQuery,
        7 = CancelAll { reason: CancelReason },
        8 = System(code: SystemEventCode),
        9 = OpenInstrument { instrument: InstrumentId, state: TradingState },
        10 = SetTradingState { instrument: InstrumentId, state: TradingState },
        15 = Uncross { instrument: InstrumentId, state: TradingState, kind: CrossKind },
        16 = PublishImbalance { instrument: InstrumentId, kind: CrossKind },
        17 = SetPriceBand { instrument: InstrumentId, reference: Price, width: Price },
        18 = AddInstrument(instrument: Instrument),
        19 = SuspendInstrument { instrument: InstrumentId },
        20 = BreakTrade { match_id: MatchId, reason: BrokenReason },
        21 = ExpireOrders,
        22 = EndDay,
        23 = SetLimits { open_orders: u32, order_qty: Qty, order_notional: u64 },
        24 = SetSelfTradePrevention { strategy: SelfTradePrevention, account: SessionId },
        25 = KillSession { is_killed: bool },
        26 = KillVenue { is_killed: bool },
        32 = Force(order: Forced),
    }
    and Order(OrderRequest)
}

// A ring slot of two cache lines has 120 bytes beside its sequence number.
const _: () = assert!(size_of::<Command>() <= 120);

/// The longest encoding of a command of the engine, in bytes.
pub const COMMAND_LEN_MAX: usize = Header::LEN + CommandKind::LEN_MAX;

impl Command {
    /// Writes the command to the start of `out` and returns its length, at most [`COMMAND_LEN_MAX`].
    ///
    /// # Panics
    /// When `out` is shorter than the encoding; with [`COMMAND_LEN_MAX`] bytes it never is.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let Command { sequence, session, ts, ref kind } = *self;
        let header = Header { sequence, session, ts };
        // Nearly all commands of a log are one of these two: they are written in line.
        match *kind {
            CommandKind::Order(OrderRequest::Enter(order)) if order.special.is_none() => {
                header.write(out, ENTER, EnterOrder::LEN, |out| EnterOrder::write(order, out))
            }
            CommandKind::Order(OrderRequest::Cancel(request)) => {
                header.write(out, CANCEL, CancelOrder::LEN, |out| CancelOrder::write(request, out))
            }
            ref kind => kind.encode(header, out),
        }
    }

    /// Reads a command that fills `bytes`.
    ///
    /// # Errors
    /// [`CodecError`] when the bytes are no command that this version knows; there is no other effect.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Command, CodecError> {
        let (Header { sequence, session, ts }, tag, fields) = Header::read(bytes)?;
        // Nearly all commands of a log are one of these two: they are made where they will be, and without a jump.
        if tag == ENTER {
            let order = EnterOrder::read("order", &mut FieldReader::new(tag, fields, EnterOrder::LEN)?)?;
            Ok(Command { sequence, session, ts, kind: CommandKind::Order(OrderRequest::Enter(order)) })
        } else if tag == CANCEL {
            let request =
                CancelOrder::read("request", &mut FieldReader::new(tag, fields, CancelOrder::LEN)?)?;
            Ok(Command { sequence, session, ts, kind: CommandKind::Order(OrderRequest::Cancel(request)) })
        } else {
            Ok(Command { sequence, session, ts, kind: CommandKind::decode(tag, fields)? })
        }
    }
}
