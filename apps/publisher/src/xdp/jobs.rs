//! Sends requested messages on the retransmission and refresh channels.

use std::collections::VecDeque;

use tickpath_net::{MulticastSender, SendStatus};
use tickpath_nyse::{
    DeliveryFlag, HEADER_LEN, MessageUnavailable, PACKET_LEN_MAX, PacketBuilder, RefreshHeader, SendTime,
};
use zerocopy::IntoBytes;

use super::image::Image;
use crate::store::Store;

/// Maximum number of accepted requests that wait to be sent; further requests are refused.
pub(super) const JOBS_MAX: usize = 256;
/// Maximum number of retransmission packets sent in one duty cycle.
const PACKETS_PER_CYCLE: usize = 16;
/// Maximum number of symbols refreshed in one duty cycle.
const SYMBOLS_PER_CYCLE: usize = 8;
/// Length in bytes of the refresh header's short form, used in all packets of a refresh but the first.
const SHORT_HEADER_LEN: usize = 8;
/// Capacity of a refresh packet for messages, in bytes.
const REFRESH_CAPACITY: usize = PACKET_LEN_MAX - HEADER_LEN - RefreshHeader::LEN;
/// Maximum number of messages in a refresh packet besides the refresh header: a packet has at most 255.
const REFRESH_MESSAGES_MAX: usize = 254;

type Builder = PacketBuilder<[u8; PACKET_LEN_MAX]>;

/// An accepted request.
pub(super) enum Job {
    /// Retransmission of messages `next..end`; `is_sole` is true if no packet has been sent yet.
    Messages { next: u64, end: u64, is_sole: bool },
    /// Refreshes of symbols; if `is_mapping`, only their symbol index mappings. `is_single` is true for a
    /// request of one symbol, `is_first` until the first symbol is sent.
    Symbols { symbols: VecDeque<u32>, is_first: bool, is_single: bool, is_mapping: bool },
}

/// Sends the requested messages, a bounded number at a time.
pub(super) struct Jobs {
    pub(super) waiting: VecDeque<Job>,
    retransmission: MulticastSender,
    refresh: MulticastSender,
    /// Next sequence number of the refresh channel.
    refresh_sequence: u32,
    pub(super) resent: u64,
    pub(super) unavailable: u64,
    pub(super) refreshed: u64,
    pub(super) unsent: u64,
}

impl Jobs {
    pub(super) fn new(retransmission: MulticastSender, refresh: MulticastSender) -> Jobs {
        Jobs {
            waiting: VecDeque::with_capacity(JOBS_MAX),
            retransmission,
            refresh,
            refresh_sequence: 1,
            resent: 0,
            unavailable: 0,
            refreshed: 0,
            unsent: 0,
        }
    }

    /// Sends a part of the first waiting job; returns the amount of work done.
    pub(super) fn poll(&mut self, product: (u8, u8), time: SendTime, store: &Store, image: &Image) -> usize {
        let Some(job) = self.waiting.pop_front() else { return 0 };
        match job {
            Job::Messages { mut next, end, mut is_sole } => {
                for _ in 0..PACKETS_PER_CYCLE {
                    if next >= end {
                        return 1;
                    }
                    next = self.send_messages(product, time, store, next..end, is_sole);
                    is_sole = false;
                }
                self.waiting.push_front(Job::Messages { next, end, is_sole });
            }
            Job::Symbols { mut symbols, mut is_first, is_single, is_mapping } => {
                for _ in 0..SYMBOLS_PER_CYCLE {
                    let Some(index) = symbols.pop_front() else { return 1 };
                    let flag = match (is_single, is_first, symbols.is_empty()) {
                        (true, ..) => DeliveryFlag::REFRESH_ONE,
                        (false, _, true) => DeliveryFlag::REFRESH_END,
                        (false, true, false) => DeliveryFlag::REFRESH_START,
                        (false, false, false) => DeliveryFlag::REFRESH_PART,
                    };
                    match is_mapping {
                        true => self.send_mapping(index, flag, time, image),
                        false => self.send_symbol(index, flag, time, store, image),
                    }
                    is_first = false;
                }
                self.waiting.push_front(Job::Symbols { symbols, is_first, is_single, is_mapping });
            }
        }
        1
    }

