//! A replica as the payload of a snapshot, and back.
//!
//! Little-endian fields, one after the other: `TPVENUE`, a version byte, of which 1 knows no announced crosses and no
//! schedule, and 1 and 2 know of each user's limits only what the engine was told; the definition; the facts; the
//! engine's own snapshot with its length; each user's stream; the market's. A stream is its first and next sequence, its
//! digest, and its messages, each with a length of 2 bytes.

use tickpath_matching::{CommandKind, Engine, EngineError, EngineLimits, SnapshotError};
use tickpath_types::{CrossKind, Instrument, InstrumentId, Nanos, Price, Qty, Symbol, SystemEventCode};

use super::{Definition, OutboundStreams, ReplayedState, Replica, Stream, table_of};
use crate::day::ReplayedDay;
use crate::entitlements::{Configured, ReplayedUser};
use crate::message_log::MessageLog;
use crate::token_bucket::RateLimit;
use crate::user_limits::UserLimits;

/// First bytes of a snapshot, before its version.
const MAGIC: [u8; 7] = *b"TPVENUE";
/// The version that is written; those before it are read too.
const VERSION: u8 = 3;
/// Most that a count can be, so that damage does not allocate.
const COUNT_MAX: u64 = 1 << 26;

/// The state that a log leads to was not restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// Take an older snapshot.
    #[error("not a venue's snapshot, or it is damaged: {field}")]
    Damaged {
        /// Where it was noticed.
        field: &'static str,
    },
    /// Use the version of the program that wrote it.
    #[error(
        "version {version} of a venue's snapshot, which this program cannot read: use the version of the program that \
         wrote it"
    )]
    Version {
        /// What it says.
        version: u8,
    },
    /// Give the venue the instruments that it had, or begin a new session.
    #[error(
        "the instrument file lacks what the journal's session has: {symbols}; put them back (tickpath admin instrument \
         suspend SYMBOL takes one out of trading), or begin another session by --new-session"
    )]
    InstrumentsGone {
        /// All of them.
        symbols: String,
    },
    /// Give the instrument the definition that it had, or begin a new session.
    #[error(
        "instrument {symbol} has changed since the journal's session got it ({field}): put its definition back, or begin \
         another session by --new-session"
    )]
    InstrumentChanged {
        /// Which.
        symbol: Symbol,
        /// What of it, was and is.
        field: String,
    },
    /// List the instruments in their order, new ones behind them all, or begin a new session.
    #[error(
        "instrument {symbol} stands at place {id} of the instrument file, which is that of {known} in the journal's \
         session: list the instruments in the order in which the session got them, with new ones behind them all, or \
         begin another session by --new-session"
    )]
    InstrumentMisplaced {
        /// The one of the file.
        symbol: Symbol,
        /// Its place, which is its id.
        id: InstrumentId,
        /// The one of the session.
        known: Symbol,
    },
    /// Give the venue the users that it had, more only behind them, or begin a new session.
    #[error(
        "the users of the journal's session are {names}: keep them in this order, with new ones behind them, or \
         begin another session by --new-session"
    )]
    Users {
        /// Their names.
        names: String,
    },
    /// Begin a new session, which has room for the users that there are then and some more.
    #[error(
        "the journal's session has room for {room} users, which is fixed while it lasts (max_sessions {expected}, not {found}): \
         configure no more, or begin another session by --new-session",
        room = expected - 1
    )]
    Room {
        /// The bound of the session.
        expected: u16,
        /// What the users that are configured need.
        found: u16,
    },
    /// Take an older snapshot, or raise the limits.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Correct the instruments.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

const fn damaged(field: &'static str) -> ReplicaError {
    ReplicaError::Damaged { field }
}

