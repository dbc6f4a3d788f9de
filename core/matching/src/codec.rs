//! Commands as bytes: what the log keeps of them.
//!
//! All integers are little-endian and nothing is padded. Every command begins with the same 24 bytes:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | kind, see [`Kind`] |
//! | 1 | 1 | version of that kind's layout, 1 |
//! | 2 | 2 | session |
//! | 4 | 4 | zero |
//! | 8 | 8 | sequence |
//! | 16 | 8 | time, nanoseconds since midnight |
//!
//! and then come the fields of its kind, as the structures below have them. Enumerations are kept as their `code()`.
//! A command has one encoding alone: bytes that are decoded encode to the same bytes.

mod rare;

pub(crate) use rare::InstrumentFields;

use tickpath_types::{
    CancelOrder, CancelReason, ClientOrderId, EnterOrder, InstrumentId, ModifyOrder, Nanos, OrderAttributes,
    OrderRequest, Price, Qty, RejectReason, ReplaceOrder, Sequence, SessionId, Side, SystemEventCode,
    TimeInForce, TradingState, UserRefNum,
};
use zerocopy::byteorder::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Command, CommandKind};

/// The longest encoding, in bytes: what a buffer for any command needs.
pub const COMMAND_LEN_MAX: usize = size_of::<Header>() + size_of::<rare::EnterSpecial>();
/// Version of every kind's layout that is written.
const VERSION: u8 = 1;

/// The bytes are not a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The record is cut short or has more at its end: check the log with its own checksums.
    #[error("a command of kind {kind} has {expected} bytes, not {len}")]
    Length {
        /// Its first byte, 0 when there is none.
        kind: u8,
        /// What such a command has; at least, when the kind is unknown.
        expected: usize,
        /// What there is.
        len: usize,
    },
    /// A later version of the program wrote it: use that one.
    #[error("command kind {kind} in version {version} is unknown: a later version of the program wrote it")]
    Unknown {
        /// Its first byte.
        kind: u8,
        /// Its second byte.
        version: u8,
    },
    /// A field has a value that no version writes.
    #[error("field {field} of a command cannot be {value}")]
    Value {
        /// Which.
        field: &'static str,
        /// Its byte.
        value: u8,
    },
}

