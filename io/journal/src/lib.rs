//! An append-only log of sequenced records on disk, its snapshots, and a disk with fault injection.
//!
//! [`open`] repairs the log after a crash and returns a [`Journal`] and a [`DiskWorker`]. A duty cycle
//! appends to the journal, which never waits. The worker does the slow disk work, on a [`WorkerThread`] or,
//! in a simulation, whenever it is called. The reply to a command may be sent once [`Journal::durable`] has
//! reached the command's record. The [`Policy`] determines which failures that record survives.
//!
//! ```
//! use tickpath_journal::{
//!     FaultyDisk, InspectOptions, JournalConfig, Policy, Reader, SessionName, open,
//! };
//! use tickpath_types::Sequence;
//!
//! let disk = FaultyDisk::new(1, Default::default());
//! let session = SessionName::new("SESSION001")?;
//! let config = JournalConfig { policy: Policy::Group, ..JournalConfig::default() };
//! let mut opened = open(&disk, session, config, &InspectOptions::default())?;
//!
//! opened.journal.append(Sequence(1), b"enter")?;
//! opened.journal.poll();
//! assert_eq!(opened.journal.durable(), Sequence(0));
//! opened.worker.run_once();
//! opened.journal.poll();
//! assert_eq!(opened.journal.durable(), Sequence(1));
//!
//! opened.journal.append(Sequence(2), b"cancel")?;
//! drop(opened);
//! disk.crash(); // power is lost; the second record was never acknowledged
//!
//! let opened = open(&disk, session, config, &InspectOptions::default())?;
//! assert_eq!(opened.found.last_sequence(), Sequence(1));
//! let mut reader = Reader::open(&disk, session, Sequence(1))?;
//! let record = reader.next(Sequence(1))?.unwrap();
//! assert_eq!((record.sequence, record.payload), (Sequence(1), &b"enter"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files
//!
//! A log's folder holds segments, named by their first sequence; at times a segment prepared for later use;
//! snapshots ([`Snapshots`]); the session's generation; the highest acknowledged sequence
//! ([`ACKNOWLEDGED_FILE`]); and a lock, which excludes a second process. [`Folder`] is a folder of the file
//! system. [`FaultyDisk`] is an in-memory disk that loses power, tears writes, fails syncs and fills up, as
//! its seed determines.
//!
//! # State after a crash
//!
//! The file [`ACKNOWLEDGED_FILE`] holds the highest acknowledged sequence and survives the death of the
//! process. A bad or missing record up to this sequence is damage: the log is refused with file and offset,
//! until the loss is accepted. A bad record after it was never guaranteed, and is cut off with everything
//! that follows ([`TornTail`]).
//!
//! After a power loss this file may be behind the log, and under [`Policy::Async`] ahead of it. Every record
//! carries the last sequence that was on the disk when it was appended, so a bad record that a later one
//! reports as synced is damage too. Under [`Policy::Async`] unsynced records may have been acknowledged: if
//! complete ones follow a bad one, the log is refused until the loss is accepted. Older logs without the file
//! are judged by their records alone.
//!
//! A closed log ends with an empty segment, whose header reports everything before it as synced.
//!
//! Clients that received lost records must learn of the loss, because sequences are reused.
//! [`Opened::generation`] counts the starts before which records may have been lost: under [`Policy::Async`],
//! each start after a reboot of the system, unless the log was closed normally.

mod acknowledged;
mod archive;
mod batch;
mod checksum;
mod config;
mod damage;
mod error;
mod faulty;
mod folder;
mod format;
mod generation;
mod header;
mod inspect;
mod jobs;
mod journal;
mod log_requirement;
mod mapping;
mod open;
mod policy;
mod read_ahead;
mod reader;
mod segment;
mod session;
mod snapshots;
mod storage;
mod worker;

pub use acknowledged::ACKNOWLEDGED_FILE;
pub use archive::{ArchiveError, archive};
pub use config::JournalConfig;
pub use damage::{HeaderDamage, RecordDamage};
pub use error::{AppendError, Failure, OpenError};
pub use faulty::{DiskCounters, DiskFaults, FaultyDisk, FaultyFile};
pub use folder::Folder;
pub use format::{PAYLOAD_LEN_MAX, SegmentHeader};
pub use generation::{GENERATION_FILE, generation_of};
pub use inspect::{InspectOptions, Inspection, Segment, TornTail, inspect, session_of};
pub use journal::{DurableView, Journal, State};
pub use open::{Opened, open};
pub use policy::Policy;
pub use read_ahead::read_ahead;
pub use reader::{Reader, Record};
pub use session::{SessionName, SessionNameError};
pub use snapshots::{NewestSnapshot, SkippedSnapshot, Snapshot, SnapshotDamage, Snapshots, snapshot_name};
pub use storage::{SharedBytes, Storage, StorageFile};
pub use worker::{DiskWorker, WorkerThread};
