//! A segment of any kind that is open for reading.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use tickpath_lockfree::SharedLines;
use tickpath_types::Nanos;

use crate::folder::{is_at, system};
use crate::header::Header;
use crate::live::{LiveWord, STATE_CLOSED};
use crate::{Damage, Folder, SegmentName, ShmError, WriterState, mapping};

/// A segment that is open for reading: its header was checked, and it is mapped read-only.
#[derive(Debug)]
pub struct OpenedSegment {
    header: Header,
    path: PathBuf,
    file: File,
    pub(crate) lines: SharedLines,
}

impl OpenedSegment {
    /// Opens the current segment of this name.
    pub(crate) fn open(folder: &Folder, name: &SegmentName) -> Result<OpenedSegment, ShmError> {
        let (path, file, found) = folder.open_segment(name)?;
        let mut bytes = [0; size_of::<Header>()];
        let len = file.read_at(&mut bytes, 0).map_err(system("read", &path))?;
        // The header is checked in a copy, so that no process can change it afterwards.
        let header = Header::check(&bytes[..len], found.len())
            .map_err(|damage| ShmError::Damaged { path: path.clone(), damage })?;
        let lines = mapping::map(&file, header.file_len, false).map_err(system("map", &path))?;
        Ok(OpenedSegment { header, path, file, lines })
    }

    /// Returns an error if the segment is of another kind.
    pub(crate) fn expect(self, kind: u32) -> Result<OpenedSegment, ShmError> {
        if self.header.kind() == kind {
            return Ok(self);
        }
        Err(ShmError::OtherKind { path: self.path, kind: self.header.kind() })
    }

    /// Returns the error for a file whose sections are not where its header states.
    pub(crate) fn damaged(&self) -> ShmError {
        ShmError::Damaged { path: self.path.clone(), damage: Damage::Layout }
    }

    /// Returns the header, which never changes.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the time of the writer's latest heartbeat, since the Unix epoch.
    #[must_use]
    pub fn heartbeat(&self) -> Nanos {
        Nanos(LiveWord::Heartbeat.load(&self.lines))
    }

    /// Returns the state of the writer. Takes up to three system calls.
    #[must_use]
    pub fn writer_state(&self) -> WriterState {
        if LiveWord::State.load(&self.lines) == STATE_CLOSED {
            WriterState::Closed
        } else if self.header.writer.is_alive() {
            WriterState::Alive
        } else {
            WriterState::Dead
        }
    }

    /// Returns whether the name now belongs to another segment or to none; if so, open the
    /// name again. Takes a system call.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        !self.file.metadata().is_ok_and(|file| is_at(&file, &self.path))
    }

    /// Returns whether the file still has the length in its header. Takes a system call.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.size() == self.header.file_len)
    }
}
