//! The trait that the readers of all recordings implement.

use tickpath_recording::{RecordedEvent, RecordingInfo};

use crate::{Position, ReadError};

/// Reads the events of one recording, in order, in constant memory.
pub trait EventReader {
    /// Reads the next event into `event`; false at the end.
    ///
    /// After any result except `Ok(true)`, the content of `event` is meaningless. Unlike
    /// [`EventReader::next_event`], this does not copy the event.
    ///
    /// # Errors
    /// [`ReadError`]; its variants say whether reading can continue.
    fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError>;

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`]; its variants say whether reading can continue.
    #[inline]
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, ReadError> {
        let mut event = RecordedEvent::NOTHING;
        Ok(self.read_event(&mut event)?.then_some(event))
    }

    /// Position of the last event read; before the first event, the start of the data.
    fn position(&self) -> Position;

    /// The venue's names of the instruments seen so far, by index.
    fn symbols(&self) -> &[String];

    /// Properties of the recording, such as its time base and depth.
    fn info(&self) -> RecordingInfo;
}
