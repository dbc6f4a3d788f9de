//! Commands of the log: those that the engine executes, and those that only the venue interprets.

use std::fmt;

use tickpath_book::OrderBooks;
use tickpath_matching::codec::{CommandLayouts, Header};
use tickpath_matching::{
    COMMAND_LEN_MAX, CodecError, Command, CommandKind, Engine, EventListener, Owner, command_layouts,
};
use tickpath_types::{InstrumentId, Nanos, Qty, Sequence, SessionId, UserName};

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCommand {
    /// A command that the engine executes.
    Engine(Command),
    /// A command that the venue interprets. The engine only records its sequence number.
    Venue(VenueCommand),
}

/// A command of the log that the engine does not execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueCommand {
    /// Sequence number in the log.
    pub sequence: Sequence,
    /// The session that the command is about; unused by [`VenueCommandKind::ScheduleDone`].
    pub session: SessionId,
    /// Time at which the command was sequenced, since midnight.
    pub ts: Nanos,
    /// Kind of the command, with its parameters.
    pub kind: VenueCommandKind,
}

/// The kinds of commands that the engine does not execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueCommandKind {
    /// Records that the schedule is completed up to a step; a restarted venue continues with the next one.
    ScheduleDone {
        /// Day of the last completed step, counted from 1970-01-01 in the schedule's time zone.
        day: u32,
        /// Second of the last completed step, since midnight in that time zone.
        second: u32,
    },
    /// Sets the session's message rate.
    SetMessageRate {
        /// Sustained messages per second; 0 for no limit.
        per_second: u32,
        /// Maximum burst after a pause, in messages; unused if `per_second` is 0.
        burst: u32,
    },
    /// Allows or forbids the session to enter orders in an instrument, from this command on.
    AllowInstrument {
        /// The instrument.
        instrument: InstrumentId,
        /// True to allow, false to forbid.
        is_allowed: bool,
    },
    /// Records the limits and the list of instruments that the configuration has for the session. A list that
    /// differs from the last recorded one cancels earlier `AllowInstrument` commands.
    LimitsConfigured {
        /// As [`SetMessageRate::per_second`](Self::SetMessageRate).
        per_second: u32,
        /// As [`SetMessageRate::burst`](Self::SetMessageRate).
        burst: u32,
        /// As in [`CommandKind::SetLimits`].
        open_orders: u32,
        /// As in [`CommandKind::SetLimits`].
        order_qty: Qty,
        /// As in [`CommandKind::SetLimits`].
        order_notional: u64,
        /// Digest of the list of instruments that the session may trade; 0 when it may trade all.
        instruments: u64,
    },
    /// Adds a user; the command's session becomes that user's session.
    AddUser {
        /// The user's name.
        name: UserName,
    },
}

command_layouts! {
    VenueCommandKind {
        27 = ScheduleDone { day: u32, second: u32 },
        28 = SetMessageRate { per_second: u32, burst: u32 },
        29 = AllowInstrument { instrument: InstrumentId, is_allowed: bool },
        30 = LimitsConfigured {
            per_second: u32,
            burst: u32,
            open_orders: u32,
            order_qty: Qty,
            order_notional: u64,
            instruments: u64,
        },
        31 = AddUser { name: UserName },
    }
}

/// The kind of a command of the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LogCommandKind {
    /// A kind that the engine executes.
    Engine(CommandKind),
    /// A kind that the venue interprets.
    Venue(VenueCommandKind),
}

// A ring slot of two cache lines has 120 bytes besides its sequence number.
const _: () = assert!(size_of::<LogCommand>() <= 120);
const _: () = assert!(Header::LEN + VenueCommandKind::LEN_MAX <= COMMAND_LEN_MAX);

impl LogCommand {
    /// Creates a command of this kind with its sequence number in the log.
    #[inline]
    #[must_use]
    pub fn new(sequence: Sequence, session: SessionId, ts: Nanos, kind: LogCommandKind) -> LogCommand {
        match kind {
            LogCommandKind::Engine(kind) => LogCommand::Engine(Command { sequence, session, ts, kind }),
            LogCommandKind::Venue(kind) => LogCommand::Venue(VenueCommand { sequence, session, ts, kind }),
        }
    }

