//! Encoding of a replica as the payload of a snapshot, and decoding.
//!
//! Little-endian fields in sequence: `TPVENUE`; a version byte; the definition; the replayed state; the
//! engine's own snapshot after its length; each user's stream; the market data stream. Version 1 has no
//! crosses and no schedule; versions 1 and 2 have only the user limits that the engine checks. A stream is
//! its first and next sequence number, its digest, and its messages, each after a length of 2 bytes.

use tickpath_matching::{CommandKind, Engine, EngineError, EngineLimits, SnapshotError};
use tickpath_types::{CrossKind, Instrument, InstrumentId, Nanos, Price, Qty, Symbol, SystemEventCode};

use super::{Definition, OutboundStreams, ReplayedState, Replica, Stream, table_of};
use crate::day::ReplayedDay;
use crate::entitlements::{Configured, ReplayedUser};
use crate::message_log::MessageLog;
use crate::token_bucket::RateLimit;
use crate::user_limits::UserLimits;

/// First bytes of a snapshot, followed by the version.
const MAGIC: [u8; 7] = *b"TPVENUE";
/// The version written; earlier versions are read too.
const VERSION: u8 = 3;
/// A larger decoded count is an error, so that damaged bytes cause no large allocation.
const COUNT_MAX: u64 = 1 << 26;

/// A replica could not be created or restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// The snapshot is damaged: use an older one.
    #[error("not a venue's snapshot, or it is damaged: {0}")]
    Damaged(&'static str),
    /// The snapshot's version is unsupported: use the version of the program that wrote it.
    #[error(
        "version {0} of a venue's snapshot, which this program cannot read: use the version of the program that \
         wrote it"
    )]
    Version(u8),
    /// Instruments of the session are missing: add them to the file, or begin a new session.
    #[error(
        "the instrument file lacks instruments of the journal's session: {0}; put them back (tickpath admin instrument \
         suspend SYMBOL takes one out of trading), or begin another session by --new-session"
    )]
    InstrumentsMissing(String),
    /// An instrument's definition has changed: restore it, or begin a new session.
    #[error(
        "instrument {symbol} has changed since the journal's session added it ({field}): put its definition back, or begin \
         another session by --new-session"
    )]
    InstrumentChanged {
        /// Symbol of the instrument.
        symbol: Symbol,
        /// Name of the changed field, with its old and its new value.
        field: String,
    },
    /// The file lists instruments in another order: restore the order, new ones last, or begin a new session.
    #[error(
        "instrument {symbol} is at place {id} of the instrument file, which is that of {known} in the journal's \
         session: list the instruments in the order in which the session added them, with new ones behind them all, or \
         begin another session by --new-session"
    )]
    InstrumentMisplaced {
        /// Symbol in the file.
        symbol: Symbol,
        /// Position in the file, which is the instrument id.
        id: InstrumentId,
        /// Symbol of this id in the session.
        known: Symbol,
    },
    /// The users changed: restore them in their order, with new ones last, or begin a new session.
    #[error(
        "the users of the journal's session are {0}: keep them in this order, with new ones behind them, or \
         begin another session by --new-session"
    )]
    Users(String),
    /// The session's fixed maximum number of users is not that of the configuration: begin a new session.
    #[error(
        "the journal's session has room for {capacity} users, which is fixed while it lasts (max_sessions {expected}, not {found}): \
         configure no more, or begin another session by --new-session",
        capacity = expected - 1
    )]
    Capacity {
        /// `max_sessions`, fixed when the journal's session began: the maximum number of users plus one.
        expected: u16,
        /// `max_sessions` that the configuration requires.
        found: u16,
    },
    /// The engine's state cannot be restored: use an older snapshot, or raise the limits.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The engine rejects the instruments: correct them.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

const fn damaged(field: &'static str) -> ReplicaError {
    ReplicaError::Damaged(field)
}

