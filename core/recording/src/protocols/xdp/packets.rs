//! Packets of XDP in captures: their channels and markets, and out-of-band packets.

use core::net::SocketAddrV4;
use std::borrow::Cow;

use tickpath_feed::IgnoreUpdates;
use tickpath_feed::xdp::{Channel, widened};
use tickpath_nyse::{self as nyse, DeliveryFlag, HEADER_LEN, RefreshHeader, SendTime, SequenceNumberReset};
use tickpath_types::Sequence;

use super::fields::{index_of, is_type, market_of};
use super::refresh::Refresh;
use super::{Xdp, XdpMessage};
use crate::Packet;
use crate::books::{BookPair, in_both};
use crate::captures::{
    CapturedRecording, ChannelLine, Delivery, MessageRun, NO_LINE, PacketFormat, PacketNumbers,
    PacketProtocol, PacketReader, Recordings, WAIT_NS, WaitingPacket, content, state_of,
};
use crate::error::Result;
use crate::listener::Listener;
use crate::protocol_name::Protocol;
use crate::selection::Selection;

/// Maximum number of packets of one flow that wait until the flow is identified as a line of a channel.
const WAITING_MAX: usize = 64;

/// Registry entry of XDP.
pub(crate) const fn packets<L: Listener>() -> PacketFormat<L> {
    PacketFormat {
        protocol: Xdp::PROTOCOL,
        is_datagram: is_xdp,
        is_stream: |_, _| false,
        reader: |_| Box::new(XdpPackets::default()),
    }
}

/// True for a packet that has messages, a known purpose and only known message types. If `is_requested`,
/// having messages suffices.
fn is_xdp(payload: &[u8], is_requested: bool) -> bool {
    let Ok(packet) = tickpath_nyse::Packet::parse(payload) else { return false };
    let is_known = |message: &[u8]| {
        let message_type = message.get(2..4).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        message_type.is_some_and(|message_type| tickpath_nyse::message_len(message_type).is_some())
    };
    let is_typical = || {
        packet.delivery_flag().meaning().is_some() && packet.messages().all(|(_, message)| is_known(message))
    };
    packet.message_count() > 0 && (is_requested || is_typical())
}

/// Name of a market's feed; an unknown market counts as NYSE.
fn market_name(market: Option<u16>) -> String {
    let name = match market {
        None | Some(1) => "NYSE",
        Some(3) => "NYSE Arca",
        Some(9) => "NYSE American",
        Some(10) => "NYSE National",
        Some(11) => "NYSE Texas",
        Some(other) => return format!("NYSE market {other}, XDP Integrated Feed"),
    };
    format!("{name} XDP Integrated Feed")
}

impl PacketProtocol for Xdp {
    const PROTOCOL: Protocol = Protocol::new("xdp", "the Integrated Feeds of NYSE's markets, XDP");

    fn messages_of<'r, 'a>(&mut self, run: &'r MessageRun<'a>) -> Cow<'r, [XdpMessage<'a>]> {
        let mut messages = Vec::with_capacity(run.messages.len());
        for (origin, packet) in run.by_packet() {
            self.messages(packet, &origin, &mut messages);
        }
        Cow::Owned(messages)
    }

    fn unpack(payload: &[u8]) -> (SendTime, Vec<&[u8]>) {
        let packet = nyse::Packet::parse(payload).expect("it was read before it was held");
        (packet.send_time(), packet.messages().map(|(_, message)| message).collect())
    }

    fn handle_loss(&mut self, books: &mut BookPair<Xdp>, channel: u8, next: u64) {
        self.handle_symbols_loss(channel, next as u32);
        in_both!(books, books => books.handle_lost_on(Channel(channel), &mut IgnoreUpdates));
    }

    fn restart(&mut self, books: &mut BookPair<Xdp>, channel: u8) -> Vec<u16> {
        in_both!(books, books => books.handle_restart_on(Channel(channel), &mut IgnoreUpdates));
        self.reset_channel(channel).collect()
    }
}

