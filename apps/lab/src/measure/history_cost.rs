//! What the shell's history of messages costs where it takes them in.

use super::{Lab, Prepared, Sample};
use crate::counted_history::MESSAGES;

/// Counted once, since every round would count the same.
pub(super) fn open(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let counted = [false, true].map(|keeps| lab.count_history(keeps));
    let [without, with] = match counted {
        [Ok(without), Ok(with)] => [without, with],
        _ if lab.options.stop.is_stopped() => anyhow::bail!("interrupted"),
        [Err(error), _] | [_, Err(error)] => return Ok(Prepared::Missing(format!("{error:#}"))),
    };
    let each = |counted: u64| counted as f64 / MESSAGES as f64;
    let mut samples = vec![
        Sample::new("deribit_receive_instructions", each(without)),
        Sample::new("deribit_history_cost", each(with)),
    ];
    Ok(Prepared::Ready(Box::new(move || Ok(std::mem::take(&mut samples)))))
}
