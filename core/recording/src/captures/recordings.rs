//! The recordings and channels of a capture, in code that all protocols share.

use core::net::SocketAddrV4;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

use rustc_hash::FxHashMap;
use tickpath_nyse::SendTime;
use tickpath_types::Sequence;

use super::channel::{Channel, Verdict};
use super::recording::{AnyRecording, CapturedRecording, MessageRun, Origin, PacketMark, PacketProtocol};
use super::report::{CaptureReport, DESTINATIONS_NAMED, UnknownPackets};
use crate::error::Result;
use crate::listener::{Listener, WorkStep};
use crate::replay::Pass;
use crate::report::RecordingReport;
use crate::{Packet, Transport};

/// Maximum number of channels; packets of further channels count as unknown.
const CHANNELS_MAX: usize = 1 << 10;
/// Maximum time, in ns of capture time, that packets wait for their flow to be identified.
pub(crate) const WAIT_NS: u64 = 1_000_000_000;
/// Maximum number of packets of all flows that wait until their flow is identified. At the maximum, the flow
/// of the next packet is identified at once.
const ALL_WAITING_MAX: usize = 4_096;

/// Key of a flow: the destination address for UDP, one direction of a connection for TCP.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FlowKey {
    pub(super) dst: SocketAddrV4,
    /// Source address; `None` for UDP.
    pub(super) src: Option<SocketAddrV4>,
}

/// A flow and its protocol.
pub(super) struct Flow {
    pub(super) key: FlowKey,
    /// Index of the flow's protocol in the registry; `None` while unknown.
    pub(super) protocol: Option<usize>,
    /// Number of the flow's packets that could not be assigned to a protocol or channel.
    pub(super) unknown: u64,
}

/// A packet that waits for its flow to be identified.
pub(crate) struct WaitingPacket {
    number: u64,
    pub(crate) ts_ns: u64,
    pub(crate) dst: SocketAddrV4,
    pub(crate) payload: Vec<u8>,
}

impl WaitingPacket {
    /// The packet as captured, except that `src` is its destination: the source is not kept.
    pub(crate) fn packet(&self) -> Packet<'_> {
        let WaitingPacket { number, ts_ns, dst, ref payload } = *self;
        Packet { number, ts_ns, src: dst, dst, transport: Transport::Udp, payload }
    }
}

/// Indexes of a channel and of one of its lines.
#[derive(Clone, Copy)]
pub(crate) struct ChannelLine {
    pub(crate) channel: usize,
    pub(crate) line: usize,
}

/// The sequence numbers of a packet's messages, from its header.
#[derive(Clone, Copy)]
pub(crate) struct PacketNumbers {
    /// Sequence number of the first message.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Length of the packet's header, whose content may differ from line to line.
    pub(crate) header_len: usize,
    /// Send time of an XDP packet; zero for other protocols.
    pub(crate) sent: SendTime,
}

/// A channel and its recording.
pub(crate) struct ChannelEntry {
    pub(crate) channel: Channel,
    pub(crate) recording: usize,
    /// Session id in the channel's packets (IEX only), and their latest send time in ns (IEX and XDP).
    pub(crate) session: (u32, u64),
    /// Number of the channel within its recording, by which the books identify it.
    pub(crate) ordinal: u8,
}

/// The recordings and channels known so far.
pub(crate) struct Recordings<L> {
    pub(crate) pass: Pass<L>,
    /// Length of the capture file in bytes; 0 if unknown.
    pub(crate) file_len: u64,
    /// The recordings, indexed by their numbers.
    list: Vec<Box<dyn AnyRecording<L>>>,
    pub(crate) channels: Vec<ChannelEntry>,
    pub(super) flows: Vec<Flow>,
    /// Number of packets of all flows that wait for their flow to be identified.
    waiting: usize,
    /// Number of packets dropped because their flow or channel would exceed the maximum number.
    pub(super) beyond: u64,
}

impl<L: Listener> Recordings<L> {
    pub(super) fn new(pass: Pass<L>, file_len: u64) -> Recordings<L> {
        Recordings {
            pass,
            file_len,
            list: Vec::new(),
            channels: Vec::new(),
            flows: Vec::new(),
            waiting: 0,
            beyond: 0,
        }
    }

    /// True once every recording has read a message at or after the end of the window (`--to`).
    pub(super) fn are_windows_over(&self) -> bool {
        !self.list.is_empty() && self.list.iter().all(|recording| recording.is_ended())
    }

