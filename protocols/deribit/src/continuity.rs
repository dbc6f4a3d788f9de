//! Whether the messages of one book channel follow each other.

use crate::messages::{BookUpdate, BookUpdateKind};

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookStep {
    /// Forget the book and take these levels.
    Replace,
    /// Apply these levels to the book.
    Apply,
    /// The book has lost a message and must not be used until the next `Replace`.
    Lost,
    /// Drop the message: no book stands that it could apply to.
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitingSnapshot,
    Following(u64),
    Lost,
}

/// Follows the numbers of one subscribed book channel. Each interval of an instrument has numbers of its own.
///
/// A number is not one more than that before: a change names the number that it follows. After a loss the channel is
/// subscribed anew by [`Session::resubscribe`](crate::session::Session::resubscribe), which gives a whole book.
#[derive(Clone, Debug)]
pub struct Continuity {
    state: State,
}

impl Continuity {
    /// For a channel that was just subscribed.
    #[must_use]
    pub const fn new() -> Continuity {
        Continuity { state: State::AwaitingSnapshot }
    }

    /// True while the book is whole.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.state, State::Following(_))
    }

    /// Takes the next message of the channel.
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

    /// The book is wrong for another reason: crossed after a whole message, a message that could not be read.
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
