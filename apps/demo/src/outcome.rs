//! Results of a demonstration: reconciliation checks, timings, message totals and figures per participant.

use std::sync::PoisonError;

use tickpath_agent::{Drift, Host, Jitter, ThreadReport};
use tickpath_book::{BooksById, OrderBooks};
use tickpath_exchange::FinalEngine;
use tickpath_feed::{ArbiterCounters, MessageBooks};
use tickpath_feedhandler::{FinalFeed, ReadBy};
use tickpath_matching::Engine;
use tickpath_timing::Report;
use tickpath_trading::{Position, TraderSnapshot};
use tickpath_types::{BookHealth, InstrumentId, Nanos};

use crate::flow::FlowResult;
use crate::market::Market;
use crate::notes::{endpoints, idle_note};
use crate::retention::JournalSummary;
use crate::settings::DemoSettings;
use crate::watch::Watch;

/// The result of a reconciliation check, and the number of cases that it tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconciliationCheck {
    /// Name of the check.
    pub name: &'static str,
    /// True if the check passed, false if it failed; `None` if there was nothing to test.
    pub ok: Option<bool>,
    /// Number of cases that the check tested.
    pub exercised: u64,
    /// Description of the check and its findings.
    pub description: String,
}

/// Order counts, position and profit of one participant.
#[derive(Clone, Debug)]
pub struct Participant {
    /// Name of the participant.
    pub name: String,
    /// Number of orders and replacements that the participant sent.
    pub orders: u64,
    /// Number of the participant's executions.
    pub fills: u64,
    /// Total quantity of the executions.
    pub volume: u64,
    /// Position of the participant in each instrument.
    pub positions: Vec<i64>,
    /// Profit and loss in units of 10^-4; open positions are valued at the last mid price.
    pub pnl: i128,
    /// Number of orders that the participant's own risk checks refused.
    pub refused: u64,
}

/// Message totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Number of requests that the venue sequenced.
    pub requests: u64,
    /// Number of orders that the background or recorded flow entered, including replacements.
    pub source_orders: u64,
    /// Number of commands that the matcher applied.
    pub commands: u64,
    /// Number of messages that the matcher sent to clients.
    pub responses: u64,
    /// Number of market data messages.
    pub messages: u64,
    /// Number of market data packets on each of lines A and B.
    pub packets: u64,
    /// Number of executions.
    pub executions: u64,
    /// Number of retransmitted messages.
    pub retransmitted: u64,
}

/// The complete results of a demonstration.
pub struct Outcome {
    /// The reconciliation checks.
    pub checks: Vec<ReconciliationCheck>,
    /// The timing report.
    pub report: Report,
    /// Message totals.
    pub totals: Totals,
    /// Duration of the trading phase, without the drain after it.
    pub elapsed: Nanos,
    /// The participants.
    pub participants: Vec<Participant>,
    /// Counters of the feed's arbiter, which merges lines A and B.
    pub arbiter: ArbiterCounters,
    /// Packets dropped deliberately on lines A and B.
    pub injected: [u64; 2],
    /// Method by which the feed handler read the lines.
    pub read_by: ReadBy,
    /// Result of the recorded flow; `None` with background flow.
    pub flow: Option<FlowResult>,
    /// Final counters of the threads.
    pub threads: Vec<ThreadReport>,
    /// Ticks of the TSC clock per second.
    pub ticks_per_second: u64,
    /// Allocations in duty cycles after the market's warm-up, by agent. `None` if the program does not count
    /// them.
    pub allocations: Option<Vec<(&'static str, u64)>>,
    /// Description of the host.
    pub host: Host,
    /// Interruptions of a busy thread by the host, measured before the market started.
    pub jitter: Jitter,
    /// Drift of the TSC clock from the system clock.
    pub drift: Drift,
    /// Cost of one stamp, in nanoseconds.
    pub stamp_ns: f64,
    /// Market updates that the observing thread missed: open positions may be valued at outdated prices.
    pub missed_updates: u64,
    /// Summary of the venue's journal.
    pub journal: JournalSummary,
    /// Addresses for other clients, one per line.
    pub endpoints: Vec<String>,
    /// Idle strategy of the threads, and its cost.
    pub idle: String,
    /// The settings of the run.
    pub settings: DemoSettings,
}

impl Outcome {
    /// True when no check failed.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.ok != Some(false))
    }

