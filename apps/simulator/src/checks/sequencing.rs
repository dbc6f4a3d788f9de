//! Requests that one duty cycle drained together are sequenced by the kernel's receive time.

use tickpath_matching::CommandKind;
use tickpath_types::Sequence;

use super::{Case, requests};

pub(super) fn check(case: &Case<'_>) {
    // The problems are dropped: the `requests` checker reports them.
    let origins = requests::origins(case).0;
    let journal = &case.observed.log.commands;
    // The venue's own commands follow the requests of the same duty cycle.
    let key = |place: usize| {
        origins[place].as_ref().map_or((u64::MAX, None), |it| (it.kernel_ns, Some(journal[place].session())))
    };
    // Skip expiries: orders expire before other commands of the same time.
    let is_sorted = |place: &usize| journal[*place].engine_kind() != Some(&CommandKind::ExpireOrders);
    let places: Vec<usize> = (0..journal.len()).filter(is_sorted).collect();
    for pair in places.windows(2) {
        let (before, place) = (Sequence(pair[0] as u64 + 1), pair[1]);
        let sequence = Sequence(place as u64 + 1);
        let (Some(sequenced_before), Some(at)) = (case.views.time_of(before), case.views.time_of(sequence))
        else {
            continue;
        };
        let (a, b) = (key(pair[0]), key(place));
        let is_in_order = sequenced_before != at || a.0 < b.0 || a.0 == b.0 && (a.1 <= b.1 || b.1.is_none());
        case.expect(is_in_order, || {
            format!(
                "commands {before} and {sequence} were drained together at {} ns, and the later one came first: {a:?}, {b:?}",
                at.0
            )
        });
    }
}