    /// Sends one packet: the first messages of `run`, or a report that they are unavailable. Returns the
    /// sequence number with which to continue.
    fn send_messages(
        &mut self,
        (product, channel): (u8, u8),
        time: SendTime,
        store: &Store,
        run: std::ops::Range<u64>,
        is_sole: bool,
    ) -> u64 {
        let mut builder = Builder::new([0; PACKET_LEN_MAX], run.start as u32);
        let mut next = run.start;
        while next < run.end
            && let Some((message, _)) = store.message(next)
            && builder.push_bytes(message).is_ok()
        {
            next += 1;
        }
        let flag = if next > run.start {
            self.resent += next - run.start;
            let is_sole = is_sole && next == run.end;
            if is_sole { DeliveryFlag::RETRANSMISSION_ONE } else { DeliveryFlag::RETRANSMISSION_PART }
        } else {
            let is_stored = |sequence: &u64| store.message(*sequence).is_some();
            next = (run.start + 1..run.end).find(is_stored).unwrap_or(run.end);
            self.unavailable += next - run.start;
            let (first, last) = (run.start as u32, (next - 1) as u32);
            let message = MessageUnavailable::new(first, last, product, channel);
            builder.push(&message).expect("the message fits an empty packet");
            DeliveryFlag::UNAVAILABLE
        };
        self.unsent += u64::from(!is_sent(&mut self.retransmission, builder.finish(flag, time)));
        next
    }

    fn send_mapping(&mut self, index: u32, flag: DeliveryFlag, time: SendTime, image: &Image) {
        let Some(mapping) = image.mapping(index) else { return };
        let mut builder = Builder::new([0; PACKET_LEN_MAX], self.refresh_sequence);
        builder.push_bytes(mapping).expect("the message fits an empty packet");
        self.send_refresh(&mut builder, flag, time);
    }

    /// Sends the refresh packets of one symbol, each with a header that states the number of packets.
    fn send_symbol(&mut self, index: u32, flag: DeliveryFlag, time: SendTime, store: &Store, image: &Image) {
        self.refreshed += 1;
        let packets = packets_of(image, index);
        let total = packets.len() as u16;
        let last = (store.next_sequence() - 1) as u32;
        // A refresh of a single symbol has `REFRESH_ONE` if it is one packet, otherwise `REFRESH_PART` in
        // each packet.
        let flag = match flag {
            DeliveryFlag::REFRESH_ONE if total > 1 => DeliveryFlag::REFRESH_PART,
            other => other,
        };
        for (number, messages) in (1..).zip(&packets) {
            let header = RefreshHeader::new(number, total, last, image.last_symbol_seq_num(index));
            let mut builder = Builder::new([0; PACKET_LEN_MAX], self.refresh_sequence);
            let mut bytes = header.as_bytes().to_vec();
            if number > 1 {
                bytes.truncate(SHORT_HEADER_LEN);
                bytes[..2].copy_from_slice(&(SHORT_HEADER_LEN as u16).to_le_bytes());
            }
            builder.push_bytes(&bytes).expect("the header fits an empty packet");
            for message in messages {
                builder.push_bytes(message).expect("the messages of a packet fit it");
            }
            self.send_refresh(&mut builder, flag, time);
        }
    }

    fn send_refresh(&mut self, builder: &mut Builder, flag: DeliveryFlag, time: SendTime) {
        self.refresh_sequence = builder.next_sequence();
        self.unsent += u64::from(!is_sent(&mut self.refresh, builder.finish(flag, time)));
    }

    /// Sends heartbeats on the retransmission and refresh channels.
    pub(super) fn heartbeat(&mut self, time: SendTime, next: u64) {
        for (sender, sequence) in
            [(&mut self.retransmission, next as u32), (&mut self.refresh, self.refresh_sequence)]
        {
            let mut builder = PacketBuilder::new([0; HEADER_LEN], sequence);
            is_sent(sender, builder.finish(DeliveryFlag::HEARTBEAT, time));
        }
    }
}

/// Distributes the messages of a symbol's refresh among packets; returns at least one packet.
fn packets_of(image: &Image, index: u32) -> Vec<Vec<Vec<u8>>> {
    let mut packets: Vec<Vec<Vec<u8>>> = Vec::new();
    let (mut packet, mut len) = (Vec::new(), 0);
    image.for_each(index, |message| {
        if len + message.len() > REFRESH_CAPACITY || packet.len() == REFRESH_MESSAGES_MAX {
            packets.push(std::mem::take(&mut packet));
            len = 0;
        }
        len += message.len();
        packet.push(message.to_vec());
    });
    packets.push(packet);
    packets
}

fn is_sent(sender: &mut MulticastSender, packet: &[u8]) -> bool {
    matches!(sender.send(packet), Ok(SendStatus::Sent))
}
