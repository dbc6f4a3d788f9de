//! Instruction count of a venue that executes orders of a hundred clients, one of which may be stuck.

use tickpath_agent::{Invoker, TscClock};
use tickpath_exchange::Venue;

use super::prelude::*;
use crate::counted::CountedWork;
use crate::support::client_group::{self, ClientGroup};
use crate::support::venue::{CYCLE, Wait};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("hundred_clients_instructions", "instr").note(
            "instructions of the venue's agents for a round trip of hundred_clients and the hundredth's \
             order behind it, without those of the kernel, counted by callgrind over 2000 trips, venue and \
             clients on one thread",
        ),
        row("stuck_client_instructions", "instr")
            .note("the same while the hundredth is stuck")
            .limit("hundred_clients_instructions")
            .goal(Goal::RatioAtMost(1.0)),
    ],
    open,
)
.counting(&WORK)];

const WORK: CountedWork = CountedWork { names: &["crowd"], function: "*counted_turn*", run };

/// Two behaviours of the hundredth client; for each, the argument of [`run`] and the verb in messages.
const LAST: [[&str; 2]; 2] = [["reads", "reads"], ["stuck", "is stuck"]];
/// Number of counted round trips, and of warm-up round trips before them.
const TRIPS: usize = 2_000;
const WARM_UP: usize = 200;
/// Simulated time of one turn of the venue's agents.
const TURN_INTERVAL: Nanos = Nanos::from_micros(15);
/// Turns of the venue after each order of the last client: it reads the order in the first turn, and answers
/// it in the second.
const TURNS_AFTER: usize = 2;
/// Upper bound of the turns until the kernel has delivered the sent data over the loopback interface.
const TURNS_MAX: usize = 1_000_000;

/// Counts once, because the result is the same in each round.
fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let each = |[argument, verb]: [&str; 2]| -> anyhow::Result<f64> {
        let what = format!("a venue whose hundredth client {verb}");
        Ok(WORK.instructions(lab, what, argument, result_text(verb))? as f64 / TRIPS as f64)
    };
    let [reads, is_stuck] = LAST;
    Ok(once([each(reads)?, each(is_stuck)?]))
}

/// A venue in simulated time, on the clients' thread: it runs its turns while a client waits.
struct SteppedVenue {
    invoker: Invoker,
    now: Nanos,
    is_counted: bool,
}

/// The turn that callgrind counts; `WORK` selects this function by its unique name.
#[inline(never)]
fn counted_turn(invoker: &mut Invoker, now: Nanos) -> anyhow::Result<usize> {
    Ok(invoker.run_once(now)?)
}

impl SteppedVenue {
    fn turn(&mut self) -> anyhow::Result<()> {
        self.now = self.now + TURN_INTERVAL;
        if self.is_counted {
            counted_turn(&mut self.invoker, self.now)?;
        } else {
            self.invoker.run_once(self.now)?;
        }
        Ok(())
    }
}

impl Wait for SteppedVenue {
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

/// Runs in the process under callgrind; returns the text that `open` expects.
fn run(arguments: &[String]) -> anyhow::Result<String> {
    let last = LAST.iter().position(|[argument, _]| arguments.get(1).is_some_and(|it| it == argument));
    let Some(last) = last else { bail!("no client '{}'", arguments[1..].join(" ")) };
    let clock = TscClock::system();
    let Venue { agents, endpoints, view, .. } = client_group::venue(clock, TRIPS + WARM_UP)?;
    let mut invoker = Invoker::new("venue", agents, &CYCLE)?;
    invoker.start()?;
    let mut venue = SteppedVenue { invoker, now: clock.now(), is_counted: false };
    let mut client_group = ClientGroup::connect(endpoints.order_entry, last == 1, &view, &mut venue)?;
    let counters = &view.order_server;
    let mut before = 0;
    for trip in 0..WARM_UP + TRIPS {
        if trip == WARM_UP {
            venue.is_counted = true;
            before = counters.requests.read();
        }
        client_group.trade(trip, &mut venue)?;
        client_group.trade_last(venue.now())?;
        for _ in 0..TURNS_AFTER {
            venue.turn()?;
        }
    }
    client_group.check(&view)?;
    let requests = counters.requests.read() - before;
    ensure!(requests == 2 * TRIPS as u64, "{requests} requests were read in {TRIPS} round trips");
    venue.invoker.close();
    Ok(result_text(LAST[last][1]))
}

/// Returns the text that `run` returns on success.
fn result_text(verb: &str) -> String {
    format!("{TRIPS} round trips, the hundredth client {verb}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_work_gives_the_expected_result() {
        let run = |last: &str| run(&["crowd", last].map(str::to_owned));
        for [last, verb] in LAST {
            assert_eq!(run(last).unwrap(), result_text(verb));
        }
        assert!(run("other").unwrap_err().to_string().contains("'other'"));
    }
}
