//! Whether a log is whole, and where it ends.

use tickpath_types::Sequence;

use crate::format::SegmentHeader;
use crate::segment::{PREPARED, Remains, SegmentReader, Step, list_segments, segment_name};
use crate::{HeaderDamage, OpenError, RecordDamage, SessionName, Storage};

/// What to look at, and what to accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectOptions {
    /// Whose log it must be; `None` accepts any, as long as all segments agree.
    pub session: Option<SessionName>,
    /// The records of segments that end before this sequence are not read: a snapshot covers them. 0 reads all.
    pub from: Sequence,
    /// Accepts that records acknowledged under [`Policy::Async`](crate::Policy::Async) are lost after a loss of power.
    pub accept_loss: bool,
}

/// A log that is whole but perhaps for its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Whose log it is; `None` when it is empty.
    pub session: Option<SessionName>,
    /// Its segments, in order; none after a torn one.
    pub segments: Vec<Segment>,
    /// Records that were read and found good.
    pub records_read: u64,
    /// What follows the last good record and cannot be used, if anything does.
    pub torn: Option<TornTail>,
}

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name.
    pub file: String,
    /// What it says of itself.
    pub header: SegmentHeader,
    /// Its last record, one less than its first when it is empty.
    pub last_sequence: Sequence,
    /// Where its last record ends; 0 when its records were not read.
    pub end: u64,
    /// The last record, of whichever segment, that this one says is on the disk, as far as it was read.
    pub synced: Sequence,
}

/// What a crash left of records that were never promised to survive it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment that has it.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// The record that should begin there.
    pub sequence: Sequence,
    /// What is wrong with that record.
    pub damage: RecordDamage,
    /// Whole records after it, which cannot be used without it.
    pub later_records: u64,
    /// Segments after it, likewise.
    pub later_files: Vec<String>,
}

impl Inspection {
    /// The first record; 0 when there is no segment.
    #[must_use]
    pub fn first_sequence(&self) -> Sequence {
        self.segments.first().map_or(Sequence(0), |segment| segment.header.first_sequence)
    }

    /// The last record that another one, or a header, says is on the disk.
    pub(crate) fn synced(&self) -> Sequence {
        self.segments.iter().map(|segment| segment.synced).max().unwrap_or(Sequence(0))
    }

    /// The last good record; 0 when there is no segment.
    #[must_use]
    pub fn last_sequence(&self) -> Sequence {
        self.segments.last().map_or(Sequence(0), |segment| segment.last_sequence)
    }
}

/// Reads a whole log, or its end, and changes nothing: what `open` does first, and what verifies a copy.
///
/// A bad record is the start of a torn tail if no later record or segment says that it had reached the disk: then it was
/// never acknowledged, or only under a policy that does not survive the loss of power. Otherwise it is damage.
///
/// # Errors
/// [`OpenError`] with file and offset when the log is damaged, or what it lost was acknowledged.
pub fn inspect<S: Storage>(storage: &S, options: &InspectOptions) -> Result<Inspection, OpenError> {
    let files = open_all(storage, options)?;
    let session = files.first().map(|file| file.reader.header.session);
    let mut inspection = Inspection { session, segments: Vec::new(), records_read: 0, torn: None };
    let mut files = files.into_iter().peekable();
    while let Some(mut file) = files.next() {
        let header = file.reader.header;
        let next = files.peek().map(|file| file.reader.header.first_sequence);
        let skip = next.is_some_and(|next| next <= options.from);
        let (last_sequence, fault) = match next {
            Some(next) if skip => (Sequence(next.0 - 1), None),
            _ => file.read_records(next, &mut inspection.records_read)?,
        };
        let end = if skip { 0 } else { file.end };
        let synced = file.synced;
        inspection.segments.push(Segment { file: file.name.clone(), header, last_sequence, end, synced });
        if let Some(damage) = fault {
            inspection.torn = Some(judge(file, last_sequence.next(), damage, files.collect(), options)?);
            break;
        }
    }
    Ok(inspection)
}

/// Whose log a folder holds, by the headers of its segments; `None` when it holds none. Changes nothing.
///
/// # Errors
/// [`OpenError`] when a header is damaged, segments are of different sessions, or the system refuses.
pub fn session_of<S: Storage>(storage: &S) -> Result<Option<SessionName>, OpenError> {
    let files = open_all(storage, &InspectOptions::default())?;
    Ok(files.first().map(|file| file.reader.header.session))
}

