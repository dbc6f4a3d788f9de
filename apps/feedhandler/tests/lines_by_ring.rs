//! The suite `lines` with a packet ring, if the process may use one.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_feedhandler::LineReader;

#[path = "lines/channel.rs"]
mod channel;
#[path = "lines/damage.rs"]
mod damage;
#[path = "lines/duty_cycles.rs"]
mod duty_cycles;
#[path = "lines/losses.rs"]
mod losses;
#[path = "lines/snapshots.rs"]
mod snapshots;

const READER: LineReader = LineReader::Ring;
