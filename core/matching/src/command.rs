//! The commands that the engine executes, in the order of the log.
//!
//! The log also has commands that only the venue interprets; their tags are not used here.

use tickpath_types::{
    BrokenReason, CancelOrder, CancelReason, ClientOrderId, CrossKind, EnterOrder, Instrument, InstrumentId,
    MatchId, Nanos, OrderRequest, Price, Qty, RejectReason, SelfTradePrevention, Sequence, SessionId,
    SystemEventCode, TradingState, UserRefNum,
};

use crate::codec::orders::{CANCEL, ENTER, Forced};
use crate::codec::{CodecError, CommandLayouts, Field, FieldReader, Header, Spaced};
use crate::command_layouts;

/// One command of the log that the engine executes: plain data of fixed size, which fits into a ring's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Sequence number in the log, from 1 without gaps.
    pub sequence: Sequence,
    /// The session that sent the request or is its subject; unused if the command concerns no single session.
    pub session: SessionId,
    /// Time of sequencing, since midnight; every event that the command causes carries this time.
    pub ts: Nanos,
    /// Kind of the command, with its fields.
    pub kind: CommandKind,
}

/// The kind of a command, with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// A client's request.
    Order(OrderRequest),
    /// The venue's own order for the session, to close a position that the owner can no longer pay for. The
    /// session's rules and kill switch do not apply to it. While the whole venue is killed, it is refused
    /// like any other order.
    Force(EnterOrder),
    /// A client's new order or replacement that the gateway decoded but refused. It is logged so that the
    /// session's responses and its used `UserRefNum`s can be rebuilt from the log alone.
    GatewayReject {
        /// `UserRefNum` of the refused order, which counts as used.
        user_ref: UserRefNum,
        /// Reason for the refusal.
        reason: RejectReason,
        /// Client order id, echoed in the response.
        client_order_id: ClientOrderId,
    },
    /// A client's query for the next `UserRefNum` that it may use. It is logged for the reason given for
    /// [`GatewayReject`](CommandKind::GatewayReject).
    AccountQuery,
    /// Cancels every open order of the session, in the order of entry.
    CancelAll {
        /// Reason: the user's request, the end of the login, or supervision.
        reason: CancelReason,
    },
    /// Publishes a phase of the trading day. Instruments trade by their own state, not by the phase.
    System(SystemEventCode),
    /// Publishes the instrument's definition and first state. The instrument is halted until this command.
    OpenInstrument {
        /// Id of the instrument.
        instrument: InstrumentId,
        /// The instrument's first state.
        state: TradingState,
    },
    /// Changes the instrument's state. If the new state is [`TradingState::Trading`] and the book is crossed,
    /// a cross of the kind [`CrossKind::Halt`] comes first.
    SetTradingState {
        /// Id of the instrument.
        instrument: InstrumentId,
        /// The instrument's new state.
        state: TradingState,
    },
    /// Trades the crossed resting orders at one price, then changes the state. The price is the one with the
    /// largest volume, then the smallest imbalance, then the one nearest to the last trade's price.
    Uncross {
        /// Id of the instrument.
        instrument: InstrumentId,
        /// Kind of the cross.
        kind: CrossKind,
        /// The instrument's state after the cross.
        state: TradingState,
    },
    /// Publishes the indicative result of a cross: price, paired quantity and imbalance.
    PublishImbalance {
        /// Id of the instrument.
        instrument: InstrumentId,
        /// Kind of the expected cross.
        kind: CrossKind,
    },
    /// Sets a price band: trading pauses before a trade further than `width` from `reference`. A cross moves
    /// `reference` to its price. Ignored if `reference` lies outside the collar or `width` is negative.
    SetPriceBand {
        /// Id of the instrument.
        instrument: InstrumentId,
        /// Middle of the band.
        reference: Price,
        /// Maximum distance of a trade from `reference`; zero removes the band.
        width: Price,
    },
    /// Adds an instrument, halted; [`CommandKind::OpenInstrument`] publishes and opens it.
    AddInstrument(Instrument),
    /// Halts the instrument and cancels all orders in it.
    SuspendInstrument {
        /// Id of the instrument.
        instrument: InstrumentId,
    },
    /// Busts an execution. Orders and books stay as they are.
    BreakTrade {
        /// Match id of the execution.
        match_id: MatchId,
        /// Reason for the bust.
        reason: BrokenReason,
    },
    /// Cancels every expired GTT order, in the order of entry. The venue logs this command before the first
    /// command at or after an expiry time.
    ExpireOrders,
    /// Ends the day and cancels all orders except GTC ones. `UserRefNum`s, order ids and match ids restart at
    /// 1, and GTC orders get the first `UserRefNum`s and order ids, in the order of entry.
    EndDay,
    /// Sets limits for the session's new orders. Open orders are not affected.
    SetLimits {
        /// Maximum number of open orders; `u32::MAX` for no limit.
        open_orders: u32,
        /// Maximum quantity of one order; `u64::MAX` for no limit.
        order_qty: Qty,
        /// Maximum notional (price x quantity) of one order, in units of 10^-4; `u64::MAX` for no limit. A
        /// market order is valued at the collar's limit.
        order_notional: u64,
    },
    /// Sets how an incoming order of the session avoids a trade with an order of the same account.
    SetSelfTradePrevention {
        /// The self-trade prevention strategy.
        strategy: SelfTradePrevention,
        /// Account that owns the session's orders. Initially each session is an account by itself.
        account: SessionId,
    },
    /// Refuses the session's new orders and cancels its open ones, or enables order entry again.
    KillSession {
        /// True to kill, false to enable order entry again.
        is_killed: bool,
    },
    /// Refuses all sessions' new orders and cancels all open ones, or enables order entry again.
    KillVenue {
        /// True to kill, false to enable order entry again.
        is_killed: bool,
    },
}

