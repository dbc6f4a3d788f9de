//! Packets to their flows, flows to their recordings.

mod mold;
mod xdp;

use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Instant;

use rustc_hash::FxHashMap;
use tickpath_capture::{Format, InputMeter, Packet, PacketBlock, PacketCounters, Segment, Transport};
use tickpath_iex as iex_tp;
use tickpath_iex::Feed;
use tickpath_nasdaq::moldudp64;
use tickpath_types::Sequence;

use super::channel::{Channel, Verdict};
use super::market::{self, Market, Origin, PacketMark, Run};
use super::protocol::{Protocol, is_soup_of_itch, of_datagram};
use super::report::{CaptureReport, DESTINATIONS_NAMED, UnknownPackets};
use super::soup::{Messages, SoupStream};
use crate::report::FileReport;
use crate::run::ReplayError;
use crate::session::{Ended, Session};
use xdp::Aside;

/// Flows that are told apart; packets of more count as unknown.
const FLOWS_MAX: usize = 1 << 16;
/// Channels that are put in sequence; packets of more count as unknown.
const CHANNELS_MAX: usize = 1 << 10;
/// Longest time, by the clock of the capture, for which packets of a flow wait until its channel is known.
const WAIT_NS: u64 = 1_000_000_000;
/// Packets of all flows that may wait at a time; with more a flow is decided at once.
const ALL_WAITING_MAX: usize = 4_096;

/// Packets that belong together: of UDP all that go to one address, of TCP one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FlowKey {
    dst: SocketAddrV4,
    /// Of TCP.
    src: Option<SocketAddrV4>,
}

/// What is known of a flow.
struct Flow {
    key: FlowKey,
    kind: FlowKind,
    /// Packets that told nothing.
    unknown: u64,
}

enum FlowKind {
    /// Nothing yet.
    Undecided,
    /// A line of a session of MoldUDP64, or snapshots beside it: its packets wait.
    MoldWaiting(Vec<Waiting>),
    /// The channel and line of the packet that came last.
    Mold(Option<(ChannelKey, Place)>),
    /// Snapshots of a session of MoldUDP64, under its name and with numbers of their own.
    MoldSnapshots,
    Soup(Box<SoupStream>, usize),
    /// As of MoldUDP64.
    Iex(Option<(ChannelKey, Place)>),
    Xdp(Place),
    /// Not known yet whether it is a line of a known channel: its packets wait.
    XdpWaiting(Vec<Waiting>),
}

/// A packet that waits for its flow to be known.
struct Waiting {
    number: u64,
    ts_ns: u64,
    payload: Vec<u8>,
}

impl Waiting {
    fn of(packet: &Packet<'_>) -> Waiting {
        Waiting { number: packet.number, ts_ns: packet.ts_ns, payload: packet.payload.to_vec() }
    }

    fn packet(&self, dst: SocketAddrV4) -> Packet<'_> {
        let Waiting { number, ts_ns, ref payload } = *self;
        Packet { number, ts_ns, src: dst, dst, transport: Transport::Udp, payload }
    }
}

/// A channel and one of its lines.
#[derive(Clone, Copy)]
struct Place {
    channel: usize,
    line: usize,
}

/// What packets call the channel that they are of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ChannelKey {
    /// The session of MoldUDP64.
    Mold([u8; 10]),
    /// Feed and channel of IEX-TP.
    Iex(Feed, u32),
}

/// A channel and its recording.
struct Numbered {
    channel: Channel,
    market: usize,
    /// Session of IEX-TP, and when the latest packet was sent.
    session: (u32, u64),
    /// Which of the channels of its protocol in the capture, counted from 0.
    ordinal: u8,
    is_xdp: bool,
    /// Of XDP: whether a message has told the market.
    is_market_known: bool,
}

