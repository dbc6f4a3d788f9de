//! A replay of the log, from its beginning or from any snapshot, leads to the recorded states.

use std::collections::BTreeMap;

use tickpath_book::FastBooks;
use tickpath_exchange::{LogCommand, Replica};
use tickpath_journal::Snapshot;
use tickpath_matching::{Engine, Owner};
use tickpath_types::Sequence;

use super::Case;
use crate::VenueEvent;

pub(super) fn check(case: &Case<'_>) {
    let observed = case.observed;
    let engine = Engine::<FastBooks<Owner>>::new(&observed.setup.instruments, observed.setup.limits);
    match engine {
        Err(error) => case.fail(|| format!("the engine cannot be made: {error}")),
        Ok(mut engine) => {
            let mut events = Vec::new();
            observed.log.commands.iter().for_each(|command| command.apply(&mut engine, &mut events));
            let (found, expected) = (engine.state_hash(), observed.last.state_hash);
            case.expect(found == expected, || {
                format!(
                    "the log leads the engine to the state {found:016x}, and the venue's was {expected:016x}"
                )
            });
        }
    }
    let restored: Vec<(Sequence, Replica)> =
        observed.log.snapshots.iter().filter_map(|snapshot| restore(case, snapshot)).collect();
    let Some((_, first)) = restored.first() else { return };
    let Ok(replica) = Replica::new(first.definition().clone()) else { return };
    check_states(case, replica, restored);
}

/// Restores the replica of a snapshot; checks that its last command and state hash are the recorded ones.
fn restore(case: &Case<'_>, snapshot: &Snapshot) -> Option<(Sequence, Replica)> {
    let sequence = snapshot.sequence;
    match Replica::decode(&snapshot.payload) {
        Ok(replica) => {
            let found = (replica.last_command(), replica.state_hash());
            case.expect(found == (sequence, snapshot.state_hash), || {
                format!(
                    "snapshot {sequence} is of command {} and leads to the state {:016x}, not to {:016x}",
                    found.0, found.1, snapshot.state_hash
                )
            });
            Some((sequence, replica))
        }
        Err(error) => {
            case.fail(|| format!("snapshot {sequence} cannot be restored: {error}"));
            None
        }
    }
}

fn check_states(case: &Case<'_>, mut replica: Replica, restored: Vec<(Sequence, Replica)>) {
    let journal = &case.observed.log.commands;
    let recorded_hashes = recorded(case);
    check_recorded(case, &recorded_hashes, &replica);
    for command in journal {
        replica.apply(command);
        check_recorded(case, &recorded_hashes, &replica);
    }
    for (sequence, mut from) in restored {
        let rest: &[LogCommand] = journal.get(sequence.0 as usize..).unwrap_or_default();
        rest.iter().for_each(|command| from.apply(command));
        case.expect(from.state_hash() == replica.state_hash(), || {
            format!("from snapshot {sequence} on the log leads to another state than from its beginning")
        });
    }
}

fn check_recorded(case: &Case<'_>, recorded_hashes: &BTreeMap<Sequence, Vec<u64>>, replica: &Replica) {
    let sequence = replica.last_command();
    let Some(hashes) = recorded_hashes.get(&sequence) else { return };
    let found = replica.state_hash();
    for expected in hashes.iter().filter(|expected| **expected != found) {
        case.fail(|| {
            format!("after command {sequence} the state is {found:016x}, and {expected:016x} was recorded")
        });
    }
}

/// Returns the state hashes of snapshots and venue starts, by last command. Omits a venue start if a later
/// power loss may have removed its last command.
fn recorded(case: &Case<'_>) -> BTreeMap<Sequence, Vec<u64>> {
    let mut recorded_hashes: BTreeMap<Sequence, Vec<u64>> = BTreeMap::new();
    for snapshot in &case.observed.log.snapshots {
        recorded_hashes.entry(snapshot.sequence).or_default().push(snapshot.state_hash);
    }
    for event in &case.observed.venue {
        if let VenueEvent::Started { last, state_hash, .. } = event.value
            && !case.views.may_be_lost(event.at, last)
        {
            recorded_hashes.entry(last).or_default().push(state_hash);
        }
    }
    recorded_hashes
}
