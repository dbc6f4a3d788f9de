//! The binary format of a log file. Little-endian.
//!
//! | file header | offset | |
//! |---|---|---|
//! | magic | 0 | `TICKGLOG` |
//! | version | 8 | `u32`, 1 |
//! | part | 12 | `u32`, from 0: number of earlier files of the same run |
//! | session | 16 | the run's UUID |
//! | start | 32 | `u64`, UTC of the file's start, in ns |
//! | clock | 40 | `u64`, the gateway's clock at that time, in ns |
//! | sequence | 48 | `u64`, number of the first record |
//! | name | 56 | the gateway's, 32 bytes, padded with zeros |
//! | reserved | 88 | zeros |
//! | checksum | 124 | CRC-32C of all bytes before it |
//!
//! | record | offset | |
//! |---|---|---|
//! | checksum | 0 | CRC-32C of the rest of header and payload |
//! | length | 4 | `u32`, of the payload |
//! | kind | 8 | `u8`, [`RecordKind`] |
//! | stream | 9 | `u8`, connection to the venue |
//! | account | 10 | `u16` |
//! | client | 12 | `u32` |
//! | sequence | 16 | `u64`, without gaps unless records are missing |
//! | time | 24 | `u64`, the gateway's clock, in ns |
//! | origin | 32 | `u64`, creation time of the cause, in ns; 0 when unknown |
//! | payload | 40 | padded with zeros to a multiple of eight |

use tickpath_lockfree::crc32c;
use tickpath_types::Nanos;

/// `TICKGLOG`.
const MAGIC: [u8; 8] = *b"TICKGLOG";
/// Version of the format.
const VERSION: u32 = 1;
/// Length of the file header in bytes.
pub const FILE_HEADER_LEN: usize = 128;
/// Length of a record's header in bytes.
pub const RECORD_HEADER_LEN: usize = 40;
/// Maximum length of a payload in bytes.
pub const PAYLOAD_MAX: usize = 64 << 20;
const NAME: std::ops::Range<usize> = 56..88;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// The configuration as text, without secrets; first in every file; takes no sequence number.
    Config = 1,
    /// Progress of time: an input without a message.
    Time = 2,
    /// A message from the venue, as received.
    VenueIn = 3,
    /// A message to the venue, as sent.
    VenueOut = 4,
    /// A change of a venue connection's state: an input.
    Link = 5,
    /// A client's request, as read from its ring.
    Request = 6,
    /// An event for one client, as written to its ring.
    Event = 7,
    /// An event for all clients.
    Broadcast = 8,
    /// A client connected or disconnected: an input.
    Client = 9,
    /// A command of the operator or the risk manager: an input.
    Admin = 10,
    /// The run continues in another file; takes no sequence number.
    Continued = 11,
    /// The run ended in order; takes no sequence number.
    End = 12,
    /// Properties that differ between runs; the first record with a sequence number.
    Start = 13,
    /// Answers of the core's environment while it handled the preceding input: free capacity of rings,
    /// request numbers.
    Answers = 14,
    /// A venue message about the session only; the bytes of replies are left out, as they hold tokens.
    Session = 15,
    /// The gateway notified a client that it now publishes the market data of an instrument.
    Follow = 16,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [RecordKind; 16] = [
        RecordKind::Config,
        RecordKind::Time,
        RecordKind::VenueIn,
        RecordKind::VenueOut,
        RecordKind::Link,
        RecordKind::Request,
        RecordKind::Event,
        RecordKind::Broadcast,
        RecordKind::Client,
        RecordKind::Admin,
        RecordKind::Continued,
        RecordKind::End,
        RecordKind::Start,
        RecordKind::Answers,
        RecordKind::Session,
        RecordKind::Follow,
    ];

    /// Name in output and in filters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RecordKind::Config => "config",
            RecordKind::Time => "time",
            RecordKind::VenueIn => "venue-in",
            RecordKind::VenueOut => "venue-out",
            RecordKind::Link => "link",
            RecordKind::Request => "request",
            RecordKind::Event => "event",
            RecordKind::Broadcast => "broadcast",
            RecordKind::Client => "client",
            RecordKind::Admin => "admin",
            RecordKind::Continued => "continued",
            RecordKind::End => "end",
            RecordKind::Start => "start",
            RecordKind::Answers => "answers",
            RecordKind::Session => "session",
            RecordKind::Follow => "follow",
        }
    }

    /// Returns the kind of this [`name`](RecordKind::name).
    #[must_use]
    pub fn by_name(name: &str) -> Option<RecordKind> {
        RecordKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn by_number(number: u8) -> Option<RecordKind> {
        RecordKind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Whether such records take a sequence number; the others have the number of the next record.
    #[must_use]
    pub const fn is_numbered(self) -> bool {
        !matches!(self, RecordKind::Config | RecordKind::Continued | RecordKind::End)
    }

    /// Whether it is an output of the gateway core.
    #[must_use]
    pub const fn is_output(self) -> bool {
        matches!(self, RecordKind::VenueOut | RecordKind::Event | RecordKind::Broadcast | RecordKind::Follow)
    }

    /// Whether it is an input of the gateway core.
    #[must_use]
    pub const fn is_input(self) -> bool {
        use RecordKind::{Admin, Client, Link, Request, Time, VenueIn};
        matches!(self, Time | VenueIn | Link | Request | Client | Admin)
    }
}

/// Connection, account and client of a record; zero where none applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Connection to the venue.
    pub stream: u8,
    /// Account.
    pub account: u16,
    /// Client.
    pub client: u32,
}

