//! The trait of the event readers.

use tickpath_recording::{RecordedEvent, RecordingInfo};

use crate::{Position, ReadError};

/// Reads the events of one recording, in order, in constant memory.
pub trait EventReader {
    /// Reads the next event into `event`: false when there are no more.
    ///
    /// After any result except `Ok(true)`, the content of `event` is meaningless. A loop with its own buffer
    /// for events saves a copy of each.
    ///
    /// # Errors
    /// [`ReadError`]; its variants say whether reading can continue.
    fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError>;

    /// The next event, or `None` when there are no more.
    ///
    /// # Errors
    /// [`ReadError`]; its variants say whether reading can continue.
    #[inline]
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, ReadError> {
        let mut event = RecordedEvent::NOTHING;
        Ok(self.read_event(&mut event)?.then_some(event))
    }

    /// Position of the last event read; the start of the data before the first.
    fn position(&self) -> Position;

    /// The venue's names of the instruments seen so far, by index.
    fn symbols(&self) -> &[String];

    /// Time base, depth and price scale of the recording.
    fn info(&self) -> RecordingInfo;
}
