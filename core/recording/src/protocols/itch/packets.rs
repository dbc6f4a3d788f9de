//! ITCH in captures: lines and snapshots of MoldUDP64 sessions, and SoupBinTCP streams.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use tickpath_feed::{IgnoreUpdates, MessageBooks};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::moldudp64::{self, HEADER_LEN, Kind};
use tickpath_nyse::SendTime;
use tickpath_types::Zone;

use super::soup::{Messages, SoupStream, is_soup_of_itch};
use super::{Itch, is_end_of_snapshot, is_of_snapshot, is_whole};
use crate::books::{BookPair, in_both};
use crate::captures::{
    ChannelEntry, ChannelLine, Delivery, MessageRun, Origin, PacketFormat, PacketMark, PacketNumbers,
    PacketProtocol, PacketReader, Recordings, WAIT_NS, WaitingPacket, content, is_countable, state_of,
};
use crate::error::Result;
use crate::listener::Listener;
use crate::moment::Calendar;
use crate::protocol::RecordedProtocol;
use crate::protocol_name::Protocol;
use crate::selection::Selection;
use crate::{Packet, Segment};

const NS_PER_DAY: u64 = 86_400_000_000_000;
/// Maximum difference in ns between an event's time and its capture time, clock errors included. It is far
/// less than the difference between New York time and UTC.
const SAME_TIME_NS: u64 = 600_000_000_000;

/// Registry entry of ITCH.
pub(crate) const fn packets<L: Listener>() -> PacketFormat<L> {
    PacketFormat {
        protocol: Itch::PROTOCOL,
        is_datagram: is_mold,
        is_stream: is_soup_of_itch,
        reader: |is_requested| Box::new(ItchPackets { is_requested, ..ItchPackets::default() }),
    }
}

/// True for a MoldUDP64 packet with ITCH messages, or with any messages when `--protocol` names ITCH.
fn is_mold(payload: &[u8], is_requested: bool) -> bool {
    let Ok(packet) = moldudp64::Packet::parse(payload) else { return false };
    packet.message_count() > 0 && (is_requested || packet.messages().all(|(_, message)| is_whole(message)))
}

impl PacketProtocol for Itch {
    const PROTOCOL: Protocol = Protocol::new("itch", "ITCH 5.0 in MoldUDP64 or SoupBinTCP");

    fn messages_of<'r, 'a>(&mut self, run: &'r MessageRun<'a>) -> Cow<'r, [&'a [u8]]> {
        Cow::Borrowed(&run.messages)
    }

    fn unpack(payload: &[u8]) -> (SendTime, Vec<&[u8]>) {
        let packet = moldudp64::Packet::parse(payload).expect("it was read before it was held");
        (SendTime::default(), packet.messages().map(|(_, message)| message).collect())
    }

    fn handle_loss(&mut self, books: &mut BookPair<Itch>, _channel: u8, _next: u64) {
        in_both!(books, books => books.handle_lost(&mut IgnoreUpdates));
    }

    fn restart(&mut self, books: &mut BookPair<Itch>, _channel: u8) -> Vec<u16> {
        in_both!(books, books => books.handle_restart(&mut IgnoreUpdates));
        (0..=u16::MAX).collect()
    }

    /// Determines in which time zone ITCH times count from midnight: New York, or UTC for a Tickpath venue.
    /// In the right zone, message times match capture times; messages that match in neither are skipped. If
    /// no message matches, an end-of-snapshot message identifies a Tickpath venue.
    fn detect_calendar(&mut self, selection: &Selection, run: &MessageRun<'_>, calendar: &mut Calendar) {
        if self.is_midnight_known {
            return;
        }
        let captured = run.packets.iter().map(|packet| packet.ts_ns);
        for (captured_ns, (_, messages)) in captured.zip(run.by_packet()) {
            let newest = messages.iter().map(Itch::ts_ns).max().filter(|ts_ns| *ts_ns > 0);
            let Some((captured_ns, ts_ns)) = captured_ns.zip(newest) else { continue };
            let is_near = |zone: Zone| {
                let of_day = zone.local_ns(captured_ns) % NS_PER_DAY;
                let apart = of_day.abs_diff(ts_ns % NS_PER_DAY);
                apart.min(NS_PER_DAY - apart) < SAME_TIME_NS
            };
            if is_near(Zone::EASTERN) {
                self.is_midnight_known = true;
                return;
            }
            if is_near(Zone::UTC) {
                self.is_midnight_known = true;
                return count_from_utc(calendar, selection, Some(captured_ns));
            }
        }
        if run.messages.iter().any(|message| is_end_of_snapshot(message)) {
            self.is_midnight_known = true;
            count_from_utc(calendar, selection, run.packets.iter().find_map(|packet| packet.ts_ns));
        }
    }
}

