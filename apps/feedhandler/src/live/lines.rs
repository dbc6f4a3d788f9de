//! The lines of a channel, many datagrams by one system call.

use tickpath_agent::WaitSet;
use tickpath_feed::Line;
use tickpath_net::{DatagramReceiver, NetError, Network, RecvBatch};

use super::section::ChannelSection;
use crate::senders::Senders;

/// Datagrams taken off one line by one call.
const BATCH: usize = 32;
/// Longest datagram that is taken: that of jumbo frames. A longer one is cut short, counted, and not believed.
const DATAGRAM_MAX: usize = 9_216;
const LINES: [Line; 2] = [Line::A, Line::B];

/// One line or two.
pub(super) struct LineSockets<N: Network> {
    receivers: Vec<N::Receiver>,
    batch: RecvBatch,
    senders: Senders,
    next: usize,
    /// Datagrams from addresses that may not send, or of another feed.
    pub(super) strangers: u64,
    /// Datagrams longer than [`DATAGRAM_MAX`].
    pub(super) truncated: u64,
}

impl<N: Network> LineSockets<N> {
    /// Joins the lines of a channel; `None` when it has none.
    pub(super) fn join(network: &N, section: &ChannelSection) -> Result<Option<LineSockets<N>>, NetError> {
        let groups = [section.line_a, section.line_b];
        let receivers = groups
            .into_iter()
            .flatten()
            .map(|group| network.receiver(group, section.interface))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((!receivers.is_empty()).then(|| LineSockets {
            receivers,
            batch: RecvBatch::new(BATCH, DATAGRAM_MAX),
            senders: section.senders(),
            next: 0,
            strangers: 0,
            truncated: 0,
        }))
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
                    self.truncated += 1;
                } else if !is_known || !take(LINES[line], datagram) {
                    self.strangers += 1;
                }
            }
            return Ok(count);
        }
        Ok(0)
    }

    /// Says that it waits for the next datagram.
    pub(super) fn wait_for(&self, wait: &mut WaitSet) {
        self.receivers.iter().for_each(|receiver| wait.descriptor(receiver.descriptor()));
    }

    /// Datagrams that the kernel dropped because nobody took them in time.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.receivers.iter().map(|receiver| u64::from(receiver.drop_count())).sum()
    }
}