impl CapturedRecording<Xdp> {
    /// Handles a complete refresh of a symbol; returns true if it recovered the book.
    fn refresh(&mut self, selection: &Selection, channel: u8, refresh: &Refresh) -> bool {
        let Some((recovery, number, name)) = self.replay.protocol.refresh(channel, refresh) else {
            return false;
        };
        let BookPair { books, model } = &mut self.replay.pair;
        let is_whole = books.as_mut().is_some_and(|books| super::recover(books, channel, &recovery));
        if let Some(model) = model {
            super::recover(&mut model.books, channel, &recovery);
        }
        self.set_name(selection, number, name);
        is_whole
    }

    /// Handles a symbol index mapping that arrived out of band.
    fn handle_mapping(&mut self, selection: &Selection, channel: u8, mapping: &[u8]) {
        if let Some((number, name)) = self.replay.protocol.add_mapping(channel, mapping) {
            let (pair, channel) = (&mut self.replay.pair, Channel(channel));
            in_both!(pair, books => books.handle_message_on(channel, Sequence(0), mapping, &mut IgnoreUpdates));
            self.set_name(selection, number, name);
        }
    }
}

/// The state of a flow.
#[derive(Default)]
struct XdpFlow {
    /// Channel and line of the flow, once it is identified as a line.
    channel_line: Option<ChannelLine>,
    /// Packets that wait until the flow is identified as a line of a known or a new channel.
    waiting: Vec<WaitingPacket>,
    out_of_band: OutOfBand,
}

/// The state of a flow of out-of-band packets: retransmissions and refreshes, sent to another address than
/// the lines.
#[derive(Default)]
struct OutOfBand {
    /// Channel of the flow, once a packet identified it.
    channel: Option<usize>,
    /// The refresh whose packets are being collected.
    refresh: Option<Refresh>,
}

/// The purpose of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketPurpose {
    /// Original messages of the channel's sequence, a heartbeat, or a sequence number reset.
    Sequence,
    /// A retransmission of messages of the sequence, on request.
    Retransmission,
    Refresh,
    /// Any other purpose: the packet is only counted.
    Other,
}

impl PacketPurpose {
    fn of(flag: DeliveryFlag) -> PacketPurpose {
        match flag {
            DeliveryFlag::HEARTBEAT
            | DeliveryFlag::FAILOVER
            | DeliveryFlag::ORIGINAL
            | DeliveryFlag::SEQUENCE_RESET => PacketPurpose::Sequence,
            DeliveryFlag::RETRANSMISSION_ONE | DeliveryFlag::RETRANSMISSION_PART => {
                PacketPurpose::Retransmission
            }
            flag if flag.is_refresh() => PacketPurpose::Refresh,
            _ => PacketPurpose::Other,
        }
    }
}

/// A channel of XDP; the books identify it by its index in [`XdpPackets::channels`].
struct XdpChannel {
    /// Index of the channel in [`Recordings::channels`].
    number: usize,
    /// True when a message has named the market.
    is_market_known: bool,
}

/// Packet reader of XDP, for all markets of a capture.
#[derive(Default)]
struct XdpPackets {
    flows: Vec<XdpFlow>,
    channels: Vec<XdpChannel>,
    /// Id and recording index of each market; the id is `None` while no message has named it.
    markets: Vec<(Option<u16>, usize)>,
}

