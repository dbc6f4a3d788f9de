//! Assigns packets to flows, and flows to protocols.

use rustc_hash::FxHashMap;

use super::packets::{PacketFormat, PacketReader};
use super::recordings::{Delivery, Flow, FlowKey, Recordings};
use super::report::UnknownPackets;
use crate::error::Result;
use crate::listener::{Listener, WorkStep};
use crate::registry::formats;
use crate::replay::{EndReason, Pass};
use crate::report::RecordingReport;
use crate::{Packet, Transport};

/// Maximum number of flows; packets of further flows count as unknown.
const FLOWS_MAX: usize = 1 << 16;

/// Replays a capture: passes its packets to their protocols, and their messages to the capture's recordings.
///
/// Packets enter through [`Captures::handle_packets`] in the order of the capture. Messages, trades and books
/// go to the [`Listener`] of the [`Pass`]; [`Captures::finish`] returns a report on each recording.
pub struct Captures<L> {
    readers: Readers<L>,
    recordings: Recordings<L>,
}

impl<L: Listener> Captures<L> {
    /// Creates the replay of a capture file of `file_len` bytes, 0 if unknown.
    pub fn new(pass: Pass<L>, file_len: u64) -> Captures<L> {
        let readers = Readers::new(pass.selection.protocol.is_some());
        Captures { readers, recordings: Recordings::new(pass, file_len) }
    }

    /// The [`Pass`] given to [`Captures::new`].
    pub const fn pass(&mut self) -> &mut Pass<L> {
        &mut self.recordings.pass
    }

    /// True when no more packets need to be read.
    pub fn is_over(&mut self) -> bool {
        if self.recordings.are_windows_over() {
            self.recordings.pass.ended.get_or_insert(EndReason::Window);
        }
        self.recordings.pass.ended.is_some()
    }

    /// Handles packets, and applies their messages to the books, up to the first gap of each channel.
    ///
    /// # Errors
    /// When a recording cannot be replayed as requested.
    pub fn handle_packets<'a>(&mut self, packets: impl IntoIterator<Item = Packet<'a>>) -> Result {
        self.recordings.pass.listener.on_step(WorkStep::Other);
        let mut out = Delivery::new(&mut self.recordings);
        for packet in packets {
            self.readers.packet(&packet, &mut out)?;
        }
        out.flush()
    }

    /// Ends the capture: messages that are still missing count as lost. Returns the pass, the reports of all
    /// recordings, and the packets of unknown protocols.
    ///
    /// # Errors
    /// As [`Captures::handle_packets`].
    pub fn finish(mut self) -> Result<(Pass<L>, Vec<RecordingReport>, UnknownPackets)> {
        self.recordings.pass.listener.on_step(WorkStep::Other);
        self.readers.finish(&mut Delivery::new(&mut self.recordings))?;
        Ok(self.recordings.finish())
    }
}

/// Passes packets to the readers of their protocols.
struct Readers<L> {
    formats: Vec<PacketFormat<L>>,
    /// The packet readers, in the order of `formats`.
    list: Vec<Box<dyn PacketReader<L>>>,
    by_flow: FxHashMap<FlowKey, usize>,
}

impl<L: Listener> Readers<L> {
    fn new(is_requested: bool) -> Readers<L> {
        let formats = Vec::from(formats());
        let list = formats.iter().map(|format: &PacketFormat<L>| (format.reader)(is_requested)).collect();
        Readers { formats, list, by_flow: FxHashMap::default() }
    }

    fn packet<'a>(&mut self, packet: &Packet<'a>, out: &mut Delivery<'_, 'a, L>) -> Result {
        let segment = match packet.transport {
            Transport::Udp => None,
            Transport::Tcp(segment) => Some(segment),
        };
        let key = FlowKey { dst: packet.dst, src: segment.map(|_| packet.src) };
        let Some(flow) = self.flow(key, out) else { return Ok(()) };
        let Some(protocol) = out.flows[flow].protocol.or_else(|| self.recognise(packet, out)) else {
            out.count_unknown(flow, u64::from(segment.is_none() || !packet.payload.is_empty()));
            return Ok(());
        };
        out.flows[flow].protocol = Some(protocol);
        match segment {
            None => self.list[protocol].datagram(flow, packet, out),
            Some(segment) => self.list[protocol].segment(flow, packet, &segment, out),
        }
    }

    /// Index of a flow, which is added if it is new; `None` beyond the maximum number of flows.
    fn flow(&mut self, key: FlowKey, out: &mut Recordings<L>) -> Option<usize> {
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

    /// Identifies the protocol of a packet by its content. If `--protocol` names a protocol, only that one is
    /// considered, and only its framing is checked.
    #[cold]
    fn recognise(&self, packet: &Packet<'_>, out: &Recordings<L>) -> Option<usize> {
        let requested = out.pass.selection.protocol;
        let is_of = |format: &PacketFormat<L>| {
            let is_of = match packet.transport {
                Transport::Udp => format.is_datagram,
                Transport::Tcp(_) => format.is_stream,
            };
            requested.is_none_or(|requested| requested == format.protocol)
                && is_of(packet.payload, requested.is_some())
        };
        // A packet that fits two protocols belongs to the one that is later in the list.
        let found = self.formats.iter().rposition(is_of);
        found.filter(|_| packet.transport == Transport::Udp || !out.is_full())
    }

    /// Ends the capture: messages that are still missing count as lost.
    fn finish(&mut self, out: &mut Delivery<'_, '_, L>) -> Result {
        let known = |(flow, known): (usize, &Flow)| Some((flow, known.protocol?));
        let flows: Vec<(usize, usize)> = out.flows.iter().enumerate().filter_map(known).collect();
        for (flow, protocol) in &flows {
            self.list[*protocol].classify_flow(*flow, out)?;
        }
        for channel in 0..out.channels.len() {
            out.release_held(channel, None)?;
        }
        for (flow, protocol) in &flows {
            self.list[*protocol].finish_stream(*flow, out)?;
        }
        Ok(())
    }
}
