//! A segment that was opened to read, whatever it holds.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use tickpath_lockfree::SharedLines;
use tickpath_types::Nanos;

use crate::folder::{is_at, system};
use crate::header::Header;
use crate::live::{LiveWord, STATE_CLOSED};
use crate::{Damage, Folder, SegmentName, ShmError, WriterState, mapping};

/// A segment whose header was believed, mapped for reading alone.
pub(crate) struct Opened {
    pub(crate) header: Header,
    pub(crate) path: PathBuf,
    file: File,
    pub(crate) lines: SharedLines,
}

impl Opened {
    /// Opens the segment that has the name now.
    pub(crate) fn open(folder: &Folder, name: &SegmentName) -> Result<Opened, ShmError> {
        let (path, file, found) = folder.open_segment(name)?;
        let mut bytes = [0; size_of::<Header>()];
        let len = file.read_at(&mut bytes, 0).map_err(system("read", &path))?;
        // Copied before it is checked, so that nobody changes it in between.
        let header = Header::check(&bytes[..len], found.len())
            .map_err(|damage| ShmError::Damaged { path: path.clone(), damage })?;
        let lines = mapping::map(&file, header.file_len, false).map_err(system("map", &path))?;
        Ok(Opened { header, path, file, lines })
    }

    /// Refuses a segment of another kind.
    pub(crate) fn expect(self, kind: u32) -> Result<Opened, ShmError> {
        if self.header.kind() == kind {
            return Ok(self);
        }
        Err(ShmError::OtherKind { path: self.path, kind: self.header.kind() })
    }

    /// What is said of a file whose sections are not where its header says.
    pub(crate) fn damaged(&self) -> ShmError {
        ShmError::Damaged { path: self.path.clone(), damage: Damage::Layout }
    }

    pub(crate) fn heartbeat(&self) -> Nanos {
        Nanos(LiveWord::Heartbeat.load(&self.lines))
    }

    pub(crate) fn writer_state(&self) -> WriterState {
        if LiveWord::State.load(&self.lines) == STATE_CLOSED {
            WriterState::Closed
        } else if self.header.writer.is_alive() {
            WriterState::Alive
        } else {
            WriterState::Gone
        }
    }

    pub(crate) fn is_replaced(&self) -> bool {
        !self.file.metadata().is_ok_and(|file| is_at(&file, &self.path))
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.size() == self.header.file_len)
    }
}