    /// Sequence number in the log, session, and time of sequencing.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> Header {
        match *self {
            LogCommand::Engine(Command { sequence, session, ts, .. })
            | LogCommand::Venue(VenueCommand { sequence, session, ts, .. }) => {
                Header { sequence, session, ts }
            }
        }
    }

    /// Sequence number in the log, counted from 1 without gaps.
    #[inline]
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.header().sequence
    }

    /// The session that sent the command or is its subject; unused by commands about the whole venue.
    #[inline]
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.header().session
    }

    /// Time at which the command was sequenced, since midnight.
    #[inline]
    #[must_use]
    pub const fn ts(&self) -> Nanos {
        self.header().ts
    }

    /// The command's kind.
    #[must_use]
    pub const fn kind(&self) -> LogCommandKind {
        match self {
            LogCommand::Engine(command) => LogCommandKind::Engine(command.kind),
            LogCommand::Venue(command) => LogCommandKind::Venue(command.kind),
        }
    }

    /// The command if the engine executes it; `None` if only the venue interprets it.
    #[inline]
    #[must_use]
    pub const fn engine(&self) -> Option<&Command> {
        if let LogCommand::Engine(command) = self { Some(command) } else { None }
    }

    /// The command's kind if the engine executes it; `None` if only the venue interprets it.
    #[inline]
    #[must_use]
    pub const fn engine_kind(&self) -> Option<&CommandKind> {
        if let LogCommand::Engine(command) = self { Some(&command.kind) } else { None }
    }

    /// True for internal commands of the venue, which no client sent.
    #[inline]
    #[must_use]
    pub const fn is_internal(&self) -> bool {
        !matches!(
            self.engine_kind(),
            Some(CommandKind::Order(_) | CommandKind::GatewayReject { .. } | CommandKind::AccountQuery)
        )
    }

    /// Makes the engine execute the command, or record its sequence number if only the venue interprets it.
    #[inline]
    pub fn apply<B: OrderBooks<Owner>>(&self, engine: &mut Engine<B>, out: &mut impl EventListener) {
        match self {
            LogCommand::Engine(command) => engine.apply(command, out),
            LogCommand::Venue(command) => engine.skip(command.sequence),
        }
    }

    /// Writes the command to the start of `out` and returns its length, at most [`COMMAND_LEN_MAX`].
    ///
    /// # Panics
    /// When `out` is shorter than the encoding; with [`COMMAND_LEN_MAX`] bytes it never is.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> usize {
        match *self {
            LogCommand::Engine(ref command) => command.encode(out),
            LogCommand::Venue(VenueCommand { kind, .. }) => kind.encode(self.header(), out),
        }
    }

    /// Decodes the command that fills `bytes`.
    ///
    /// # Errors
    /// [`CodecError`] when the bytes are not a command that this version knows.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<LogCommand, CodecError> {
        match bytes {
            [tag, ..] if VenueCommandKind::has_tag(*tag) => decode_venue(bytes),
            _ => Command::decode(bytes).map(LogCommand::Engine),
        }
    }
}

#[cold]
fn decode_venue(bytes: &[u8]) -> Result<LogCommand, CodecError> {
    let (Header { sequence, session, ts }, tag, fields) = Header::read(bytes)?;
    let kind = VenueCommandKind::decode(tag, fields)?;
    Ok(LogCommand::Venue(VenueCommand { sequence, session, ts, kind }))
}

impl From<CommandKind> for LogCommandKind {
    #[inline]
    fn from(kind: CommandKind) -> LogCommandKind {
        LogCommandKind::Engine(kind)
    }
}

impl From<VenueCommandKind> for LogCommandKind {
    #[inline]
    fn from(kind: VenueCommandKind) -> LogCommandKind {
        LogCommandKind::Venue(kind)
    }
}

/// Prints the inner kind, without `Engine(...)` or `Venue(...)` around it.
impl fmt::Debug for LogCommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogCommandKind::Engine(kind) => kind.fmt(f),
            LogCommandKind::Venue(kind) => kind.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(command: &LogCommand) -> Vec<u8> {
        let mut bytes = vec![0xee; COMMAND_LEN_MAX];
        let len = command.encode(&mut bytes);
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn commands_are_decoded_as_encoded() {
        let kinds: [LogCommandKind; 6] = [
            CommandKind::EndDay.into(),
            VenueCommandKind::ScheduleDone { day: 0x0102, second: 3 }.into(),
            VenueCommandKind::SetMessageRate { per_second: 4, burst: 5 }.into(),
            VenueCommandKind::AllowInstrument { instrument: InstrumentId(6), is_allowed: true }.into(),
            VenueCommandKind::LimitsConfigured {
                per_second: 7,
                burst: 8,
                open_orders: 9,
                order_qty: Qty(10),
                order_notional: 11,
                instruments: u64::MAX,
            }
            .into(),
            VenueCommandKind::AddUser { name: UserName(*b"BERT  ") }.into(),
        ];
        let lens = kinds.map(|kind| {
            let command = LogCommand::new(Sequence(1 << 40), SessionId(2), Nanos(3), kind);
            let bytes = encoded(&command);
            assert_eq!(LogCommand::decode(&bytes), Ok(command));
            assert_eq!((command.kind(), command.session(), command.ts()), (kind, SessionId(2), Nanos(3)));
            let short = LogCommand::decode(&bytes[..bytes.len() - 1]);
            assert!(matches!(short, Err(CodecError::Length { .. })), "{command:?}");
            bytes.len()
        });
        assert_eq!(lens, [24, 32, 32, 27, 60, 30]);
    }

    #[test]
    fn venue_commands_have_documented_bytes() {
        let kind = VenueCommandKind::AllowInstrument { instrument: InstrumentId(0x0506), is_allowed: true };
        let command = LogCommand::new(Sequence(7), SessionId(3), Nanos(9), kind.into());
        let expected = [
            &[29, 1, 3, 0, 0, 0, 0, 0][..],
            &[7, 0, 0, 0, 0, 0, 0, 0],
            &[9, 0, 0, 0, 0, 0, 0, 0],
            &[6, 5, 1],
        ]
        .concat();
        assert_eq!(encoded(&command), expected);
        let wrong = [&expected[..expected.len() - 1], &[2]].concat();
        assert_eq!(LogCommand::decode(&wrong), Err(CodecError::Value { field: "is_allowed", value: 2 }));
        assert_eq!(format!("{:?}", command.kind()), format!("{kind:?}"));
    }
}