/// A record's header, without the checksum and the payload length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Kind of the record.
    pub kind: RecordKind,
    /// Connection, account and client of the record.
    pub origin: Origin,
    /// Sequence number in the run, from 0.
    pub sequence: u64,
    /// Time by the gateway's clock.
    pub time: Nanos,
    /// Creation time of its cause; zero when unknown.
    pub origin_time: Nanos,
}

/// A record as read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Kind of the record.
    pub kind: RecordKind,
    /// Connection, account and client of the record.
    pub origin: Origin,
    /// Sequence number in the run, from 0.
    pub sequence: u64,
    /// Time by the gateway's clock.
    pub time: Nanos,
    /// Creation time of its cause; zero when unknown.
    pub origin_time: Nanos,
    /// Payload: the message.
    pub payload: &'a [u8],
}

impl RecordHeader {
    /// Encodes the length and the header, without the checksum: the words that cross the ring.
    pub(super) fn words(&self, len: u32) -> [u64; RECORD_HEADER_LEN / 8] {
        let Origin { stream, account, client } = self.origin;
        let who = u64::from(self.kind as u8)
            | u64::from(stream) << 8
            | u64::from(account) << 16
            | u64::from(client) << 32;
        [u64::from(len) << 32, who, self.sequence, self.time.0, self.origin_time.0]
    }

    /// Appends the record to `out`, with its checksum.
    ///
    /// # Panics
    /// Panics if the payload has more than [`PAYLOAD_MAX`] bytes.
    pub fn write(&self, payload: &[u8], out: &mut Vec<u8>) {
        assert!(payload.len() <= PAYLOAD_MAX, "a payload has a bound");
        let start = out.len();
        for word in self.words(payload.len() as u32) {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(payload);
        let checksum = crc32c::checksum(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        out.resize(start + record_len(payload.len()), 0);
    }

    /// Reads a record's header: checksum, payload length, header; `None` if the bytes are not a header.
    pub(super) fn read(bytes: &[u8; RECORD_HEADER_LEN]) -> Option<(u32, usize, RecordHeader)> {
        let word =
            |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a word is in the header"));
        let (first, who) = (word(0), word(8));
        let len = (first >> 32) as usize;
        let kind = RecordKind::by_number(who as u8).filter(|_| len <= PAYLOAD_MAX)?;
        let origin =
            Origin { stream: (who >> 8) as u8, account: (who >> 16) as u16, client: (who >> 32) as u32 };
        let header = RecordHeader {
            kind,
            origin,
            sequence: word(16),
            time: Nanos(word(24)),
            origin_time: Nanos(word(32)),
        };
        Some((first as u32, len, header))
    }
}

/// Length of a record with a payload of `len` bytes.
pub(super) const fn record_len(len: usize) -> usize {
    RECORD_HEADER_LEN + len.next_multiple_of(8)
}

/// Header of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Number of earlier files of the same run.
    pub part: u32,
    /// Id of the run.
    pub session: [u8; 16],
    /// UTC of the file's start.
    pub start: Nanos,
    /// The gateway's clock at that time.
    pub clock: Nanos,
    /// Sequence number of the first record.
    pub sequence: u64,
    /// The gateway's name, at most 32 bytes.
    pub name: String,
}

/// The bytes at the start of a file are not a valid log header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is of another kind.
    #[error("it is no log of a gateway")]
    NoLog,
    /// The log has another version: read it with the program that wrote it.
    #[error("it is a log of version {0}: read it with the program that wrote it")]
    Version(u32),
    /// The header's checksum does not match.
    #[error("its first {FILE_HEADER_LEN} bytes are damaged")]
    Damaged,
}

