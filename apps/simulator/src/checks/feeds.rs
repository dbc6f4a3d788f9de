//! A feed handler says of each message what it does to the book, in order, and never claims a wrong book to be good, nor
//! one that a snapshot healed; in the end all books are the venue's.

use tickpath_types::{BookHealth, MarketUpdate, Sequence, UpdateKind};

use super::public_book::PublicBook;
use super::report::Report;
use super::{Case, final_state};
use crate::FeedLife;

pub(super) fn check(case: &Case<'_>, report: &mut Report) {
    let mut book = PublicBook::default();
    let expected: Vec<Option<MarketUpdate>> =
        case.truth.market.iter().map(|public| book.apply(&public.event)).collect();
    let displayed = final_state::displayed(case);
    for life in &case.observed.feeds {
        // Of a market that was in part taken back nothing can be said.
        if !case.views.may_be_unknown(life.started_at) {
            match (life.unseen, life.healed) {
                (0, 0) => check_updates(&expected, life, report),
                (0, _) => check_healed(case, &expected, life, report),
                _ => {}
            }
        }
        if life.ended_at.is_none() {
            check_end(case, life, &displayed, report);
        }
    }
}

/// Until messages are lost for good, every update is there and right.
fn check_updates(expected: &[Option<MarketUpdate>], life: &FeedLife, report: &mut Report) {
    let mut expected = expected.iter().flatten();
    let name = name(life);
    for (place, update) in life.updates.iter().enumerate() {
        match update.health() {
            BookHealth::Stale => return,
            // Who gave up before it knew of any instrument had nobody to tell it of; its count did.
            BookHealth::Suspect if place == 0 && life.lost > 0 => return,
            BookHealth::Suspect => {
                return report.say(|| format!("{name}: message {} contradicted its book", update.sequence));
            }
            BookHealth::Live | BookHealth::Recovering => {}
        }
        if update.kind() == Some(UpdateKind::Status) {
            continue;
        }
        let is = MarketUpdate { health: 0, ..*update };
        let should_be = expected.next();
        if should_be != Some(&is) {
            return report.say(|| format!("{name}: said {is:?}, and next is {should_be:?}"));
        }
    }
    if life.ended_at.is_none()
        && let Some(missing) = expected.next()
    {
        report.say(|| format!("{name}: said nothing of message {} and those after it", missing.sequence));
    }
}

/// Between the losses of a book every update of it is there and right: the first after a loss says where it goes on.
fn check_healed(case: &Case<'_>, expected: &[Option<MarketUpdate>], life: &FeedLife, report: &mut Report) {
    let name = name(life);
    for instrument in case.truth.table.iter() {
        let is_its = |update: &&MarketUpdate| update.instrument == instrument.id.0;
        let all: Vec<&MarketUpdate> = expected.iter().flatten().filter(is_its).collect();
        let mut next = None;
        for update in life.updates.iter().filter(is_its) {
            match (update.health(), update.kind()) {
                (BookHealth::Stale, _) => next = None,
                (BookHealth::Suspect, _) => {
                    return report.say(|| format!("{name}, healed: {instrument:?} contradicts its messages"));
                }
                (BookHealth::Live | BookHealth::Recovering, Some(UpdateKind::Status)) => {}
                (BookHealth::Live | BookHealth::Recovering, _) => {
                    let here = all.partition_point(|expected| expected.sequence < update.sequence);
                    let place = next.unwrap_or(here);
                    let is = MarketUpdate { health: 0, ..*update };
                    let should_be = all.get(place).copied();
                    if should_be != Some(&is) {
                        return report
                            .say(|| format!("{name}, healed: said {is:?}, and next is {should_be:?}"));
                    }
                    next = Some(place + 1);
                }
            }
        }
        if life.ended_at.is_none()
            && let Some(missing) = next.and_then(|next| all.get(next))
        {
            report.say(|| format!("{name}, healed: said nothing of message {}", missing.sequence));
        }
    }
}

fn check_end(case: &Case<'_>, life: &FeedLife, displayed: &[crate::DeliveredOrder], report: &mut Report) {
    let name = name(life);
    let end = Sequence(case.truth.market.len() as u64 + 1);
    report.expect(life.next == end, || {
        format!("{name}: waits for message {} in the end, and the log causes all up to {end}", life.next)
    });
    for (instrument, health) in life.health.iter().filter(|(id, _)| case.truth.table.get(*id).is_some()) {
        report.expect(*health == BookHealth::Live, || {
            format!("{name}: the book of instrument {instrument} is {health:?} in the end")
        });
    }
    if life.orders != displayed {
        let differing = life.orders.iter().zip(displayed).find(|(a, b)| a != b);
        report.say(|| {
            format!(
                "{name}: its books have {} orders and the venue's {}; the first that differ: {differing:?}",
                life.orders.len(),
                displayed.len()
            )
        });
    }
}

fn name(life: &FeedLife) -> String {
    format!("feed handler {} from {} ns on", life.handler, life.started_at.0)
}
