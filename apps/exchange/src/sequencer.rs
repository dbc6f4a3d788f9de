//! One order for everything that reaches the venue.

use tickpath_lockfree::spsc;
use tickpath_matching::{Command, CommandKind};
use tickpath_timing::{CommandId, Hop, Token, Tracer};
use tickpath_types::{Nanos, Sequence, SessionId};

use crate::late::end_ring;

/// A request on its way into the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the kernel received it, in nanoseconds of its clock; 0 when not known.
    pub kernel_ns: u64,
    /// Whose it is.
    pub session: SessionId,
    /// What its stamps are joined by; `None` for the venue's own commands.
    pub token: Option<Token>,
    /// What is asked.
    pub kind: CommandKind,
}

/// Orders what one duty cycle drained from all sockets by the kernel's receive time, and numbers it.
///
/// Requests of one session keep their order: the sort is by (kernel time, session, arrival), and the
/// kernel's times of one session never decrease. Nothing waits for a later packet: what was drained is
/// sequenced at once. No two commands have one time, however many a duty cycle takes: what one command causes
/// is known by its time in market data, as an incoming order's executions are. When the ring to the matcher is full, what is left stays in order until there is room.
pub(crate) struct Sequencer {
    next: Sequence,
    /// When the latest command was sequenced.
    last_at: Nanos,
    batch: Vec<(u64, SessionId, u32, Arrival)>,
    sequenced: usize,
    commands: spsc::Producer<Command>,
}

impl Sequencer {
    /// Numbers from 1; `capacity` requests at most may be drained in one duty cycle.
    pub(crate) fn new(commands: spsc::Producer<Command>, capacity: usize) -> Sequencer {
        let batch = Vec::with_capacity(capacity);
        Sequencer { next: Sequence(1), last_at: Nanos::ZERO, batch, sequenced: 0, commands }
    }

    /// Requests that may still be added to the batch.
    pub(crate) fn room(&self) -> usize {
        self.batch.capacity() - self.batch.len()
    }

    /// Adds a request to the batch, which must have [`room`](Sequencer::room).
    pub(crate) fn add(&mut self, arrival: Arrival) {
        debug_assert!(self.room() > 0, "the batch is bounded by its capacity");
        let order = self.batch.len() as u32;
        self.batch.push((arrival.kernel_ns, arrival.session, order, arrival));
    }

    /// Sorts the batch and writes as much of it to the log as there is room for; returns how much.
    pub(crate) fn sequence(&mut self, now: Nanos, tracer: &mut impl Tracer) -> usize {
        if self.sequenced == 0 && self.batch.len() > 1 {
            self.batch.sort_unstable_by_key(|(kernel_ns, session, order, _)| (*kernel_ns, *session, *order));
        }
        let start = self.sequenced;
        while let Some((_, _, _, arrival)) = self.batch.get(self.sequenced) {
            let at = now.max(Nanos(self.last_at.0 + 1));
            let ts = at.time_of_day();
            let command = Command { sequence: self.next, session: arrival.session, ts, kind: arrival.kind };
            if self.commands.try_push(command).is_err() {
                return self.sequenced - start;
            }
            self.last_at = at;
            let id = CommandId(self.next);
            tracer.stamp(Hop::T2, id);
            if let Some(token) = arrival.token {
                tracer.link(id, token);
            }
            self.next = self.next.next();
            self.sequenced += 1;
        }
        self.batch.clear();
        let count = self.sequenced - start;
        self.sequenced = 0;
        count
    }

    /// True when everything that was added is in the log.
    pub(crate) fn is_drained(&self) -> bool {
        self.batch.is_empty()
    }

    /// No command follows: the matcher learns that the log has ended.
    pub(crate) fn end(&mut self) {
        end_ring(&mut self.commands);
    }

    /// Number of commands in the log.
    pub(crate) fn command_count(&self) -> u64 {
        self.next.0 - 1
    }
}

#[cfg(test)]
mod tests {
    use tickpath_timing::NoTrace;
    use tickpath_types::{CancelOrder, OrderRequest, Qty, UserRefNum};

    use super::*;

    fn arrival(kernel_ns: u64, session: u16, user_ref: u32) -> Arrival {
        let cancel = CancelOrder { user_ref: UserRefNum(user_ref), qty: Qty::ZERO };
        Arrival {
            kernel_ns,
            session: SessionId(session),
            token: None,
            kind: CommandKind::Order(OrderRequest::Cancel(cancel)),
        }
    }

    fn user_refs(commands: &mut spsc::Consumer<Command>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| commands.try_pop())
            .map(|command| match command.kind {
                CommandKind::Order(request) => (command.sequence.0, request.user_ref().0),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_kernel_decides_who_was_first_and_a_session_keeps_its_order() {
        let (producer, mut commands) = spsc::channel(16);
        let mut sequencer = Sequencer::new(producer, 16);
        for (kernel_ns, session, user_ref) in [(30, 1, 1), (30, 1, 2), (10, 2, 3), (30, 3, 4), (20, 2, 5)] {
            sequencer.add(arrival(kernel_ns, session, user_ref));
        }
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 5);
        assert_eq!(user_refs(&mut commands), [(1, 3), (2, 5), (3, 1), (4, 2), (5, 4)]);
        assert!(sequencer.is_drained());
    }

    #[test]
    fn a_full_ring_keeps_what_is_left_in_order() {
        let (producer, mut commands) = spsc::channel(2);
        let mut sequencer = Sequencer::new(producer, 3);
        for (kernel_ns, user_ref) in [(3, 3), (2, 2), (1, 1)] {
            sequencer.add(arrival(kernel_ns, 1, user_ref));
        }
        assert_eq!(sequencer.room(), 0);
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 2);
        assert!(!sequencer.is_drained());
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 0);
        assert_eq!(user_refs(&mut commands), [(1, 1), (2, 2)]);
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 1);
        assert_eq!(user_refs(&mut commands), [(3, 3)]);
        assert_eq!((sequencer.command_count(), sequencer.room()), (3, 3));
    }

    #[test]
    fn every_command_has_a_time_of_its_own_and_the_day_begins_at_midnight() {
        let (producer, mut commands) = spsc::channel(16);
        let mut sequencer = Sequencer::new(producer, 16);
        // Two nanoseconds before a midnight.
        let now = Nanos(3 * Nanos::DAY.0 - 2);
        for (now, count) in [(now, 3), (now, 2), (Nanos(now.0 + 100), 1)] {
            for user_ref in 1..=count {
                sequencer.add(arrival(0, 1, user_ref));
            }
            assert_eq!(sequencer.sequence(now, &mut NoTrace), count as usize);
        }
        let times: Vec<u64> = std::iter::from_fn(|| commands.try_pop()).map(|command| command.ts.0).collect();
        let midnight = Nanos::DAY.0;
        assert_eq!(times, [midnight - 2, midnight - 1, 0, 1, 2, 98]);
    }

    #[test]
    fn what_a_full_ring_refused_takes_no_time() {
        let (producer, mut commands) = spsc::channel(2);
        let mut sequencer = Sequencer::new(producer, 3);
        (1..=3).for_each(|user_ref| sequencer.add(arrival(0, 1, user_ref)));
        for _ in 0..5 {
            sequencer.sequence(Nanos(7), &mut NoTrace);
        }
        let first: Vec<u64> = std::iter::from_fn(|| commands.try_pop()).map(|command| command.ts.0).collect();
        sequencer.sequence(Nanos(7), &mut NoTrace);
        assert_eq!((first, commands.try_pop().unwrap().ts), (vec![7, 8], Nanos(9)));
    }
}
