//! The newest messages to all users, in the order of the log.

use tickpath_faults::failpoint;

use crate::message_log::MAX_LOGGED_MESSAGE;

/// A message to a user.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Registry index of the user.
    pub user: u16,
    len: u16,
    /// Message number in the user's session, from 1.
    pub number: u64,
    bytes: [u8; MAX_LOGGED_MESSAGE],
}

impl Entry {
    /// A message to the user with registry index `user`, of at most [`MAX_LOGGED_MESSAGE`] bytes.
    #[must_use]
    pub fn new(user: usize, number: u64, message: &[u8]) -> Entry {
        let mut bytes = [0; MAX_LOGGED_MESSAGE];
        bytes[..message.len()].copy_from_slice(message);
        Entry { user: user as u16, len: message.len() as u16, number, bytes }
    }

    /// The message's bytes.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// For each user, by registry index, whether a reader receives copies of the user's messages.
pub type Watched = [bool];

/// Total number of messages to the watched users; `next_numbers` has each user's next message number.
pub fn count(watched: &Watched, next_numbers: impl Iterator<Item = u64>) -> u64 {
    watched.iter().zip(next_numbers).map(|(is_watched, next)| u64::from(*is_watched) * (next - 1)).sum()
}

/// Position of a reader's message in the [`CopyStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPosition {
    /// The message is stored here. If it is the reader's next and not yet stored, it will be here or later.
    At(u64),
    /// The message is no longer kept.
    Before,
    /// The message does not exist yet and is not the next one.
    Beyond,
}

/// A ring of the newest messages to all users; a new message overwrites the oldest.
pub struct CopyStore {
    slots: Box<[Entry]>,
    /// Position of the next message, counted from the first message ever stored.
    next: u64,
    next_numbers: Vec<u64>,
}

impl CopyStore {
    /// A store of `capacity` messages, rounded up to a power of two. `next_numbers` has the number of each
    /// user's next message.
    pub fn new(capacity: usize, next_numbers: Vec<u64>) -> CopyStore {
        let slots = vec![Entry::new(0, 0, &[]); capacity.next_power_of_two()].into_boxed_slice();
        CopyStore { slots, next: 0, next_numbers }
    }

    /// Appends a message.
    pub fn push(&mut self, entry: Entry) {
        let user = usize::from(entry.user);
        if user >= self.next_numbers.len() {
            // The user was added after the store was created, and has no earlier messages.
            self.next_numbers.resize(user + 1, 1);
        }
        self.next_numbers[user] = entry.number + 1;
        let index = self.index(self.next);
        self.slots[index] = entry;
        self.next += 1;
    }

    /// Maximum number of kept messages.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Position of the next message.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The message at a position; `None` if it was overwritten or is not yet stored.
    pub fn entry(&self, at: u64) -> Option<&Entry> {
        let oldest = self.next.saturating_sub(self.slots.len() as u64);
        (oldest..self.next).contains(&at).then(|| &self.slots[self.index(at)])
    }

    /// Number of the next message in the stream of a reader that watches these users.
    pub fn next_number(&self, watched: &Watched) -> u64 {
        1 + count(watched, self.next_numbers.iter().copied())
    }

    /// Position of message `number` in the stream of a reader that watches these users. Searches backwards.
    pub fn find(&self, watched: &Watched, number: u64) -> CopyPosition {
        let mut at = self.next;
        let mut found = self.next_number(watched);
        if number > found {
            return CopyPosition::Beyond;
        }
        while found > number {
            let Some(entry) = at.checked_sub(1).and_then(|before| self.entry(before)) else {
                return CopyPosition::Before;
            };
            at -= 1;
            found -= u64::from(watched[usize::from(entry.user)]);
        }
        failpoint!(CopyRepeated => at = at.saturating_sub(1));
        CopyPosition::At(at)
    }

    fn index(&self, at: u64) -> usize {
        at as usize & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_numbers_are_found_among_all_messages() {
        // Before the store was created, the first user received two messages and the second user five.
        let mut store = CopyStore::new(4, vec![3, 6, 1]);
        let (first, both) = ([true, false, false], [true, true, false]);
        assert_eq!((store.next_number(&first), store.next_number(&both)), (3, 8));
        assert_eq!(store.find(&first, 3), CopyPosition::At(0));
        assert_eq!(store.find(&first, 2), CopyPosition::Before);
        assert_eq!(store.find(&first, 4), CopyPosition::Beyond);
        for (user, number) in [(1, 6), (0, 3), (2, 1), (0, 4)] {
            store.push(Entry::new(user, number, &[number as u8]));
        }
        assert_eq!(
            [3, 4, 5, 6].map(|number| store.find(&first, number)),
            [CopyPosition::At(1), CopyPosition::At(3), CopyPosition::At(4), CopyPosition::Beyond]
        );
        assert_eq!(
            [7, 8, 9, 10].map(|number| store.find(&both, number)),
            [CopyPosition::Before, CopyPosition::At(0), CopyPosition::At(1), CopyPosition::At(3)]
        );
        let entry = store.entry(3).unwrap();
        assert_eq!((entry.user, entry.number, entry.message()), (0, 4, &[4][..]));
        // The fifth message overwrites the oldest of four.
        store.push(Entry::new(1, 7, &[7]));
        assert!(store.entry(0).is_none() && store.entry(1).is_some());
        assert_eq!(
            [8, 9].map(|number| store.find(&both, number)),
            [CopyPosition::Before, CopyPosition::At(1)]
        );
        // A message to a user that was added after the store was created.
        let all = [true; 5];
        let before = store.next_number(&all);
        store.push(Entry::new(4, 1, &[1]));
        assert_eq!((store.next_number(&all), store.next_number(&both)), (before + 1, 12));
    }
}
