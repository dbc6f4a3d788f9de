//! A venue's instructions for the orders of a hundred clients, one of which may be stuck.

use anyhow::{bail, ensure};
use tickpath_agent::{Invoker, TscClock};
use tickpath_exchange::Venue;
use tickpath_types::Nanos;

use crate::measure::crowd::{self, Crowd, Last, Wait};
use crate::measure::venue::CYCLE;

/// Round trips that are counted, and before them.
pub(crate) const TRIPS: usize = 2_000;
const WARM_UP: usize = 200;
/// Simulated time of one turn of the venue's agents.
const TURN: Nanos = Nanos::from_micros(15);
/// Turns after each order of the last client: one reads, one answers.
const TURNS_AFTER: usize = 2;
/// Turns in which the kernel has delivered what was sent over the loopback interface.
const TURNS_MAX: usize = 1_000_000;

/// A venue that takes its turns while its clients wait, at simulated time.
struct Turns {
    invoker: Invoker,
    now: Nanos,
    is_counted: bool,
}

/// The turn that is counted, by this name and no other.
#[inline(never)]
fn counted_turn(invoker: &mut Invoker, now: Nanos) -> anyhow::Result<usize> {
    Ok(invoker.run_once(now)?)
}

impl Turns {
    fn turn(&mut self) -> anyhow::Result<()> {
        self.now = self.now + TURN;
        if self.is_counted {
            counted_turn(&mut self.invoker, self.now)?;
        } else {
            self.invoker.run_once(self.now)?;
        }
        Ok(())
    }
}

impl Wait for Turns {
    fn now(&self) -> Nanos {
        self.now
    }

    fn wait(&mut self, mut poll: impl FnMut(Nanos) -> anyhow::Result<bool>) -> anyhow::Result<()> {
        for _ in 0..TURNS_MAX {
            self.turn()?;
            if poll(self.now)? {
                return Ok(());
            }
        }
        bail!("the venue does not answer")
    }
}

/// The work that is counted; returns what it led to.
pub(crate) fn run(last: &str) -> anyhow::Result<String> {
    let known = [Last::Reads, Last::IsStuck].into_iter().find(|known| name(*known) == last);
    let Some(last) = known else { bail!("no client '{last}'") };
    let clock = TscClock::system();
    let Venue { agents, endpoints, view, .. } = crowd::venue(clock, TRIPS + WARM_UP)?;
    let mut invoker = Invoker::new("venue", agents, &CYCLE)?;
    invoker.start()?;
    let mut venue = Turns { invoker, now: clock.now(), is_counted: false };
    let mut crowd = Crowd::connect(endpoints.order_entry, last, &view, &mut venue)?;
    let counters = &view.order_server;
    let mut before = 0;
    for trip in 0..WARM_UP + TRIPS {
        if trip == WARM_UP {
            venue.is_counted = true;
            before = counters.requests.read();
        }
        crowd.trade(trip, &mut venue)?;
        crowd.trade_last(venue.now())?;
        for _ in 0..TURNS_AFTER {
            venue.turn()?;
        }
    }
    crowd.check(&view)?;
    let requests = counters.requests.read() - before;
    ensure!(requests == 2 * TRIPS as u64, "{requests} requests were read in {TRIPS} round trips");
    venue.invoker.close();
    Ok(words(last))
}

/// What the last client does, as arguments say it.
pub(crate) const fn name(last: Last) -> &'static str {
    match last {
        Last::Reads => "reads",
        Last::IsStuck => "stuck",
    }
}

/// The same in a sentence.
pub(crate) const fn verb(last: Last) -> &'static str {
    match last {
        Last::Reads => "reads",
        Last::IsStuck => "is stuck",
    }
}

/// What a run leads to.
pub(crate) fn words(last: Last) -> String {
    format!("{TRIPS} round trips, the hundredth client {}", verb(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_comes_to_what_is_expected_of_it() {
        for last in [Last::Reads, Last::IsStuck] {
            assert_eq!(run(name(last)).unwrap(), words(last));
        }
        assert!(run("other").unwrap_err().to_string().contains("'other'"));
    }
}