impl FileHeader {
    /// Encodes the header.
    ///
    /// # Panics
    /// Panics if the name is longer than 32 bytes.
    #[must_use]
    pub fn write(&self) -> [u8; FILE_HEADER_LEN] {
        let mut bytes = [0; FILE_HEADER_LEN];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        assert!(self.name.len() <= NAME.len(), "a name of a gateway is short");
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.part.to_le_bytes());
        put(16, &self.session);
        put(32, &self.start.0.to_le_bytes());
        put(40, &self.clock.0.to_le_bytes());
        put(48, &self.sequence.to_le_bytes());
        put(NAME.start, self.name.as_bytes());
        let checksum = crc32c::checksum(&bytes[..FILE_HEADER_LEN - 4]);
        bytes[FILE_HEADER_LEN - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes the header.
    ///
    /// # Errors
    /// [`HeaderError`] if the bytes are not a valid header.
    pub fn read(bytes: &[u8; FILE_HEADER_LEN]) -> Result<FileHeader, HeaderError> {
        let half = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside the header"));
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside the header"));
        if !bytes.starts_with(&MAGIC) {
            return Err(HeaderError::NoLog);
        }
        if half(8) != VERSION {
            return Err(HeaderError::Version(half(8)));
        }
        let name = &bytes[NAME];
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let is_padded = bytes[NAME.start + len..FILE_HEADER_LEN - 4].iter().all(|byte| *byte == 0);
        let is_whole = crc32c::checksum(&bytes[..FILE_HEADER_LEN - 4]) == half(FILE_HEADER_LEN - 4);
        let name = std::str::from_utf8(&name[..len]).ok().filter(|_| is_whole && is_padded);
        Ok(FileHeader {
            part: half(12),
            session: *bytes[16..].first_chunk().expect("inside the header"),
            start: Nanos(word(32)),
            clock: Nanos(word(40)),
            sequence: word(48),
            name: name.ok_or(HeaderError::Damaged)?.to_owned(),
        })
    }

    /// Converts a time of the gateway's clock to UTC; both run at the same speed.
    #[must_use]
    pub fn utc_of(&self, time: Nanos) -> Nanos {
        Nanos(self.start.0.saturating_add(time.0).saturating_sub(self.clock.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_these_bytes() {
        let header = RecordHeader {
            kind: RecordKind::Request,
            origin: Origin { stream: 2, account: 3, client: 4 },
            sequence: 5,
            time: Nanos(6),
            origin_time: Nanos(7),
        };
        let mut bytes = vec![];
        header.write(b"hello", &mut bytes);
        let mut expected = vec![0, 0, 0, 0, 5, 0, 0, 0, 6, 2, 3, 0, 4, 0, 0, 0];
        for word in [5_u64, 6, 7] {
            expected.extend(word.to_le_bytes());
        }
        expected.extend(b"hello\0\0\0");
        let checksum = crc32c::checksum(&expected[4..45]);
        expected[..4].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(bytes, expected);
        let read = RecordHeader::read(bytes.first_chunk().unwrap()).unwrap();
        assert_eq!(read, (checksum, 5, header));
    }

    #[test]
    fn a_file_header_is_read_back_and_every_damage_is_seen() {
        let header = FileHeader {
            part: 1,
            session: [9; 16],
            start: Nanos(1_000),
            clock: Nanos(100),
            sequence: 77,
            name: "deribit".to_owned(),
        };
        let bytes = header.write();
        assert_eq!(FileHeader::read(&bytes), Ok(header.clone()));
        assert_eq!(header.utc_of(Nanos(150)), Nanos(1_050));
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 4;
            let error = FileHeader::read(&damaged).unwrap_err();
            let expected = match at {
                0..8 => HeaderError::NoLog,
                8..12 => HeaderError::Version(u32::from_le_bytes(*damaged[8..].first_chunk().unwrap())),
                _ => HeaderError::Damaged,
            };
            assert_eq!(error, expected, "{at}");
        }
    }

    #[test]
    fn kinds_have_names_and_numbers() {
        for (place, kind) in RecordKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place + 1);
            assert_eq!(RecordKind::by_name(kind.name()), Some(kind));
            assert_eq!(RecordKind::by_number(kind as u8), Some(kind));
        }
        assert_eq!((RecordKind::by_number(0), RecordKind::by_number(17)), (None, None));
    }
}