    /// Adds a recording whose first packet was captured at `ts_ns`; returns its number.
    pub(crate) fn add<P: PacketProtocol>(&mut self, name: String, protocol: P, ts_ns: u64) -> usize {
        let recording = CapturedRecording::new(name, protocol, &self.pass.selection, ts_ns);
        self.list.push(Box::new(recording));
        self.list.len() - 1
    }

    /// Returns recording `index` and the pass. Panics if the recording's protocol is not `P`.
    pub(crate) fn recording<P: PacketProtocol>(
        &mut self,
        index: usize,
    ) -> (&mut CapturedRecording<P>, &mut Pass<L>) {
        let recording =
            self.list[index].as_any().downcast_mut().expect("protocols ask for their own recordings");
        (recording, &mut self.pass)
    }

    /// True when the maximum number of channels is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.channels.len() == CHANNELS_MAX
    }

    /// Adds a channel, which the books of its recording identify by `ordinal`; returns its number.
    pub(crate) fn add_channel(&mut self, recording: usize, ordinal: u8, name: String) -> usize {
        self.channels.push(ChannelEntry { channel: Channel::new(name), recording, session: (0, 0), ordinal });
        self.channels.len() - 1
    }

    /// Returns the channel of `key` and its line to `dst`. If no channel has this key, `add` creates one;
    /// returns `None` at the maximum number of channels.
    pub(crate) fn find_line<K: Eq + Hash>(
        &mut self,
        by_key: &mut FxHashMap<K, usize>,
        key: K,
        dst: SocketAddrV4,
        add: impl FnOnce(&mut Self) -> usize,
    ) -> Option<ChannelLine> {
        let channel = match by_key.get(&key) {
            Some(channel) => *channel,
            None if self.is_full() => {
                self.beyond += 1;
                return None;
            }
            None => {
                let channel = add(self);
                by_key.insert(key, channel);
                channel
            }
        };
        Some(self.line(channel, dst))
    }

    /// Returns the line that carries a channel's packets to `dst`; adds it if it is new.
    pub(crate) fn line(&mut self, channel: usize, dst: SocketAddrV4) -> ChannelLine {
        ChannelLine { channel, line: self.channels[channel].channel.line(dst) }
    }

    /// Counts packets of a flow that could not be assigned to a protocol or channel.
    pub(crate) fn count_unknown(&mut self, flow: usize, packets: u64) {
        self.flows[flow].unknown += packets;
    }

    /// Counts a malformed packet: for its channel, or as unknown if the channel is unknown.
    pub(crate) fn count_malformed(&mut self, flow: usize, channel_line: Option<ChannelLine>) {
        match channel_line {
            Some(channel_line) => {
                let channel = &mut self.channels[channel_line.channel].channel;
                channel.count_packet(channel_line.line);
                channel.report.malformed += 1;
            }
            None => self.count_unknown(flow, 1),
        }
    }

    /// True when another packet may wait for its flow to be identified.
    pub(crate) const fn may_wait(&self) -> bool {
        self.waiting < ALL_WAITING_MAX
    }

    /// Copies a packet so that it can wait for its flow to be identified, and counts it.
    pub(crate) fn keep(&mut self, packet: &Packet<'_>) -> WaitingPacket {
        self.waiting += 1;
        let Packet { number, ts_ns, dst, .. } = *packet;
        WaitingPacket { number, ts_ns, dst, payload: packet.payload.to_vec() }
    }

    /// Handles the loss of a channel's messages before sequence number `next`.
    pub(crate) fn handle_loss(&mut self, channel: usize, next: u64) {
        let ChannelEntry { recording, ordinal, .. } = self.channels[channel];
        self.list[recording].handle_loss(ordinal, next);
    }

    /// Ends all recordings. Returns the pass, their reports, and the packets assigned to no channel.
    pub(super) fn finish(self) -> (Pass<L>, Vec<RecordingReport>, UnknownPackets) {
        let unknown = self.unknown();
        let Recordings { mut pass, list, channels, .. } = self;
        let names: Vec<String> = list.iter().map(|recording| recording.name().to_owned()).collect();
        let mut reports = Vec::new();
        for (index, recording) in list.into_iter().enumerate() {
            let own = channels.iter().filter(|entry| entry.recording == index);
            let capture = CaptureReport {
                name: names[index].clone(),
                protocol: recording.protocol(),
                channels: own.map(|entry| entry.channel.report.clone()).collect(),
                recordings: names.clone(),
                unknown: unknown.clone(),
            };
            let mut report = recording.finish(&mut pass);
            report.contradictions.extend(capture.contradictions());
            report.contradictions.extend(capture.crossed_from_the_middle(&report.integrity));
            report.reservations.extend(capture.reservations());
            report.capture = Some(capture);
            reports.push(report);
        }
        (pass, reports, unknown)
    }

    fn unknown(&self) -> UnknownPackets {
        let mut destinations: Vec<(SocketAddrV4, u64)> = Vec::new();
        for flow in self.flows.iter().filter(|flow| flow.unknown > 0) {
            match destinations.iter_mut().find(|(known, _)| *known == flow.key.dst) {
                Some((_, count)) => *count += flow.unknown,
                None => destinations.push((flow.key.dst, flow.unknown)),
            }
        }
        destinations.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let count = self.beyond + destinations.iter().map(|(_, count)| count).sum::<u64>();
        destinations.truncate(DESTINATIONS_NAMED);
        UnknownPackets { count, destinations }
    }
}

