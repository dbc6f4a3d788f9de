//! Instructions that a shell needs to receive market data, with and without its message history.

use std::thread;
use std::time::Duration;

use tickpath_agent::TscClock;
use tickpath_shell::{Link, ShellConfig, Standing, Way};

use super::prelude::*;
use crate::counted::CountedWork;
use crate::support::deribit_venue::{CHANGES, CHANNEL, Certificates, VenueEnd, key};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("deribit_receive_instructions", "instr").note(
            "instructions of the shell's link for a book change that it takes in over TLS, without its \
             history of messages, counted by callgrind",
        ),
        row("deribit_history_cost", "instr")
            .note("the same with the whole history of messages")
            .limit("deribit_receive_instructions")
            .goal(Goal::RatioAtMost(1.02))
            .reference("printing each message took 79% of the time"),
    ],
    open,
)
.counting(&WORK)];

const WORK: CountedWork = CountedWork { names: &["history"], function: "*counted_receive*", run };
/// Number of runs with history, and of runs without it. The lowest count of each is used, because the number
/// of socket reads depends on the other load of the host.
const COUNTS: usize = 3;

/// Number of counted and of warm-up subscriptions; each subscription has a separate stream of changes.
const ROUNDS: u64 = 8;
const WARM_UP: u64 = 1;
/// Number of counted messages.
const MESSAGES: u64 = ROUNDS * CHANGES;
/// Maximum number of turns of both ends until a condition holds; it is high, because the loopback interface
/// may deliver late.
const TURNS_MAX: u64 = 100_000_000;
/// Pause after an idle turn: the kernel delivers sent data within it, even on a busy host.
const DELIVERY: Duration = Duration::from_millis(2);

/// Counts before the rounds, because the result is the same in each.
fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut least = [u64::MAX; 2];
    for _ in 0..COUNTS {
        for (has_history, least) in [false, true].into_iter().zip(&mut least) {
            let what = format!("a shell that takes market data in, its history {},", name(has_history));
            *least = WORK.instructions(lab, what, name(has_history), result_text(has_history))?.min(*least);
        }
    }
    Ok(once(least.map(|counted| counted as f64 / MESSAGES as f64)))
}

/// The shell's link and the venue, which run in turns on one thread.
struct LinkAndVenue {
    link: Link,
    venue: VenueEnd,
    clock: TscClock,
    is_counted: bool,
}

/// The counted function. Callgrind finds it by this unique name.
#[inline(never)]
fn counted_receive(link: &mut Link) {
    link.poll();
}

/// Number of book changes received on the subscribed channel.
fn changes(link: &Link) -> u64 {
    link.feeds().get(CHANNEL).map_or(0, |feed| feed.count)
}

impl LinkAndVenue {
    fn poll_until(&mut self, mut is_done: impl FnMut(&Link) -> bool) -> anyhow::Result<()> {
        for _ in 0..TURNS_MAX {
            let before = changes(&self.link);
            if self.is_counted {
                counted_receive(&mut self.link);
            } else {
                self.link.poll();
            }
            if is_done(&self.link) {
                return Ok(());
            }
            self.venue.work(self.clock.now())?;
            // Instructions of idle turns are counted too. A pause for the kernel's delivery keeps them rare.
            if self.is_counted && changes(&self.link) == before {
                thread::sleep(DELIVERY);
            }
        }
        let note = self.link.next_note().unwrap_or_default();
        anyhow::bail!("the venue's end does not answer: {note}")
    }
}

/// Does the counted work; returns its result.
fn run(arguments: &[String]) -> anyhow::Result<String> {
    let has_history = arguments.get(1).is_some_and(|history| history == name(true));
    let certificates = Certificates::make()?;
    let venue = VenueEnd::open(&certificates)?;
    // A request timeout of 600 s, because everything is slow under callgrind.
    let text = venue.shell_config(&certificates, 600);
    let config: ShellConfig = tickpath_config::parse("shell.toml", &text)?;
    let url = config.checked_url()?;
    let mut link = Link::new(config, url, Some(key()));
    link.keep_history(has_history);
    link.connect();
    let mut pair = LinkAndVenue { link, venue, clock: TscClock::system(), is_counted: false };
    pair.poll_until(|link| link.standing() == Standing::Ready)?;
    for round in 0..WARM_UP + ROUNDS {
        pair.link.subscribe(CHANNEL).map_err(anyhow::Error::msg)?;
        pair.is_counted = round >= WARM_UP;
        pair.poll_until(|link| changes(link) == CHANGES)?;
        pair.is_counted = false;
        pair.link.unsubscribe(CHANNEL);
        pair.poll_until(|link| link.active_channels() == 0)?;
    }
    let received = pair.link.history().entries().filter(|entry| entry.way == Way::Received).count();
    ensure!((received as u64 > CHANGES) == has_history, "{received} messages are in the history");
    Ok(result_text(has_history))
}

/// Returns the command-line argument that switches the history on or off.
const fn name(has_history: bool) -> &'static str {
    if has_history { "on" } else { "off" }
}

/// Returns the expected result of a run.
fn result_text(has_history: bool) -> String {
    format!("{MESSAGES} messages taken in, history {}", name(has_history))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_work_gives_the_expected_result() {
        for has_history in [false, true] {
            let arguments = ["history", name(has_history)].map(str::to_owned);
            assert_eq!(run(&arguments).unwrap(), result_text(has_history));
        }
    }
}
