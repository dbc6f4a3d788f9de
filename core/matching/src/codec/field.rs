//! The binary encoding of single fields of commands.

use tickpath_types::{
    BrokenReason, CancelReason, ClientOrderId, CrossKind, InstrumentId, MatchId, Nanos, Price, Qty,
    RejectReason, SelfTradePrevention, Sequence, SessionId, Side, Symbol, SystemEventCode, TimeInForce,
    TradingState, UserName, UserRefNum,
};

use xxhash_rust::xxh3::Xxh3;

use super::{CodecError, Header};

/// A fixed-length encoding of a value. The value's own type implements it, or a marker type if the encoding
/// is not the usual one.
pub trait Field {
    /// The value that the bytes represent.
    type Value: Copy;
    /// Length of the encoding, in bytes.
    const LEN: usize;
    /// Writes `value` to the next bytes of `out`.
    fn write(value: Self::Value, out: &mut FieldWriter<'_>);
    /// Reads the field's value from the next bytes; errors state the field's `name`.
    ///
    /// # Errors
    /// [`CodecError::Value`] when the bytes encode no value.
    fn read(name: &'static str, bytes: &mut FieldReader<'_>) -> Result<Self::Value, CodecError>;
}

/// Panic message for too few bytes, which cannot occur: the length of all fields is checked first.
const LEN_IS_CHECKED: &str = "the length of all fields was checked";

/// Writes fields one after the other. Lengths are known at compile time, so no bounds check runs.
pub struct FieldWriter<'a>(pub(crate) &'a mut [u8]);

impl FieldWriter<'_> {
    /// Appends `bytes` to those written before.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let (field, rest) = std::mem::take(&mut self.0).split_first_chunk_mut().expect(LEN_IS_CHECKED);
        *field = bytes;
        self.0 = rest;
    }
}

/// Reads fields one after the other, as [`FieldWriter`] writes them.
pub struct FieldReader<'a>(pub(crate) &'a [u8]);

impl<'a> FieldReader<'a> {
    /// A reader of `fields`, the fields of a command kind. Their length must be `len` bytes.
    ///
    /// # Errors
    /// [`CodecError::Length`] when `fields` has another length.
    #[inline(always)]
    pub fn new(tag: u8, fields: &'a [u8], len: usize) -> Result<FieldReader<'a>, CodecError> {
        let (expected, len) = (Header::LEN + len, Header::LEN + fields.len());
        if len == expected { Ok(Self(fields)) } else { Err(CodecError::Length { kind: tag, expected, len }) }
    }

    /// Returns the next `N` bytes and advances past them.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect(LEN_IS_CHECKED);
        self.0 = rest;
        *field
    }
}

/// Maximum encoded length of a field of the engine's state, in bytes.
const HASHED_LEN_MAX: usize = 64;

/// Adds the bytes of a field of the engine's state to a digest.
pub(crate) fn hash_field<F: Field<Value = F>>(field: F, hasher: &mut Xxh3) {
    let mut bytes = [0; HASHED_LEN_MAX];
    F::write(field, &mut FieldWriter(&mut bytes));
    hasher.update(&bytes[..F::LEN]);
}

/// Zero bytes, reserved for later use.
pub struct Reserved<const N: usize>;

impl<const N: usize> Field for Reserved<N> {
    type Value = ();
    const LEN: usize = N;

    #[inline(always)]
    fn write((): (), out: &mut FieldWriter<'_>) {
        out.put([0; N]);
    }

    #[inline(always)]
    fn read(_: &'static str, bytes: &mut FieldReader<'_>) -> Result<(), CodecError> {
        let bytes: [u8; N] = bytes.take();
        if bytes == [0; N] { Ok(()) } else { Err(CodecError::Value { field: "reserved", value: bytes[0] }) }
    }
}

/// A field followed by a reserved byte.
pub struct Spaced<F>(std::marker::PhantomData<F>);

impl<F: Field> Field for Spaced<F> {
    type Value = F::Value;
    const LEN: usize = F::LEN + 1;

    #[inline(always)]
    fn write(value: F::Value, out: &mut FieldWriter<'_>) {
        F::write(value, out);
        Reserved::<1>::write((), out);
    }

    #[inline(always)]
    fn read(name: &'static str, bytes: &mut FieldReader<'_>) -> Result<F::Value, CodecError> {
        let value = F::read(name, bytes)?;
        Reserved::<1>::read(name, bytes)?;
        Ok(value)
    }
}