fn count_from_utc(calendar: &mut Calendar, selection: &Selection, captured_ns: Option<u64>) {
    let first_day = calendar.date;
    *calendar = Calendar { midnight: Zone::UTC, ..selection.calendar(calendar.base, Zone::UTC) };
    calendar.date = calendar.date.or(captured_ns.map(|ns| Zone::UTC.date_at(ns))).or(first_day);
}

/// Session name of MoldUDP64.
type SessionName = [u8; 10];

/// The state of a flow.
enum ItchFlow {
    /// Either a line or snapshots of a MoldUDP64 session: packets wait until it is known which.
    Waiting(Vec<WaitingPacket>),
    /// A line of a MoldUDP64 session, with the session and line of the latest packet.
    Line(Option<(SessionName, ChannelLine)>),
    /// Snapshots of a MoldUDP64 session: they use its session name, but have separate sequence numbers.
    Snapshots,
    /// A stream of SoupBinTCP and its channel.
    Stream(Box<SoupStream>, usize),
}

impl Default for ItchFlow {
    fn default() -> ItchFlow {
        ItchFlow::Waiting(Vec::new())
    }
}

/// Packet reader of MoldUDP64 and SoupBinTCP.
#[derive(Default)]
struct ItchPackets {
    is_requested: bool,
    flows: Vec<ItchFlow>,
    /// Channel index of each session, by session name.
    sessions: FxHashMap<SessionName, usize>,
    /// Messages of the current TCP segment.
    stream_messages: Messages,
}

