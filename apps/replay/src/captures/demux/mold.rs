//! Packets of MoldUDP64: lines of a session, and snapshots beside it.

use tickpath_capture::Packet;
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::moldudp64::{self, HEADER_LEN, Kind};

use super::{
    ALL_WAITING_MAX, ChannelKey, Demux, FlowKind, Place, WAIT_NS, Waiting, content, is_countable,
    session_name,
};
use crate::captures::market::{self, Origin, Run};
use crate::captures::protocol::is_of_snapshot;
use crate::message::is_end_of_snapshot;
use crate::run::ReplayError;

impl Demux<'_> {
    /// A packet of MoldUDP64.
    pub(super) fn mold<'a>(
        &mut self,
        flow: usize,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let mold = moldudp64::Packet::parse(packet.payload).ok();
        let mold = mold.filter(|mold| is_countable(mold.sequence(), mold.message_count()));
        if mold.as_ref().is_some_and(|mold| ends_snapshot(packet.payload, mold)) {
            self.settle_mold(flow, FlowKind::MoldSnapshots, run)?;
            self.mold_snapshot(flow, packet);
            return Ok(());
        }
        if let FlowKind::MoldWaiting(waiting) = &self.flows[flow].kind {
            // The other line may be behind this one: then its latest packet is this one's first.
            let first = waiting.first().map(|first| &first.payload[..]);
            let is_line = [Some(packet.payload), first].into_iter().flatten().any(|one| self.is_line(one));
            if !is_line && !has_waited(waiting, packet.ts_ns) && self.waiting < ALL_WAITING_MAX {
                self.waiting += 1;
                let FlowKind::MoldWaiting(waiting) = &mut self.flows[flow].kind else { return Ok(()) };
                waiting.push(Waiting::of(packet));
                return Ok(());
            }
            // The flow that has waited longest comes first: it may be the beginning of the same session.
            for flow in 0..self.flows.len() {
                if matches!(&self.flows[flow].kind, FlowKind::MoldWaiting(waiting) if has_waited(waiting, packet.ts_ns))
                {
                    self.settle_mold(flow, FlowKind::Mold(None), run)?;
                }
            }
            self.settle_mold(flow, FlowKind::Mold(None), run)?;
        }
        self.mold_line(flow, mold, packet, run)
    }

    /// Whether a packet shows that its flow is a line: it has a message that no snapshot has, or is one of its session.
    fn is_line(&self, payload: &[u8]) -> bool {
        let Ok(mold) = moldudp64::Packet::parse(payload) else { return false };
        if !mold.messages().all(|(_, message)| is_of_snapshot(message)) {
            return true;
        }
        let (first, count) = (mold.sequence().0, u64::from(mold.message_count()));
        let known = self.by_key.get(&ChannelKey::Mold(mold.session().0));
        known.is_some_and(|known| {
            let channel = &self.channels[*known].channel;
            count > 0 && channel.remembers(first, count, content(payload, HEADER_LEN))
        })
    }

    /// Decides what a flow is, and takes the packets that waited.
    pub(super) fn settle_mold(
        &mut self,
        flow: usize,
        kind: FlowKind,
        run: &mut Run<'_>,
    ) -> Result<(), ReplayError> {
        let dst = self.flows[flow].key.dst;
        let FlowKind::MoldWaiting(waiting) = std::mem::replace(&mut self.flows[flow].kind, kind) else {
            return Ok(());
        };
        self.waiting -= waiting.len();
        self.flush(run)?;
        for waiting in &waiting {
            let mut own = Run::default();
            self.datagram(&waiting.packet(dst), &mut own)?;
            self.flush(&mut own)?;
        }
        Ok(())
    }

    /// A packet on a line of a session; `None` of one that cannot be read.
    fn mold_line<'a>(
        &mut self,
        flow: usize,
        mold: Option<moldudp64::Packet<'a>>,
        packet: &Packet<'a>,
        run: &mut Run<'a>,
    ) -> Result<(), ReplayError> {
        let last = match self.flows[flow].kind {
            FlowKind::Mold(last) => last,
            _ => None,
        };
        let Some(mold) = mold else {
            self.malformed(flow, last.map(|(_, place)| place));
            return Ok(());
        };
        let key = ChannelKey::Mold(mold.session().0);
        let place = match last {
            Some((known, place)) if known == key => place,
            _ => {
                let name = || format!("session {}", session_name(&mold.session().0));
                let Some(place) = self.place(key, market::Kind::Itch, name, packet) else {
                    self.beyond += 1;
                    return Ok(());
                };
                self.flows[flow].kind = FlowKind::Mold(Some((key, place)));
                place
            }
        };
        let channel = &mut self.channels[place.channel].channel;
        channel.count_packet(place.line);
        let (first, count) = (mold.sequence().0, u64::from(mold.message_count()));
        if mold.kind() != Kind::Messages {
            channel.heartbeat(first, packet.ts_ns);
            return self.settle(place.channel, Some(packet.ts_ns), run);
        }
        if first == 0 {
            // Numbers begin with 1: these packets have none.
            channel.report.unnumbered += count;
            channel.report.messages += count;
            let messages = mold.messages().map(|(_, message)| message);
            return self.push(place.channel, packet, Origin::default(), messages, run);
        }
        self.take(place, first, count, packet, mold.messages().map(|(_, message)| message), run)
    }

    /// A packet of snapshots beside a session of MoldUDP64: they are no part of its sequence.
    pub(super) fn mold_snapshot(&mut self, flow: usize, packet: &Packet<'_>) {
        let Ok(mold) = moldudp64::Packet::parse(packet.payload) else { return self.malformed(flow, None) };
        let session = mold.session().0;
        let name = || format!("session {}", session_name(&session));
        match self.place(ChannelKey::Mold(session), market::Kind::Itch, name, packet) {
            Some(Place { channel, line }) => {
                let channel = &mut self.channels[channel].channel;
                channel.count_packet(line);
                channel.report.skipped += 1;
            }
            None => self.beyond += 1,
        }
    }
}

/// Whether packets have waited as long as they may.
fn has_waited(waiting: &[Waiting], now_ns: u64) -> bool {
    waiting.first().is_some_and(|first| now_ns.saturating_sub(first.ts_ns) > WAIT_NS)
}

/// Whether a packet ends with the message that ends a snapshot of ITCH.
fn ends_snapshot(payload: &[u8], mold: &moldudp64::Packet<'_>) -> bool {
    const LEN: usize = EndOfSnapshot::LEN;
    // A look at where it would be first: it is in no packet of a session.
    let may_end = payload.len() >= LEN && payload[payload.len() - LEN] == b'G';
    may_end && mold.messages().last().is_some_and(|(_, message)| is_end_of_snapshot(message))
}
