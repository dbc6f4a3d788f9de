//! The interface through which a capture uses a packet protocol.

use super::recordings::Delivery;
use crate::error::Result;
use crate::protocol_name::Protocol;
use crate::{Packet, Segment};

/// Functions that recognise and read the packets of a protocol.
pub(crate) struct PacketFormat<L> {
    pub(crate) protocol: Protocol,
    /// Returns whether a datagram belongs to the protocol, by its header or by all of its messages. If the
    /// second argument is true (`--protocol` names the protocol), only the framing is checked.
    pub(crate) is_datagram: fn(&[u8], bool) -> bool,
    /// Like `is_datagram`, for a TCP stream with these first bytes.
    pub(crate) is_stream: fn(&[u8], bool) -> bool,
    /// Creates a reader of one capture's packets. The argument is true if `--protocol` names the protocol.
    pub(crate) reader: fn(bool) -> Box<dyn PacketReader<L>>,
}

/// Reads the packets of one protocol in a capture: finds their channels and recordings.
///
/// `flow` is an index into the capture's flows, which include those of other protocols.
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

/// Returns the state of a reader's flow; creates it if it does not exist.
pub(crate) fn state_of<S: Default>(flows: &mut Vec<S>, flow: usize) -> &mut S {
    if flows.len() <= flow {
        flows.resize_with(flow + 1, S::default);
    }
    &mut flows[flow]
}
