//! Inspection of a log: checks that it is complete, and finds its end.

use std::io::ErrorKind;

use tickpath_types::Sequence;

use crate::acknowledged;
use crate::format::SegmentHeader;
use crate::log_requirement::LogRequirement;
use crate::segment::{PREPARED, Remains, SegmentReader, Step, list_segments, segment_name};
use crate::{HeaderDamage, OpenError, RecordDamage, SessionName, Storage};

/// Maximum number of attempts to list the folder and open every listed file: a file may disappear meanwhile.
const LISTINGS_MAX: usize = 5;

/// Options of an inspection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectOptions {
    /// The expected session; `None` accepts any, as long as all segments agree.
    pub session: Option<SessionName>,
    /// First sequence not covered by a snapshot. Segments that end before it are not read; 0 reads all.
    pub from: Sequence,
    /// Accepts that acknowledged records are missing or damaged; the log then ends before the first of them.
    pub accept_loss: bool,
}

/// Result of an inspection: a log that is complete, except perhaps for its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The session of the log; `None` when the log is empty.
    pub session: Option<SessionName>,
    /// Names of the segments left out before `segments`: a snapshot covers them all. Empty unless one of
    /// these has a damaged header.
    pub covered: Vec<String>,
    /// The segments, in order; none after a torn one.
    pub segments: Vec<Segment>,
    /// Number of records that were read and valid.
    pub records_read: u64,
    /// The unusable data after the last valid record, if any.
    pub torn: Option<TornTail>,
    /// Highest sequence known to be acknowledged, from [`ACKNOWLEDGED_FILE`](crate::ACKNOWLEDGED_FILE) and
    /// the generation file. `None` without the former: the end of the log is then judged by its records.
    pub acknowledged: Option<Sequence>,
}

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// File name.
    pub file: String,
    /// Header fields.
    pub header: SegmentHeader,
    /// Sequence of the last record; in an empty segment, one less than the first sequence.
    pub last_sequence: Sequence,
    /// End offset of the last record; 0 when the records were not read.
    pub end: u64,
    /// Highest sequence that the segment's header, or a record that was read, reports as synced.
    pub synced: Sequence,
}

/// The unusable end of a log after a crash: records not guaranteed to survive it, or whose loss is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// File name of the torn segment.
    pub file: String,
    /// Start offset of the torn tail.
    pub offset: u64,
    /// Sequence of the record that should begin at `offset`.
    pub sequence: Sequence,
    /// Damage of that record.
    pub damage: RecordDamage,
    /// True when that record was acknowledged, and its loss is accepted.
    pub was_acknowledged: bool,
    /// Number of complete records after that record, which cannot be used without it.
    pub later_records: u64,
    /// File names of the segments after the torn one, which cannot be used either.
    pub later_files: Vec<String>,
}

impl Inspection {
    /// Returns the sequence of the first record; 0 when there is no segment.
    #[must_use]
    pub fn first_sequence(&self) -> Sequence {
        self.segments.first().map_or(Sequence(0), |segment| segment.header.first_sequence)
    }

    /// Returns the highest sequence that a record or a header reports as synced.
    pub(crate) fn synced(&self) -> Sequence {
        self.segments.iter().map(|segment| segment.synced).max().unwrap_or(Sequence(0))
    }

    /// Returns the sequence of the last valid record; 0 when there is no segment.
    #[must_use]
    pub fn last_sequence(&self) -> Sequence {
        self.segments.last().map_or(Sequence(0), |segment| segment.last_sequence)
    }
}

