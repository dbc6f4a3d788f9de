//! Packets of XDP: which channel and which market they are of, and what comes beside the lines.

use tickpath_capture::Packet;
use tickpath_nyse::{self as nyse, DeliveryFlag, RefreshHeader, SequenceNumberReset};

use super::{ALL_WAITING_MAX, CHANNELS_MAX, Demux, FlowKind, Numbered, Place, WAIT_NS, Waiting, content};
use crate::captures::channel::NO_LINE;
use crate::captures::market::{self, Market, Run};
use crate::captures::refresh::Refresh;
use crate::captures::xdp::{index_of, market_of};
use crate::run::ReplayError;

/// Packets for which a flow may wait to be known as a line of a channel.
const WAITING_MAX: usize = 64;

/// What comes to an address that is no line: retransmissions and refreshes.
#[derive(Default)]
pub(super) struct Aside {
    /// The channel whose they are, once a symbol told it.
    channel: Option<usize>,
    /// The refresh at hand.
    refresh: Option<Refresh>,
}

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A part of the channel's sequence.
    Sequence,
    /// The same once more, for who asked for it.
    Retransmission,
    Refresh,
    /// Nothing to us.
    Other,
}

impl Purpose {
    fn of(flag: DeliveryFlag) -> Purpose {
        match flag {
            DeliveryFlag::HEARTBEAT
            | DeliveryFlag::FAILOVER
            | DeliveryFlag::ORIGINAL
            | DeliveryFlag::SEQUENCE_RESET => Purpose::Sequence,
            DeliveryFlag::RETRANSMISSION_ONE | DeliveryFlag::RETRANSMISSION_PART => Purpose::Retransmission,
            flag if flag.is_refresh() => Purpose::Refresh,
            _ => Purpose::Other,
        }
    }
}

