//! Faults and other events that a seed decides to happen in a run.

use tickpath_simnet::HostId;
use tickpath_types::Nanos;

/// The intensity of faults in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultLevel {
    /// Every kind of fault that the seed selects.
    #[default]
    Full,
    /// No faults at all.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEvent {
    /// The venue's process is killed.
    KillVenue,
    /// The venue's machine loses power immediately.
    CutPower,
    /// Power is lost after this number of further changes of its disk.
    CutPowerAfter(u64),
    /// The venue is stopped, and started again.
    StopVenue,
    /// A client's process is killed.
    KillClient(usize),
    /// A feed handler's process is killed.
    KillFeed(usize),
    /// The connection between the venue and a host is cut.
    Cut(HostId, Nanos),
    /// Arriving packets are delayed, lost and so on, at this level of 8.
    Network(u64),
    /// The disk fails.
    Disk(DiskFailure, Nanos),
    /// A part of the system gets no CPU time.
    Starve(usize, Nanos),
    /// The clock of the venue's machine or a trader's is stepped, in nanoseconds in either direction.
    StepClock(HostId, i64),
    /// This number of silent connections.
    Connects(u64, Nanos),
    /// A command of the administrator.
    Admin(u64),
    /// The administrator adds an instrument.
    AddInstrument(usize),
    /// The process of the drop copy reader is killed.
    KillReader,
    /// A trader's process is killed, or its machine loses power.
    KillTrader(usize),
    /// The operator stops a trader, and starts it again.
    StopTrader(usize),
    /// A trader gets no CPU time.
    StallTrader(usize, Nanos),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskFailure {
    /// Some writes fail.
    Writes,
    /// Some syncs fail.
    Syncs,
    /// The disk is full.
    Full,
}