/// Puts the messages of a block of packets in sequence and passes them to their recordings.
pub(crate) struct Delivery<'r, 'a, L> {
    recordings: &'r mut Recordings<L>,
    /// Messages in sequence that are not applied yet, all of one recording.
    run: MessageRun<'a>,
}

impl<L> Deref for Delivery<'_, '_, L> {
    type Target = Recordings<L>;

    fn deref(&self) -> &Recordings<L> {
        self.recordings
    }
}

impl<L> DerefMut for Delivery<'_, '_, L> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.recordings
    }
}

impl<'r, 'a, L: Listener> Delivery<'r, 'a, L> {
    pub(super) fn new(recordings: &'r mut Recordings<L>) -> Self {
        Delivery::of(recordings, MessageRun::default())
    }

    /// Creates a delivery that begins with the messages of `run`.
    pub(crate) fn of(recordings: &'r mut Recordings<L>, run: MessageRun<'a>) -> Self {
        Delivery { recordings, run }
    }

    /// Passes waiting packets to `take` one by one; applies the messages of each before the next one.
    pub(crate) fn release(
        &mut self,
        waiting: &[WaitingPacket],
        mut take: impl for<'x> FnMut(&Packet<'x>, &mut Delivery<'_, 'x, L>) -> Result,
    ) -> Result {
        self.waiting -= waiting.len();
        self.flush()?;
        for waiting in waiting {
            let mut own = Delivery::new(self);
            take(&waiting.packet(), &mut own)?;
            own.flush()?;
        }
        Ok(())
    }

    /// Appends a packet's new messages to the run if they are next in sequence. Holds the packet if messages
    /// before it are missing, and drops it if it has no new message.
    pub(crate) fn take(
        &mut self,
        channel_line: ChannelLine,
        numbers: PacketNumbers,
        packet: &Packet<'a>,
        messages: impl Iterator<Item = &'a [u8]>,
    ) -> Result {
        let index = channel_line.channel;
        let PacketNumbers { first, count, header_len, sent } = numbers;
        let content = content(packet.payload, header_len);
        let mut verdict =
            self.channels[index].channel.judge(channel_line.line, first, count, packet.ts_ns, content);
        if verdict == Verdict::Restarted {
            // The new numbering begins with 1: messages before this packet count as missing.
            self.restart(index, 1)?;
            let channel = &mut self.channels[index].channel;
            verdict = channel.judge(channel_line.line, first, count, packet.ts_ns, content);
        }
        match verdict {
            Verdict::Take(known) => self.push(index, packet, sent, messages.skip(known as usize))?,
            Verdict::Duplicate | Verdict::Restarted => {}
            Verdict::Hold => {
                self.channels[index].channel.hold(first, count, packet.number, packet.payload);
            }
        }
        self.release_held(index, Some(packet.ts_ns))
    }

    /// Appends messages of a packet to the run that is applied next.
    pub(crate) fn push(
        &mut self,
        channel: usize,
        packet: &Packet<'_>,
        sent: SendTime,
        messages: impl Iterator<Item = &'a [u8]>,
    ) -> Result {
        let ChannelEntry { recording, ordinal, .. } = self.channels[channel];
        if self.run.recording != recording {
            self.flush()?;
            self.run.recording = recording;
        }
        self.run.packets.push(PacketMark {
            first: self.run.messages.len(),
            number: packet.number,
            ts_ns: Some(packet.ts_ns),
            origin: Origin { channel: ordinal, sent },
        });
        self.run.messages.extend(messages);
        Ok(())
    }

    /// Restarts the sequence numbers of a channel at `first`, and resets its state in the recording.
    pub(crate) fn restart(&mut self, channel: usize, first: u64) -> Result {
        self.flush()?;
        let entry = &mut self.channels[channel];
        entry.channel.restart(first);
        let ChannelEntry { recording, ordinal, .. } = *entry;
        self.list[recording].restart(ordinal);
        Ok(())
    }

    /// Handles a heartbeat: a packet without messages that contains the next sequence number.
    pub(crate) fn heartbeat(&mut self, channel: usize, next: u64, ts_ns: u64) -> Result {
        self.channels[channel].channel.heartbeat(next, ts_ns);
        self.release_held(channel, Some(ts_ns))
    }

    /// Applies held packets that are now next in sequence. Counts messages as lost if they have been missing
    /// too long, or if the capture has ended (`now_ns` is `None`).
    pub(super) fn release_held(&mut self, index: usize, now_ns: Option<u64>) -> Result {
        if !self.channels[index].channel.is_open() {
            return Ok(());
        }
        loop {
            while let Some((held, known)) = self.channels[index].channel.poll_held() {
                self.flush()?;
                let ChannelEntry { recording, ordinal, .. } = self.channels[index];
                let (sent, messages) = self.list[recording].unpack(&held.payload);
                let messages = messages.into_iter().skip(known as usize).collect();
                let origin = Origin { channel: ordinal, sent };
                let packets = vec![PacketMark { first: 0, number: held.number, ts_ns: None, origin }];
                Delivery::of(self, MessageRun { recording, messages, packets, is_snapshot: false })
                    .flush()?;
            }
            if !self.channels[index].channel.give_up(now_ns) {
                return Ok(());
            }
            self.flush()?;
            let next = self.channels[index].channel.next();
            self.handle_loss(index, next.unwrap_or_default());
        }
    }

    /// Passes the messages that are not applied yet to their recording.
    pub(crate) fn flush(&mut self) -> Result {
        let Delivery { recordings: Recordings { list, pass, file_len, .. }, run } = self;
        if run.messages.is_empty() {
            return Ok(());
        }
        pass.listener.on_step(WorkStep::Framed);
        let applied = list[run.recording].apply(pass, run, *file_len);
        run.messages.clear();
        run.packets.clear();
        pass.listener.on_step(WorkStep::Other);
        applied
    }
}