/// First byte of an encoded command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Enter = 1,
    Replace = 2,
    Cancel = 3,
    Modify = 4,
    Refuse = 5,
    AccountQuery = 6,
    CancelAll = 7,
    System = 8,
    OpenInstrument = 9,
    SetTradingState = 10,
    EnterSpecial = 11,
    ReplaceSpecial = 12,
    MassCancel = 13,
    SetOrderEntry = 14,
    Uncross = 15,
    PublishImbalance = 16,
    SetPriceBand = 17,
    AddInstrument = 18,
    SuspendInstrument = 19,
    BreakTrade = 20,
    ExpireOrders = 21,
    EndDay = 22,
    SetLimits = 23,
    SetSelfTradePrevention = 24,
    KillSession = 25,
    KillVenue = 26,
    ScheduleDone = 27,
    SetMessageRate = 28,
    AllowInstrument = 29,
    LimitsConfigured = 30,
    AddUser = 31,
    Force = 32,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    kind: u8,
    version: u8,
    session: U16,
    reserved: U32,
    sequence: U64,
    ts: U64,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Enter {
    user_ref: U32,
    instrument: U16,
    side: u8,
    time_in_force: u8,
    qty: U64,
    price: I64,
    min_qty: U64,
    attributes: Attributes,
    post_only: u8,
    reserved: u8,
    client_order_id: [u8; 14],
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Replace {
    orig_user_ref: U32,
    user_ref: U32,
    qty: U64,
    price: I64,
    min_qty: U64,
    attributes: Attributes,
    time_in_force: u8,
    post_only: u8,
    client_order_id: [u8; 14],
}

/// OUCH's letters as they are.
#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Attributes {
    display: u8,
    capacity: u8,
    intermarket_sweep: u8,
    cross_type: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Cancel {
    user_ref: U32,
    qty: U64,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Modify {
    user_ref: U32,
    qty: U64,
    side_marking: u8,
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Refuse {
    user_ref: U32,
    reason: u8,
    reserved: u8,
    client_order_id: [u8; 14],
}

#[derive(Clone, Copy, IntoBytes, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct InstrumentState {
    instrument: U16,
    state: u8,
}

impl Command {
    /// Writes the command to the start of `out` and returns its length, at most [`COMMAND_LEN_MAX`].
    ///
    /// # Panics
    /// When `out` is shorter than the encoding; with [`COMMAND_LEN_MAX`] bytes it never is.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let Command { sequence, session, ts, kind } = *self;
        let mut put = |kind: Kind, fields: &[u8]| {
            let header = Header {
                kind: kind as u8,
                version: VERSION,
                session: session.0.into(),
                reserved: U32::ZERO,
                sequence: sequence.0.into(),
                ts: ts.0.into(),
            };
            let (head, rest) = out.split_at_mut(size_of::<Header>());
            head.copy_from_slice(header.as_bytes());
            rest[..fields.len()].copy_from_slice(fields);
            size_of::<Header>() + fields.len()
        };
        match kind {
            CommandKind::Order(OrderRequest::Enter(order)) if order.special.is_none() => {
                put(Kind::Enter, Enter::from(order).as_bytes())
            }
            CommandKind::Order(OrderRequest::Replace(order)) if order.special.is_none() => {
                put(Kind::Replace, Replace::from(order).as_bytes())
            }
            CommandKind::Order(OrderRequest::Cancel(CancelOrder { user_ref, qty })) => {
                put(Kind::Cancel, Cancel { user_ref: user_ref.0.into(), qty: qty.0.into() }.as_bytes())
            }
            CommandKind::Order(OrderRequest::Modify(ModifyOrder { user_ref, side_marking, qty })) => {
                let fields = Modify { user_ref: user_ref.0.into(), qty: qty.0.into(), side_marking };
                put(Kind::Modify, fields.as_bytes())
            }
            CommandKind::Refuse { user_ref, reason, client_order_id } => {
                let fields = Refuse {
                    user_ref: user_ref.0.into(),
                    reason: reason.code(),
                    reserved: 0,
                    client_order_id: client_order_id.0,
                };
                put(Kind::Refuse, fields.as_bytes())
            }
            CommandKind::AccountQuery => put(Kind::AccountQuery, &[]),
            CommandKind::CancelAll { reason } => put(Kind::CancelAll, &[reason.code()]),
            CommandKind::System(code) => put(Kind::System, &[code.code()]),
            CommandKind::OpenInstrument { instrument, state } => {
                put(Kind::OpenInstrument, InstrumentState::new(instrument, state).as_bytes())
            }
            CommandKind::SetTradingState { instrument, state } => {
                put(Kind::SetTradingState, InstrumentState::new(instrument, state).as_bytes())
            }
            rare => rare::encode(rare, put),
        }
    }

    /// Reads a command that fills `bytes`.
    ///
    /// # Errors
    /// [`CodecError`] when the bytes are no command that this version knows; there is no other effect.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Command, CodecError> {
        let Ok((header, fields)) = Header::ref_from_prefix(bytes) else {
            let kind = bytes.first().copied().unwrap_or(0);
            return Err(CodecError::Length { kind, expected: size_of::<Header>(), len: bytes.len() });
        };
        let Header { kind, version, session, reserved, sequence, ts } = *header;
        let kind = Kind::of(kind, version)?;
        if reserved != U32::ZERO {
            return Err(CodecError::Value { field: "reserved", value: header.reserved.as_bytes()[0] });
        }
        let (sequence, session, ts) = (Sequence(sequence.get()), SessionId(session.get()), Nanos(ts.get()));
        // Nearly all commands of a log are one of these two: they are made where they will be, and without a jump.
        if kind == Kind::Enter {
            let order = kind.fields::<Enter>(fields)?.decode()?;
            Ok(Command { sequence, session, ts, kind: CommandKind::Order(OrderRequest::Enter(order)) })
        } else if kind == Kind::Cancel {
            let request = kind.fields::<Cancel>(fields)?.decode();
            Ok(Command { sequence, session, ts, kind: CommandKind::Order(OrderRequest::Cancel(request)) })
        } else {
            Ok(Command { sequence, session, ts, kind: kind.decode(fields)? })
        }
    }
}

