//! Line B: sent by the publisher, or by a separate agent that gets the same datagrams in the same order.

use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, Waker};
use tickpath_lockfree::spsc;
use tickpath_net::DatagramSender;
use tickpath_types::Nanos;
use tickpath_venue::{PublisherCounters, end_ring};

use super::run::{DEFAULT_RUN_LEN_MAX, Datagrams, unsent_count};

/// Number of runs that may wait for the agent of line B. When they do, the publisher publishes nothing.
const RUNS_WAITING_MAX: usize = 1 << 6;
/// Maximum number of runs sent in one duty cycle of the agent.
const RUNS_PER_CYCLE: usize = 16;

/// A copy of datagrams that are sent together.
#[derive(Clone, Copy)]
pub(super) struct RunCopy {
    len: u32,
    datagram_len: u32,
    bytes: [u8; DEFAULT_RUN_LEN_MAX],
}

impl RunCopy {
    fn datagrams(&self) -> Datagrams<'_> {
        Datagrams { bytes: &self.bytes[..self.len as usize], len: self.datagram_len as usize }
    }
}

/// The publisher's end of line B.
pub(super) enum LineB<S> {
    /// The publisher sends line B, after line A.
    Sender(S),
    /// A [`LineBAgent`] sends line B. The box is the item to push next.
    Ring(spsc::Producer<RunCopy>, Box<RunCopy>),
}

impl<S: DatagramSender> LineB<S> {
    /// Replaces the sender by a ring to an agent that has the sender.
    pub(super) fn move_to_agent(self, counters: Arc<PublisherCounters>) -> (LineB<S>, Option<LineBAgent<S>>) {
        let LineB::Sender(sender) = self else { return (self, None) };
        let (runs_in, runs) = spsc::channel(RUNS_WAITING_MAX);
        let next = Box::new(RunCopy { len: 0, datagram_len: 1, bytes: [0; DEFAULT_RUN_LEN_MAX] });
        (LineB::Ring(runs_in, next), Some(LineBAgent { sender, runs, counters }))
    }

    /// True if the next [`send`](Self::send) cannot fail because of waiting runs.
    #[inline]
    pub(super) fn has_capacity(&mut self) -> bool {
        match self {
            LineB::Sender(_) => true,
            LineB::Ring(runs, _) => runs.free_slots_hint() > 0 || runs.free_slots() > 0,
        }
    }

    /// Sends datagrams, or passes them to the agent. Returns the number of those not sent or passed.
    #[inline]
    pub(super) fn send(&mut self, datagrams: Datagrams<'_>) -> u64 {
        match self {
            LineB::Sender(sender) => unsent_count(sender, datagrams),
            LineB::Ring(runs, next) => {
                let Datagrams { bytes, len } = datagrams;
                next.bytes[..bytes.len()].copy_from_slice(bytes);
                (next.len, next.datagram_len) = (bytes.len() as u32, len as u32);
                if runs.try_push(**next).is_ok() { 0 } else { datagrams.count() as u64 }
            }
        }
    }

    /// Ends the ring to the agent, which then finishes once it has sent the remaining runs.
    pub(super) fn end(&mut self) {
        if let LineB::Ring(runs, _) = self {
            end_ring(runs);
        }
    }
}

/// Sends line B on a separate thread, so that it costs the publisher only a copy.
pub struct LineBAgent<S> {
    sender: S,
    runs: spsc::Consumer<RunCopy>,
    counters: Arc<PublisherCounters>,
}

impl<S: DatagramSender> LineBAgent<S> {
    /// Sends up to `max` waiting runs; returns their number.
    fn send_waiting(&mut self, max: usize) -> usize {
        let LineBAgent { sender, runs, counters } = self;
        let mut count = 0;
        while count < max
            && let Some(run) = runs.peek()
        {
            let unsent = unsent_count(sender, run.datagrams());
            if unsent > 0 {
                counters.unsent_line_b.add(unsent);
            }
            // Free the slot only now, because the run was sent from it.
            count += runs.drain(1, |_| {});
        }
        count
    }
}

impl<S: DatagramSender> Agent for LineBAgent<S> {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        Ok(self.send_waiting(RUNS_PER_CYCLE))
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.runs.wake_by(waker);
    }

    fn role_name(&self) -> &'static str {
        "line-b"
    }

    fn finish(&mut self, _now: Nanos) -> Result<bool, AgentError> {
        // Check for the publisher's disconnect first, so that runs passed before it are still sent.
        let has_ended = self.runs.is_disconnected();
        Ok(self.send_waiting(RUNS_PER_CYCLE) == 0 && has_ended)
    }

    fn on_close(&mut self) {
        self.send_waiting(RUNS_WAITING_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use tickpath_net::SendStatus;

    use super::*;

    /// Keeps the datagrams sent; refuses those that begin with `!`.
    #[derive(Clone, Default)]
    struct Sent(Arc<Mutex<Vec<Vec<u8>>>>);

    impl DatagramSender for Sent {
        fn send(&mut self, datagram: &[u8]) -> io::Result<SendStatus> {
            if datagram[0] == b'!' {
                return Ok(SendStatus::WouldBlock);
            }
            self.0.lock().unwrap().push(datagram.to_vec());
            Ok(SendStatus::Sent)
        }
    }

    fn rig() -> (LineB<Sent>, LineBAgent<Sent>, Sent, Arc<PublisherCounters>) {
        let (sent, counters) = (Sent::default(), Arc::new(PublisherCounters::default()));
        let (line, agent) = LineB::Sender(sent.clone()).move_to_agent(Arc::clone(&counters));
        (line, agent.unwrap(), sent, counters)
    }

    #[test]
    fn the_agent_sends_all_datagrams_in_order_and_then_ends() {
        let (mut line, mut agent, sent, counters) = rig();
        assert_eq!(line.send(Datagrams { bytes: b"abcde", len: 2 }), 0);
        assert_eq!(line.send(Datagrams::one(b"heartbeat")), 0);
        assert_eq!(line.send(Datagrams { bytes: b"!!x", len: 2 }), 0);
        assert_eq!(agent.do_work(Nanos::ZERO).unwrap(), 3);
        assert!(!agent.finish(Nanos::ZERO).unwrap(), "the publisher may send more");
        assert_eq!(line.send(Datagrams::one(b"end")), 0);
        line.end();
        assert!(!agent.finish(Nanos::ZERO).unwrap());
        assert!(agent.finish(Nanos::ZERO).unwrap());
        let sent = sent.0.lock().unwrap();
        assert_eq!(*sent, [&b"ab"[..], b"cd", b"e", b"heartbeat", b"x", b"end"]);
        assert_eq!(counters.unsent_line_b.read(), 1);
    }

    #[test]
    fn a_full_ring_takes_no_more_runs() {
        let (mut line, mut agent, sent, _) = rig();
        for number in 0..RUNS_WAITING_MAX {
            assert!(line.has_capacity());
            assert_eq!(line.send(Datagrams::one(&[b'#', number as u8])), 0);
        }
        assert!(!line.has_capacity());
        assert_eq!(line.send(Datagrams { bytes: &[99; 3], len: 1 }), 3);
        assert_eq!(agent.do_work(Nanos::ZERO).unwrap(), RUNS_PER_CYCLE);
        assert!(line.has_capacity());
        agent.on_close();
        let sent = sent.0.lock().unwrap();
        assert_eq!(*sent, (0..RUNS_WAITING_MAX).map(|number| vec![b'#', number as u8]).collect::<Vec<_>>());
    }
}