/// Takes packets to the recordings that they are of.
pub(super) struct Demux<'s> {
    session: Session<'s>,
    meter: InputMeter,
    markets: Vec<Market>,
    channels: Vec<Numbered>,
    by_key: FxHashMap<ChannelKey, usize>,
    flows: Vec<Flow>,
    by_flow: FxHashMap<FlowKey, usize>,
    /// Of XDP: by flow, what comes beside the lines.
    asides: FxHashMap<usize, Aside>,
    /// Packets of all flows that wait for their flow to be known.
    waiting: usize,
    /// Packets beyond the bounds.
    beyond: u64,
    /// Messages of the TCP segment at hand.
    stream_messages: Messages,
    /// Since when the time goes to finding messages.
    begin: Instant,
}

impl<'s> Demux<'s> {
    pub(super) fn new(session: Session<'s>, meter: InputMeter) -> Demux<'s> {
        Demux {
            session,
            meter,
            markets: Vec::new(),
            channels: Vec::new(),
            by_key: FxHashMap::default(),
            flows: Vec::new(),
            by_flow: FxHashMap::default(),
            asides: FxHashMap::default(),
            waiting: 0,
            beyond: 0,
            stream_messages: Messages::default(),
            begin: Instant::now(),
        }
    }

    /// Before each block: tells the progress; true when nothing more is to be read.
    pub(super) fn is_over(&mut self) -> bool {
        if !self.markets.is_empty() && self.markets.iter().all(|market| market.is_ended) {
            self.session.ended.get_or_insert(Ended::Window);
        }
        self.session.is_over(&self.meter)
    }

    /// Takes the packets of a block, each in its time where they are paced.
    pub(super) fn handle_block(&mut self, block: PacketBlock<'_>, is_paced: bool) -> Result<(), ReplayError> {
        self.begin = Instant::now();
        let mut run = Run::default();
        for packet in block {
            if is_paced {
                self.flush(&mut run)?;
                if !self.session.wait_for_packet(packet.ts_ns) || self.is_over() {
                    break;
                }
                self.begin = Instant::now();
            }
            match packet.transport {
                Transport::Udp => self.datagram(&packet, &mut run)?,
                Transport::Tcp(segment) => self.segment(&packet, &segment, &mut run)?,
            }
        }
        self.flush(&mut run)
    }

    /// The flow of a packet; `None` for one too many.
    fn flow(&mut self, key: FlowKey) -> Option<usize> {
        if let Some(index) = self.by_flow.get(&key) {
            return Some(*index);
        }
        if self.flows.len() == FLOWS_MAX {
            return None;
        }
        self.by_flow.insert(key, self.flows.len());
        self.flows.push(Flow { key, kind: FlowKind::Undecided, unknown: 0 });
        Some(self.flows.len() - 1)
    }

    fn datagram<'a>(&mut self, packet: &Packet<'a>, run: &mut Run<'a>) -> Result<(), ReplayError> {
        let Some(index) = self.flow(FlowKey { dst: packet.dst, src: None }) else {
            self.beyond += 1;
            return Ok(());
        };
        let flow = &mut self.flows[index];
        if let FlowKind::Undecided = flow.kind {
            match of_datagram(packet.payload, self.session.options.protocol) {
                Some(Protocol::Itch) => flow.kind = FlowKind::MoldWaiting(Vec::new()),
                Some(Protocol::Iex) => flow.kind = FlowKind::Iex(None),
                Some(Protocol::Xdp) => flow.kind = FlowKind::XdpWaiting(Vec::new()),
                None => {
                    flow.unknown += 1;
                    return Ok(());
                }
            }
        }
        match &flow.kind {
            FlowKind::Mold(_) | FlowKind::MoldWaiting(_) => self.mold(index, packet, run),
            FlowKind::MoldSnapshots => {
                self.mold_snapshot(index, packet);
                Ok(())
            }
            &FlowKind::Iex(last) => self.iex(index, last, packet, run),
            FlowKind::Xdp(_) | FlowKind::XdpWaiting(_) => self.xdp(index, packet, run),
            FlowKind::Undecided | FlowKind::Soup(..) => {
                unreachable!("it was decided, and datagrams are no stream")
            }
        }
    }