/// Implements `Field` for integers, and for texts of fixed length, which are stored as their bytes.
macro_rules! plain {
    ($($(const $n:ident,)? $name:ty: $len:tt, |$value:ident| $bytes:expr, $of:expr;)*) => { $(
        impl$(<const $n: usize>)? Field for $name {
            type Value = $name;
            const LEN: usize = $len;

            #[inline(always)]
            fn write($value: $name, out: &mut FieldWriter<'_>) {
                let bytes: [u8; $len] = $bytes;
                out.put(bytes);
            }

            #[inline(always)]
            fn read(_: &'static str, bytes: &mut FieldReader<'_>) -> Result<$name, CodecError> {
                let of: fn([u8; $len]) -> $name = $of;
                Ok(of(bytes.take()))
            }
        }
    )* };
}

plain! {
    u8: 1, |value| [value], |[byte]| byte;
    u16: 2, |value| value.to_le_bytes(), u16::from_le_bytes;
    u32: 4, |value| value.to_le_bytes(), u32::from_le_bytes;
    u64: 8, |value| value.to_le_bytes(), u64::from_le_bytes;
    Price: 8, |value| value.0.to_le_bytes(), |bytes| Price(i64::from_le_bytes(bytes));
    Qty: 8, |value| value.0.to_le_bytes(), |bytes| Qty(u64::from_le_bytes(bytes));
    Nanos: 8, |value| value.0.to_le_bytes(), |bytes| Nanos(u64::from_le_bytes(bytes));
    Sequence: 8, |value| value.0.to_le_bytes(), |bytes| Sequence(u64::from_le_bytes(bytes));
    MatchId: 8, |value| value.0.to_le_bytes(), |bytes| MatchId(u64::from_le_bytes(bytes));
    UserRefNum: 4, |value| value.0.to_le_bytes(), |bytes| UserRefNum(u32::from_le_bytes(bytes));
    InstrumentId: 2, |value| value.0.to_le_bytes(), |bytes| InstrumentId(u16::from_le_bytes(bytes));
    SessionId: 2, |value| value.0.to_le_bytes(), |bytes| SessionId(u16::from_le_bytes(bytes));
    ClientOrderId: 14, |value| value.0, ClientOrderId;
    Symbol: 8, |value| value.0, Symbol;
    UserName: 6, |value| value.0, UserName;
    const N, [u8; N]: N, |value| value, |bytes| bytes;
}

/// Implements `Field` for values that are stored as one byte.
macro_rules! codes {
    ($($name:ty: |$value:ident| $code:expr, $of:expr;)*) => { $(
        impl Field for $name {
            type Value = $name;
            const LEN: usize = 1;

            #[inline(always)]
            fn write($value: $name, out: &mut FieldWriter<'_>) {
                out.put([$code]);
            }

            #[inline(always)]
            fn read(field: &'static str, bytes: &mut FieldReader<'_>) -> Result<$name, CodecError> {
                let [value] = bytes.take();
                let of: fn(u8) -> Option<$name> = $of;
                of(value).ok_or(CodecError::Value { field, value })
            }
        }
    )* };
}

codes! {
    bool: |value| value.into(), flag;
    Side: |value| value.code(), Side::from_code;
    Option<Side>: |value| value.map_or(BOTH_SIDES, Side::code), side_or_both;
    TimeInForce: |value| value.code(), TimeInForce::from_code;
    CancelReason: |value| value.code(), CancelReason::from_code;
    RejectReason: |value| value.code(), RejectReason::from_code;
    BrokenReason: |value| value.code(), BrokenReason::from_code;
    SystemEventCode: |value| value.code(), SystemEventCode::from_code;
    TradingState: |value| value.code(), TradingState::from_code;
    CrossKind: |value| value.code(), CrossKind::from_code;
    SelfTradePrevention: |value| value.code(), SelfTradePrevention::from_code;
}

/// Side code of a request that is not restricted to one side.
const BOTH_SIDES: u8 = 2;

#[inline(always)]
const fn flag(code: u8) -> Option<bool> {
    match code {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

#[inline(always)]
fn side_or_both(code: u8) -> Option<Option<Side>> {
    if code == BOTH_SIDES { Some(None) } else { Side::from_code(code).map(Some) }
}
