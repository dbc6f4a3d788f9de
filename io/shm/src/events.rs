//! Segments that hold only an event stream, which one process, such as a gateway, publishes to many readers.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;

use tickpath_lockfree::broadcast::{Receiver, Sender};
use tickpath_lockfree::{LINE_LEN, Payload, SharedLines};
use tickpath_types::Nanos;

use crate::folder::{is_at, system};
use crate::header::{EVENT_LEN_MAX, HEADER_LEN, Header, KIND_EVENTS, event_lines, event_slot_lines};
use crate::live::{LiveWord, STATE_CLOSED};
use crate::opened::OpenedSegment;
use crate::writer::CreatedSegment;
use crate::{Folder, SegmentName, SegmentReader, ShmError};

/// Number of cache lines before the slots of a stream. The first holds the number of events sent. The second
/// holds a word that is 1 once the sender was dropped.
const STREAM_HEAD_LINES: usize = 2;

/// Writes a segment of events of one type: a stream that overwrites its oldest event, and a heartbeat.
///
/// While this writer lives, no other writer gets the same name. When dropped, it marks the segment as closed
/// and leaves its file in the folder, unless [`remove`](EventsWriter::remove) was called.
pub struct EventsWriter<T> {
    header: Header,
    path: PathBuf,
    lines: SharedLines,
    stream: Sender<T>,
    /// Holds the lock that excludes other writers; the kernel releases it when the process ends.
    file: File,
}

/// Returns the stream's part of a segment's `lines`; `None` when they are too few.
fn stream_lines(lines: &SharedLines, header: &Header) -> Option<SharedLines> {
    let count = event_lines(header.layout.item_len, header.layout.stream_capacity);
    lines.part((HEADER_LEN / LINE_LEN as u64) as usize, usize::try_from(count).ok()?)
}

impl<T: Payload> EventsWriter<T> {
    /// Creates a segment that keeps `capacity` events, rounded up to a power of two and limited to
    /// [`STREAM_CAPACITY_MAX`](crate::STREAM_CAPACITY_MAX). Replaces a segment of this name whose writer has
    /// ended. The new segment is invisible until it is complete. `now` is the time since the Unix epoch.
    ///
    /// # Errors
    /// [`ShmError::InUse`] while another writer lives, and the system's errors.
    pub fn create(
        folder: &Folder,
        name: &SegmentName,
        capacity: u64,
        now: Nanos,
    ) -> Result<EventsWriter<T>, ShmError> {
        const {
            assert!(size_of::<T>() > 0 && size_of::<T>().is_multiple_of(8));
            assert!(size_of::<T>() as u64 <= EVENT_LEN_MAX);
        }
        let header = Header::events(size_of::<T>() as u64, capacity);
        let CreatedSegment { header, path, lines, file } = CreatedSegment::new(folder, name, header, now)?;
        let wrong = || system("map", &path)(io::ErrorKind::InvalidData.into());
        let stream = stream_lines(&lines, &header).ok_or_else(wrong)?;
        let stream = Sender::over(stream).map_err(|_| wrong())?;
        let mut writer = EventsWriter { stream, header, path, lines, file };
        writer.heartbeat(now);
        Ok(writer)
    }

    /// Appends an event, and overwrites the oldest one when the stream is full. Wait-free.
    #[inline]
    pub fn send(&mut self, event: &T) {
        self.stream.send(*event);
    }

    /// Returns the number of events sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.stream.sent()
    }

    /// Publishes that this writer is alive at `now`, a time since the Unix epoch. Call it ten times a
    /// second.
    pub fn heartbeat(&mut self, now: Nanos) {
        LiveWord::Heartbeat.store(&self.lines, now.0);
    }
}

impl<T> EventsWriter<T> {
    /// Returns the header, which never changes.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Removes the segment's file, so that nothing remains when the writer ends. Its name is free at once.
    /// Processes that have mapped the file keep the memory; when the writer ends, they see a closed segment.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self) -> Result<(), ShmError> {
        let found = self.file.metadata().map_err(system("look at", &self.path))?;
        // The lock is held, so no other process replaces the file meanwhile.
        if is_at(&found, &self.path) {
            std::fs::remove_file(&self.path).map_err(system("remove", &self.path))?;
        }
        Ok(())
    }
}

impl<T> Drop for EventsWriter<T> {
    fn drop(&mut self) {
        LiveWord::State.store(&self.lines, STATE_CLOSED);
    }
}

impl<T> fmt::Debug for EventsWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventsWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads a segment of events, mapped read-only. It validates all contents, as
/// [`SegmentReader`] does.
#[derive(Debug)]
pub struct EventsReader {
    opened: OpenedSegment,
    stream: SharedLines,
}

impl EventsReader {
    /// Opens the current segment of this name.
    ///
    /// # Errors
    /// [`ShmError::Missing`], [`ShmError::NotPrivate`], [`ShmError::Damaged`], [`ShmError::OtherKind`], and
    /// the system's errors.
    pub fn open(folder: &Folder, name: &SegmentName) -> Result<EventsReader, ShmError> {
        EventsReader::over(OpenedSegment::open(folder, name)?.expect(KIND_EVENTS)?)
    }

    pub(crate) fn over(opened: OpenedSegment) -> Result<EventsReader, ShmError> {
        let stream = stream_lines(&opened.lines, opened.header()).ok_or_else(|| opened.damaged())?;
        Ok(EventsReader { opened, stream })
    }

    /// Returns a receiver of the events from now on. It reports the number of lost events if the writer
    /// overtakes it. `None` when the segment's events do not have the length of `T`.
    #[must_use]
    pub fn stream<T: Payload>(&self) -> Option<Receiver<T>> {
        let is_so_long = self.opened.header().layout.item_len == size_of::<T>() as u64;
        is_so_long.then(|| Receiver::over(self.stream.clone()).ok()).flatten()
    }

    /// Returns the number of events sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.stream.load(0, 0).expect("a stream has a head")
    }

    /// Returns the sequence number in the slot of `position`: `2 * position + 2` once its event is written.
    pub(crate) fn slot_sequence(&self, position: u64) -> u64 {
        let header = self.opened.header();
        // The mask `stream_capacity - 1` keeps the slot within the stream's lines.
        let slot =
            (position & (header.layout.stream_capacity - 1)) * event_slot_lines(header.layout.item_len);
        self.stream.load(STREAM_HEAD_LINES + slot as usize, 0).expect("the slot is one of the stream's")
    }
}

impl Deref for EventsReader {
    type Target = OpenedSegment;

    fn deref(&self) -> &OpenedSegment {
        &self.opened
    }
}

/// A segment of any kind, for programs that inspect all of them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Segment {
    /// A segment with names, quotes and updates.
    MarketData(SegmentReader),
    /// A segment with events only.
    Events(EventsReader),
}

impl Segment {
    /// Opens the current segment of this name.
    ///
    /// # Errors
    /// As [`EventsReader::open`], without [`ShmError::OtherKind`].
    pub fn open(folder: &Folder, name: &SegmentName) -> Result<Segment, ShmError> {
        let opened = OpenedSegment::open(folder, name)?;
        match opened.header().kind() {
            KIND_EVENTS => EventsReader::over(opened).map(Segment::Events),
            _ => SegmentReader::over(opened).map(Segment::MarketData),
        }
    }
}

impl Deref for Segment {
    type Target = OpenedSegment;

    fn deref(&self) -> &OpenedSegment {
        match self {
            Segment::MarketData(reader) => reader,
            Segment::Events(reader) => reader,
        }
    }
}
