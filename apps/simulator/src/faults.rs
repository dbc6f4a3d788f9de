//! Faults and other events of a run, chosen by its seed.

use tickpath_simnet::HostId;
use tickpath_types::Nanos;

/// The intensity of faults in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultLevel {
    /// The faults that the seed selects.
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
    /// The venue's machine loses power after this number of further changes of its disk.
    CutPowerAfter(u64),
    /// The venue is stopped, and started again.
    StopVenue,
    /// A client's process is killed.
    KillClient(usize),
    /// A feed handler's process is killed.
    KillFeed(usize),
    /// The network between the venue and a host is cut for this duration.
    Cut(HostId, Nanos),
    /// The network delays, loses, and otherwise disturbs packets, at a level from 0 (no faults) to 8.
    Network(u64),
    /// The disk fails for this duration.
    Disk(DiskFailure, Nanos),
    /// The part with this index, such as an agent or a client, gets no CPU time for this duration.
    Starve(usize, Nanos),
    /// The clock of this machine is stepped by this number of nanoseconds, forwards or backwards.
    StepClock(HostId, i64),
    /// An unauthorised host opens this number of connections and sends nothing on them for this duration.
    Connects(u64, Nanos),
    /// The administrator sends a command, which these random bits select.
    Admin(u64),
    /// The administrator adds an instrument, by index among those that a run may add.
    AddInstrument(usize),
    /// The process of the drop copy reader is killed.
    KillReader,
    /// A trader's process is killed, or its machine loses power.
    KillTrader(usize),
    /// The operator stops a trader, and starts it again.
    StopTrader(usize),
    /// A trader gets no CPU time for this duration.
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
