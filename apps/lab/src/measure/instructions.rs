//! Instructions per message of the books, beside their plain twin.

use super::{Lab, Prepared, Sample};
use crate::context::Effort;
use crate::counted::CountedBooks;
use crate::day::StandardDay;

/// Counted once, since every round would count the same.
pub(super) fn open(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    // A message needs as many instructions in a small day as in a whole one: each security's book is the same.
    let day = StandardDay::itch_8000(Effort::Smoke);
    let each = |books| -> anyhow::Result<f64> {
        let counted = lab.count(&day, books, false)?;
        Ok(counted.counts.instructions as f64 / day.config.messages as f64)
    };
    let counted = each(CountedBooks::Plain).and_then(|plain| Ok((plain, each(CountedBooks::Fast)?)));
    let (plain, fast) = match counted {
        Ok(counted) => counted,
        Err(_) if lab.options.stop.is_stopped() => anyhow::bail!("interrupted"),
        Err(error) => return Ok(Prepared::Missing(format!("{error:#}"))),
    };
    let mut samples = vec![Sample::new("plain_instructions", plain), Sample::new("book_instructions", fast)];
    Ok(Prepared::Ready(Box::new(move || Ok(std::mem::take(&mut samples)))))
}
