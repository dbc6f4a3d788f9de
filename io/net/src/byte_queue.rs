//! A bounded queue of bytes that are always contiguous.

/// Bytes in arrival order in one fixed allocation, readable as one slice.
///
/// An emptied queue restarts at the front without a copy. Otherwise [`free_space`](ByteQueue::free_space)
/// moves the queued bytes to the front when less than half the capacity is free after them, so a short
/// remainder is moved once per half capacity of input. [`push`](ByteQueue::push) moves the queued bytes when
/// the new ones do not fit after them.
#[derive(Debug)]
pub struct ByteQueue {
    storage: Box<[u8]>,
    start: usize,
    end: usize,
}

impl ByteQueue {
    /// Creates an empty queue for up to `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize) -> ByteQueue {
        // Ones instead of zeroes: the pages of a zeroed `vec!` would be mapped only when bytes arrive.
        ByteQueue { storage: vec![1; capacity].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Clears the queue.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// The bytes queued, oldest first.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.end]
    }

    /// Number of bytes queued.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// True when the queue is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Number of bytes that can still be queued.
    #[inline]
    #[must_use]
    pub fn free(&self) -> usize {
        self.storage.len() - self.len()
    }

    /// Maximum number of bytes in the queue.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.storage.len()
    }

    /// Removes the oldest `count` bytes.
    ///
    /// # Panics
    /// When fewer are queued.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "consumed more bytes than are queued");
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Queues all of `bytes`, or nothing when they do not fit; returns whether they fit.
    #[inline]
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.free() {
            return false;
        }
        if bytes.len() > self.storage.len() - self.end {
            self.move_to_front();
        }
        self.storage[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// Returns the free space after the queued bytes: at least half the capacity if that much is free, and
    /// empty only if the queue is full. [`commit`](ByteQueue::commit) queues the bytes written there.
    #[inline]
    pub fn free_space(&mut self) -> &mut [u8] {
        if self.start > 0 && self.storage.len() - self.end < self.storage.len() / 2 {
            self.move_to_front();
        }
        &mut self.storage[self.end..]
    }

    /// Queues the first `count` bytes of the free space from [`free_space`](ByteQueue::free_space).
    ///
    /// # Panics
    /// When the free space is smaller.
    #[inline]
    pub fn commit(&mut self, count: usize) {
        assert!(count <= self.storage.len() - self.end, "committed more bytes than there was room for");
        self.end += count;
    }

    #[cold]
    fn move_to_front(&mut self) {
        self.storage.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn a_full_queue_takes_no_more_bytes() {
        let mut queue = ByteQueue::new(8);
        assert!(queue.push(b"12345678"));
        assert!(!queue.push(b"9"));
        assert_eq!(queue.free_space(), b"");
        queue.consume(3);
        assert!(!queue.push(b"9abc"));
        assert!(queue.push(b"9ab"));
        assert_eq!(queue.bytes(), b"456789ab");
    }

    #[test]
    fn at_least_half_the_capacity_is_contiguous() {
        let mut queue = ByteQueue::new(8);
        assert!(queue.push(b"123456"));
        queue.consume(2);
        assert_eq!(queue.free_space().len(), 4);
        assert_eq!(queue.bytes(), b"3456");
        queue.free_space()[..2].copy_from_slice(b"78");
        queue.commit(2);
        assert_eq!(queue.bytes(), b"345678");
        queue.consume(6);
        assert_eq!(queue.free_space().len(), 8);
    }

    #[test]
    fn it_behaves_like_a_deque() {
        let mut queue = ByteQueue::new(64);
        let mut model = VecDeque::new();
        let mut state = 1_u32;
        for step in 0..10_000_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let count = (state >> 16) as usize % 24;
            match state >> 30 {
                0 => {
                    let bytes = vec![step as u8; count];
                    assert_eq!(queue.push(&bytes), model.len() + count <= 64);
                    if model.len() + count <= 64 {
                        model.extend(bytes);
                    }
                }
                1 => {
                    let free_space = queue.free_space();
                    let count = count.min(free_space.len());
                    free_space[..count].fill(step as u8);
                    queue.commit(count);
                    model.extend(std::iter::repeat_n(step as u8, count));
                }
                _ => {
                    let count = count.min(model.len());
                    queue.consume(count);
                    model.drain(..count);
                }
            }
            assert!(queue.bytes().iter().eq(&model));
            assert_eq!(queue.free(), 64 - model.len());
        }
    }
}