impl Replica {
    /// Appends the encoding to `out`: all books and all kept messages, so it is too slow for the hot path.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Replica { definition, engine, streams, replayed } = self;
        out.extend(MAGIC);
        out.push(VERSION);
        definition.put(out);
        put_replayed(out, replayed);
        let at = out.len();
        0_u64.put(out);
        engine.snapshot(out);
        let len = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&len.to_le_bytes());
        streams.users.iter().for_each(|user| put_stream(out, user));
        put_stream(out, &streams.market);
    }

    /// Decodes the replica that [`Replica::encode`] wrote.
    ///
    /// # Errors
    /// [`ReplicaError`] when the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Result<Replica, ReplicaError> {
        let mut fields = Fields { bytes };
        if fields.array("header")? != MAGIC {
            return Err(damaged("header"));
        }
        let [version] = fields.array("header")?;
        if !(1..=VERSION).contains(&version) {
            return Err(ReplicaError::Version(version));
        }
        let definition: Definition = fields.take("definition")?;
        if (1_usize..).zip(&definition.instruments).any(|(place, it)| usize::from(it.id.0) != place) {
            return Err(damaged("instruments"));
        }
        let replayed = fields.replayed(definition.users.len(), version)?;
        let len: u64 = fields.take("engine")?;
        let state = usize::try_from(len).ok().and_then(|len| fields.slice(len)).ok_or(damaged("engine"))?;
        let engine = Engine::restore(&definition.instruments, definition.limits, state)?;
        let users = definition.users.iter().map(|_| fields.stream(definition.retained_responses));
        let users = users.collect::<Result<_, _>>()?;
        let market = fields.stream(definition.retained_messages)?;
        if !fields.bytes.is_empty() {
            return Err(damaged("length"));
        }
        let streams = OutboundStreams {
            table: table_of(&definition, &engine),
            users,
            market,
            unencodable: None,
            undeliverable: None,
        };
        Ok(Replica { definition, engine: Box::new(engine), streams, replayed })
    }
}

/// A part of a snapshot, encoded as in the current version.
trait Part: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Reads the bytes that [`Part::put`] writes; `field` names the part in errors.
    fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<Self, ReplicaError>;
}

/// Implements `Part` for values of fixed length: 8 bytes for integers of any width, 1 for codes.
macro_rules! values {
    ($($Value:ty: |$value:ident| $bytes:expr, $of:expr;)*) => { $(
        impl Part for $Value {
            fn put(&self, out: &mut Vec<u8>) {
                let $value = *self;
                out.extend($bytes);
            }

            fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<$Value, ReplicaError> {
                fields.array(field).map($of)?.ok_or(damaged(field))
            }
        }
    )* };
}

values! {
    u16: |number| u64::from(number).to_le_bytes(), |bytes| u64::from_le_bytes(bytes).try_into().ok();
    u32: |number| u64::from(number).to_le_bytes(), |bytes| u64::from_le_bytes(bytes).try_into().ok();
    u64: |number| number.to_le_bytes(), |bytes| Some(u64::from_le_bytes(bytes));
    usize: |count| (count as u64).to_le_bytes(), |bytes| count(u64::from_le_bytes(bytes));
    InstrumentId: |id| u64::from(id.0).to_le_bytes(),
        |bytes| u64::from_le_bytes(bytes).try_into().ok().map(InstrumentId);
    Nanos: |time| time.0.to_le_bytes(), |bytes| Some(Nanos(u64::from_le_bytes(bytes)));
    Qty: |qty| qty.0.to_le_bytes(), |bytes| Some(Qty(u64::from_le_bytes(bytes)));
    Price: |price| price.0.to_le_bytes(), |bytes| Some(Price(i64::from_le_bytes(bytes)));
    Symbol: |symbol| symbol.0, |bytes| Some(Symbol(bytes));
    bool: |flag| [u8::from(flag)], |[code]: [u8; 1]| [false, true].get(usize::from(code)).copied();
    SystemEventCode: |system_event| [system_event.code()], |[code]| SystemEventCode::from_code(code);
    CrossKind: |cross| [cross.code()], |[code]| CrossKind::from_code(code);
}

fn count(number: u64) -> Option<usize> {
    (number <= COUNT_MAX).then_some(number as usize)
}

/// Implements `Part` for structures as their fields in order. Errors name a field by its literal or, if it
/// has none, by the name passed to `take`.
macro_rules! structures {
    ($($Type:ident { $($field:ident $(= $name:literal)?),* $(,)? })*) => { $(
        impl Part for $Type {
            fn put(&self, out: &mut Vec<u8>) {
                let $Type { $($field),* } = self;
                $($field.put(out);)*
            }

            fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<$Type, ReplicaError> {
                $(let $field = Part::take(fields, [$($name,)? field][0])?;)*
                Ok($Type { $($field),* })
            }
        }
    )* };
}

