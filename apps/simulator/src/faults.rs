//! Faults and other events that a seed decides to happen in a run.

use tickpath_simnet::HostId;
use tickpath_types::Nanos;

/// How bad a run may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultLevel {
    /// Every kind of fault that the seed calls for.
    #[default]
    Full,
    /// No faults at all.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEvent {
    /// The venue's process dies.
    KillVenue,
    /// The venue's machine loses power at once.
    CutPower,
    /// Power is lost after this number of further changes of its disk.
    CutPowerAfter(u64),
    /// The venue is asked to stop, and started again.
    StopVenue,
    /// A client's process dies.
    KillClient(usize),
    /// A feed handler's process dies.
    KillFeed(usize),
    /// The venue and a host cannot reach each other.
    Cut(HostId, Nanos),
    /// Everything that arrives is delayed, lost and so on by this much, of 8.
    Network(u64),
    /// The disk fails.
    Disk(DiskTrouble, Nanos),
    /// A part of the system gets no time.
    Starve(usize, Nanos),
    /// The clock of the venue's machine or a trader's is set, in nanoseconds to either side.
    StepClock(HostId, i64),
    /// This number of silent connections.
    Connects(u64, Nanos),
    /// An order of the administrator.
    Admin(u64),
    /// The administrator adds an instrument.
    AddInstrument(usize),
    /// The process of who reads drop copies dies.
    KillReader,
    /// A trader's process dies, or its machine loses power.
    KillTrader(usize),
    /// The operator stops a trader, and starts it again.
    StopTrader(usize),
    /// A trader gets no time.
    StallTrader(usize, Nanos),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskTrouble {
    /// Some writes do.
    Writes,
    /// Some syncs do.
    Syncs,
    /// There is no room.
    Full,
}