command_layouts! {
    CommandKind {
        5 = GatewayReject { user_ref: UserRefNum, reason: Spaced<RejectReason>, client_order_id: ClientOrderId },
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

// A ring slot of two cache lines has 120 bytes besides its sequence number.
const _: () = assert!(size_of::<Command>() <= 120);

/// Length of the longest encoding of a command, in bytes.
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
        // Nearly all commands of a log are one of these two kinds, so they are encoded inline.
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

    /// Decodes the one command that `bytes` contains.
    ///
    /// # Errors
    /// [`CodecError`] when the bytes are not a command that this version knows.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Command, CodecError> {
        Command::decode_to(bytes, |command| command)
    }

    /// As [`Command::decode`], but passes the command to `accept` and returns its result. `accept` is compiled
    /// for each frequent kind, so a command that it stores is not first collected in registers.
    ///
    /// # Errors
    /// As [`Command::decode`].
    #[inline]
    pub fn decode_to<R>(bytes: &[u8], accept: impl FnOnce(Command) -> R) -> Result<R, CodecError> {
        let (Header { sequence, session, ts }, tag, fields) = Header::read(bytes)?;
        let command = |kind| Command { sequence, session, ts, kind };
        // Nearly all commands of a log are of these two kinds: they are decoded here, without a jump table.
        if tag == ENTER {
            let order = EnterOrder::read("order", &mut FieldReader::new(tag, fields, EnterOrder::LEN)?)?;
            Ok(accept(command(CommandKind::Order(OrderRequest::Enter(order)))))
        } else if tag == CANCEL {
            let request =
                CancelOrder::read("request", &mut FieldReader::new(tag, fields, CancelOrder::LEN)?)?;
            Ok(accept(command(CommandKind::Order(OrderRequest::Cancel(request)))))
        } else {
            Ok(accept(command(CommandKind::decode(tag, fields)?)))
        }
    }
}