structures! {
    Definition {
        limits = "limits",
        retained_responses = "retained_responses",
        retained_messages = "retained_messages",
        users = "users",
        instruments = "instruments",
    }
    EngineLimits {
        max_open_orders,
        max_open_orders_per_session,
        max_sessions,
        max_index_pages,
        max_index_pages_per_session,
        max_special_orders,
        max_recent_executions,
        max_instruments,
    }
    Instrument { id, symbol, tick_size, reference_price, collar_low, collar_high, lot_size, max_qty }
    ReplayedDay { system_events = "stages", opened = "opened", crosses = "crosses", schedule = "schedule" }
    ReplayedUser { is_killed = "is_killed", limits, configured, commanded }
    Configured { limits, instruments }
}

impl Part for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend(self.as_bytes());
    }

    fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<String, ReplicaError> {
        let len = usize::take(fields, field)?;
        let text = fields.slice(len).and_then(|text| std::str::from_utf8(text).ok());
        text.map(str::to_owned).ok_or(damaged(field))
    }
}

impl<T: Part> Part for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|part| part.put(out));
    }

    fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<Vec<T>, ReplicaError> {
        (0..usize::take(fields, field)?).map(|_| T::take(fields, field)).collect()
    }
}

impl<A: Part, B: Part> Part for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<(A, B), ReplicaError> {
        Ok((A::take(fields, field)?, B::take(fields, field)?))
    }
}

impl<T: Part> Part for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|part| part.put(out));
    }

    fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<Option<T>, ReplicaError> {
        bool::take(fields, field)?.then(|| T::take(fields, field)).transpose()
    }
}

/// Each limit is a flag and a value; an unset limit has the value 0.
impl Part for UserLimits {
    fn put(&self, out: &mut Vec<u8>) {
        let UserLimits { rate, open_orders, order_qty, order_notional } = *self;
        let rate = rate.map(|RateLimit { per_second, burst }| [per_second, burst].map(u64::from));
        let engine = [open_orders.map(u64::from), order_qty.map(|qty| qty.0), order_notional];
        for limit in rate.map_or([None, None], |rate| rate.map(Some)).into_iter().chain(engine) {
            (limit.is_some(), limit.unwrap_or(0)).put(out);
        }
    }

    fn take(fields: &mut Fields<'_>, field: &'static str) -> Result<UserLimits, ReplicaError> {
        fn limit<T: Part>(fields: &mut Fields<'_>, field: &'static str) -> Result<Option<T>, ReplicaError> {
            Part::take(fields, field).map(|(is_set, limit): (bool, T)| is_set.then_some(limit))
        }
        let (per_second, burst) = (limit(fields, field)?, limit(fields, field)?);
        let rate = per_second.zip(burst).map(|(per_second, burst)| RateLimit { per_second, burst });
        let (open_orders, order_qty) = (limit(fields, field)?, limit(fields, field)?);
        Ok(UserLimits { rate, open_orders, order_qty, order_notional: limit(fields, field)? })
    }
}

fn put_replayed(out: &mut Vec<u8>, replayed: &ReplayedState) {
    let ReplayedState { last_ts, is_killed, day, users } = replayed;
    (*last_ts, *is_killed).put(out);
    day.put(out);
    users.iter().for_each(|user| user.put(out));
}

fn put_stream<const LEN_MAX: usize>(out: &mut Vec<u8>, Stream { messages, digest }: &Stream<LEN_MAX>) {
    let (first, next) = (messages.oldest(), messages.next_sequence());
    ((first, next), *digest).put(out);
    for message in (first..next).filter_map(|sequence| messages.message(sequence)) {
        out.extend((message.len() as u16).to_le_bytes());
        out.extend(message);
    }
}

