//! The answers of the admin socket.

use serde_json::{Value, json};
use tickpath_admin::error_answer;
use tickpath_agent::Counter;
use tickpath_types::{InstrumentTable, Price, TradingState};
use tickpath_venue::day::state_of;
use tickpath_venue::{AdminOutcome, UserLimits, VenueView};

/// The answer to `status`: state and trades of each instrument, and the counters by name.
#[must_use]
pub fn status(view: &VenueView, instruments: &InstrumentTable) -> Value {
    let server = &view.order_server;
    let mut status = json!({
        "ok": true,
        "is_killed": server.is_killed.read() != 0,
        "is_draining": server.is_draining.read() != 0,
        "phases": phases(view, instruments),
        "market": market(view, instruments),
        "users": view.users.len(),
        "users_connected": view.users.iter().filter(|user| user.is_connected.read() != 0).count(),
        "drop_copy_has_failed": view.drop_copy.has_failed.read() != 0,
        "snapshots_are_behind": view.market_recovery.is_behind.read() != 0,
    });
    for (name, counter) in counters(view) {
        status[name] = counter.read().into();
    }
    status
}

/// Returns the venue's counters with their names.
fn counters(view: &VenueView) -> impl Iterator<Item = (&'static str, &Counter)> {
    let VenueView { order_server, matcher, publisher, journal, drop_copy, market_recovery, .. } = view;
    let order_path = order_server.named().chain(matcher.named()).chain(publisher.named());
    order_path.chain(journal.named()).chain(drop_copy.named()).chain(market_recovery.named())
}

/// Name of each instrument's trading state, by symbol.
fn phases(view: &VenueView, instruments: &InstrumentTable) -> Value {
    let name = |state| match state {
        TradingState::Halted => "halted",
        TradingState::QuotationOnly => "auction",
        TradingState::Paused => "paused",
        TradingState::Trading => "trading",
    };
    let phase = |instrument: &tickpath_types::Instrument| {
        (instrument.symbol.to_string(), name(state_of(&view.states, instrument.id)).into())
    };
    Value::Object(instruments.iter().map(phase).collect())
}

/// Trade totals and last price of each instrument since the venue's start, by symbol.
fn market(view: &VenueView, instruments: &InstrumentTable) -> Value {
    let trades = |instrument: &tickpath_types::Instrument| {
        let totals = view.trades.get(usize::from(instrument.id.0))?;
        let last = totals.last().map(|price| price.to_string());
        let totals = json!({ "last": last, "volume": totals.volume.read(), "trades": totals.count.read() });
        Some((instrument.symbol.to_string(), totals))
    };
    Value::Object(instruments.iter().filter_map(trades).collect())
}

/// The answer to `users`: state, counters and limits of each user.
pub(super) fn users(view: &VenueView) -> Value {
    let users: Vec<Value> = view
        .users
        .iter()
        .map(|user| {
            json!({
                "name": user.name(),
                "is_connected": user.is_connected.read() != 0,
                "is_killed": user.is_killed.read() != 0,
                "logins": user.logins.read(),
                "wrong_passwords": user.wrong_passwords.read(),
                "requests_refused": user.requests_refused.read(),
                "limits": limits(&user.limits.read()),
            })
        })
        .collect();
    json!({ "ok": true, "users": users })
}

/// A user's limits under their configuration names; `null` for no limit.
fn limits(limits: &UserLimits) -> Value {
    let UserLimits { rate, open_orders, order_qty, order_notional } = *limits;
    let notional = |limit| Price(i64::try_from(limit).unwrap_or(i64::MAX)).to_string();
    json!({
        "messages_per_second": rate.map(|rate| rate.per_second),
        "burst": rate.map(|rate| rate.burst),
        "open_orders": open_orders,
        "order_qty": order_qty.map(|limit| limit.0),
        "order_notional": order_notional.map(notional),
    })
}

/// The answer to an executed command.
pub(super) fn outcome(outcome: AdminOutcome) -> Value {
    match outcome {
        AdminOutcome::Done { commands } => json!({ "ok": true, "commands": commands }),
        AdminOutcome::UnknownUser => error_answer("no such user: see users"),
        AdminOutcome::NotConnected => error_answer("the user is not connected"),
        AdminOutcome::Refused(refusal) => error_answer(&refusal.to_string()),
    }
}

/// The answer to `reload-users`: the names of the added users.
pub(super) fn added(names: &[String], commands: u32) -> Value {
    json!({ "ok": true, "commands": commands, "added": names })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_named_counter_is_shown_once() {
        let view = VenueView::default();
        (1..).zip(counters(&view)).for_each(|(count, (_, counter))| counter.set(count));
        view.market_recovery.is_behind.set(1);
        let status = status(&view, &InstrumentTable::new(&[]));
        for (count, (name, _)) in (1..).zip(counters(&view)) {
            assert_eq!(status[name], count, "{name}, and no name is used twice");
        }
        assert_eq!((&status["snapshots_are_behind"], &status["ok"]), (&true.into(), &true.into()));
        assert_eq!(view.market_recovery.glimpse_slow.read(), status["glimpse_slow"]);
        assert_eq!(view.publisher.requests_limited.read(), status["retransmit_limited"]);
        assert_eq!(view.drop_copy.logins_refused.read(), status["drop_copy_refused"]);
    }

    #[test]
    fn the_page_lists_exactly_the_fields_of_the_status() {
        let page = include_str!("../../../../docs/admin.md");
        let table = page.split("\n## ").find_map(|section| section.strip_prefix("Status\n")).unwrap();
        let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
        let documented: BTreeSet<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        let status = status(&VenueView::default(), &InstrumentTable::new(&[]));
        let fields = status.as_object().unwrap().keys().map(String::as_str);
        // Every answer has `ok`, so docs/admin.md omits it. The socket, not `status`, adds `admin_refused`.
        let answered: BTreeSet<&str> = fields.filter(|name| *name != "ok").chain(["admin_refused"]).collect();
        assert_eq!(documented, answered);
    }
}
