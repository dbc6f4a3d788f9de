//! The lines of a channel, many datagrams by one system call.

use std::net::Ipv4Addr;

use tickpath_agent::Counter;
use tickpath_feed::Line;
use tickpath_net::{MulticastReceiver, NetError, RecvBatch};

use super::config::ChannelSection;

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
    sources: Vec<Ipv4Addr>,
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
            sources: section.sources.clone(),
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
                let is_known = self.sources.is_empty() || self.sources.contains(received.from.ip());
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

    /// Datagrams that the kernel dropped because nobody took them in time.
    pub(super) fn kernel_drops(&self) -> u64 {
        self.receivers.iter().map(|receiver| u64::from(receiver.kernel_drop_count())).sum()
    }
}