    #[expect(clippy::too_many_arguments, reason = "what a run leaves behind")]
    pub(crate) fn of(
        mut market: Market,
        watch: Watch,
        settings: &DemoSettings,
        host: Host,
        jitter: Jitter,
        stamp_ns: f64,
        elapsed: Nanos,
        is_quiet: bool,
    ) -> anyhow::Result<Outcome> {
        let guests = market.guests();
        let (endpoints, idle) = (endpoints(&market, settings), idle_note(settings)?);
        market.stop.stop();
        let threads = market.runner.join()?;
        let drift = market.clock.drift();
        let now = market.clock.ticks();
        market.joiner.drain(&mut market.rings, usize::MAX, now);
        market.joiner.finish();
        let report = market.joiner.report();

        let read_by = market.feed.read_by.get().cloned();
        let read_by = read_by.ok_or_else(|| anyhow::anyhow!("the feed handler never opened its lines"))?;
        let feed = market.feed.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        let feed = feed.ok_or_else(|| anyhow::anyhow!("the feed handler left no books"))?;
        let snapshots =
            market.traders.iter().map(|trader| trader.view.snapshot()).collect::<Result<Vec<_>, _>>()?;
        let mut positions: Vec<Vec<Position>> =
            snapshots.iter().map(|snapshot| snapshot.positions.clone()).collect();
        positions.push(market.source.view.positions()?);
        let flow = market
            .source
            .flow
            .as_ref()
            .map(|flow| flow.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let unknown_fills = market.source.view.counters.unknown_fills.read();
        let mut checks = vec![
            books_equal(&market.venue.engine, &feed, is_quiet),
            positions_zero(&positions, market.venue.matcher.executions.read(), unknown_fills, guests),
            gaps_healed(&feed.arbiter, feed.worst_health()),
            hops_sum(&report),
        ];
        checks.extend(flow.as_ref().map(flow_executions));

        let venue = &market.venue;
        let totals = Totals {
            requests: venue.order_server.requests.read(),
            source_orders: market.source.view.counters.orders.read(),
            commands: venue.matcher.commands.read(),
            responses: venue.matcher.responses.read(),
            messages: venue.publisher.messages.read(),
            packets: venue.publisher.packets.read(),
            executions: venue.matcher.executions.read(),
            retransmitted: venue.publisher.retransmitted.read(),
        };
        let participants = participants(&market.traders, &snapshots, &market.source, &positions, &watch);
        let counters = &market.feed.counters;
        Ok(Outcome {
            checks,
            report,
            totals,
            elapsed,
            participants,
            arbiter: feed.arbiter,
            read_by,
            injected: [counters.injected_losses[0].read(), counters.injected_losses[1].read()],
            flow,
            allocations: watch.warm_allocations(&threads),
            threads,
            ticks_per_second: market.clock.calibration().ticks_per_second(),
            host,
            jitter,
            drift,
            stamp_ns,
            missed_updates: watch.lost_updates,
            journal: market.journal_retention.finish(&market.venue),
            endpoints,
            idle,
            settings: settings.clone(),
        })
    }
}

fn participants(
    traders: &[crate::market::TraderHandle],
    snapshots: &[TraderSnapshot],
    source: &crate::market::SourceHandle,
    positions: &[Vec<Position>],
    watch: &Watch,
) -> Vec<Participant> {
    let participant = |name: &str, orders, fills, refused, positions: &Vec<Position>| {
        let value = watch.value(positions);
        Participant {
            name: name.to_owned(),
            orders,
            fills,
            volume: value.volume,
            positions: positions.iter().map(Position::net_qty).collect(),
            pnl: value.pnl,
            refused,
        }
    };
    let mut list: Vec<Participant> = traders
        .iter()
        .zip(snapshots)
        .map(|(trader, TraderSnapshot { counters, positions, .. })| {
            let orders = counters.enters + counters.replaces;
            participant(trader.name, orders, counters.fills, counters.refused_risk, positions)
        })
        .collect();
    let counters = &source.view.counters;
    if let Some(positions) = positions.last() {
        list.push(participant(source.name, counters.orders.read(), counters.fills.read(), 0, positions));
    }
    list
}

/// Checks that the feed handler's books equal the venue's, in every level and queue.
fn books_equal(engine: &FinalEngine, feed: &FinalFeed, is_quiet: bool) -> ReconciliationCheck {
    let engine = engine.lock().unwrap_or_else(PoisonError::into_inner).take();
    let name = "books_equal";
    let Some(engine) = engine else {
        return ReconciliationCheck {
            name,
            ok: Some(false),
            exercised: 0,
            description: "the venue left no books".to_owned(),
        };
    };
    let engine: &Engine<_> = &engine;
    let (venue, built) = (engine.books(), feed.books.books());
    let missing = (engine.last_market().0 + 1).saturating_sub(feed.next_sequence.0);
    let is_complete = missing == 0;
    let is_equal = venue.state_hash() == built.state_hash();
    let orders = u64::from(venue.order_count());
    let mut description = format!(
        "the feed's books equal the venue's: {orders} orders at {} levels in {} books, each level and queue",
        venue.level_count(),
        venue.limits().max_instrument.0,
    );
    if !is_quiet {
        description.push_str("; the market did not come to rest");
    }
    if !is_complete {
        description.push_str(&format!(
            "; the venue published {} messages and the feed received {}",
            engine.last_market().0,
            feed.next_sequence.0 - 1
        ));
    } else if !is_equal {
        description.push_str(&format!("; they differ, first in {}", first_difference(venue, built)));
    }
    ReconciliationCheck {
        name,
        ok: Some(is_complete && is_equal && is_quiet),
        exercised: orders,
        description,
    }
}

/// Names the first instrument whose books differ.
fn first_difference<A: Copy>(venue: &impl OrderBooks<A>, built: &impl BooksById) -> String {
    let differs = |id: &u16| {
        tickpath_types::Side::BOTH.iter().any(|side| {
            let instrument = InstrumentId(*id);
            let mut ours =
                venue.orders(instrument, *side).map(|(_, order)| (order.id, order.price, order.qty));
            let mut theirs = built.orders(instrument, *side).map(|order| (order.id, order.price, order.qty));
            loop {
                match (ours.next(), theirs.next()) {
                    (None, None) => return false,
                    (a, b) if a != b => return true,
                    _ => {}
                }
            }
        })
    };
    (1..=venue.limits().max_instrument.0)
        .find(differs)
        .map_or_else(|| "no order".to_owned(), |id| format!("instrument {id}"))
}

/// Checks that the participants' positions in each instrument add up to zero.
fn positions_zero(
    positions: &[Vec<Position>],
    executions: u64,
    unknown_fills: u64,
    guests: u64,
) -> ReconciliationCheck {
    let instruments = positions.iter().map(Vec::len).max().unwrap_or(0);
    let sums: Vec<i64> = (0..instruments)
        .map(|index| positions.iter().filter_map(|own| own.get(index)).map(Position::net_qty).sum())
        .collect();
    let off = sums.iter().filter(|sum| **sum != 0).count();
    let mut description = format!(
        "positions sum to zero over all participants in each of {instruments} instruments, after {executions} executions"
    );
    if guests > 0 {
        // Guests' positions are unknown, and without them the other positions need not add up to zero.
        description =
            format!("{guests} guest(s) took part, whose positions are not known here, so no sum was checked");
    } else if off > 0 {
        description.push_str(&format!("; they do not in {off}"));
    }
    if unknown_fills > 0 {
        description.push_str(&format!("; {unknown_fills} executions could not be booked"));
    }
    let ok = (guests == 0 && (executions > 0 || off > 0)).then_some(off == 0 && unknown_fills == 0);
    ReconciliationCheck { name: "positions_zero", ok, exercised: executions, description }
}

/// Checks that every message lost on one line arrived on the other line or by retransmission.
fn gaps_healed(counters: &ArbiterCounters, worst: BookHealth) -> ReconciliationCheck {
    let exercised = counters.line_losses() + counters.gaps_opened;
    let is_recovered = counters.gaps_opened == counters.gaps_healed()
        && counters.messages_lost == 0
        && worst == BookHealth::Live;
    let description = format!(
        "{} messages lost on one line arrived on the other or by retransmission; of {} gaps the other line filled {}, \
         retransmission {}, and {} messages remained lost",
        counters.line_losses(),
        counters.gaps_opened,
        counters.gaps_healed_by_line,
        counters.gaps_healed_by_retransmission,
        counters.messages_lost,
    );
    let ok = (exercised > 0 || !is_recovered).then_some(is_recovered);
    ReconciliationCheck { name: "gaps_healed", ok, exercised, description }
}

/// Checks that the hops of each message add up to its span, in ticks.
fn hops_sum(report: &Report) -> ReconciliationCheck {
    let exercised: u64 = report.checks.iter().map(|check| check.messages).sum();
    let mismatches: u64 = report.checks.iter().map(|check| check.mismatches).sum();
    let holds = report.checks.iter().all(tickpath_timing::ReconciliationCheck::holds);
    let mut description =
        format!("the hops of each message add up to its span, to the tick, over {exercised} messages");
    if exercised == 0 {
        description = "no message has a stamp of every hop".to_owned();
    } else if !holds {
        description.push_str(&format!("; {mismatches} do not"));
    }
    ReconciliationCheck { name: "hops_sum", ok: (exercised > 0).then_some(holds), exercised, description }
}

/// Checks that the market repeated every eligible execution of the recording.
fn flow_executions(flow: &FlowResult) -> ReconciliationCheck {
    let eligible = flow.counts.executions.eligible + flow.counts.executions.eligible_synthesised;
    let mut description = format!(
        "{eligible} eligible executions of the recording must trade here as {} executions with the same resting orders, \
         at their prices and quantities; {} did and {} did not",
        flow.expected, flow.confirmed, flow.contradicted,
    );
    let is_exercised = eligible > 0 || flow.contradicted > 0;
    if !is_exercised {
        description = "the recording has no eligible execution".to_owned();
    }
    let ok = is_exercised.then_some(flow.confirmed == flow.expected && flow.contradicted == 0);
    ReconciliationCheck {
        name: "flow_executions",
        ok,
        exercised: flow.confirmed + flow.contradicted,
        description,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_gaps_and_suspect_books_fail() {
        let counters = |gaps_opened, gaps_healed_by_line, messages_lost| ArbiterCounters {
            gaps_opened,
            gaps_healed_by_line,
            messages_lost,
            ..ArbiterCounters::default()
        };
        let ok = |counters, worst| gaps_healed(&counters, worst).ok;
        assert_eq!(ok(counters(3, 3, 0), BookHealth::Live), Some(true));
        assert_eq!(ok(counters(0, 0, 0), BookHealth::Live), None, "nothing was put to the test");
        assert_eq!(ok(counters(3, 2, 0), BookHealth::Live), Some(false));
        assert_eq!(ok(counters(3, 3, 1), BookHealth::Live), Some(false));
        assert_eq!(ok(counters(0, 0, 0), BookHealth::Suspect), Some(false));
    }

    #[test]
    fn positions_that_do_not_sum_to_zero_fail() {
        let position = |qty| {
            let mut position = Position::default();
            let side = if qty > 0 { tickpath_types::Side::Buy } else { tickpath_types::Side::Sell };
            position.apply_fill(side, tickpath_types::Price(10_000), tickpath_types::Qty(100));
            vec![position]
        };
        let zero = |positions: [Vec<Position>; 2], executions, unknown, guests| {
            positions_zero(&positions, executions, unknown, guests).ok
        };
        assert_eq!(zero([position(1), position(-1)], 1, 0, 0), Some(true));
        assert_eq!(zero([position(1), position(1)], 1, 0, 0), Some(false));
        assert_eq!(
            zero([position(1), position(-1)], 1, 1, 0),
            Some(false),
            "an execution without a position"
        );
        assert_eq!(
            zero([position(1), position(-1)], 1, 0, 1),
            None,
            "guests keep their positions to themselves"
        );
        let description = |guests| positions_zero(&[position(1), position(1)], 1, 0, guests).description;
        assert!(description(0).contains("they do not in 1"), "{}", description(0));
        assert!(
            !description(1).contains("they do not") && description(1).contains("no sum was checked"),
            "{}",
            description(1)
        );
    }
}