/// A segment while it is looked at.
struct OpenSegment<S: Storage> {
    name: String,
    reader: SegmentReader<S::File>,
    /// Where the last good record ends.
    end: u64,
    /// What its header and the records that were read say is on the disk.
    synced: Sequence,
}

impl<S: Storage> OpenSegment<S> {
    fn open(storage: &S, name: &str) -> Result<Result<OpenSegment<S>, HeaderDamage>, OpenError> {
        let file = storage.open(name).map_err(OpenError::io(name))?;
        let reader = SegmentReader::new(file).map_err(OpenError::io(name))?;
        Ok(reader.map(|reader| OpenSegment {
            name: name.to_owned(),
            end: reader.offset(),
            synced: reader.header.synced,
            reader,
        }))
    }

    /// Reads to the last good record; what is wrong after it, unless nothing is.
    fn read_records(
        &mut self,
        next: Option<Sequence>,
        records_read: &mut u64,
    ) -> Result<(Sequence, Option<RecordDamage>), OpenError> {
        let mut expected = self.reader.header.first_sequence;
        let step = loop {
            match self.step(expected)? {
                Step::Record(record) => {
                    self.synced = self.synced.max(record.synced);
                    *records_read += 1;
                    expected = expected.next();
                }
                step => break step,
            }
        };
        self.end = self.reader.offset();
        let last = Sequence(expected.0 - 1);
        let fault = match step {
            Step::Damaged(damage) => Some(damage),
            _ if next.is_some_and(|next| next != expected) => Some(RecordDamage::Missing),
            _ if !self.survey_rest()?.is_zero => Some(RecordDamage::Missing),
            _ => None,
        };
        self.reader.rest();
        Ok((last, fault))
    }

    fn step(&mut self, expected: Sequence) -> Result<Step, OpenError> {
        self.reader.step(expected).map_err(OpenError::io(&self.name))
    }

    /// Looks at what follows the last good record, from a fresh start.
    fn survey_rest(&mut self) -> Result<Remains, OpenError> {
        self.reader.seek(self.end);
        let remains = self.reader.survey().map_err(OpenError::io(&self.name))?;
        self.reader.rest();
        Ok(remains)
    }
}

/// Opens every segment and checks its header.
fn open_all<S: Storage>(storage: &S, options: &InspectOptions) -> Result<Vec<OpenSegment<S>>, OpenError> {
    let mut files: Vec<OpenSegment<S>> = Vec::new();
    for first in list_segments(storage)? {
        let name = segment_name(first);
        let file = OpenSegment::open(storage, &name)?;
        let file = file.and_then(|file| match file.reader.header.first_sequence {
            found if found == first => Ok(file),
            found => Err(HeaderDamage::Name { found }),
        });
        files.push(file.map_err(|damage| OpenError::Header { file: name, damage })?);
    }
    // A segment gets its name once its header is on the disk; one without either has not begun.
    let names = storage.list().map_err(OpenError::io("the folder"))?;
    if names.iter().any(|name| name == PREPARED)
        && let Ok(file) = OpenSegment::open(storage, PREPARED)?
        && files
            .last()
            .is_none_or(|last| file.reader.header.first_sequence > last.reader.header.first_sequence)
    {
        files.push(file);
    }
    let mut expected = options.session;
    for file in &files {
        let found = file.reader.header.session;
        let expected = *expected.get_or_insert(found);
        if found != expected {
            return Err(OpenError::Session { file: file.name.clone(), found, expected });
        }
    }
    Ok(files)
}

/// Whether what is missing may be: a torn tail, or an error.
fn judge<S: Storage>(
    mut file: OpenSegment<S>,
    sequence: Sequence,
    damage: RecordDamage,
    later: Vec<OpenSegment<S>>,
    options: &InspectOptions,
) -> Result<TornTail, OpenError> {
    let mut seen = file.survey_rest()?;
    let mut later_files = Vec::with_capacity(later.len());
    for mut other in later {
        let remains = other.survey_rest()?;
        seen.records += remains.records;
        seen.synced = seen.synced.max(remains.synced).max(other.reader.header.synced);
        later_files.push(other.name);
    }
    let (offset, later_records) = (file.end, seen.records);
    if seen.synced >= sequence {
        return Err(OpenError::Record { file: file.name, offset, sequence, damage });
    }
    let was_acknowledged = file.reader.header.policy.acknowledges_unsynced();
    if later_records > 0 && was_acknowledged && !options.accept_loss {
        return Err(OpenError::Loss { file: file.name, offset, sequence, damage, later_records });
    }
    Ok(TornTail { file: file.name, offset, sequence, damage, later_records, later_files })
}
