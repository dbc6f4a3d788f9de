//! Whether the messages of one book channel follow each other, and what to do when they do not.

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

/// What to send, to get a whole book again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookRequest {
    /// Unsubscribe from the channel; tell [`Continuity::handle_unsubscribed`] of the reply.
    Unsubscribe,
    /// Subscribe to the channel.
    Subscribe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitingSnapshot,
    Following(u64),
    Lost,
    Unsubscribing,
    Unsubscribed,
}

/// Follows the numbers of one subscribed book channel. Each interval of an instrument has numbers of its own.
///
/// A number is not one more than that before: a change names the number that it follows. After a loss the channel is
/// unsubscribed, and subscribed again only after the reply; a second subscription without that gives no snapshot.
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
            // What comes before the subscription ends is of no use: another snapshot follows.
            State::Unsubscribing | State::Unsubscribed => BookStep::Ignore,
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
        if !matches!(self.state, State::Unsubscribing | State::Unsubscribed) {
            self.state = State::Lost;
        }
        BookStep::Lost
    }

    /// The reply to the unsubscribe request came.
    pub fn handle_unsubscribed(&mut self) {
        if self.state == State::Unsubscribing {
            self.state = State::Unsubscribed;
        }
    }

    /// What to send now; it is given once.
    pub fn poll_request(&mut self) -> Option<BookRequest> {
        let (state, request) = match self.state {
            State::Lost => (State::Unsubscribing, BookRequest::Unsubscribe),
            State::Unsubscribed => (State::AwaitingSnapshot, BookRequest::Subscribe),
            _ => return None,
        };
        self.state = state;
        Some(request)
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
    fn a_lost_message_leads_to_a_new_subscription() {
        let mut book = Continuity::new();
        assert_eq!(book.handle_update(&update(Some(4), 5)), BookStep::Ignore);
        assert_eq!(book.handle_update(&update(None, 10)), BookStep::Replace);
        assert_eq!(book.handle_update(&update(Some(10), 17)), BookStep::Apply);
        assert_eq!((book.is_whole(), book.poll_request()), (true, None));
        assert_eq!(book.handle_update(&update(Some(18), 19)), BookStep::Lost);
        assert_eq!(book.handle_update(&update(Some(19), 20)), BookStep::Ignore);
        assert_eq!(book.poll_request(), Some(BookRequest::Unsubscribe));
        assert_eq!((book.handle_update(&update(None, 21)), book.poll_request()), (BookStep::Ignore, None));
        book.handle_unsubscribed();
        assert_eq!(book.poll_request(), Some(BookRequest::Subscribe));
        assert_eq!((book.is_whole(), book.poll_request()), (false, None));
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
        assert_eq!(book.poll_request(), None);
    }
}
