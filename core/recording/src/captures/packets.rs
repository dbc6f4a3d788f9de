//! A protocol of packets, as captures need it.

use super::recordings::Delivery;
use crate::error::Result;
use crate::protocol_name::Protocol;
use crate::{Packet, Segment};

/// How packets of a protocol are recognised and read.
pub(crate) struct PacketFormat<L> {
    pub(crate) protocol: Protocol,
    /// Whether a datagram must be of it: it has messages that only this protocol has. The second
    /// argument says that `--protocol` names it: then any with messages that can be its.
    pub(crate) is_datagram: fn(&[u8], bool) -> bool,
    /// The same of the first bytes of a TCP stream.
    pub(crate) is_stream: fn(&[u8], bool) -> bool,
    /// A reader of one capture's packets; the argument says whether `--protocol` names the protocol.
    pub(crate) reader: fn(bool) -> Box<dyn PacketReader<L>>,
}

/// Reads the packets of one protocol in a capture: finds their channels and recordings, and takes their messages there.
///
/// Flows are counted from 0 over all protocols.
pub(crate) trait PacketReader<L> {
    /// Takes a datagram of a flow that is of this protocol.
    fn datagram<'a>(&mut self, flow: usize, packet: &Packet<'a>, out: &mut Delivery<'_, 'a, L>) -> Result;

    /// Takes a segment of a TCP stream that is of this protocol.
    fn segment(&mut self, _: usize, _: &Packet<'_>, _: &Segment, _: &mut Delivery<'_, '_, L>) -> Result {
        Ok(())
    }

    /// At the end of the capture: takes packets that wait for their flow to be known.
    fn settle_flow(&mut self, _flow: usize, _out: &mut Delivery<'_, '_, L>) -> Result {
        Ok(())
    }

    /// After that, with every channel at its end: takes what is held of a TCP stream.
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