impl Kind {
    #[inline]
    fn of(kind: u8, version: u8) -> Result<Kind, CodecError> {
        if version != VERSION {
            return Err(CodecError::Unknown { kind, version });
        }
        Ok(match kind {
            1 => Kind::Enter,
            2 => Kind::Replace,
            3 => Kind::Cancel,
            4 => Kind::Modify,
            5 => Kind::Refuse,
            6 => Kind::AccountQuery,
            7 => Kind::CancelAll,
            8 => Kind::System,
            9 => Kind::OpenInstrument,
            10 => Kind::SetTradingState,
            11 => Kind::EnterSpecial,
            12 => Kind::ReplaceSpecial,
            13 => Kind::MassCancel,
            14 => Kind::SetOrderEntry,
            15 => Kind::Uncross,
            16 => Kind::PublishImbalance,
            17 => Kind::SetPriceBand,
            18 => Kind::AddInstrument,
            19 => Kind::SuspendInstrument,
            20 => Kind::BreakTrade,
            21 => Kind::ExpireOrders,
            22 => Kind::EndDay,
            23 => Kind::SetLimits,
            24 => Kind::SetSelfTradePrevention,
            25 => Kind::KillSession,
            26 => Kind::KillVenue,
            27 => Kind::ScheduleDone,
            28 => Kind::SetMessageRate,
            29 => Kind::AllowInstrument,
            30 => Kind::LimitsConfigured,
            31 => Kind::AddUser,
            32 => Kind::Force,
            _ => return Err(CodecError::Unknown { kind, version }),
        })
    }

    #[inline(never)]
    fn decode(self, fields: &[u8]) -> Result<CommandKind, CodecError> {
        Ok(match self {
            Kind::Enter => CommandKind::Order(OrderRequest::Enter(self.fields::<Enter>(fields)?.decode()?)),
            Kind::Replace => {
                CommandKind::Order(OrderRequest::Replace(self.fields::<Replace>(fields)?.decode()?))
            }
            Kind::Cancel => CommandKind::Order(OrderRequest::Cancel(self.fields::<Cancel>(fields)?.decode())),
            Kind::Modify => {
                let Modify { user_ref, qty, side_marking } = *self.fields(fields)?;
                let (user_ref, qty) = (UserRefNum(user_ref.get()), Qty(qty.get()));
                CommandKind::Order(OrderRequest::Modify(ModifyOrder { user_ref, side_marking, qty }))
            }
            Kind::Refuse => {
                let Refuse { user_ref, reason, reserved, client_order_id } = *self.fields(fields)?;
                zero("reserved", reserved)?;
                CommandKind::Refuse {
                    user_ref: UserRefNum(user_ref.get()),
                    reason: value("reason", reason, RejectReason::from_code)?,
                    client_order_id: ClientOrderId(client_order_id),
                }
            }
            Kind::AccountQuery => {
                self.fields::<[u8; 0]>(fields)?;
                CommandKind::AccountQuery
            }
            Kind::CancelAll => {
                let reason = value("reason", *self.fields(fields)?, CancelReason::from_code)?;
                CommandKind::CancelAll { reason }
            }
            Kind::System => {
                CommandKind::System(value("code", *self.fields(fields)?, SystemEventCode::from_code)?)
            }
            Kind::OpenInstrument => {
                let (instrument, state) = self.fields::<InstrumentState>(fields)?.decode()?;
                CommandKind::OpenInstrument { instrument, state }
            }
            Kind::SetTradingState => {
                let (instrument, state) = self.fields::<InstrumentState>(fields)?.decode()?;
                CommandKind::SetTradingState { instrument, state }
            }
            rare => return rare::decode(rare, fields),
        })
    }

    #[inline]
    fn fields<T: FromBytes + Immutable + KnownLayout + Unaligned>(
        self,
        fields: &[u8],
    ) -> Result<&T, CodecError> {
        T::ref_from_bytes(fields).map_err(|_| CodecError::Length {
            kind: self as u8,
            expected: size_of::<Header>() + size_of::<T>(),
            len: size_of::<Header>() + fields.len(),
        })
    }
}