impl Replica {
    /// Appends everything to `out`. Walks all books and copies all messages that are kept: off the hot path.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Replica { definition, engine, streams, replayed } = self;
        out.extend(MAGIC);
        out.push(VERSION);
        put_definition(out, definition);
        put_facts(out, replayed);
        let at = out.len();
        put(out, 0);
        engine.snapshot(out);
        let len = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&len.to_le_bytes());
        streams.users.iter().for_each(|user| put_stream(out, user));
        put_stream(out, &streams.market);
    }

    /// The replica whose [`Replica::encode`] these bytes are.
    ///
    /// # Errors
    /// [`ReplicaError`] when they are not.
    pub fn decode(bytes: &[u8]) -> Result<Replica, ReplicaError> {
        let mut fields = Fields { bytes };
        if fields.take("header")? != MAGIC {
            return Err(damaged("header"));
        }
        let [version] = fields.take("header")?;
        if !(1..=VERSION).contains(&version) {
            return Err(ReplicaError::Version { version });
        }
        let definition = fields.definition()?;
        let replayed = fields.replayed(definition.users.len(), version)?;
        let len = fields.u64("engine")?;
        let state = usize::try_from(len).ok().and_then(|len| fields.slice(len)).ok_or(damaged("engine"))?;
        let engine = Engine::restore(&definition.instruments, definition.limits, state)?;
        let mut users = Vec::with_capacity(definition.users.len());
        for _ in &definition.users {
            users.push(fields.stream(definition.retained_responses)?);
        }
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

fn put(out: &mut Vec<u8>, field: u64) {
    out.extend(field.to_le_bytes());
}

fn put_definition(out: &mut Vec<u8>, definition: &Definition) {
    let Definition { instruments, limits, users, retained_responses, retained_messages } = definition;
    let EngineLimits {
        max_open_orders,
        max_open_orders_per_session,
        max_sessions,
        max_index_pages,
        max_index_pages_per_session,
        max_special_orders,
        max_recent_executions,
        max_instruments,
    } = *limits;
    for limit in [
        max_open_orders,
        max_open_orders_per_session,
        max_sessions.into(),
        max_index_pages,
        max_index_pages_per_session,
        max_special_orders,
        max_recent_executions,
        max_instruments.into(),
    ] {
        put(out, limit.into());
    }
    put(out, *retained_responses as u64);
    put(out, *retained_messages as u64);
    put(out, users.len() as u64);
    for user in users {
        put(out, user.len() as u64);
        out.extend(user.as_bytes());
    }
    put(out, instruments.len() as u64);
    for instrument in instruments {
        let Instrument { id, symbol, tick_size, lot_size, max_qty, reference_price, collar_low, collar_high } =
            *instrument;
        put(out, id.0.into());
        out.extend(symbol.0);
        for price in [tick_size, reference_price, collar_low, collar_high] {
            out.extend(price.0.to_le_bytes());
        }
        put(out, lot_size.0);
        put(out, max_qty.0);
    }
}

fn put_facts(out: &mut Vec<u8>, replayed: &ReplayedState) {
    let ReplayedState { last_ts, is_killed, day, users } = replayed;
    let ReplayedDay { stages, opened, crosses, schedule } = day;
    put(out, last_ts.0);
    out.push((*is_killed).into());
    put(out, stages.len() as u64);
    out.extend(stages.iter().map(|stage| stage.code()));
    put(out, opened.len() as u64);
    opened.iter().for_each(|id| put(out, id.0.into()));
    put(out, crosses.len() as u64);
    for (id, cross) in crosses {
        put(out, id.0.into());
        out.push(cross.code());
    }
    out.push(schedule.is_some().into());
    if let Some((day, second)) = schedule {
        put(out, (*day).into());
        put(out, (*second).into());
    }
    for ReplayedUser { is_killed, limits, configured, commanded } in users {
        out.push((*is_killed).into());
        put_limits(out, limits);
        out.push(configured.is_some().into());
        if let Some(Configured { limits, instruments }) = configured {
            put_limits(out, limits);
            put(out, *instruments);
        }
        put(out, commanded.len() as u64);
        for (id, is_allowed) in commanded {
            put(out, id.0.into());
            out.push((*is_allowed).into());
        }
    }
}

fn put_limits(out: &mut Vec<u8>, limits: &UserLimits) {
    let UserLimits { rate, open_orders, order_qty, order_notional } = *limits;
    let rate = rate.map(|RateLimit { per_second, burst }| [per_second, burst].map(u64::from));
    let engine = [open_orders.map(u64::from), order_qty.map(|qty| qty.0), order_notional];
    for limit in rate.map_or([None, None], |rate| rate.map(Some)).into_iter().chain(engine) {
        out.push(limit.is_some().into());
        put(out, limit.unwrap_or(0));
    }
}

fn put_stream<const LEN_MAX: usize>(out: &mut Vec<u8>, Stream { messages, digest }: &Stream<LEN_MAX>) {
    let (first, next) = (messages.oldest(), messages.next_sequence());
    [first, next, *digest].into_iter().for_each(|field| put(out, field));
    for message in (first..next).filter_map(|sequence| messages.message(sequence)) {
        out.extend((message.len() as u16).to_le_bytes());
        out.extend(message);
    }
}

/// What is left to be read.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(slice)
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ReplicaError> {
        self.slice(N).and_then(|slice| slice.try_into().ok()).ok_or(damaged(field))
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, ReplicaError> {
        self.take(field).map(u64::from_le_bytes)
    }

    fn small<T: TryFrom<u64>>(&mut self, field: &'static str) -> Result<T, ReplicaError> {
        self.u64(field)?.try_into().map_err(|_| damaged(field))
    }

    fn count(&mut self, field: &'static str) -> Result<usize, ReplicaError> {
        match self.u64(field)? {
            count if count <= COUNT_MAX => Ok(count as usize),
            _ => Err(damaged(field)),
        }
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, ReplicaError> {
        match self.take(field)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(damaged(field)),
        }
    }

    fn price(&mut self, field: &'static str) -> Result<Price, ReplicaError> {
        self.take(field).map(|bytes| Price(i64::from_le_bytes(bytes)))
    }

    fn definition(&mut self) -> Result<Definition, ReplicaError> {
        let limits = EngineLimits {
            max_open_orders: self.small("limits")?,
            max_open_orders_per_session: self.small("limits")?,
            max_sessions: self.small("limits")?,
            max_index_pages: self.small("limits")?,
            max_index_pages_per_session: self.small("limits")?,
            max_special_orders: self.small("limits")?,
            max_recent_executions: self.small("limits")?,
            max_instruments: self.small("limits")?,
        };
        let retained_responses = self.count("retained_responses")?;
        let retained_messages = self.count("retained_messages")?;
        let mut users = Vec::new();
        for _ in 0..self.count("users")? {
            let len = self.count("users")?;
            let name = self.slice(len).and_then(|name| std::str::from_utf8(name).ok());
            users.push(name.ok_or(damaged("users"))?.to_owned());
        }
        let mut instruments = Vec::new();
        for place in 1..=self.count("instruments")? {
            let instrument = self.instrument()?;
            if usize::from(instrument.id.0) != place {
                return Err(damaged("instruments"));
            }
            instruments.push(instrument);
        }
        Ok(Definition { instruments, limits, users, retained_responses, retained_messages })
    }

    fn instrument(&mut self) -> Result<Instrument, ReplicaError> {
        let field = "instruments";
        let (id, symbol) = (InstrumentId(self.small(field)?), Symbol(self.take(field)?));
        let (tick_size, reference_price) = (self.price(field)?, self.price(field)?);
        let (collar_low, collar_high) = (self.price(field)?, self.price(field)?);
        let (lot_size, max_qty) = (Qty(self.u64(field)?), Qty(self.u64(field)?));
        Ok(Instrument { id, symbol, tick_size, lot_size, max_qty, reference_price, collar_low, collar_high })
    }

    fn replayed(&mut self, user_count: usize, version: u8) -> Result<ReplayedState, ReplicaError> {
        let last_ts = Nanos(self.u64("time")?);
        let is_killed = self.flag("is_killed")?;
        let mut stages = Vec::new();
        for _ in 0..self.count("stages")? {
            let [code] = self.take("stages")?;
            stages.push(SystemEventCode::from_code(code).ok_or(damaged("stages"))?);
        }
        let mut opened = Vec::new();
        for _ in 0..self.count("opened")? {
            opened.push(InstrumentId(self.small("opened")?));
        }
        let (mut crosses, mut schedule) = (Vec::new(), None);
        if version > 1 {
            for _ in 0..self.count("crosses")? {
                let (id, [code]) = (InstrumentId(self.small("crosses")?), self.take("crosses")?);
                crosses.push((id, CrossKind::from_code(code).ok_or(damaged("crosses"))?));
            }
            if self.flag("schedule")? {
                schedule = Some((self.small("schedule")?, self.small("schedule")?));
            }
        }
        let mut users = Vec::new();
        for _ in 0..user_count {
            users.push(if version > 2 { self.user()? } else { self.user_without_notes()? });
        }
        let day = ReplayedDay { stages, opened, crosses, schedule };
        Ok(ReplayedState { last_ts, is_killed, day, users })
    }

    fn user(&mut self) -> Result<ReplayedUser, ReplicaError> {
        let field = "user limits";
        let (is_killed, limits) = (self.flag("is_killed")?, self.limits()?);
        let configured = match self.flag(field)? {
            false => None,
            true => Some(Configured { limits: self.limits()?, instruments: self.u64(field)? }),
        };
        let mut commanded = Vec::new();
        for _ in 0..self.count(field)? {
            commanded.push((InstrumentId(self.small(field)?), self.flag(field)?));
        }
        Ok(ReplayedUser { is_killed, limits, configured, commanded })
    }

    fn limits(&mut self) -> Result<UserLimits, ReplicaError> {
        let (per_second, burst) = (self.limit()?, self.limit()?);
        let rate = per_second.zip(burst).map(|(per_second, burst)| RateLimit { per_second, burst });
        Ok(UserLimits {
            rate,
            open_orders: self.limit()?,
            order_qty: self.limit()?.map(Qty),
            order_notional: self.limit()?,
        })
    }

    fn limit<T: TryFrom<u64>>(&mut self) -> Result<Option<T>, ReplicaError> {
        let (is_there, limit) = (self.flag("user limits")?, self.small("user limits")?);
        Ok(is_there.then_some(limit))
    }

    /// As versions 1 and 2 have it.
    fn user_without_notes(&mut self) -> Result<ReplayedUser, ReplicaError> {
        let mut user = ReplayedUser { is_killed: self.flag("is_killed")?, ..ReplayedUser::default() };
        if self.flag("user limits")? {
            let (open_orders, order_qty) = (self.small("user limits")?, Qty(self.u64("user limits")?));
            let order_notional = self.u64("user limits")?;
            user.note(&CommandKind::SetLimits { open_orders, order_qty, order_notional }.into());
        }
        Ok(ReplayedUser { configured: None, ..user })
    }

    /// First and next sequence, and the digest.
    fn stream<const LEN_MAX: usize>(&mut self, capacity: usize) -> Result<Stream<LEN_MAX>, ReplicaError> {
        let (first, next) = (self.u64("messages")?, self.u64("messages")?);
        if first == 0 || first > next || next - first > COUNT_MAX {
            return Err(damaged("messages"));
        }
        let digest = self.u64("messages")?;
        let mut messages = MessageLog::starting_at(first, capacity);
        for _ in first..next {
            let len = usize::from(u16::from_le_bytes(self.take("messages")?));
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

    /// What versions 1 and 2 wrote of the facts, of a venue without a schedule and one user.
    fn put_facts_before(out: &mut Vec<u8>, version: u8, limits: Option<[u64; 3]>) {
        let replayed =
            ReplayedState { last_ts: Nanos(7), is_killed: false, day: ReplayedDay::default(), users: vec![] };
        let at = out.len();
        put_facts(out, &replayed);
        if version == 1 {
            // Behind the stages and the opened instruments.
            out.truncate(at + 8 + 1 + 8 + 8);
        }
        out.extend([1, limits.is_some().into()]);
        limits.into_iter().flatten().for_each(|limit| put(out, limit));
    }

    #[test]
    fn snapshots_of_the_versions_before_are_read() {
        let definition = Definition {
            instruments: Vec::new(),
            limits: EngineLimits { max_open_orders: 4, max_sessions: 2, ..EngineLimits::default() },
            users: vec!["ANNA".to_owned()],
            retained_responses: 4,
            retained_messages: 4,
        };
        let mut replica = Replica::new(definition).unwrap();
        replica.replayed.users[0].note(
            &VenueCommandKind::AllowInstrument { instrument: InstrumentId(3), is_allowed: true }.into(),
        );
        replica.replayed.users[0]
            .note(&VenueCommandKind::SetMessageRate { per_second: 10, burst: 20 }.into());
        let mut now = Vec::new();
        replica.encode(&mut now);
        assert_eq!(Replica::decode(&now).unwrap().replayed, replica.replayed);

        let (mut head, mut replayed) = (Vec::new(), Vec::new());
        put_definition(&mut head, &replica.definition);
        put_facts(&mut replayed, &replica.replayed);
        let rest = &now[8 + head.len() + replayed.len()..];
        for version in [1, 2] {
            for limits in [None, Some([5, 6, 7])] {
                let mut before = [&b"TPVENUE"[..], &[version], &head].concat();
                put_facts_before(&mut before, version, limits);
                before.extend(rest);
                let replayed = Replica::decode(&before).unwrap().replayed;
                let engine = UserLimits {
                    rate: None,
                    open_orders: Some(5),
                    order_qty: Some(Qty(6)),
                    order_notional: Some(7),
                };
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
            assert_eq!(Replica::decode(&now).err(), Some(ReplicaError::Version { version }));
        }
        now[0] ^= 1;
        assert_eq!(Replica::decode(&now).err(), Some(damaged("header")));
    }
}