/// Reads a log without changing it, and skips segments that end before `options.from`. [`open`](crate::open)
/// begins with an inspection; an inspection can also verify a backup.
///
/// A bad record starts a torn tail if neither the acknowledged file, the generation file nor a later record
/// or segment shows that it was acknowledged or synced. Either it was never acknowledged, or the policy does
/// not protect acknowledged records from a power loss. Every other bad record is damage.
///
/// # Errors
/// [`OpenError`] with file and offset when the log is damaged, or lost an acknowledged record.
pub fn inspect<S: Storage>(storage: &S, options: &InspectOptions) -> Result<Inspection, OpenError> {
    // Read the acknowledged file first. Otherwise it may require records appended after the log was read.
    let recorded = acknowledged::read(storage);
    let Opened { covered, files, unreadable } = open_all(storage, options)?;
    let session = files.first().map(|file| file.reader.header.session).or(options.session);
    let session = match (session, &recorded) {
        (None, Ok(Some(recorded))) => Some(recorded.acknowledged.session),
        _ => session,
    };
    let mut requirement = LogRequirement::default();
    if let Some(session) = session {
        requirement = LogRequirement::of(storage, session, recorded, options.accept_loss)?;
    }
    let mut inspection = Inspection {
        session: files.first().map(|file| file.reader.header.session),
        covered,
        segments: Vec::new(),
        records_read: 0,
        torn: None,
        acknowledged: requirement.recorded.map(|_| requirement.required),
    };
    // The first segment must begin at or before the record after the newest snapshot.
    if let Some(first) = files.first()
        && let Some(snapshot) = requirement.recorded.and_then(|recorded| recorded.snapshot)
        && first.reader.header.first_sequence > snapshot.sequence.next()
        && !options.accept_loss
    {
        let (file, sequence) = (first.name.clone(), snapshot.sequence.next());
        return Err(OpenError::Record { file, offset: 0, sequence, damage: RecordDamage::Missing });
    }
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
            let torn =
                classify_tail(file, last_sequence.next(), damage, files.collect(), &requirement, options)?;
            inspection.torn = Some(torn);
            break;
        }
    }
    let lacks_end = inspection.torn.is_none() && inspection.last_sequence() < requirement.required;
    if lacks_end && !options.accept_loss {
        return Err(lost_end(&inspection, &requirement));
    }
    if let Some(unreadable) = unreadable {
        add_unreadable(&mut inspection, unreadable)?;
    }
    Ok(inspection)
}

/// Returns the error for a valid log that ends before an acknowledged record.
fn lost_end(inspection: &Inspection, requirement: &LogRequirement) -> OpenError {
    let (file, offset, sequence) = match inspection.segments.last() {
        Some(last) => (last.file.clone(), last.end, last.last_sequence.next()),
        None => (segment_name(requirement.required), 0, requirement.required),
    };
    OpenError::Record { file, offset, sequence, damage: RecordDamage::Missing }
}

/// Adds to the torn tail a segment without a valid header, whose loss is accepted, and the segments after it.
fn add_unreadable<S: Storage>(
    inspection: &mut Inspection,
    unreadable: Unreadable<S>,
) -> Result<(), OpenError> {
    let Unreadable { damage, file, later } = unreadable;
    let (mut files, mut later_records) = (vec![file], 0);
    for (name, segment) in later {
        later_records += segment.map_or(Ok(0), |mut file| file.survey_rest().map(|rest| rest.records))?;
        files.push(name);
    }
    match &mut inspection.torn {
        Some(torn) => {
            torn.later_records += later_records;
            torn.later_files.extend(files);
        }
        None => {
            let last = inspection.segments.last();
            inspection.torn = Some(TornTail {
                file: last.map_or_else(|| files[0].clone(), |last| last.file.clone()),
                offset: last.map_or(0, |last| last.end),
                sequence: last.map_or(Sequence(1), |last| last.last_sequence.next()),
                damage: RecordDamage::Header(damage),
                was_acknowledged: true,
                later_records,
                later_files: files,
            });
        }
    }
    Ok(())
}

/// Returns the session of the log in `storage`, from the headers of its segments, or, without a segment, from
/// the acknowledged file; `None` when there is no log. Changes nothing.
///
/// # Errors
/// [`OpenError`] when a later version wrote a segment, segments differ in session, or a file cannot be read.
pub fn session_of<S: Storage>(storage: &S) -> Result<Option<SessionName>, OpenError> {
    let Opened { files, .. } =
        open_all(storage, &InspectOptions { accept_loss: true, ..InspectOptions::default() })?;
    if let Some(file) = files.first() {
        return Ok(Some(file.reader.header.session));
    }
    // All segments of the log may be missing; the acknowledged file then still holds its session.
    let recorded = acknowledged::read(storage)?.map(|recorded| recorded.acknowledged);
    Ok(recorded
        .filter(|acknowledged| acknowledged.sequence > Sequence(0))
        .map(|acknowledged| acknowledged.session))
}

/// A segment that is being inspected.
struct OpenSegment<S: Storage> {
    name: String,
    reader: SegmentReader<S::File>,
    /// End offset of the last valid record.
    end: u64,
    /// Highest sequence that the header, or a record read so far, reports as synced.
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

