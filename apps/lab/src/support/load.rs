//! The load of `tickpath_matching::workload`, scaled to the effort of a run.

use tickpath_matching::workload::{Workload, WorkloadConfig};

use crate::context::Context;

/// Generates the load of a round; at full effort, it has `commands` commands.
pub(crate) fn workload(context: &Context, commands: usize) -> Workload {
    let full = WorkloadConfig::default();
    Workload::generate(&WorkloadConfig {
        open_order_count: context.effort.count(full.open_order_count as usize) as u32,
        command_count: context.effort.count(commands),
        ..full
    })
}