    /// A segment of IEX-TP.
    fn iex<'a>(
        &mut self,
        flow: usize,
        last: Option<(ChannelKey, Place)>,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let segment = iex_tp::Segment::parse(packet.payload).ok();
        let segment = segment.filter(|segment| is_countable(segment.sequence(), segment.message_count()));
        let Some((segment, feed)) = segment.and_then(|segment| Some((segment, segment.feed()?))) else {
            self.malformed(flow, last.map(|(_, place)| place));
            return Ok(());
        };
        let key = ChannelKey::Iex(feed, segment.channel());
        let place = match last {
            Some((known, place)) if known == key => place,
            _ => {
                let name = || format!("channel {}", segment.channel());
                let Some(place) = self.place(key, market::Kind::Iex(feed), name, packet) else {
                    self.beyond += 1;
                    return Ok(());
                };
                self.flows[flow].kind = FlowKind::Iex(Some((key, place)));
                place
            }
        };
        let numbered = &mut self.channels[place.channel];
        numbered.channel.count_packet(place.line);
        let (first, count) = (segment.sequence().0, u64::from(segment.message_count()));
        let (session, sent) = (segment.session(), segment.send_time().0);
        let (known, latest) = numbered.session;
        if let Some(next) = numbered.channel.next() {
            // A session that is over may still be heard on the other line.
            if session != known && sent <= latest {
                numbered.channel.report.malformed += 1;
                return Ok(());
            }
            let begins_anew = segment.is_first() && sent > latest && next > first + count;
            if session != known || begins_anew {
                self.flush(run)?;
                let numbered = &mut self.channels[place.channel];
                // What is missing of its beginning is lost.
                numbered.channel.restart(1);
                self.markets[numbered.market].restart(numbered.ordinal);
            }
        }
        let numbered = &mut self.channels[place.channel];
        numbered.session = (session, latest.max(sent));
        if count == 0 {
            numbered.channel.heartbeat(first, packet.ts_ns);
            return self.settle(place.channel, Some(packet.ts_ns), run);
        }
        self.take(place, first, count, packet, segment.messages().map(|(_, message)| message), run)
    }

    /// Takes the messages of a packet in their turn.
    fn take<'a>(
        &mut self,
        place: Place,
        first: u64,
        count: u64,
        packet: &Packet<'a>,
        messages: impl Iterator<Item = &'a [u8]>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let index = place.channel;
        let Numbered { market, .. } = self.channels[index];
        let header_len = match self.markets[market].kind {
            market::Kind::Itch => moldudp64::HEADER_LEN,
            market::Kind::Iex(_) => iex_tp::Header::LEN,
            market::Kind::Xdp(_) => tickpath_nyse::HEADER_LEN,
        };
        let content = content(packet.payload, header_len);
        let mut verdict = self.channels[index].channel.judge(place.line, first, count, packet.ts_ns, content);
        if verdict == Verdict::Anew {
            self.flush(run)?;
            let numbered = &mut self.channels[index];
            // What is missing of its beginning is lost.
            numbered.channel.restart(1);
            self.markets[numbered.market].restart(numbered.ordinal);
            verdict = numbered.channel.judge(place.line, first, count, packet.ts_ns, content);
        }
        match verdict {
            Verdict::Take(known) => {
                let origin = self.origin(index, packet.payload);
                self.push(index, packet, origin, messages.skip(known as usize), run)?;
            }
            Verdict::Duplicate | Verdict::Anew => {}
            Verdict::Hold => {
                self.channels[index].channel.hold(first, count, packet.number, packet.payload);
            }
        }
        self.settle(index, Some(packet.ts_ns), run)
    }

    /// A segment of TCP.
    fn segment(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment,
        run: &mut Run<'_>,
    ) -> Result<(), ReplayError> {
        let key = FlowKey { dst: packet.dst, src: Some(packet.src) };
        let Some(index) = self.flow(key) else {
            self.beyond += 1;
            return Ok(());
        };
        if let FlowKind::Undecided = self.flows[index].kind {
            let asked = self.session.options.protocol;
            let may_be = asked.is_none_or(|asked| asked == Protocol::Itch);
            if !may_be
                || !is_soup_of_itch(packet.payload, asked.is_some())
                || self.channels.len() == CHANNELS_MAX
            {
                self.flows[index].unknown += u64::from(!packet.payload.is_empty());
                return Ok(());
            }
            let name = format!("stream {} to {}", packet.src, packet.dst);
            let channel = self.add_channel(market::Kind::Itch, name, packet.ts_ns);
            self.channels[channel].channel.line(packet.dst);
            self.flows[index].kind = FlowKind::Soup(Box::new(SoupStream::new(asked.is_some())), channel);
        }
        let FlowKind::Soup(stream, channel) = &mut self.flows[index].kind else { return Ok(()) };
        let mut messages = std::mem::take(&mut self.stream_messages);
        let channel = *channel;
        stream.handle_segment(segment, packet.payload, &mut messages);
        let applied = self.stream_messages(channel, (packet.number, Some(packet.ts_ns)), &messages, run);
        self.stream_messages = messages;
        applied
    }

    /// Messages of a stream, which lie in memory of their own: they are taken at once.
    fn stream_messages(
        &mut self,
        channel: usize,
        (number, ts_ns): (u64, Option<u64>),
        messages: &Messages,
        run: &mut Run<'_>,
    ) -> Result<(), ReplayError> {
        let Numbered { channel, market, .. } = &mut self.channels[channel];
        channel.count_packet(0);
        let mut rest = messages.slices();
        let mut snapshot = Run { market: *market, is_snapshot: true, ..Run::default() };
        snapshot.messages.extend(rest.by_ref().take(messages.snapshot_len()));
        let mut live = Run { market: *market, ..Run::default() };
        live.messages.extend(rest);
        channel.report.messages += (snapshot.messages.len() + live.messages.len()) as u64;
        for mut part in [snapshot, live] {
            if !part.messages.is_empty() {
                part.packets.push(PacketMark { first: 0, number, ts_ns, origin: Origin::default() });
                self.flush(run)?;
                self.flush(&mut part)?;
            }
        }
        Ok(())
    }

    /// A packet that cannot be read.
    fn malformed(&mut self, flow: usize, place: Option<Place>) {
        match place {
            Some(place) => {
                let channel = &mut self.channels[place.channel].channel;
                channel.count_packet(place.line);
                channel.report.malformed += 1;
            }
            None => self.flows[flow].unknown += 1,
        }
    }

    /// Channel and line of a packet; `None` for one too many.
    fn place(
        &mut self,
        key: ChannelKey,
        kind: market::Kind,
        name: impl FnOnce() -> String,
        packet: &Packet<'_>,
    ) -> Option<Place> {
        let channel = match self.by_key.get(&key) {
            Some(channel) => *channel,
            None if self.channels.len() == CHANNELS_MAX => return None,
            None => {
                let channel = self.add_channel(kind, name(), packet.ts_ns);
                self.by_key.insert(key, channel);
                channel
            }
        };
        Some(Place { channel, line: self.channels[channel].channel.line(packet.dst) })
    }

    /// A channel: of ITCH with a recording of its own, of others in that of its feed, of XDP in that of its market once
    /// that is known.
    fn add_channel(&mut self, kind: market::Kind, name: String, ts_ns: u64) -> usize {
        use market::Kind;
        let place = |of: &dyn Fn(Kind) -> bool| self.markets.iter().position(|market| of(market.kind));
        let known = match kind {
            Kind::Itch => None,
            Kind::Iex(_) => place(&|known| known == kind),
            Kind::Xdp(_) => place(&|known| known == kind).or(place(&|known| matches!(known, Kind::Xdp(_)))),
        };
        let market = known.unwrap_or_else(|| {
            let words = match kind {
                Kind::Itch => format!("{}, {name}", kind.name()),
                Kind::Iex(_) | Kind::Xdp(_) => kind.name(),
            };
            self.markets.push(Market::new(words, kind, &self.session, ts_ns));
            self.markets.len() - 1
        });
        let is_xdp = matches!(kind, Kind::Xdp(_));
        let of_protocol = self
            .channels
            .iter()
            .filter(|numbered| numbered.is_xdp == is_xdp && (is_xdp || numbered.market == market));
        let ordinal = u8::try_from(of_protocol.count()).unwrap_or(u8::MAX);
        let channel = Channel::new(name);
        let session = (0, 0);
        self.channels.push(Numbered { channel, market, session, ordinal, is_xdp, is_market_known: false });
        self.channels.len() - 1
    }

    /// What a packet of a channel says about its messages.
    fn origin(&self, index: usize, payload: &[u8]) -> Origin {
        let Numbered { ordinal, is_xdp, .. } = self.channels[index];
        if !is_xdp {
            return Origin { channel: ordinal, ..Origin::default() };
        }
        let sent = tickpath_nyse::Packet::parse_header(payload)
            .map_or_else(|_| Default::default(), |xdp| xdp.send_time());
        Origin { channel: ordinal, sent }
    }

    /// Puts messages of a packet behind those that wait.
    fn push<'a>(
        &mut self,
        channel: usize,
        packet: &Packet<'_>,
        origin: Origin,
        messages: impl Iterator<Item = &'a [u8]>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let market = self.channels[channel].market;
        if run.market != market {
            self.flush(run)?;
            run.market = market;
        }
        run.packets.push(PacketMark {
            first: run.messages.len(),
            number: packet.number,
            ts_ns: Some(packet.ts_ns),
            origin,
        });
        run.messages.extend(messages);
        Ok(())
    }

    /// Takes held packets whose turn has come, and gives up what has been missing too long.
    fn settle(&mut self, index: usize, now_ns: Option<u64>, run: &mut Run<'_>) -> Result<(), ReplayError> {
        if !self.channels[index].channel.is_open() {
            return Ok(());
        }
        loop {
            while let Some((held, known)) = self.channels[index].channel.poll_held() {
                self.flush(run)?;
                let market = self.channels[index].market;
                let mut own = Run { market, ..Run::default() };
                let origin = self.origin(index, &held.payload);
                own.packets.push(PacketMark { first: 0, number: held.number, ts_ns: None, origin });
                let messages = &mut own.messages;
                extend(messages, self.markets[market].kind, &held.payload, known as usize);
                self.flush(&mut own)?;
            }
            if !self.channels[index].channel.give_up(now_ns) {
                return Ok(());
            }
            self.flush(run)?;
            let Numbered { market, ordinal, ref channel, .. } = self.channels[index];
            self.markets[market].lose(ordinal, channel.next().unwrap_or_default());
        }
    }

    /// Takes the messages that wait to their market.
    fn flush(&mut self, run: &mut Run<'_>) -> Result<(), ReplayError> {
        if run.messages.is_empty() {
            return Ok(());
        }
        let framing = self.begin.elapsed();
        let applied = self.markets[run.market].apply(&mut self.session, run, &self.meter, framing);
        run.messages.clear();
        run.packets.clear();
        self.begin = Instant::now();
        applied
    }

    /// The reports, when there is no more.
    pub(super) fn finish(
        mut self,
        path: &Path,
        format: Format,
        frames: PacketCounters,
        read_error: Option<String>,
    ) -> Result<Vec<FileReport>, ReplayError> {
        self.finish_channels()?;
        let unknown = self.unknown();
        if self.markets.is_empty() {
            let found = read_error.unwrap_or_else(|| nothing_known(&frames, &unknown));
            return Err(ReplayError::NothingKnown { file: path.display().to_string(), found });
        }
        let Demux { mut session, markets, channels, .. } = self;
        let recordings: Vec<String> = markets.iter().map(|market| market.name.clone()).collect();
        let mut reports = Vec::new();
        for (index, market) in markets.into_iter().enumerate() {
            let of_market = channels.iter().filter(|numbered| numbered.market == index);
            let capture = CaptureReport {
                name: market.name.clone(),
                protocol: market.kind.protocol(),
                channels: of_market.map(|numbered| numbered.channel.report.clone()).collect(),
                recordings: recordings.clone(),
                frames,
                unknown: unknown.clone(),
            };
            let mut report = market.finish(path, format, &mut session);
            report.contradictions.extend(capture.contradictions());
            report.contradictions.extend(capture.crossed_from_the_middle(&report.integrity));
            report.reservations.extend(capture.reservations());
            if let Some(error) = read_error.as_ref().filter(|_| index == 0) {
                report.integrity.read_error = Some(error.clone());
                report.contradictions.insert(0, error.clone());
            }
            report.capture = Some(capture);
            reports.push(report);
        }
        Ok(reports)
    }

    /// What is still missing never comes.
    fn finish_channels(&mut self) -> Result<(), ReplayError> {
        self.begin = Instant::now();
        let mut run = Run::default();
        for index in 0..self.flows.len() {
            match &self.flows[index].kind {
                FlowKind::MoldWaiting(_) => self.settle_mold(index, FlowKind::Mold(None), &mut run)?,
                FlowKind::XdpWaiting(waiting) => {
                    if let Some(ts_ns) = waiting.first().map(|first| first.ts_ns) {
                        self.settle_flow(index, None, ts_ns, &mut run)?;
                    }
                }
                _ => {}
            }
        }
        for index in 0..self.channels.len() {
            self.settle(index, None, &mut run)?;
        }
        let mut messages = std::mem::take(&mut self.stream_messages);
        for index in 0..self.flows.len() {
            let FlowKind::Soup(stream, channel) = &mut self.flows[index].kind else { continue };
            stream.finish(&mut messages);
            let channel = *channel;
            let market = self.channels[channel].market;
            let report = &mut self.channels[channel].channel.report;
            report.stream = Some(*stream.stream().counters());
            report.malformed += stream.malformed();
            if let Some(session) = stream.session() {
                report.name = format!("session {}, {}", session_name(&session.0), report.name);
                self.markets[market].name = format!("ITCH 5.0, {}", report.name);
            }
            let packets = report.packets;
            self.stream_messages(channel, (0, None), &messages, &mut run)?;
            self.channels[channel].channel.report.packets = packets;
        }
        Ok(())
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

/// Whether there are numbers for as many messages from this one on.
fn is_countable(first: Sequence, count: u16) -> bool {
    first.0.checked_add(u64::from(count)).is_some()
}

/// The messages of a packet that was read before, but for the first so many.
fn extend<'a>(messages: &mut Vec<&'a [u8]>, kind: market::Kind, payload: &'a [u8], known: usize) {
    match kind {
        market::Kind::Itch => {
            let packet = moldudp64::Packet::parse(payload).expect("it was read before it was held");
            messages.extend(packet.messages().map(|(_, message)| message).skip(known));
        }
        market::Kind::Iex(_) => {
            let segment = iex_tp::Segment::parse(payload).expect("it was read before it was held");
            messages.extend(segment.messages().map(|(_, message)| message).skip(known));
        }
        market::Kind::Xdp(_) => {
            let packet = tickpath_nyse::Packet::parse(payload).expect("it was read before it was held");
            messages.extend(packet.messages().map(|(_, message)| message).skip(known));
        }
    }
}

/// What there is instead of market data.
fn nothing_known(frames: &PacketCounters, unknown: &UnknownPackets) -> String {
    let mut words = format!("{} frames, {} of UDP and {} of TCP", frames.frames, frames.udp, frames.tcp);
    if let Some((dst, count)) = unknown.destinations.first() {
        words.push_str(&format!(", most of them to {dst} ({count})"));
    }
    for (what, count) in frames.skipped().into_iter().filter(|(_, count)| *count > 0) {
        words.push_str(&format!(", {count} {what}"));
    }
    words
}

/// A session as text: what is no text as digits.
fn session_name(session: &[u8; 10]) -> String {
    match std::str::from_utf8(session) {
        Ok(text) if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => text.trim().to_owned(),
        _ => session.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A digest of a packet's messages, to compare it with its copy: of all behind its header, whose send time may differ from
/// line to line.
fn content(payload: &[u8], header_len: usize) -> u32 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let messages = payload.get(header_len..).unwrap_or(payload);
    // Four sums, none of which waits for another.
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
