//! Commands that a log has few of: special orders, requests about many orders, and the venue's own.

use tickpath_types::{
    BrokenReason, CrossKind, EnterOrder, Instrument, InstrumentId, MassCancel, MatchId, OrderRequest, Price,
    Qty, ReplaceOrder, SelfTradePrevention, SessionId, SetOrderEntry, Side, SpecialTerms, Symbol,
    TradingState, UserName, UserRefNum,
};
use zerocopy::byteorder::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{CodecError, Enter, InstrumentState, Kind, Replace, flag, value};
use crate::CommandKind;

/// The side of a mass cancel that is not restricted to one.
const BOTH_SIDES: u8 = 2;

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Special {
    stop_price: I64,
    display_qty: U64,
    expire_at: U32,
    is_hidden: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct EnterSpecial {
    enter: Enter,
    special: Special,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ReplaceSpecial {
    replace: Replace,
    special: Special,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MassCancelFields {
    user_ref: U32,
    instrument: U16,
    side: u8,
    firm: [u8; 4],
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct OrderEntryFields {
    user_ref: U32,
    is_enabled: u8,
    firm: [u8; 4],
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct UncrossFields {
    state: InstrumentState,
    kind: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ImbalanceFields {
    instrument: U16,
    kind: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BandFields {
    instrument: U16,
    reference: I64,
    width: I64,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct InstrumentFields {
    id: U16,
    symbol: [u8; 8],
    tick_size: I64,
    lot_size: U64,
    max_qty: U64,
    reference_price: I64,
    collar_low: I64,
    collar_high: I64,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BreakFields {
    match_id: U64,
    reason: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LimitFields {
    open_orders: U32,
    order_qty: U64,
    order_notional: U64,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RateFields {
    per_second: U32,
    burst: U32,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AllowanceFields {
    instrument: U16,
    is_allowed: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ConfiguredFields {
    rate: RateFields,
    limits: LimitFields,
    instruments: U64,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ScheduleFields {
    day: U32,
    second: U32,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PreventionFields {
    strategy: u8,
    account: U16,
}

/// Gives the kind and the fields of a command to `put`.
#[cold]
pub(super) fn encode(kind: CommandKind, mut put: impl FnMut(Kind, &[u8]) -> usize) -> usize {
    match kind {
        CommandKind::Order(OrderRequest::Enter(order)) => {
            let special = Special::from(order.special.unwrap_or_default());
            put(Kind::EnterSpecial, EnterSpecial { enter: Enter::from(order), special }.as_bytes())
        }
        CommandKind::Force(order) => {
            let special = Special::from(order.special.unwrap_or_default());
            put(Kind::Force, EnterSpecial { enter: Enter::from(order), special }.as_bytes())
        }
        CommandKind::Order(OrderRequest::Replace(order)) => {
            let special = Special::from(order.special.unwrap_or_default());
            put(Kind::ReplaceSpecial, ReplaceSpecial { replace: Replace::from(order), special }.as_bytes())
        }
        CommandKind::Order(OrderRequest::MassCancel(request)) => {
            let MassCancel { user_ref, instrument, side, firm } = request;
            let side = side.map_or(BOTH_SIDES, Side::code);
            let fields =
                MassCancelFields { user_ref: user_ref.0.into(), instrument: instrument.0.into(), side, firm };
            put(Kind::MassCancel, fields.as_bytes())
        }
        CommandKind::Order(OrderRequest::SetOrderEntry(SetOrderEntry { user_ref, is_enabled, firm })) => {
            let fields =
                OrderEntryFields { user_ref: user_ref.0.into(), is_enabled: is_enabled.into(), firm };
            put(Kind::SetOrderEntry, fields.as_bytes())
        }
        CommandKind::Uncross { instrument, kind, state } => {
            let state = InstrumentState::new(instrument, state);
            put(Kind::Uncross, UncrossFields { state, kind: kind.code() }.as_bytes())
        }
        CommandKind::PublishImbalance { instrument, kind } => {
            let fields = ImbalanceFields { instrument: instrument.0.into(), kind: kind.code() };
            put(Kind::PublishImbalance, fields.as_bytes())
        }
        CommandKind::SetPriceBand { instrument, reference, width } => {
            let (reference, width) = (reference.0.into(), width.0.into());
            put(
                Kind::SetPriceBand,
                BandFields { instrument: instrument.0.into(), reference, width }.as_bytes(),
            )
        }
        CommandKind::AddInstrument(instrument) => {
            put(Kind::AddInstrument, InstrumentFields::from(instrument).as_bytes())
        }
        CommandKind::SuspendInstrument { instrument } => {
            put(Kind::SuspendInstrument, &instrument.0.to_le_bytes())
        }
        CommandKind::BreakTrade { match_id, reason } => {
            let fields = BreakFields { match_id: match_id.0.into(), reason: reason.code() };
            put(Kind::BreakTrade, fields.as_bytes())
        }
        CommandKind::ExpireOrders => put(Kind::ExpireOrders, &[]),
        CommandKind::EndDay => put(Kind::EndDay, &[]),
        CommandKind::SetLimits { open_orders, order_qty, order_notional } => {
            let fields = LimitFields::new(open_orders, order_qty, order_notional);
            put(Kind::SetLimits, fields.as_bytes())
        }
        CommandKind::SetSelfTradePrevention { strategy, account } => {
            let fields = PreventionFields { strategy: strategy.code(), account: account.0.into() };
            put(Kind::SetSelfTradePrevention, fields.as_bytes())
        }
        CommandKind::KillSession { is_killed } => put(Kind::KillSession, &[is_killed.into()]),
        CommandKind::KillVenue { is_killed } => put(Kind::KillVenue, &[is_killed.into()]),
        CommandKind::ScheduleDone { day, second } => {
            put(Kind::ScheduleDone, ScheduleFields { day: day.into(), second: second.into() }.as_bytes())
        }
        CommandKind::SetMessageRate { per_second, burst } => {
            put(Kind::SetMessageRate, RateFields::new(per_second, burst).as_bytes())
        }
        CommandKind::AllowInstrument { instrument, is_allowed } => {
            let fields = AllowanceFields { instrument: instrument.0.into(), is_allowed: is_allowed.into() };
            put(Kind::AllowInstrument, fields.as_bytes())
        }
        CommandKind::LimitsConfigured {
            per_second,
            burst,
            open_orders,
            order_qty,
            order_notional,
            instruments,
        } => {
            let fields = ConfiguredFields {
                rate: RateFields::new(per_second, burst),
                limits: LimitFields::new(open_orders, order_qty, order_notional),
                instruments: instruments.into(),
            };
            put(Kind::LimitsConfigured, fields.as_bytes())
        }
        CommandKind::AddUser { name } => put(Kind::AddUser, &name.0),
        CommandKind::Order(OrderRequest::Cancel(_) | OrderRequest::Modify(_))
        | CommandKind::Refuse { .. }
        | CommandKind::AccountQuery
        | CommandKind::CancelAll { .. }
        | CommandKind::System(_)
        | CommandKind::OpenInstrument { .. }
        | CommandKind::SetTradingState { .. } => unreachable!("the caller writes the other kinds"),
    }
}

/// Reads the fields of a command of a kind that [`encode`] writes.
#[cold]
pub(super) fn decode(kind: Kind, fields: &[u8]) -> Result<CommandKind, CodecError> {
    let order = |request| Ok(CommandKind::Order(request));
    match kind {
        Kind::EnterSpecial => {
            let EnterSpecial { enter, special } = *kind.fields(fields)?;
            order(OrderRequest::Enter(EnterOrder { special: Some(special.decode()?), ..enter.decode()? }))
        }
        Kind::Force => {
            let EnterSpecial { enter, special } = *kind.fields(fields)?;
            let special = Some(special.decode()?).filter(|special| *special != SpecialTerms::default());
            Ok(CommandKind::Force(EnterOrder { special, ..enter.decode()? }))
        }
        Kind::ReplaceSpecial => {
            let ReplaceSpecial { replace, special } = *kind.fields(fields)?;
            order(OrderRequest::Replace(ReplaceOrder {
                special: Some(special.decode()?),
                ..replace.decode()?
            }))
        }
        Kind::MassCancel => {
            let MassCancelFields { user_ref, instrument, side, firm } = *kind.fields(fields)?;
            let side = if side == BOTH_SIDES { None } else { Some(value("side", side, Side::from_code)?) };
            let (user_ref, instrument) = (UserRefNum(user_ref.get()), InstrumentId(instrument.get()));
            order(OrderRequest::MassCancel(MassCancel { user_ref, instrument, side, firm }))
        }
        Kind::SetOrderEntry => {
            let OrderEntryFields { user_ref, is_enabled, firm } = *kind.fields(fields)?;
            let is_enabled = value("is_enabled", is_enabled, flag)?;
            let user_ref = UserRefNum(user_ref.get());
            order(OrderRequest::SetOrderEntry(SetOrderEntry { user_ref, is_enabled, firm }))
        }
        Kind::Uncross => {
            let UncrossFields { state, kind: code } = *kind.fields(fields)?;
            let (instrument, state): (InstrumentId, TradingState) = state.decode()?;
            Ok(CommandKind::Uncross { instrument, kind: value("kind", code, CrossKind::from_code)?, state })
        }
        Kind::PublishImbalance => {
            let ImbalanceFields { instrument, kind: code } = *kind.fields(fields)?;
            let instrument = InstrumentId(instrument.get());
            Ok(CommandKind::PublishImbalance { instrument, kind: value("kind", code, CrossKind::from_code)? })
        }
        Kind::SetPriceBand => {
            let BandFields { instrument, reference, width } = *kind.fields(fields)?;
            let (reference, width) = (Price(reference.get()), Price(width.get()));
            Ok(CommandKind::SetPriceBand { instrument: InstrumentId(instrument.get()), reference, width })
        }
        Kind::AddInstrument => {
            Ok(CommandKind::AddInstrument(kind.fields::<InstrumentFields>(fields)?.decode()))
        }
        Kind::SuspendInstrument => {
            let instrument = InstrumentId(kind.fields::<U16>(fields)?.get());
            Ok(CommandKind::SuspendInstrument { instrument })
        }
        Kind::BreakTrade => {
            let BreakFields { match_id, reason } = *kind.fields(fields)?;
            let reason = value("reason", reason, BrokenReason::from_code)?;
            Ok(CommandKind::BreakTrade { match_id: MatchId(match_id.get()), reason })
        }
        Kind::ExpireOrders => kind.fields::<[u8; 0]>(fields).map(|_| CommandKind::ExpireOrders),
        Kind::EndDay => kind.fields::<[u8; 0]>(fields).map(|_| CommandKind::EndDay),
        Kind::SetLimits => {
            let LimitFields { open_orders, order_qty, order_notional } = *kind.fields(fields)?;
            Ok(CommandKind::SetLimits {
                open_orders: open_orders.get(),
                order_qty: Qty(order_qty.get()),
                order_notional: order_notional.get(),
            })
        }
        Kind::SetSelfTradePrevention => {
            let PreventionFields { strategy, account } = *kind.fields(fields)?;
            let strategy = value("strategy", strategy, SelfTradePrevention::from_code)?;
            Ok(CommandKind::SetSelfTradePrevention { strategy, account: SessionId(account.get()) })
        }
        Kind::KillSession => {
            let is_killed = value("is_killed", *kind.fields(fields)?, flag)?;
            Ok(CommandKind::KillSession { is_killed })
        }
        Kind::KillVenue => {
            let is_killed = value("is_killed", *kind.fields(fields)?, flag)?;
            Ok(CommandKind::KillVenue { is_killed })
        }
        Kind::ScheduleDone => {
            let ScheduleFields { day, second } = *kind.fields(fields)?;
            Ok(CommandKind::ScheduleDone { day: day.get(), second: second.get() })
        }
        Kind::SetMessageRate => {
            let RateFields { per_second, burst } = *kind.fields(fields)?;
            Ok(CommandKind::SetMessageRate { per_second: per_second.get(), burst: burst.get() })
        }
        Kind::AllowInstrument => {
            let AllowanceFields { instrument, is_allowed } = *kind.fields(fields)?;
            let (instrument, is_allowed) =
                (InstrumentId(instrument.get()), value("is_allowed", is_allowed, flag)?);
            Ok(CommandKind::AllowInstrument { instrument, is_allowed })
        }
        Kind::LimitsConfigured => {
            let ConfiguredFields { rate, limits, instruments } = *kind.fields(fields)?;
            Ok(CommandKind::LimitsConfigured {
                per_second: rate.per_second.get(),
                burst: rate.burst.get(),
                open_orders: limits.open_orders.get(),
                order_qty: Qty(limits.order_qty.get()),
                order_notional: limits.order_notional.get(),
                instruments: instruments.get(),
            })
        }
        Kind::AddUser => Ok(CommandKind::AddUser { name: UserName(*kind.fields(fields)?) }),
        Kind::Enter
        | Kind::Replace
        | Kind::Cancel
        | Kind::Modify
        | Kind::Refuse
        | Kind::AccountQuery
        | Kind::CancelAll
        | Kind::System
        | Kind::OpenInstrument
        | Kind::SetTradingState => unreachable!("the caller reads the other kinds"),
    }
}

impl RateFields {
    fn new(per_second: u32, burst: u32) -> RateFields {
        RateFields { per_second: per_second.into(), burst: burst.into() }
    }
}

impl LimitFields {
    fn new(open_orders: u32, order_qty: Qty, order_notional: u64) -> LimitFields {
        LimitFields {
            open_orders: open_orders.into(),
            order_qty: order_qty.0.into(),
            order_notional: order_notional.into(),
        }
    }
}

impl From<SpecialTerms> for Special {
    fn from(terms: SpecialTerms) -> Special {
        let SpecialTerms { stop_price, display_qty, expire_at, is_hidden } = terms;
        Special {
            stop_price: stop_price.0.into(),
            display_qty: display_qty.0.into(),
            expire_at: expire_at.into(),
            is_hidden: is_hidden.into(),
        }
    }
}

impl Special {
    fn decode(&self) -> Result<SpecialTerms, CodecError> {
        Ok(SpecialTerms {
            stop_price: Price(self.stop_price.get()),
            display_qty: Qty(self.display_qty.get()),
            expire_at: self.expire_at.get(),
            is_hidden: value("is_hidden", self.is_hidden, flag)?,
        })
    }
}

impl From<Instrument> for InstrumentFields {
    fn from(instrument: Instrument) -> InstrumentFields {
        let Instrument { id, symbol, tick_size, lot_size, max_qty, reference_price, collar_low, collar_high } =
            instrument;
        InstrumentFields {
            id: id.0.into(),
            symbol: symbol.0,
            tick_size: tick_size.0.into(),
            lot_size: lot_size.0.into(),
            max_qty: max_qty.0.into(),
            reference_price: reference_price.0.into(),
            collar_low: collar_low.0.into(),
            collar_high: collar_high.0.into(),
        }
    }
}

impl InstrumentFields {
    pub(crate) fn decode(&self) -> Instrument {
        Instrument {
            id: InstrumentId(self.id.get()),
            symbol: Symbol(self.symbol),
            tick_size: Price(self.tick_size.get()),
            lot_size: Qty(self.lot_size.get()),
            max_qty: Qty(self.max_qty.get()),
            reference_price: Price(self.reference_price.get()),
            collar_low: Price(self.collar_low.get()),
            collar_high: Price(self.collar_high.get()),
        }
    }
}
