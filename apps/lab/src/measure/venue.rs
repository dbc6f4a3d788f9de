//! A venue that runs beside whoever measures.

use tickpath_agent::{Agent, IdleStrategy, Runner, StopSignal, ThreadPlan};

use crate::context::Context;

/// Order of the agents' calls: answers leave before market data is published, as in the venue's own placement on one
/// thread.
pub(crate) const CYCLE: [usize; 4] = [0, 1, 0, 2];

/// Runs a venue's agents on the other core while `near` runs on this one; the signal is raised when they end.
pub(super) fn beside<T>(
    context: &Context,
    idle: IdleStrategy,
    agents: Vec<Box<dyn Agent>>,
    near: impl FnOnce(&StopSignal) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let plan = ThreadPlan {
        name: "venue".to_owned(),
        core: Some(context.far()?),
        idle,
        rehearse_interval: None,
        cycle: CYCLE.into(),
        agents,
    };
    let stop = StopSignal::new();
    let runner = Runner::start(vec![plan], context.clock, stop.clone())?;
    let measured = near(&stop);
    stop.stop();
    // An agent that failed is why whoever measures waited in vain.
    runner.join()?;
    measured
}
