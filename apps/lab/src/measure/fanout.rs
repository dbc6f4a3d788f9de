//! What it costs a gateway to tell all clients what the market does.

use super::{Lab, Prepared, Sample};
use crate::counted_fanout::EVENTS;

/// Clients of the two runs.
const CLIENTS: [usize; 2] = [1, 16];

/// Counted once, since every round would count the same.
pub(super) fn open(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let [one, many] = match CLIENTS.map(|clients| lab.count_fanout(clients)) {
        [Ok(one), Ok(many)] => [one, many],
        _ if lab.options.stop.is_stopped() => anyhow::bail!("interrupted"),
        [Err(error), _] | [_, Err(error)] => return Ok(Prepared::Missing(format!("{error:#}"))),
    };
    let each = |counted: u64| counted as f64 / EVENTS as f64;
    let mut samples = vec![
        Sample::new("gateway_broadcast_instructions", each(one)),
        Sample::new("gateway_fanout_per_client", each(many)),
    ];
    Ok(Prepared::Ready(Box::new(move || Ok(std::mem::take(&mut samples)))))
}
