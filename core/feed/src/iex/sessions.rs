//! Where a segment stands in the numbering of its channel.

use tickpath_iex::Segment;
use tickpath_types::Sequence;

/// Where a segment of one line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It goes on where the last one ended, or is the first of all and begins at 1.
    Next,
    /// A numbering begins anew: of another session, or of the same id, which is seen by a later send time.
    SessionStart {
        /// Messages of the new numbering that were lost before it, from 1 on.
        lost: u64,
    },
    /// So many messages from `first` on were lost before it.
    AfterGap {
        /// The first that is missing.
        first: Sequence,
        /// How many.
        count: u64,
    },
    /// Its first `count` messages came before; those after them, if there are any, are new.
    Repeats {
        /// How many.
        count: u64,
    },
    /// Of another feed or channel, or of an older session: it does not belong here.
    Foreign,
}

/// Follows the numbering of one channel on one line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sessions {
    /// Protocol, channel and session of the numbering.
    key: Option<(u16, u32, u32)>,
    next: u64,
    /// Send time of the newest segment.
    send_time: u64,
    starts: u64,
}

impl Sessions {
    /// Takes whatever feed, channel and session the first segment names. Messages before the first segment count as
    /// lost.
    #[must_use]
    pub const fn new() -> Sessions {
        Sessions { key: None, next: 1, send_time: 0, starts: 0 }
    }

    /// Number of the next message.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        Sequence(self.next)
    }

    /// How often a numbering began anew.
    #[must_use]
    pub const fn starts(&self) -> u64 {
        self.starts
    }

    /// Says where a segment stands, and takes its messages as come.
    #[inline]
    pub fn place(&mut self, segment: &Segment<'_>) -> Place {
        let key = (segment.header().protocol_id.get(), segment.channel(), segment.session());
        let (first, end, time) = (segment.sequence().0, segment.next_sequence().0, segment.send_time().0);
        let Some(known) = self.key else {
            (self.key, self.send_time) = (Some(key), time);
            return self.advance(first, end);
        };
        let is_newer = time > self.send_time;
        if key != known {
            let is_other_channel = (key.0, key.1) != (known.0, known.1);
            if is_other_channel || !is_newer {
                return Place::Foreign;
            }
            return self.start(key, first, end, time);
        }
        self.send_time = self.send_time.max(time);
        if segment.is_first() && self.next > 1 && is_newer {
            return self.start(key, first, end, time);
        }
        self.advance(first, end)
    }

    #[cold]
    fn start(&mut self, key: (u16, u32, u32), first: u64, end: u64, time: u64) -> Place {
        (self.key, self.send_time) = (Some(key), time);
        self.starts += 1;
        self.next = end;
        Place::SessionStart { lost: first.saturating_sub(1) }
    }

    #[inline]
    fn advance(&mut self, first: u64, end: u64) -> Place {
        let next = self.next;
        self.next = next.max(end);
        if first == next {
            Place::Next
        } else if first > next {
            Place::AfterGap { first: Sequence(next), count: first - next }
        } else {
            Place::Repeats { count: next.min(end) - first }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_iex::{Feed, SegmentBuilder};
    use tickpath_types::Nanos;

    fn place(sessions: &mut Sessions, session: u32, first: u64, count: usize, time: u64) -> Place {
        let offset = (first - 1) * 3;
        let id = Feed::Deep10.protocol_id();
        let mut builder = SegmentBuilder::resuming([0; 128], id, 1, session, Sequence(first), offset);
        (0..count).for_each(|_| builder.push(b"z").expect("there is room"));
        sessions.place(&Segment::parse(builder.finish(Nanos(time))).expect("whole"))
    }

    #[test]
    fn numbers_go_on_skip_and_come_again() {
        let mut sessions = Sessions::new();
        assert_eq!(place(&mut sessions, 9, 1, 3, 10), Place::Next);
        assert_eq!(place(&mut sessions, 9, 4, 0, 11), Place::Next);
        assert_eq!(place(&mut sessions, 9, 4, 2, 12), Place::Next);
        assert_eq!(place(&mut sessions, 9, 5, 3, 13), Place::Repeats { count: 1 });
        assert_eq!(place(&mut sessions, 9, 10, 1, 14), Place::AfterGap { first: Sequence(8), count: 2 });
        assert_eq!(place(&mut sessions, 9, 8, 2, 13), Place::Repeats { count: 2 });
        assert_eq!((sessions.next_sequence(), sessions.starts()), (Sequence(11), 0));
    }

    #[test]
    fn a_numbering_that_begins_anew_is_told_from_an_old_copy_by_its_send_time() {
        let mut sessions = Sessions::new();
        assert_eq!(place(&mut sessions, 9, 1, 3, 10), Place::Next);
        assert_eq!(place(&mut sessions, 9, 4, 3, 20), Place::Next);
        assert_eq!(place(&mut sessions, 9, 1, 3, 10), Place::Repeats { count: 3 });
        assert_eq!(place(&mut sessions, 9, 1, 0, 21), Place::SessionStart { lost: 0 });
        assert_eq!(place(&mut sessions, 9, 1, 3, 22), Place::Next);
        // Another session, joined late; then what is left of the old one, and another channel.
        assert_eq!(place(&mut sessions, 10, 5, 1, 30), Place::SessionStart { lost: 4 });
        assert_eq!(place(&mut sessions, 9, 4, 1, 25), Place::Foreign);
        assert_eq!(place(&mut sessions, 10, 6, 1, 31), Place::Next);
        assert_eq!(sessions.starts(), 2);
    }

    #[test]
    fn what_came_before_the_first_segment_is_lost() {
        let mut sessions = Sessions::new();
        assert_eq!(place(&mut sessions, 9, 8, 1, 1), Place::AfterGap { first: Sequence(1), count: 7 });
    }
}