impl<L: Listener> PacketReader<L> for XdpPackets {
    fn datagram<'a>(&mut self, flow: usize, packet: &Packet<'a>, out: &mut Delivery<'_, 'a, L>) -> Result {
        let known = state_of(&mut self.flows, flow).channel_line;
        let Ok(xdp) = nyse::Packet::parse(packet.payload) else {
            out.count_malformed(flow, known);
            return Ok(());
        };
        match (PacketPurpose::of(xdp.delivery_flag()), known) {
            (PacketPurpose::Sequence, Some(channel_line)) => self.line(channel_line, &xdp, packet, out),
            (PacketPurpose::Sequence, None) => self.waiting(flow, &xdp, packet, out),
            (purpose, _) => self.out_of_band(flow, purpose, &xdp, packet, out),
        }
    }

    fn classify_flow(&mut self, flow: usize, out: &mut Delivery<'_, '_, L>) -> Result {
        let XdpFlow { channel_line, waiting, .. } = &self.flows[flow];
        if let (None, Some(first)) = (channel_line, waiting.first()) {
            self.classify(flow, None, (first.dst, first.ts_ns), out)?;
        }
        Ok(())
    }
}

impl XdpPackets {
    /// Handles a packet on a line of a channel.
    fn line<'a, L: Listener>(
        &mut self,
        channel_line: ChannelLine,
        xdp: &nyse::Packet<'a>,
        packet: &Packet<'a>,
        out: &mut Delivery<'_, 'a, L>,
    ) -> Result {
        let entry = &mut out.channels[channel_line.channel];
        entry.channel.count_packet(channel_line.line);
        let (sequence, count) = (xdp.sequence(), u64::from(xdp.message_count()));
        let (next, ordinal) = (entry.channel.next(), usize::from(entry.ordinal));
        let mut first = next.map_or(u64::from(sequence), |next| widened(sequence, next));
        if next.is_none() && first > 1 {
            // Messages before `first` are not in the capture.
            out.handle_loss(channel_line.channel, first);
        }
        if count == 0 {
            return out.heartbeat(channel_line.channel, first, packet.ts_ns);
        }
        if !self.channels[ordinal].is_market_known
            && let Some(market) = xdp.messages().find_map(|(_, message)| market_of(message))
        {
            self.assign_market(channel_line.channel, market, packet.ts_ns, out)?;
        }
        if is_new_reset(channel_line, xdp, out) {
            first = u64::from(sequence);
            out.restart(channel_line.channel, first)?;
        }
        let numbers = PacketNumbers { first, count, header_len: HEADER_LEN, sent: xdp.send_time() };
        out.take(channel_line, numbers, packet, xdp.messages().map(|(_, message)| message))
    }

    /// Handles a packet of an unidentified flow. If it repeats a packet of a known channel, the flow is a
    /// line of that channel.
    fn waiting<'a, L: Listener>(
        &mut self,
        flow: usize,
        xdp: &nyse::Packet<'a>,
        packet: &Packet<'a>,
        out: &mut Delivery<'_, 'a, L>,
    ) -> Result {
        if xdp.message_count() == 0 {
            return Ok(());
        }
        let (first, count) = (xdp.sequence(), u64::from(xdp.message_count()));
        let content = content(packet.payload, HEADER_LEN);
        let same = |known: &usize| {
            let channel = &out.channels[*known].channel;
            channel.remembers(widened(first, channel.next().unwrap_or_default()), count, content)
        };
        let known = self.channels.iter().map(|channel| channel.number).find(same);
        let waiting = &mut self.flows[flow].waiting;
        let is_old = waiting.first().is_some_and(|first| {
            packet.ts_ns.saturating_sub(first.ts_ns) > WAIT_NS || waiting.len() == WAITING_MAX
        });
        if known.is_none() && !self.channels.is_empty() && !is_old && out.may_wait() {
            waiting.push(out.keep(packet));
            return Ok(());
        }
        match self.classify(flow, known, (packet.dst, packet.ts_ns), out)? {
            Some(channel_line) => self.line(channel_line, xdp, packet, out),
            None => Ok(()),
        }
    }

    /// Makes a flow a line of channel `known`, or of a new channel, and handles its waiting packets. Returns
    /// `None` if a channel cannot be added because there are too many.
    fn classify<L: Listener>(
        &mut self,
        flow: usize,
        known: Option<usize>,
        (dst, ts_ns): (SocketAddrV4, u64),
        out: &mut Delivery<'_, '_, L>,
    ) -> Result<Option<ChannelLine>> {
        let is_full = out.is_full() || self.channels.len() > usize::from(u8::MAX);
        if known.is_none() && is_full {
            out.count_unknown(flow, 1);
            return Ok(None);
        }
        let channel = known.unwrap_or_else(|| self.add_channel(dst, ts_ns, out));
        let channel_line = out.line(channel, dst);
        let state = &mut self.flows[flow];
        state.channel_line = Some(channel_line);
        let waiting = std::mem::take(&mut state.waiting);
        out.release(&waiting, |packet, out| self.datagram(flow, packet, out))?;
        Ok(Some(channel_line))
    }

    /// Adds a channel for packets to `dst`. A later message that names the market may move it to another
    /// recording.
    fn add_channel<L: Listener>(&mut self, dst: SocketAddrV4, ts_ns: u64, out: &mut Recordings<L>) -> usize {
        let unknown = self.markets.iter().find(|(market, _)| market.is_none());
        let recording = match unknown.or(self.markets.first()) {
            Some((_, recording)) => *recording,
            None => self.add_market(None, ts_ns, out),
        };
        let ordinal = u8::try_from(self.channels.len()).unwrap_or(u8::MAX);
        let number = out.add_channel(recording, ordinal, format!("channel {dst}"));
        self.channels.push(XdpChannel { number, is_market_known: false });
        number
    }

    /// Adds the recording of a market.
    fn add_market<L: Listener>(&mut self, market: Option<u16>, ts_ns: u64, out: &mut Recordings<L>) -> usize {
        let recording = out.add(market_name(market), Xdp::default(), ts_ns);
        self.markets.push((market, recording));
        recording
    }

    /// Sets the market of a channel: its next messages go to that market's recording.
    fn assign_market<L: Listener>(
        &mut self,
        channel: usize,
        market: u16,
        ts_ns: u64,
        out: &mut Delivery<'_, '_, L>,
    ) -> Result {
        out.flush()?;
        let (market, own) = (Some(market), out.channels[channel].recording);
        let known = self.markets.iter().find(|(known, _)| *known == market).map(|(_, recording)| *recording);
        let unknown = |(market, recording): &&mut (Option<u16>, usize)| market.is_none() && *recording == own;
        let recording = match (known, self.markets.iter_mut().find(unknown)) {
            (Some(recording), _) => recording,
            (None, Some((unknown, _))) => {
                *unknown = market;
                out.recording::<Xdp>(own).0.name = market_name(market);
                own
            }
            (None, None) => self.add_market(market, ts_ns, out),
        };
        let entry = &mut out.channels[channel];
        entry.recording = recording;
        self.channels[usize::from(entry.ordinal)].is_market_known = true;
        let first = entry.channel.report.first_sequence;
        if recording != own && first > 1 {
            out.handle_loss(channel, first);
        }
        Ok(())
    }

    /// Handles an out-of-band packet: a retransmission, a refresh, or a packet that is only counted.
    fn out_of_band<'a, L: Listener>(
        &mut self,
        flow: usize,
        purpose: PacketPurpose,
        xdp: &nyse::Packet<'a>,
        packet: &Packet<'a>,
        out: &mut Delivery<'_, 'a, L>,
    ) -> Result {
        // Apply pending messages first: their symbols may identify the channel of this packet.
        out.flush()?;
        let XdpFlow { channel_line, out_of_band, .. } = &self.flows[flow];
        let known = channel_line.map(|channel_line| channel_line.channel).or(out_of_band.channel);
        let Some(channel) = known.or_else(|| self.channel_of(xdp, out)) else {
            out.count_unknown(flow, u64::from(xdp.message_count() > 0));
            return Ok(());
        };
        self.flows[flow].out_of_band.channel = Some(channel);
        let ChannelLine { line, .. } = out.line(channel, packet.dst);
        let entry = &mut out.channels[channel].channel;
        entry.count_packet(line);
        if let (PacketPurpose::Retransmission, Some(next)) = (purpose, entry.next()) {
            let (first, count) = (widened(xdp.sequence(), next), u64::from(xdp.message_count()));
            let numbers = PacketNumbers { first, count, header_len: HEADER_LEN, sent: xdp.send_time() };
            let messages = xdp.messages().map(|(_, message)| message);
            return out.take(ChannelLine { channel, line: NO_LINE }, numbers, packet, messages);
        }
        entry.report.skipped += 1;
        if purpose == PacketPurpose::Refresh {
            self.refresh(flow, channel, xdp, out);
        }
        Ok(())
    }

    /// Returns the channel of a packet: the only channel, or else that of the packet's first symbol index
    /// that exactly one market has. `None` if there is no such index.
    fn channel_of<L: Listener>(&self, xdp: &nyse::Packet<'_>, out: &mut Recordings<L>) -> Option<usize> {
        if let [only] = self.channels.as_slice() {
            return Some(only.number);
        }
        let named = xdp.messages().find_map(|(_, message)| market_of(message));
        let indexes = xdp.messages().filter_map(|(_, message)| index_of(message));
        for index in indexes {
            let markets = self.markets.iter().filter(|(market, _)| named.is_none() || *market == named);
            let mut known = markets.filter_map(|(_, recording)| {
                Some((*recording, out.recording::<Xdp>(*recording).0.replay.protocol.channel_of(index)?))
            });
            // Each market numbers its symbols separately: an index that several markets know identifies no
            // channel.
            if let (Some((recording, ordinal)), None) = (known.next(), known.next()) {
                let number = self.channels.get(usize::from(ordinal))?.number;
                return Some(number).filter(|number| out.channels[*number].recording == recording);
            }
        }
        None
    }

    /// Handles a packet with part of a symbol's refresh, or with symbol mappings.
    fn refresh<L: Listener>(
        &mut self,
        flow: usize,
        channel: usize,
        xdp: &nyse::Packet<'_>,
        out: &mut Recordings<L>,
    ) {
        let (number, ordinal) = (out.channels[channel].recording, out.channels[channel].ordinal);
        let file_len = out.file_len;
        let (recording, pass) = out.recording::<Xdp>(number);
        let mut messages = xdp.messages().map(|(_, message)| message).peekable();
        let Some(header) = messages.next_if(|message| is_type(message, RefreshHeader::TYPE)) else {
            for message in messages {
                recording.create_books(&pass.selection, file_len);
                recording.handle_mapping(&pass.selection, ordinal, message);
            }
            return;
        };
        let partial = &mut self.flows[flow].out_of_band.refresh;
        if let Some(refresh) = Refresh::take(partial, header, messages)
            && recording.is_open(pass)
        {
            recording.create_books(&pass.selection, file_len);
            let is_recovered = recording.refresh(&pass.selection, ordinal, &refresh);
            out.channels[channel].channel.report.recovered += u64::from(is_recovered);
        }
    }
}

/// True for a packet with a new sequence number reset. The same reset is sent repeatedly until the session
/// begins, and may arrive late on the other line. A reset is new if its packet was sent after all other
/// packets received on the channel, and if it changes the next sequence number.
fn is_new_reset<L: Listener>(
    channel_line: ChannelLine,
    xdp: &nyse::Packet<'_>,
    out: &mut Recordings<L>,
) -> bool {
    let entry = &mut out.channels[channel_line.channel];
    let end = u64::from(xdp.sequence()) + u64::from(xdp.message_count());
    let (sent, latest) = (xdp.send_time().as_nanos(), entry.session.1);
    entry.session.1 = latest.max(sent);
    let first = xdp.messages().next().map(|(_, message)| message);
    let is_reset = first.is_some_and(|message| is_type(message, SequenceNumberReset::TYPE));
    is_reset && sent > latest && entry.channel.next().is_some_and(|next| next != end)
}
