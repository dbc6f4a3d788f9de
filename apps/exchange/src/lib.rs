//! The venue: order server, sequencer, matcher, publisher and retransmission server.
