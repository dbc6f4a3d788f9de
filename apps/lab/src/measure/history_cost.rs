//! What the shell's history of messages costs where it takes them in.

use super::{Lab, Prepared, Sample};
use crate::counted_history::MESSAGES;

/// Counts of each, of which the least is taken: by how many reads the kernel gives the messages out depends on what else the
/// host does.
const COUNTS: usize = 3;

/// Counted before the rounds, since every round would count the same.
pub(super) fn open(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let mut least = [u64::MAX; 2];
    for _ in 0..COUNTS {
        for (keeps, least) in [false, true].into_iter().zip(&mut least) {
            match lab.count_history(keeps) {
                Ok(counted) => *least = counted.min(*least),
                Err(_) if lab.options.stop.is_stopped() => anyhow::bail!("interrupted"),
                Err(error) => return Ok(Prepared::Missing(format!("{error:#}"))),
            }
        }
    }
    let [without, with] = least;
    let each = |counted: u64| counted as f64 / MESSAGES as f64;
    let mut samples = vec![
        Sample::new("deribit_receive_instructions", each(without)),
        Sample::new("deribit_history_cost", each(with)),
    ];
    Ok(Prepared::Ready(Box::new(move || Ok(std::mem::take(&mut samples)))))
}
