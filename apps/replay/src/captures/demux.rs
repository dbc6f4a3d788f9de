//! Packets to their flows, flows to their protocols.

use std::time::Instant;

use rustc_hash::FxHashMap;
use tickpath_capture::{Packet, PacketBlock, Segment, Transport};

use super::packets::{CaptureProtocol, PacketReader};
use super::recordings::{Delivery, Flow, FlowKey, Recordings};
use crate::error::Result;

/// Flows that are told apart; packets of more count as unknown.
const FLOWS_MAX: usize = 1 << 16;

/// Takes packets to the protocols that they are of.
pub(super) struct Protocols {
    lines: &'static [&'static CaptureProtocol],
    /// Of each protocol.
    readers: Vec<Box<dyn PacketReader>>,
    by_flow: FxHashMap<FlowKey, usize>,
}

impl Protocols {
    pub(super) fn new(lines: &'static [&'static CaptureProtocol], is_asked: bool) -> Protocols {
        let readers = lines.iter().map(|line| (line.reader)(is_asked)).collect();
        Protocols { lines, readers, by_flow: FxHashMap::default() }
    }

    /// Takes the packets of a block, each in its time where they are paced.
    pub(super) fn handle_block(
        &mut self,
        block: PacketBlock<'_>,
        is_paced: bool,
        recordings: &mut Recordings<'_>,
    ) -> Result {
        recordings.begin = Instant::now();
        let mut out = Delivery::new(recordings);
        for packet in block {
            if is_paced {
                out.flush()?;
                if !out.session.wait_for_packet(packet.ts_ns) || out.is_over() {
                    break;
                }
                out.begin = Instant::now();
            }
            match packet.transport {
                Transport::Udp => self.datagram(&packet, &mut out)?,
                Transport::Tcp(segment) => self.segment(&packet, &segment, &mut out)?,
            }
        }
        out.flush()
    }

    /// The flow of a packet; `None` for one too many.
    fn flow(&mut self, key: FlowKey, out: &mut Recordings<'_>) -> Option<usize> {
        if let Some(index) = self.by_flow.get(&key) {
            return Some(*index);
        }
        if out.flows.len() == FLOWS_MAX {
            out.beyond += 1;
            return None;
        }
        self.by_flow.insert(key, out.flows.len());
        out.flows.push(Flow { key, protocol: None, unknown: 0 });
        Some(out.flows.len() - 1)
    }

    /// The protocol of a packet whose flow is not known, by its content. A protocol named by `--protocol` is trusted: any
    /// packet with messages that can be its is.
    fn recognise(
        &self,
        out: &Recordings<'_>,
        is_of: impl Fn(&CaptureProtocol, bool) -> bool,
    ) -> Option<usize> {
        let asked = out.session.options.protocol;
        let may_be = |line: &CaptureProtocol| asked.is_none_or(|asked| asked == line.protocol);
        // The table says that a packet which can be of two is of the later one.
        let mut lines = self.lines.iter().enumerate().rev();
        lines.find(|(_, line)| may_be(line) && is_of(line, asked.is_some())).map(|(index, _)| index)
    }

    fn datagram<'a>(&mut self, packet: &Packet<'a>, out: &mut Delivery<'_, '_, 'a>) -> Result {
        let Some(flow) = self.flow(FlowKey { dst: packet.dst, src: None }, out) else { return Ok(()) };
        let is_of = |line: &CaptureProtocol, is_asked| (line.is_datagram)(packet.payload, is_asked);
        let Some(protocol) = out.flows[flow].protocol.or_else(|| self.recognise(out, is_of)) else {
            out.count_unknown(flow, 1);
            return Ok(());
        };
        out.flows[flow].protocol = Some(protocol);
        self.readers[protocol].datagram(flow, packet, out)
    }

    /// A segment of TCP.
    fn segment(&mut self, packet: &Packet<'_>, segment: &Segment, out: &mut Delivery<'_, '_, '_>) -> Result {
        let key = FlowKey { dst: packet.dst, src: Some(packet.src) };
        let Some(flow) = self.flow(key, out) else { return Ok(()) };
        let is_of = |line: &CaptureProtocol, is_asked| (line.is_stream)(packet.payload, is_asked);
        let recognise = || self.recognise(out, is_of).filter(|_| !out.is_full());
        let Some(protocol) = out.flows[flow].protocol.or_else(recognise) else {
            out.count_unknown(flow, u64::from(!packet.payload.is_empty()));
            return Ok(());
        };
        out.flows[flow].protocol = Some(protocol);
        self.readers[protocol].segment(flow, packet, segment, out)
    }

    /// At the end of the capture: what is still missing never comes.
    pub(super) fn finish(&mut self, recordings: &mut Recordings<'_>) -> Result {
        recordings.begin = Instant::now();
        let out = &mut Delivery::new(recordings);
        let known = |(flow, known): (usize, &Flow)| Some((flow, known.protocol?));
        let flows: Vec<(usize, usize)> = out.flows.iter().enumerate().filter_map(known).collect();
        for (flow, protocol) in &flows {
            self.readers[*protocol].settle_flow(*flow, out)?;
        }
        for channel in 0..out.channels.len() {
            out.settle(channel, None)?;
        }
        for (flow, protocol) in &flows {
            self.readers[*protocol].finish_stream(*flow, out)?;
        }
        Ok(())
    }
}
