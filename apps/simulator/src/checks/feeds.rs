//! A feed handler reports the effect of each message on its book, in order. It never reports a wrong book as
//! good, even one recovered from a snapshot. In the end all books equal the venue's.

use tickpath_book::Order;
use tickpath_types::{BookHealth, MarketUpdate, Sequence, UpdateKind};

use super::public_book::PublicBook;
use super::{Case, final_state};
use crate::FeedInstance;

pub(super) fn check(case: &Case<'_>) {
    let mut book = PublicBook::default();
    let expected: Vec<Option<MarketUpdate>> =
        case.truth.market.iter().map(|public| book.apply(&public.event)).collect();
    let displayed = final_state::displayed(case);
    for instance in &case.observed.feeds {
        let name = format!("feed handler {} from {} ns on", instance.handler, instance.started_at.0);
        case.about(if instance.recovered == 0 { name.clone() } else { format!("{name}, recovered") });
        // Skip a handler that may have received messages about commands that the log lost.
        if !case.views.may_be_unknown(instance.started_at) {
            match (instance.unrecorded, instance.recovered) {
                (0, 0) => check_updates(case, &expected, instance),
                (0, _) => check_recovered(case, &expected, instance),
                _ => {}
            }
        }
        if instance.unrecorded == 0 && instance.updates.last().is_some_and(|update| !update.ends_packet()) {
            case.fail(|| "the last packet has no last update".to_owned());
        }
        if instance.ended_at.is_none() {
            case.about(name);
            check_end(case, instance, &displayed);
        }
    }
}

/// Until messages are permanently lost, every update is present and correct.
fn check_updates(case: &Case<'_>, expected: &[Option<MarketUpdate>], instance: &FeedInstance) {
    let mut expected = expected.iter().flatten();
    for (place, update) in instance.updates.iter().enumerate() {
        match update.health() {
            BookHealth::Stale => return,
            // Only the counter `lost` shows a loss from before the feed handler knew any instrument.
            BookHealth::Suspect if place == 0 && instance.lost > 0 => return,
            BookHealth::Suspect => {
                return case.fail(|| format!("message {} contradicted its book", update.sequence));
            }
            BookHealth::Live | BookHealth::Recovering => {}
        }
        if update.kind() == Some(UpdateKind::Status) {
            continue;
        }
        let actual = MarketUpdate { health: 0, has_more: 0, ..*update };
        let next_expected = expected.next();
        if next_expected != Some(&actual) {
            return case.fail(|| format!("published {actual:?}, and next is {next_expected:?}"));
        }
    }
    if instance.ended_at.is_none()
        && let Some(missing) = expected.next()
    {
        case.fail(|| format!("published nothing for message {} and those after it", missing.sequence));
    }
}

/// Between message losses, a book's updates are complete and correct. After a loss, they may resume at any
/// message.
fn check_recovered(case: &Case<'_>, expected: &[Option<MarketUpdate>], instance: &FeedInstance) {
    for instrument in case.truth.table.iter() {
        let is_its = |update: &&MarketUpdate| update.instrument == instrument.id.0;
        let all: Vec<&MarketUpdate> = expected.iter().flatten().filter(is_its).collect();
        let mut next = None;
        for update in instance.updates.iter().filter(is_its) {
            match (update.health(), update.kind()) {
                (BookHealth::Stale, _) => next = None,
                (BookHealth::Suspect, _) => {
                    return case.fail(|| format!("{instrument:?} contradicts its messages"));
                }
                (BookHealth::Live | BookHealth::Recovering, Some(UpdateKind::Status)) => {}
                (BookHealth::Live | BookHealth::Recovering, _) => {
                    let here = all.partition_point(|expected| expected.sequence < update.sequence);
                    let place = next.unwrap_or(here);
                    let actual = MarketUpdate { health: 0, has_more: 0, ..*update };
                    let next_expected = all.get(place).copied();
                    if next_expected != Some(&actual) {
                        return case.fail(|| format!("published {actual:?}, and next is {next_expected:?}"));
                    }
                    next = Some(place + 1);
                }
            }
        }
        if instance.ended_at.is_none()
            && let Some(missing) = next.and_then(|next| all.get(next))
        {
            case.fail(|| format!("published nothing for message {}", missing.sequence));
        }
    }
}

fn check_end(case: &Case<'_>, instance: &FeedInstance, displayed: &[Order<()>]) {
    let end = Sequence(case.truth.market.len() as u64 + 1);
    case.expect(instance.next == end, || {
        format!("waits for message {} at the end, and the log causes all up to {end}", instance.next)
    });
    for (instrument, health) in instance.health.iter().filter(|(id, _)| case.truth.table.get(*id).is_some()) {
        case.expect(*health == BookHealth::Live, || {
            format!("the book of instrument {instrument} is {health:?} at the end")
        });
    }
    if instance.orders != displayed {
        let differing = instance.orders.iter().zip(displayed).find(|(a, b)| a != b);
        case.fail(|| {
            let (found, expected) = (instance.orders.len(), displayed.len());
            format!("its books have {found} orders and the venue's {expected}; the first that differ: {differing:?}")
        });
    }
}