impl<L: Listener> PacketReader<L> for ItchPackets {
    fn datagram<'a>(&mut self, flow: usize, packet: &Packet<'a>, out: &mut Delivery<'_, 'a, L>) -> Result {
        if let ItchFlow::Snapshots = state_of(&mut self.flows, flow) {
            self.snapshot(flow, packet, out);
            return Ok(());
        }
        let mold = moldudp64::Packet::parse(packet.payload).ok();
        let mold = mold.filter(|mold| is_countable(mold.sequence(), mold.message_count()));
        if mold.as_ref().is_some_and(|mold| ends_snapshot(packet.payload, mold)) {
            self.classify(flow, ItchFlow::Snapshots, out)?;
            self.snapshot(flow, packet, out);
            return Ok(());
        }
        if let ItchFlow::Waiting(waiting) = &self.flows[flow] {
            // Another line may have delivered the first waiting packet in the meantime.
            let first = waiting.first().map(|first| &first.payload[..]);
            let is_line =
                self.is_line(packet.payload, out) || first.is_some_and(|first| self.is_line(first, out));
            if !is_line && !has_waited(waiting, packet.ts_ns) && out.may_wait() {
                let ItchFlow::Waiting(waiting) = &mut self.flows[flow] else { return Ok(()) };
                waiting.push(out.keep(packet));
                return Ok(());
            }
            // First classify the flows that have waited for the maximum time: one of them may have earlier
            // packets of the same session.
            for flow in 0..self.flows.len() {
                if matches!(&self.flows[flow], ItchFlow::Waiting(waiting) if has_waited(waiting, packet.ts_ns))
                {
                    self.classify(flow, ItchFlow::Line(None), out)?;
                }
            }
            self.classify(flow, ItchFlow::Line(None), out)?;
        }
        self.line(flow, mold, packet, out)
    }

    fn segment(
        &mut self,
        flow: usize,
        packet: &Packet<'_>,
        segment: &Segment,
        out: &mut Delivery<'_, '_, L>,
    ) -> Result {
        let state = state_of(&mut self.flows, flow);
        if let ItchFlow::Waiting(_) = state {
            let name = format!("stream {} to {}", packet.src, packet.dst);
            let channel = add_channel(out, name, packet.ts_ns);
            out.line(channel, packet.dst);
            *state = ItchFlow::Stream(Box::new(SoupStream::new(self.is_requested)), channel);
        }
        let ItchFlow::Stream(stream, channel) = state else { return Ok(()) };
        stream.handle_segment(segment, packet.payload, &mut self.stream_messages);
        let captured = (packet.number, Some(packet.ts_ns));
        take_stream(*channel, captured, &self.stream_messages, out)
    }

    fn classify_flow(&mut self, flow: usize, out: &mut Delivery<'_, '_, L>) -> Result {
        match &self.flows[flow] {
            ItchFlow::Waiting(_) => self.classify(flow, ItchFlow::Line(None), out),
            _ => Ok(()),
        }
    }

    fn finish_stream(&mut self, flow: usize, out: &mut Delivery<'_, '_, L>) -> Result {
        let ItchFlow::Stream(stream, channel) = &mut self.flows[flow] else { return Ok(()) };
        stream.finish(&mut self.stream_messages);
        let ChannelEntry { channel: entry, recording, .. } = &mut out.channels[*channel];
        let (report, recording) = (&mut entry.report, *recording);
        report.stream = Some(*stream.stream().counters());
        report.malformed += stream.malformed();
        let packets = report.packets;
        if let Some(session) = stream.session() {
            report.name = format!("session {}, {}", session_name(&session.0), report.name);
            let name = format!("ITCH 5.0, {}", report.name);
            out.recording::<Itch>(recording).0.name = name;
        }
        take_stream(*channel, (0, None), &self.stream_messages, out)?;
        out.channels[*channel].channel.report.packets = packets;
        Ok(())
    }
}

impl ItchPackets {
    /// True for a packet that proves its flow to be a line: it has a message that no snapshot contains, or a
    /// line of its session delivered the same packet before.
    fn is_line<L: Listener>(&self, payload: &[u8], out: &Recordings<L>) -> bool {
        let Ok(mold) = moldudp64::Packet::parse(payload) else { return false };
        if !mold.messages().all(|(_, message)| is_of_snapshot(message)) {
            return true;
        }
        let (first, count) = (mold.sequence().0, u64::from(mold.message_count()));
        self.sessions.get(&mold.session().0).is_some_and(|known| {
            let channel = &out.channels[*known].channel;
            count > 0 && channel.remembers(first, count, content(payload, HEADER_LEN))
        })
    }

    /// Sets the kind of a flow whose packets wait, and handles these packets.
    fn classify<L: Listener>(
        &mut self,
        flow: usize,
        state: ItchFlow,
        out: &mut Delivery<'_, '_, L>,
    ) -> Result {
        let ItchFlow::Waiting(waiting) = std::mem::replace(&mut self.flows[flow], state) else {
            return Ok(());
        };
        out.release(&waiting, |packet, out| self.datagram(flow, packet, out))
    }

    /// Returns the channel and line of a session's packet, and adds them if they are new; `None` at the
    /// maximum number of channels.
    fn find_line<L: Listener>(
        &mut self,
        session: SessionName,
        packet: &Packet<'_>,
        out: &mut Recordings<L>,
    ) -> Option<ChannelLine> {
        let add = |out: &mut Recordings<L>| {
            add_channel(out, format!("session {}", session_name(&session)), packet.ts_ns)
        };
        out.find_line(&mut self.sessions, session, packet.dst, add)
    }

