//! The feed handler on real multicast lines in simulated time, with losses on line A, on line B and on both.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_feedhandler::LineReader;

mod channel;
mod damage;
mod duty_cycles;
mod losses;
mod snapshots;

/// Reading method of this suite; `lines_by_ring` runs the same tests with a packet ring.
const READER: LineReader = LineReader::Sockets;
