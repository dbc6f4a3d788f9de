//! Instructions per message of the fast books and of their reference model.

use super::prelude::*;
use crate::context::Effort;
use crate::counted_books::{self, FAST, REFERENCE};
use crate::day::StandardDay;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("plain_instructions", "instr").note(
            "instructions a message of the reference model, ordered maps, on the same file and by the same driver \
             as book_instructions",
        ),
        row("book_instructions", "instr")
            .note(
                "instructions a message into full books and out of them as an update, with framing, decoding \
                 and the index of orders in both figures, counted by callgrind on itch-8000-smoke (80 k \
                 messages), where a symbol's book is as in the whole day; a ratio of 0.2 is -80%",
            )
            .limit("plain_instructions")
            .goal(Goal::RatioAtMost(0.2))
            .reference("a C++ NYSE feed handler -15% from one version to the next")
            .not_judged(
                "the limit is a reference model that does not aim at speed, and no limit of the host",
            ),
    ],
    open,
)
.counting(&counted_books::WORK)];

/// Counts once, since every round would count the same.
fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    // The number of instructions per message does not depend on the size of the day, because the books of all
    // securities are alike.
    let day = StandardDay::itch_8000(Effort::Smoke);
    let each = |books| -> anyhow::Result<f64> {
        let counted = counted_books::count(lab, &day, books, false)?;
        Ok(counted.instructions as f64 / day.config.messages as f64)
    };
    Ok(once([each(REFERENCE)?, each(FAST)?]))
}
