//! The interface of a packet protocol for captures.

use super::recordings::Delivery;
use crate::error::Result;
use crate::protocol_name::Protocol;
use crate::{Packet, Segment};

/// Recognition and reading of a protocol's packets.
pub(crate) struct PacketFormat<L> {
    pub(crate) protocol: Protocol,
    /// Returns whether a datagram must belong to the protocol: it has messages that only this protocol has.
    /// The second argument says that `--protocol` names it: then any datagram with possible messages belongs
    /// to it.
    pub(crate) is_datagram: fn(&[u8], bool) -> bool,
    /// The same for the first bytes of a TCP stream.
    pub(crate) is_stream: fn(&[u8], bool) -> bool,
    /// Creates a reader of one capture's packets; the argument says whether `--protocol` names the protocol.
    pub(crate) reader: fn(bool) -> Box<dyn PacketReader<L>>,
}

/// Reads the packets of one protocol in a capture: finds their channels and recordings.
///
/// Flows are counted from 0 over all protocols.
pub(crate) trait PacketReader<L> {
    /// Handles a datagram of a flow of this protocol.
    fn datagram<'a>(&mut self, flow: usize, packet: &Packet<'a>, out: &mut Delivery<'_, 'a, L>) -> Result;

    /// Handles a segment of a TCP stream of this protocol.
    fn segment(&mut self, _: usize, _: &Packet<'_>, _: &Segment, _: &mut Delivery<'_, '_, L>) -> Result {
        Ok(())
    }

    /// Handles, at the end of the capture, packets that wait for their flow to be identified.
    fn classify_flow(&mut self, _flow: usize, _out: &mut Delivery<'_, '_, L>) -> Result {
        Ok(())
    }

    /// Handles the held bytes of a TCP stream, after every channel has ended.
    fn finish_stream(&mut self, _flow: usize, _out: &mut Delivery<'_, '_, L>) -> Result {
        Ok(())
    }
}

/// The state of one of a reader's flows.
pub(crate) fn state_of<S: Default>(flows: &mut Vec<S>, flow: usize) -> &mut S {
    if flows.len() <= flow {
        flows.resize_with(flow + 1, S::default);
    }
    &mut flows[flow]
}
