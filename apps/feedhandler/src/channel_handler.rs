//! The handler of one channel: a [`Channel`] and its sockets.

use tickpath_feed::{
    Channel, Framing, Line, MessageBooks, Recovering, RecoveryClient, RecoveryInput, UpdateListener,
};
use tickpath_net::Network;
use tickpath_types::Nanos;

use crate::lines::Lines;
use crate::recovery_sockets::RecoverySockets;

/// Handles one channel of any protocol: its lines, its recovery and its books.
pub(crate) struct ChannelHandler<B, F: Framing, R, N: Network> {
    /// The multicast lines; `None` for a channel whose messages all come from a server.
    pub(crate) lines: Option<Lines<N>>,
    pub(crate) sockets: RecoverySockets<N>,
    pub(crate) recovery: R,
    pub(crate) channel: Channel<B, F>,
}

impl<B, F, R, N> ChannelHandler<B, F, R, N>
where
    B: MessageBooks,
    F: Framing,
    R: RecoveryClient<Request = F::Request>,
    N: Network,
{
    /// Handles the arbiter's timeout, if due, and sends its request for recovery. Returns the amount of work.
    pub(crate) fn handle_timeout(&mut self, now: Nanos, out: &mut impl UpdateListener) -> usize {
        if self.channel.poll_timeout().is_none_or(|deadline| now < deadline) {
            return 0;
        }
        self.channel.handle_timeout(now, out);
        if let Some(request) = self.channel.poll_request() {
            self.recovery.handle_request(request);
            self.sockets.send_request(&mut self.recovery);
        }
        1
    }

    /// Handles up to `answers_max` answers to recovery requests, and polls the recovery client once. Returns
    /// the amount of work.
    pub(crate) fn recover<L: UpdateListener>(&mut self, now: Nanos, answers_max: usize, out: &mut L) -> usize
    where
        R: for<'a> RecoveryInput<Recovering<'a, B, F, L>>,
    {
        let ChannelHandler { sockets, recovery, channel, .. } = self;
        let answers = sockets.poll_answers(answers_max, |datagram| {
            channel.handle_packet(now, Line::Recovery, datagram, out);
        });
        answers + sockets.poll(now, recovery, &mut Recovering { channel, out })
    }
}