/// True when `first + count` does not overflow.
pub(crate) fn is_countable(first: Sequence, count: u16) -> bool {
    first.0.checked_add(u64::from(count)).is_some()
}

/// Digest of all bytes after a packet's header, for comparison with a duplicate packet. The header is left
/// out, since that of the duplicate may have another send time.
pub(crate) fn content(payload: &[u8], header_len: usize) -> u32 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let messages = payload.get(header_len..).unwrap_or(payload);
    // Four independent sums, which the CPU can compute in parallel.
    let mut sums = [messages.len() as u64, 1, 2, 3];
    let mut words = messages.chunks_exact(32);
    for block in &mut words {
        for (sum, word) in sums.iter_mut().zip(block.as_chunks::<8>().0) {
            *sum = (*sum ^ u64::from_le_bytes(*word)).wrapping_mul(MIX).rotate_left(29);
        }
    }
    for (chunk, at) in words.remainder().chunks(8).zip(0..) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let sum: &mut u64 = &mut sums[at];
        *sum = (*sum ^ u64::from_le_bytes(word)).wrapping_mul(MIX).rotate_left(29);
    }
    let sum = sums.into_iter().fold(0_u64, |all, sum| (all ^ sum).wrapping_mul(MIX).rotate_left(32));
    sum as u32 ^ (sum >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_behind_the_header_is_in_the_digest() {
        for len in [1, 7, 8, 31, 32, 33, 64, 100, 1_400] {
            let payload: Vec<u8> = (0..20 + len).map(|byte| byte as u8).collect();
            let digest = content(&payload, 20);
            for at in 0..payload.len() {
                let mut other = payload.clone();
                other[at] ^= 0x10;
                assert_eq!(content(&other, 20) == digest, at < 20, "byte {at} of {len}");
            }
            assert_ne!(content(&[&payload[..], &[0]].concat(), 20), digest, "a zero more");
        }
    }
}
