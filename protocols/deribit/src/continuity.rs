//! Continuity check of the messages of one book channel.

use crate::messages::{BookUpdate, BookUpdateKind};

/// Action for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookStep {
    /// Discard the book and use these levels.
    Replace,
    /// Apply these levels to the book.
    Apply,
    /// A message was lost: the book must not be used until the next `Replace`.
    Lost,
    /// Drop the message: there is no valid book to apply it to.
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitingSnapshot,
    Following(u64),
    Lost,
}

/// Checks the sequence of one subscribed book channel. Each interval of an instrument has separate numbers.
///
/// A change names the number it follows, which need not be consecutive. After a loss,
/// [`Session::resubscribe`](crate::session::Session::resubscribe) renews the channel for a complete book.
#[derive(Clone, Debug)]
pub struct Continuity {
    state: State,
}

impl Continuity {
    /// Creates the check for a new subscription.
    #[must_use]
    pub const fn new() -> Continuity {
        Continuity { state: State::AwaitingSnapshot }
    }

    /// True while the book is complete.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.state, State::Following(_))
    }

    /// Processes the next message of the channel.
    pub fn handle_update(&mut self, update: &BookUpdate<'_>) -> BookStep {
        let is_snapshot = update.kind == BookUpdateKind::Snapshot;
        match self.state {
            _ if is_snapshot => {
                self.state = State::Following(update.change_id);
                BookStep::Replace
            }
            State::Following(last) if update.prev_change_id == Some(last) => {
                self.state = State::Following(update.change_id);
                BookStep::Apply
            }
            State::Following(_) => self.lose(),
            State::AwaitingSnapshot | State::Lost => BookStep::Ignore,
        }
    }

    /// Marks the book as lost for another reason: crossed after a complete message, or a decode error.
    pub fn lose(&mut self) -> BookStep {
        self.state = State::Lost;
        BookStep::Lost
    }
}

impl Default for Continuity {
    fn default() -> Continuity {
        Continuity::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    fn update(prev_change_id: Option<u64>, change_id: u64) -> BookUpdate<'static> {
        let kind = if prev_change_id.is_none() { BookUpdateKind::Snapshot } else { BookUpdateKind::Change };
        BookUpdate { kind, timestamp: 1, prev_change_id, instrument_name: Text::new("A"), change_id }
    }

    #[test]
    fn after_a_lost_message_no_book_stands_until_the_next_whole_one() {
        let mut book = Continuity::new();
        assert_eq!(book.handle_update(&update(Some(4), 5)), BookStep::Ignore);
        assert_eq!(book.handle_update(&update(None, 10)), BookStep::Replace);
        assert_eq!(book.handle_update(&update(Some(10), 17)), BookStep::Apply);
        assert!(book.is_whole());
        assert_eq!(book.handle_update(&update(Some(18), 19)), BookStep::Lost);
        assert_eq!(book.handle_update(&update(Some(19), 20)), BookStep::Ignore);
        assert!(!book.is_whole());
        assert_eq!(book.handle_update(&update(None, 30)), BookStep::Replace);
        assert!(book.is_whole());
    }

    #[test]
    fn a_snapshot_of_the_server_replaces_the_book_at_any_time() {
        let mut book = Continuity::new();
        assert_eq!(book.handle_update(&update(None, 10)), BookStep::Replace);
        assert_eq!(book.handle_update(&update(None, 12)), BookStep::Replace);
        assert_eq!(book.lose(), BookStep::Lost);
        assert_eq!(book.handle_update(&update(None, 14)), BookStep::Replace);
    }
}