    /// Reads all valid records. Returns the sequence of the last one, and the damage after it, if any.
    fn read_records(
        &mut self,
        next: Option<Sequence>,
        records_read: &mut u64,
    ) -> Result<(Sequence, Option<RecordDamage>), OpenError> {
        let mut expected = self.reader.header.first_sequence;
        let step = loop {
            match self.reader.step(expected).map_err(OpenError::io(&self.name))? {
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
        self.reader.free_buffer();
        Ok((last, fault))
    }

    /// Reads the data after the last valid record again from the file, and returns a summary of it.
    fn survey_rest(&mut self) -> Result<Remains, OpenError> {
        self.reader.seek(self.end);
        let remains = self.reader.survey().map_err(OpenError::io(&self.name))?;
        self.reader.free_buffer();
        Ok(remains)
    }
}

/// The opened segments of a log.
struct Opened<S: Storage> {
    /// See [`Inspection::covered`].
    covered: Vec<String>,
    files: Vec<OpenSegment<S>>,
    unreadable: Option<Unreadable<S>>,
}

/// A segment whose header is damaged, and the segments after it.
struct Unreadable<S: Storage> {
    damage: HeaderDamage,
    file: String,
    /// The later segments, opened if their headers are valid.
    later: Vec<(String, Option<OpenSegment<S>>)>,
}

/// Opens every segment. While a venue writes, a file may be renamed or removed between the listing and its
/// opening; then the folder is listed again.
fn open_all<S: Storage>(storage: &S, options: &InspectOptions) -> Result<Opened<S>, OpenError> {
    for _ in 1..LISTINGS_MAX {
        match open_listed(storage, options) {
            Err(OpenError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
    open_listed(storage, options)
}

/// Opens every segment of one listing and checks its header. With `accept_loss`, a damaged header is no
/// error: a snapshot covers its segment, or the log ends before it.
fn open_listed<S: Storage>(storage: &S, options: &InspectOptions) -> Result<Opened<S>, OpenError> {
    let mut covered = Vec::new();
    let mut files: Vec<OpenSegment<S>> = Vec::new();
    let mut unreadable: Option<Unreadable<S>> = None;
    for first in list_segments(storage)? {
        let name = segment_name(first);
        let file = OpenSegment::open(storage, &name)?;
        let file = file.and_then(|file| match file.reader.header.first_sequence {
            found if found == first => Ok(file),
            found => Err(HeaderDamage::Name { found }),
        });
        match (file, &mut unreadable) {
            (Ok(file), Some(before)) if first <= options.from => {
                covered.extend(files.drain(..).map(|file| file.name));
                covered.push(std::mem::take(&mut before.file));
                covered.extend(before.later.drain(..).map(|(name, _)| name));
                (files, unreadable) = (vec![file], None);
            }
            (file, Some(unreadable)) => unreadable.later.push((name, file.ok())),
            (Ok(file), None) => files.push(file),
            (Err(damage @ HeaderDamage::Version { .. }), None) => {
                return Err(OpenError::Header { file: name, damage });
            }
            (Err(damage), None) if options.accept_loss => {
                unreadable = Some(Unreadable { damage, file: name, later: Vec::new() });
            }
            (Err(damage), None) => {
                let damage = RecordDamage::Header(damage);
                return Err(OpenError::Record { file: name, offset: 0, sequence: first, damage });
            }
        }
    }
    // A prepared segment with a valid header is in use: the process ended before it renamed the segment.
    if unreadable.is_none()
        && storage.has(PREPARED).map_err(OpenError::io("the folder"))?
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
    Ok(Opened { covered, files, unreadable })
}

/// Classifies the fault after the last valid record of `file`: a torn tail, or an error.
fn classify_tail<S: Storage>(
    mut file: OpenSegment<S>,
    sequence: Sequence,
    damage: RecordDamage,
    later: Vec<OpenSegment<S>>,
    requirement: &LogRequirement,
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
    let was_acknowledged = seen.synced.max(requirement.required) >= sequence;
    if was_acknowledged && !options.accept_loss {
        return Err(OpenError::Record { file: file.name, offset, sequence, damage });
    }
    let may_be_acknowledged = !requirement.is_exact && file.reader.header.policy.acknowledges_unsynced();
    if later_records > 0 && may_be_acknowledged && !options.accept_loss {
        return Err(OpenError::Loss { file: file.name, offset, sequence, damage, later_records });
    }
    Ok(TornTail { file: file.name, offset, sequence, damage, was_acknowledged, later_records, later_files })
}
