//! The load of `tickpath_matching::workload`, as much of it as a run is to do.

use tickpath_matching::workload::{Workload, WorkloadConfig};

use crate::context::Context;

/// Of so many commands in a full round.
pub(crate) fn workload(context: &Context, commands: usize) -> Workload {
    let full = WorkloadConfig::default();
    Workload::generate(&WorkloadConfig {
        open_order_count: context.effort.count(full.open_order_count as usize) as u32,
        command_count: context.effort.count(commands),
        ..full
    })
}
