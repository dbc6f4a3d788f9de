//! The lines of a channel, many datagrams by one system call, and what recovers what they lose.

use std::os::fd::AsFd;

use tickpath_agent::{Counter, WaitSet};
use tickpath_feed::{Channel, Framing, Line, MessageBooks};
use tickpath_net::{MulticastReceiver, NetError, RecvBatch};
use tickpath_types::{InstrumentId, Nanos};

use super::channel::{ChannelStatus, Source};
use super::config::ChannelSection;
use super::outputs::Sink;
use super::recovery::Recovery;
use crate::senders::Senders;

/// Datagrams taken off one line by one call.
const BATCH: usize = 32;
/// Longest datagram that is taken: that of jumbo frames. A longer one is cut short, counted, and not believed.
pub(super) const DATAGRAM_MAX: usize = 9_216;
const LINES: [Line; 2] = [Line::A, Line::B];

/// What came that was not taken.
#[derive(Default)]
pub(super) struct LineDrops {
    /// Datagrams from addresses that may not send, or of another feed.
    pub(super) strangers: Counter,
    /// Datagrams longer than [`DATAGRAM_MAX`].
    pub(super) truncated: Counter,
}

/// One line or two.
pub(super) struct LineSockets {
    receivers: Vec<MulticastReceiver>,
    batch: RecvBatch,
    senders: Senders,
    next: usize,
    pub(super) drops: LineDrops,
}

impl LineSockets {
    pub(super) fn join(section: &ChannelSection) -> Result<LineSockets, NetError> {
        let groups = [section.line_a, section.line_b];
        let receivers = groups
            .into_iter()
            .flatten()
            .map(|group| MulticastReceiver::join(group, section.interface))
            .collect::<Result<_, _>>()?;
        Ok(LineSockets {
            receivers,
            batch: RecvBatch::new(BATCH, DATAGRAM_MAX),
            senders: section.senders(),
            next: 0,
            drops: LineDrops::default(),
        })
    }

    /// Takes what waits on one line, the lines by turns; how many there were.
    #[inline]
    pub(super) fn receive(&mut self, mut take: impl FnMut(Line, &[u8]) -> bool) -> std::io::Result<usize> {
        for _ in 0..self.receivers.len() {
            let line = self.next;
            self.next = (line + 1) % self.receivers.len();
            let count = self.receivers[line].recv_batch(&mut self.batch)?;
            if count == 0 {
                continue;
            }
            for (received, datagram) in self.batch.iter() {
                let is_known = self.senders.allows(*received.from.ip());
                if received.is_truncated {
                    self.drops.truncated.add(1);
                } else if !is_known || !take(LINES[line], datagram) {
                    self.drops.strangers.add(1);
                }
            }
            return Ok(count);
        }
        Ok(0)
    }

    /// Says that it waits for the next datagram.
    pub(super) fn wait_for(&self, wait: &mut WaitSet) {
        self.receivers.iter().for_each(|receiver| wait.descriptor(Some(receiver.as_fd())));
    }

    /// Datagrams that the kernel dropped because nobody took them in time.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.receivers.iter().map(|receiver| u64::from(receiver.kernel_drop_count())).sum()
    }
}

/// Looks at a datagram before the arbiter does.
pub(super) trait Gate<B>: Send {
    /// False for one that is not of this channel.
    fn admits(&mut self, datagram: &[u8], books: &mut B) -> bool;
}

/// Every datagram is of the channel.
pub(super) struct Open;

impl<B> Gate<B> for Open {
    #[inline]
    fn admits(&mut self, _: &[u8], _: &mut B) -> bool {
        true
    }
}

/// The lines of a channel and the servers that it asks for what they lose.
pub(super) struct LineSource<R, G> {
    pub(super) lines: LineSockets,
    pub(super) gate: G,
    pub(super) recovery: R,
}

impl<R, G> LineSource<R, G> {
    fn pass_time<B: MessageBooks, F: Framing>(
        &mut self,
        now: Nanos,
        channel: &mut Channel<B, F>,
        out: &mut Sink<'_>,
    ) -> usize
    where
        R: Recovery<B, F>,
    {
        if channel.poll_timeout().is_none_or(|deadline| now < deadline) {
            return 0;
        }
        channel.handle_timeout(now, out);
        if let Some(request) = channel.poll_request() {
            self.recovery.request(now, request);
        }
        1
    }
}

impl<B: MessageBooks, F: Framing, R: Recovery<B, F>, G: Gate<B>> Source<B, F> for LineSource<R, G> {
    fn wait_for(&self, wait: &mut WaitSet) {
        self.lines.wait_for(wait);
    }

    fn do_work(
        &mut self,
        now: Nanos,
        channel: &mut Channel<B, F>,
        out: &mut Sink<'_>,
    ) -> std::io::Result<usize> {
        let LineSource { lines, gate, .. } = self;
        let mut work = lines.receive(|line: Line, datagram| {
            let is_admitted = gate.admits(datagram, channel.books_mut());
            if is_admitted {
                channel.handle_packet(now, line, datagram, out);
            }
            is_admitted
        })?;
        work += self.pass_time(now, channel, out);
        if channel.arbiter().has_gap() || channel.needs_snapshot() {
            work += self.recovery.poll(now, channel, out);
        }
        Ok(work)
    }

    fn do_background_work(&mut self, now: Nanos, channel: &mut Channel<B, F>, out: &mut Sink<'_>) -> usize {
        self.recovery.poll(now, channel, out)
    }

    fn resync(&mut self, id: InstrumentId) {
        self.recovery.resync(id);
    }

    fn report(&self, status: &mut ChannelStatus) {
        status.recovery = self.recovery.counters();
        status.strangers = self.lines.drops.strangers.read();
        status.truncated = self.lines.drops.truncated.read();
        status.kernel_drops = self.lines.kernel_drops();
    }
}
