//! The venue's own counters match the observations.

use super::Case;
use super::views::InstanceEnd;

pub(super) fn check(case: &Case<'_>) {
    // A crashed venue loses its counters.
    if case.views.instances.last().is_none_or(|instance| instance.end == InstanceEnd::Crashed) {
        return;
    }
    let commands = case.observed.log.commands.len() as u64;
    let events = case.truth.market.len() as u64;
    let expected = [
        ("order_server.commands", commands),
        ("journal.durable", commands),
        ("matcher.market_events", events),
        ("publisher.messages", events),
    ];
    for (name, expected) in expected {
        let found = case.observed.last.counters.iter().find(|(found, _)| found == name);
        if let Some((_, found)) = found {
            case.expect(*found == expected, || format!("{name} is {found}, and {expected} were observed"));
        }
    }
}