    /// Handles a packet on a line of a session; `mold` is `None` for a malformed packet.
    fn line<'a, L: Listener>(
        &mut self,
        flow: usize,
        mold: Option<moldudp64::Packet<'a>>,
        packet: &Packet<'a>,
        out: &mut Delivery<'_, 'a, L>,
    ) -> Result {
        let last = match self.flows[flow] {
            ItchFlow::Line(last) => last,
            _ => None,
        };
        let Some(mold) = mold else {
            out.count_malformed(flow, last.map(|(_, channel_line)| channel_line));
            return Ok(());
        };
        let session = mold.session().0;
        let channel_line = match last {
            Some((known, channel_line)) if known == session => channel_line,
            _ => {
                let Some(channel_line) = self.find_line(session, packet, out) else { return Ok(()) };
                self.flows[flow] = ItchFlow::Line(Some((session, channel_line)));
                channel_line
            }
        };
        let channel = &mut out.channels[channel_line.channel].channel;
        channel.count_packet(channel_line.line);
        let (first, count) = (mold.sequence().0, u64::from(mold.message_count()));
        if mold.kind() != Kind::Messages {
            return out.heartbeat(channel_line.channel, first, packet.ts_ns);
        }
        let (messages, sent) = (mold.messages().map(|(_, message)| message), SendTime::default());
        if first == 0 {
            // Sequence numbers begin with 1, so the messages of this packet are unnumbered.
            channel.report.unnumbered += count;
            channel.report.messages += count;
            return out.push(channel_line.channel, packet, sent, messages);
        }
        out.take(channel_line, PacketNumbers { first, count, header_len: HEADER_LEN, sent }, packet, messages)
    }

    /// Counts a packet of a session's snapshots, which are outside the session's sequence.
    fn snapshot<L: Listener>(&mut self, flow: usize, packet: &Packet<'_>, out: &mut Recordings<L>) {
        let Ok(mold) = moldudp64::Packet::parse(packet.payload) else {
            return out.count_malformed(flow, None);
        };
        if let Some(ChannelLine { channel, line }) = self.find_line(mold.session().0, packet, out) {
            let channel = &mut out.channels[channel].channel;
            channel.count_packet(line);
            channel.report.skipped += 1;
        }
    }
}

/// Adds a recording and its only channel; returns the channel's number.
fn add_channel<L: Listener>(out: &mut Recordings<L>, name: String, ts_ns: u64) -> usize {
    let recording = out.add(format!("ITCH 5.0, {name}"), Itch::default(), ts_ns);
    out.add_channel(recording, 0, name)
}

/// Applies the messages of a stream immediately, because the next segment overwrites `messages`.
fn take_stream<L: Listener>(
    channel: usize,
    (number, ts_ns): (u64, Option<u64>),
    messages: &Messages,
    out: &mut Delivery<'_, '_, L>,
) -> Result {
    let ChannelEntry { channel, recording, .. } = &mut out.channels[channel];
    channel.count_packet(0);
    let (recording, mut live): (usize, Vec<&[u8]>) = (*recording, messages.slices().collect());
    channel.report.messages += live.len() as u64;
    let rest = live.split_off(messages.snapshot_len());
    for (messages, is_snapshot) in [(live, true), (rest, false)] {
        if !messages.is_empty() {
            let packets = vec![PacketMark { first: 0, number, ts_ns, origin: Origin::default() }];
            out.flush()?;
            Delivery::of(out, MessageRun { recording, messages, packets, is_snapshot }).flush()?;
        }
    }
    Ok(())
}

/// True when the first of the packets has waited longer than [`WAIT_NS`].
fn has_waited(waiting: &[WaitingPacket], now_ns: u64) -> bool {
    waiting.first().is_some_and(|first| now_ns.saturating_sub(first.ts_ns) > WAIT_NS)
}

/// True when the last message of a packet is an end-of-snapshot message.
fn ends_snapshot(payload: &[u8], mold: &moldudp64::Packet<'_>) -> bool {
    const LEN: usize = EndOfSnapshot::LEN;
    // Check one byte before parsing: most packets are of lines, and these never end with this message.
    let may_end = payload.len() >= LEN && payload[payload.len() - LEN] == b'G';
    may_end && mold.messages().last().is_some_and(|(_, message)| is_end_of_snapshot(message))
}

/// A session name as text; in hexadecimal if it is not printable ASCII.
fn session_name(session: &[u8; 10]) -> String {
    match std::str::from_utf8(session) {
        Ok(text) if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => text.trim().to_owned(),
        _ => session.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