/// The bytes of a snapshot that have not been decoded yet.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(slice)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ReplicaError> {
        self.slice(N).and_then(|slice| slice.try_into().ok()).ok_or(damaged(field))
    }

    fn take<T: Part>(&mut self, field: &'static str) -> Result<T, ReplicaError> {
        T::take(self, field)
    }

    fn replayed(&mut self, user_count: usize, version: u8) -> Result<ReplayedState, ReplicaError> {
        let (last_ts, is_killed) = (self.take("time")?, self.take("is_killed")?);
        let day = if version > 1 {
            self.take("day")?
        } else {
            let (system_events, opened) = (self.take("stages")?, self.take("opened")?);
            ReplayedDay { system_events, opened, ..ReplayedDay::default() }
        };
        let user = |_| if version > 2 { self.take("user limits") } else { self.user_without_configured() };
        let users = (0..user_count).map(user).collect::<Result<_, _>>()?;
        Ok(ReplayedState { last_ts, is_killed, day, users })
    }

    /// Reads the state of a user as encoded in versions 1 and 2.
    fn user_without_configured(&mut self) -> Result<ReplayedUser, ReplicaError> {
        let mut user = ReplayedUser { is_killed: self.take("is_killed")?, ..ReplayedUser::default() };
        if let Some(((open_orders, order_qty), order_notional)) = self.take("user limits")? {
            user.update(&CommandKind::SetLimits { open_orders, order_qty, order_notional }.into());
        }
        Ok(ReplayedUser { configured: None, ..user })
    }

    /// Reads the stream's first and next sequence number, its digest, and its messages.
    fn stream<const LEN_MAX: usize>(&mut self, capacity: usize) -> Result<Stream<LEN_MAX>, ReplicaError> {
        let ((first, next), digest): ((u64, u64), u64) = self.take("messages")?;
        if first == 0 || first > next || next - first > COUNT_MAX {
            return Err(damaged("messages"));
        }
        let mut messages = MessageLog::starting_at(first, capacity);
        for _ in first..next {
            let len = usize::from(u16::from_le_bytes(self.array("messages")?));
            let message = self.slice(len).filter(|_| (1..=LEN_MAX).contains(&len));
            messages.append(message.ok_or(damaged("messages"))?);
        }
        Ok(Stream { messages, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_command::VenueCommandKind;

    /// Writes the replayed state as versions 1 and 2 did, for a venue with one user and no schedule.
    fn put_replayed_before(out: &mut Vec<u8>, version: u8, limits: Option<[u64; 3]>) {
        let replayed =
            ReplayedState { last_ts: Nanos(7), is_killed: false, day: ReplayedDay::default(), users: vec![] };
        let at = out.len();
        put_replayed(out, &replayed);
        if version == 1 {
            // Remove the fields after the opened instruments, which version 1 lacks.
            out.truncate(at + 8 + 1 + 8 + 8);
        }
        out.extend([1, limits.is_some().into()]);
        limits.into_iter().flatten().for_each(|limit: u64| limit.put(out));
    }

    #[test]
    fn earlier_snapshot_versions_are_read() {
        let definition = Definition {
            instruments: Vec::new(),
            limits: EngineLimits { max_open_orders: 4, max_sessions: 2, ..EngineLimits::default() },
            users: vec!["ANNA".to_owned()],
            retained_responses: 4,
            retained_messages: 4,
        };
        let mut replica = Replica::new(definition).unwrap();
        replica.replayed.users[0].update(
            &VenueCommandKind::AllowInstrument { instrument: InstrumentId(3), is_allowed: true }.into(),
        );
        replica.replayed.users[0]
            .update(&VenueCommandKind::SetMessageRate { per_second: 10, burst: 20 }.into());
        let mut now = Vec::new();
        replica.encode(&mut now);
        assert_eq!(Replica::decode(&now).unwrap().replayed, replica.replayed);

        let (mut head, mut replayed) = (Vec::new(), Vec::new());
        replica.definition.put(&mut head);
        put_replayed(&mut replayed, &replica.replayed);
        let rest = &now[8 + head.len() + replayed.len()..];
        for version in [1, 2] {
            for limits in [None, Some([5, 6, 7])] {
                let mut before = [&b"TPVENUE"[..], &[version], &head].concat();
                put_replayed_before(&mut before, version, limits);
                before.extend(rest);
                let replayed = Replica::decode(&before).unwrap().replayed;
                let (open_orders, order_qty, order_notional) = (Some(5), Some(Qty(6)), Some(7));
                let engine = UserLimits { rate: None, open_orders, order_qty, order_notional };
                let user = ReplayedUser {
                    is_killed: true,
                    limits: limits.map_or(UserLimits::default(), |_| engine),
                    configured: None,
                    commanded: Vec::new(),
                };
                assert_eq!((replayed.users, replayed.last_ts), (vec![user], Nanos(7)), "{version}");
            }
        }
        for version in [0, VERSION + 1] {
            now[7] = version;
            assert_eq!(Replica::decode(&now).err(), Some(ReplicaError::Version(version)));
        }
        now[0] ^= 1;
        assert_eq!(Replica::decode(&now).err(), Some(damaged("header")));
    }
}
