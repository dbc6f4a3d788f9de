//! Faults and other events that a seed decides to happen in a run.

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

/// Something that is done to the system.
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
    /// The venue and a client cannot reach each other.
    CutClient(usize, Nanos),
    /// The venue and a feed handler cannot reach each other.
    CutFeed(usize, Nanos),
    /// Everything that arrives is delayed, lost and so on by this much, of 8.
    Network(u64),
    /// The disk fails.
    Disk(DiskTrouble, Nanos),
    /// A part of the system gets no time.
    Starve(usize, Nanos),
    /// The venue's clock is set, in nanoseconds to either side.
    StepClock(i64),
    /// This number of silent connections.
    Connects(u64, Nanos),
    /// An order of the administrator.
    Admin(u64),
    /// The administrator adds an instrument.
    AddInstrument(usize),
    /// The process of who reads drop copies dies.
    KillReader,
    /// The venue and who reads drop copies cannot reach each other.
    CutReader(Nanos),
    /// Something is done to a trader.
    Trader(usize, TraderFault),
}

/// How a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskTrouble {
    /// Some writes do.
    Writes,
    /// Some syncs do.
    Syncs,
    /// There is no room.
    Full,
}

/// Something that is done to a trader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraderFault {
    /// Its process dies.
    Kill,
    /// The operator stops it, and starts it again.
    Stop,
    /// The venue and it cannot reach each other.
    Cut(Nanos),
    /// It gets no time.
    Stall(Nanos),
    /// Its machine's clock is set, in nanoseconds to either side.
    StepClock(i64),
}