impl From<EnterOrder> for Enter {
    #[inline]
    fn from(order: EnterOrder) -> Enter {
        let EnterOrder {
            user_ref,
            instrument,
            side,
            qty,
            price,
            time_in_force,
            post_only,
            min_qty,
            special: _, // follows the others, if it is there
            attributes,
            client_order_id,
        } = order;
        Enter {
            user_ref: user_ref.0.into(),
            instrument: instrument.0.into(),
            side: side.code(),
            time_in_force: time_in_force.code(),
            qty: qty.0.into(),
            price: price.0.into(),
            min_qty: min_qty.0.into(),
            attributes: attributes.into(),
            post_only: post_only.into(),
            reserved: 0,
            client_order_id: client_order_id.0,
        }
    }
}

impl Enter {
    #[inline]
    fn decode(&self) -> Result<EnterOrder, CodecError> {
        zero("reserved", self.reserved)?;
        Ok(EnterOrder {
            user_ref: UserRefNum(self.user_ref.get()),
            instrument: InstrumentId(self.instrument.get()),
            side: value("side", self.side, Side::from_code)?,
            qty: Qty(self.qty.get()),
            price: Price(self.price.get()),
            time_in_force: value("time_in_force", self.time_in_force, TimeInForce::from_code)?,
            post_only: value("post_only", self.post_only, flag)?,
            min_qty: Qty(self.min_qty.get()),
            special: None,
            attributes: self.attributes.into(),
            client_order_id: ClientOrderId(self.client_order_id),
        })
    }
}

impl Cancel {
    #[inline]
    fn decode(&self) -> CancelOrder {
        CancelOrder { user_ref: UserRefNum(self.user_ref.get()), qty: Qty(self.qty.get()) }
    }
}

impl From<ReplaceOrder> for Replace {
    #[inline]
    fn from(order: ReplaceOrder) -> Replace {
        let ReplaceOrder {
            orig_user_ref,
            user_ref,
            qty,
            price,
            time_in_force,
            post_only,
            min_qty,
            special: _, // follows the others, if it is there
            attributes,
            client_order_id,
        } = order;
        Replace {
            orig_user_ref: orig_user_ref.0.into(),
            user_ref: user_ref.0.into(),
            qty: qty.0.into(),
            price: price.0.into(),
            min_qty: min_qty.0.into(),
            attributes: attributes.into(),
            time_in_force: time_in_force.code(),
            post_only: post_only.into(),
            client_order_id: client_order_id.0,
        }
    }
}

impl Replace {
    #[inline]
    fn decode(&self) -> Result<ReplaceOrder, CodecError> {
        Ok(ReplaceOrder {
            orig_user_ref: UserRefNum(self.orig_user_ref.get()),
            user_ref: UserRefNum(self.user_ref.get()),
            qty: Qty(self.qty.get()),
            price: Price(self.price.get()),
            time_in_force: value("time_in_force", self.time_in_force, TimeInForce::from_code)?,
            post_only: value("post_only", self.post_only, flag)?,
            min_qty: Qty(self.min_qty.get()),
            special: None,
            attributes: self.attributes.into(),
            client_order_id: ClientOrderId(self.client_order_id),
        })
    }
}

impl From<OrderAttributes> for Attributes {
    #[inline]
    fn from(attributes: OrderAttributes) -> Attributes {
        let OrderAttributes { display, capacity, intermarket_sweep, cross_type } = attributes;
        Attributes { display, capacity, intermarket_sweep, cross_type }
    }
}

impl From<Attributes> for OrderAttributes {
    #[inline]
    fn from(attributes: Attributes) -> OrderAttributes {
        let Attributes { display, capacity, intermarket_sweep, cross_type } = attributes;
        OrderAttributes { display, capacity, intermarket_sweep, cross_type }
    }
}

impl InstrumentState {
    fn new(instrument: InstrumentId, state: TradingState) -> InstrumentState {
        InstrumentState { instrument: instrument.0.into(), state: state.code() }
    }

    fn decode(&self) -> Result<(InstrumentId, TradingState), CodecError> {
        let state = value("state", self.state, TradingState::from_code)?;
        Ok((InstrumentId(self.instrument.get()), state))
    }
}

const fn flag(code: u8) -> Option<bool> {
    match code {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

#[inline]
fn value<T>(field: &'static str, code: u8, from_code: impl Fn(u8) -> Option<T>) -> Result<T, CodecError> {
    from_code(code).ok_or(CodecError::Value { field, value: code })
}

#[inline]
fn zero(field: &'static str, code: u8) -> Result<(), CodecError> {
    if code == 0 { Ok(()) } else { Err(CodecError::Value { field, value: code }) }
}