impl Demux<'_> {
    /// A packet of XDP.
    pub(super) fn xdp<'a>(
        &mut self,
        flow: usize,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let known = match &self.flows[flow].kind {
            FlowKind::Xdp(place) => Some(*place),
            _ => None,
        };
        let Ok(xdp) = nyse::Packet::parse(packet.payload) else {
            self.malformed(flow, known);
            return Ok(());
        };
        let purpose = Purpose::of(xdp.delivery_flag());
        match known {
            _ if purpose != Purpose::Sequence => self.aside(flow, known, purpose, &xdp, packet, run),
            Some(place) => self.line(place, &xdp, packet, run),
            None => self.waiting(flow, &xdp, packet, run),
        }
    }

    /// A packet on a line of a channel.
    fn line<'a>(
        &mut self,
        place: Place,
        xdp: &nyse::Packet<'a>,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let numbered = &mut self.channels[place.channel];
        numbered.channel.count_packet(place.line);
        let (sequence, count) = (xdp.sequence(), u64::from(xdp.message_count()));
        let first = match numbered.channel.next() {
            Some(next) => nearest(next, sequence),
            None => u64::from(sequence),
        };
        if numbered.channel.next().is_none() && first > 1 {
            // What came before is not in the capture.
            let Numbered { market, ordinal, .. } = *numbered;
            self.markets[market].lose(ordinal, first);
        }
        if count == 0 {
            self.channels[place.channel].channel.heartbeat(first, packet.ts_ns);
            return self.settle(place.channel, Some(packet.ts_ns), run);
        }
        if !self.channels[place.channel].is_market_known
            && let Some(market) = xdp.messages().find_map(|(_, message)| market_of(message))
        {
            self.tell_market(place.channel, market, packet.ts_ns, run)?;
        }
        let first = if self.is_new_reset(place, xdp) {
            self.flush(run)?;
            let numbered = &mut self.channels[place.channel];
            numbered.channel.restart(u64::from(sequence));
            self.markets[numbered.market].restart(numbered.ordinal);
            u64::from(sequence)
        } else {
            first
        };
        self.take(place, first, count, packet, xdp.messages().map(|(_, message)| message), run)
    }

    /// Whether the numbers begin anew with a packet. Resets are repeated until the session begins, and come late on the
    /// other line: one is new when it was sent later.
    fn is_new_reset(&mut self, place: Place, xdp: &nyse::Packet<'_>) -> bool {
        let numbered = &mut self.channels[place.channel];
        let end = u64::from(xdp.sequence()) + u64::from(xdp.message_count());
        let (sent, latest) = (xdp.send_time().as_nanos(), numbered.session.1);
        numbered.session.1 = latest.max(sent);
        let first = xdp.messages().next().map(|(_, message)| message);
        let is_reset =
            first.is_some_and(|message| message.get(2..4) == Some(&SequenceNumberReset::TYPE.to_le_bytes()));
        is_reset && sent > latest && numbered.channel.next().is_some_and(|next| next != end)
    }

    /// A packet of a flow that may be the other line of a known channel: it is where a packet is the same.
    fn waiting<'a>(
        &mut self,
        index: usize,
        xdp: &nyse::Packet<'a>,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        if xdp.message_count() == 0 {
            return Ok(());
        }
        let (first, count) = (xdp.sequence(), u64::from(xdp.message_count()));
        let content = content(packet.payload, nyse::HEADER_LEN);
        let same = |numbered: &Numbered| {
            let next = numbered.channel.next().unwrap_or_default();
            numbered.is_xdp && numbered.channel.remembers(nearest(next, first), count, content)
        };
        let known = self.channels.iter().position(same);
        let has_channels = self.channels.iter().any(|numbered| numbered.is_xdp);
        let FlowKind::XdpWaiting(waiting) = &mut self.flows[index].kind else { return Ok(()) };
        let is_old = waiting.first().is_some_and(|first| {
            packet.ts_ns.saturating_sub(first.ts_ns) > WAIT_NS || waiting.len() == WAITING_MAX
        });
        if known.is_none() && has_channels && !is_old && self.waiting < ALL_WAITING_MAX {
            self.waiting += 1;
            waiting.push(Waiting::of(packet));
            return Ok(());
        }
        match self.settle_flow(index, known, packet.ts_ns, run)? {
            Some(place) => self.line(place, xdp, packet, run),
            None => Ok(()),
        }
    }

    /// Makes a flow a line of a known channel, or else a channel of its own, and takes the packets that waited; `None`
    /// where there are too many channels.
    pub(super) fn settle_flow(
        &mut self,
        index: usize,
        known: Option<usize>,
        ts_ns: u64,
        run: &mut Run<'_>,
    ) -> Result<Option<Place>, ReplayError> {
        let dst = self.flows[index].key.dst;
        let of_xdp = self.channels.iter().filter(|numbered| numbered.is_xdp).count();
        let is_full = self.channels.len() == CHANNELS_MAX || of_xdp > usize::from(u8::MAX);
        if known.is_none() && is_full {
            self.flows[index].unknown += 1;
            return Ok(None);
        }
        let channel = known
            .unwrap_or_else(|| self.add_channel(market::Kind::Xdp(None), format!("channel {dst}"), ts_ns));
        let place = Place { channel, line: self.channels[channel].channel.line(dst) };
        let before = std::mem::replace(&mut self.flows[index].kind, FlowKind::Xdp(place));
        if let FlowKind::XdpWaiting(waiting) = before {
            self.waiting -= waiting.len();
            self.flush(run)?;
            for waiting in &waiting {
                let mut own = Run::default();
                self.xdp(index, &waiting.packet(dst), &mut own)?;
                self.flush(&mut own)?;
            }
        }
        Ok(Some(place))
    }

    /// The market of a channel is known from now on: its messages go to that market's recording.
    fn tell_market(
        &mut self,
        channel: usize,
        market: u16,
        ts_ns: u64,
        run: &mut Run<'_>,
    ) -> Result<(), ReplayError> {
        self.flush(run)?;
        let kind = market::Kind::Xdp(Some(market));
        let own = self.channels[channel].market;
        let index = match self.markets.iter().position(|market| market.kind == kind) {
            Some(index) => index,
            None if self.markets[own].kind == market::Kind::Xdp(None) => {
                self.markets[own].rename(kind);
                own
            }
            None => {
                self.markets.push(Market::new(kind.name(), kind, &self.session, ts_ns));
                self.markets.len() - 1
            }
        };
        let numbered = &mut self.channels[channel];
        (numbered.market, numbered.is_market_known) = (index, true);
        let (ordinal, first) = (numbered.ordinal, numbered.channel.report.first_sequence);
        if index != own && first > 1 {
            self.markets[index].lose(ordinal, first);
        }
        Ok(())
    }

    /// A packet beside the sequence of a channel.
    fn aside<'a>(
        &mut self,
        flow: usize,
        known: Option<Place>,
        purpose: Purpose,
        xdp: &nyse::Packet<'a>,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        // What was not flushed yet may be what tells the channel.
        self.flush(run)?;
        let told = known.map(|place| place.channel).or(self.asides.entry(flow).or_default().channel);
        let Some(channel) = told.or_else(|| self.channel_of(xdp)) else {
            self.flows[flow].unknown += u64::from(xdp.message_count() > 0);
            return Ok(());
        };
        self.asides.entry(flow).or_default().channel = Some(channel);
        let line = self.channels[channel].channel.line(packet.dst);
        self.channels[channel].channel.count_packet(line);
        match (purpose, self.channels[channel].channel.next()) {
            (Purpose::Retransmission, Some(next)) => {
                let (first, count) = (nearest(next, xdp.sequence()), u64::from(xdp.message_count()));
                let messages = xdp.messages().map(|(_, message)| message);
                self.take(Place { channel, line: NO_LINE }, first, count, packet, messages, run)
            }
            (Purpose::Refresh, _) => {
                self.channels[channel].channel.report.skipped += 1;
                self.refresh(flow, channel, xdp);
                Ok(())
            }
            _ => {
                self.channels[channel].channel.report.skipped += 1;
                Ok(())
            }
        }
    }

    /// The channel on which the symbols of a packet are known; where there is only one it is that. `None` when it may be
    /// several.
    fn channel_of(&self, xdp: &nyse::Packet<'_>) -> Option<usize> {
        let mut of_xdp = self.channels.iter().enumerate().filter(|(_, numbered)| numbered.is_xdp);
        if let (Some((only, _)), None) = (of_xdp.next(), of_xdp.next()) {
            return Some(only);
        }
        let named = xdp.messages().find_map(|(_, message)| market_of(message));
        let indexes = xdp.messages().filter_map(|(_, message)| index_of(message));
        for index in indexes {
            let known = self
                .markets
                .iter()
                .enumerate()
                .filter(|(_, market)| named.is_none() || market.kind == market::Kind::Xdp(named));
            let mut known = known.filter_map(|(at, market)| Some((at, market.channel_of(index)?)));
            // Each market has indexes of its own: one that several know tells nothing.
            if let (Some((market, ordinal)), None) = (known.next(), known.next()) {
                let is_it = |numbered: &Numbered| numbered.market == market && numbered.ordinal == ordinal;
                return self.channels.iter().position(is_it);
            }
        }
        None
    }

    /// A packet of a refresh of a symbol, or of the mappings of symbols.
    fn refresh(&mut self, flow: usize, channel: usize, xdp: &nyse::Packet<'_>) {
        let Demux { channels, markets, session, meter, asides, .. } = self;
        let numbered = &mut channels[channel];
        let market = &mut markets[numbered.market];
        let mut messages = xdp.messages().map(|(_, message)| message).peekable();
        let is_header = |message: &&[u8]| message.get(2..4) == Some(&RefreshHeader::TYPE.to_le_bytes());
        let Some(header) = messages.next_if(is_header) else {
            messages.for_each(|message| market.learn(session, meter, numbered.ordinal, message));
            return;
        };
        let at_hand = &mut asides.entry(flow).or_default().refresh;
        if let Some(refresh) = Refresh::take(at_hand, header, messages)
            && market.refresh(session, meter, numbered.ordinal, &refresh)
        {
            numbered.channel.report.healed += 1;
        }
    }
}

/// The number that a sequence of 32 bits means, as near to another as it can be: it wraps.
fn nearest(near: u64, sequence: u32) -> u64 {
    let distance = sequence.wrapping_sub(near as u32).cast_signed();
    near.checked_add_signed(i64::from(distance)).unwrap_or(u64::from(sequence))
}
