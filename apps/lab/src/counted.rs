//! Work whose instructions are counted: this program runs itself under callgrind.
//!
//! Hardware counters are missing on many hosts, virtual ones above all, and other load disturbs them; a
//! simulator counts the same everywhere.

use std::ffi::OsString;
use std::fs;
use std::hint::black_box;
use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use tickpath_book::{BooksById, DirectBooks, Indexed, PlainBooks};
use tickpath_feed::{BookBuilder, UpdateListener};
use tickpath_sim::ItchDayConfig;
use tickpath_types::MarketUpdate;

use crate::counted_crowd;
use crate::counted_fanout;
use crate::counted_history;
use crate::day::DayOutcome;
use crate::itch_books;
use crate::measure::crowd::Last;

/// Which books a day goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedBooks {
    Fast,
    Plain,
}

/// What a pass over a day took, as callgrind has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    /// Conditional and indirect branches that its predictor got wrong.
    pub(crate) branch_misses: u64,
    /// Reads and writes that missed the first level of the data cache.
    pub(crate) first_level_misses: u64,
    /// And those that missed the last level.
    pub(crate) last_level_misses: u64,
}

/// Counts, and the caches that were simulated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) counts: Counts,
    pub(crate) caches: Vec<String>,
}

impl CountedBooks {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            CountedBooks::Fast => "fast",
            CountedBooks::Plain => "plain",
        }
    }
}

/// Takes every update. Were they nobody's, the compiler would leave out as much of making them as it can see through,
/// which is more of one kind of books than of the other.
struct Taken;

impl UpdateListener for Taken {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        black_box(update);
    }
}

/// The pass that is counted, by this name and no other.
#[inline(never)]
fn counted_pass<B: BooksById>(builder: &mut BookBuilder<B>, file: &[u8]) {
    itch_books::apply(builder, file, &mut Taken);
}

/// Names of what is counted, as callgrind matches them.
const COUNTED_PASS: &str = "*counted_pass*";
const COUNTED_TURN: &str = "*counted_turn*";
const COUNTED_RECEIVE: &str = "*counted_receive*";
const COUNTED_BROADCAST: &str = "*counted_broadcast*";
/// First argument of the work with a venue's clients; without it the work is a day's books.
const CROWD: &str = "crowd";
/// First argument of the work with a shell's link.
const HISTORY: &str = "history";
/// First argument of the work with a gateway's door.
const FANOUT: &str = "fanout";

/// Does the work that [`bench`](crate::bench) counts: called in a process of its own, which runs under callgrind,
/// with the arguments behind [`BenchOptions::counting_command`](crate::BenchOptions::counting_command).
///
/// Takes a venue through the orders of its clients, a shell's link or a gateway's clients through market data, or reads a day of ITCH from standard input; prints what it led to.
///
/// # Errors
/// The arguments are not those that `bench` gives, or the day cannot be read.
pub fn run_counted(arguments: &[String]) -> anyhow::Result<()> {
    if let [work, last] = arguments
        && work == CROWD
    {
        writeln!(std::io::stdout(), "{}", counted_crowd::run(last)?)?;
        return Ok(());
    }
    if let [work, keeps] = arguments
        && work == HISTORY
    {
        writeln!(std::io::stdout(), "{}", counted_history::run(keeps == counted_history::KEPT)?)?;
        return Ok(());
    }
    if let [work, clients] = arguments
        && work == FANOUT
    {
        writeln!(std::io::stdout(), "{}", counted_fanout::run(clients)?)?;
        return Ok(());
    }
    let [books, messages, symbols, live] = arguments else {
        bail!("this command is for `lab bench`, which gives it books, messages, symbols and live orders");
    };
    let config = ItchDayConfig {
        messages: messages.parse()?,
        symbols: symbols.parse()?,
        live: live.parse()?,
        seed: 0,
    };
    let mut file = Vec::new();
    std::io::stdin().lock().read_to_end(&mut file)?;
    let outcome = match books.as_str() {
        "fast" => outcome::<DirectBooks>(&config, &file),
        "plain" => outcome::<Indexed<PlainBooks>>(&config, &file),
        other => bail!("there are no books '{other}'"),
    };
    writeln!(std::io::stdout(), "{outcome}")?;
    Ok(())
}

fn outcome<B: BooksById>(config: &ItchDayConfig, file: &[u8]) -> String {
    let mut builder = itch_books::empty::<B>(config);
    counted_pass(&mut builder, file);
    let books = builder.books();
    words(builder.counters().messages, books.order_count(), books.state_hash())
}

fn words(messages: u64, live: u32, state_hash: u64) -> String {
    format!("{messages} messages, {live} live orders, {state_hash:#018x}")
}

/// Counts one pass over a day's file in a process of its own.
///
/// # Errors
/// Why there are no counts, with the remedy.
pub(crate) fn count(
    command: &[OsString],
    books: CountedBooks,
    with_caches: bool,
    config: &ItchDayConfig,
    expected: &DayOutcome,
    file: &[u8],
) -> anyhow::Result<Counted> {
    let sizes = [config.messages, u64::from(config.symbols), u64::from(config.live)];
    let mut arguments = vec![books.name().to_owned()];
    arguments.extend(sizes.map(|it| it.to_string()));
    let work = Work {
        counted: COUNTED_PASS,
        with_caches,
        arguments,
        input: file,
        expected: words(config.messages, expected.live, expected.state_hash),
    };
    work.count(command)
}

/// Counts the instructions of a venue for the orders of a hundred clients, in a process of its own.
///
/// # Errors
/// As [`count`].
pub(crate) fn count_crowd(command: &[OsString], last: Last) -> anyhow::Result<u64> {
    let work = Work {
        counted: COUNTED_TURN,
        with_caches: false,
        arguments: vec![CROWD.to_owned(), counted_crowd::name(last).to_owned()],
        input: &[],
        expected: counted_crowd::words(last),
    };
    Ok(work.count(command)?.counts.instructions)
}

/// Counts the instructions of a shell's link that takes market data in, with its history or without, in a process of its
/// own.
///
/// # Errors
/// As [`count`].
pub(crate) fn count_history(command: &[OsString], keeps: bool) -> anyhow::Result<u64> {
    let work = Work {
        counted: COUNTED_RECEIVE,
        with_caches: false,
        arguments: vec![HISTORY.to_owned(), counted_history::name(keeps).to_owned()],
        input: &[],
        expected: counted_history::words(keeps),
    };
    Ok(work.count(command)?.counts.instructions)
}

/// Counts the instructions of a gateway that tells so many clients what the market does, in a process of its own.
///
/// # Errors
/// As [`count`].
pub(crate) fn count_fanout(command: &[OsString], clients: usize) -> anyhow::Result<u64> {
    let work = Work {
        counted: COUNTED_BROADCAST,
        with_caches: false,
        arguments: vec![FANOUT.to_owned(), clients.to_string()],
        input: &[],
        expected: counted_fanout::words(clients),
    };
    Ok(work.count(command)?.counts.instructions)
}

/// What a process of its own is to do.
struct Work<'a> {
    /// The function that is counted, with what it calls.
    counted: &'static str,
    with_caches: bool,
    arguments: Vec<String>,
    input: &'a [u8],
    /// What it must print.
    expected: String,
}

impl Work<'_> {
    fn count(&self, command: &[OsString]) -> anyhow::Result<Counted> {
        let folder = tempfile::tempdir().context("callgrind needs a folder to write to")?;
        let profile = folder.path().join("callgrind.out");
        let mut out_file = OsString::from("--callgrind-out-file=");
        out_file.push(&profile);
        let mut valgrind = Command::new("valgrind");
        let toggle = format!("--toggle-collect={}", self.counted);
        valgrind.args(["--tool=callgrind", "-q"]).arg(toggle).arg(out_file);
        if self.with_caches {
            valgrind.args(["--cache-sim=yes", "--branch-sim=yes"]);
        }
        valgrind.args(command).args(&self.arguments);
        valgrind.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match valgrind.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("valgrind counts instructions, and it is not installed: apt-get install valgrind")
            }
            other => other.context("valgrind does not start")?,
        };
        // A child that ends early says why; that the rest did not fit into the pipe says less.
        let written = child.stdin.take().context("the pipe was asked for")?.write_all(self.input);
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "{}", last_line(&output.stderr, output.status));
        written.context("the input could not be handed over")?;
        let found = String::from_utf8_lossy(&output.stdout);
        ensure!(
            found.trim() == self.expected,
            "under callgrind the work ends as '{}', not '{}'",
            found.trim(),
            self.expected
        );
        let text = fs::read_to_string(&profile).context("callgrind left no profile")?;
        parse(&text).context("callgrind's profile cannot be read")
    }
}

fn last_line(stderr: &[u8], status: std::process::ExitStatus) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| format!("valgrind ended with {status}"), |line| format!("valgrind: {line}"))
}

/// The sums of a profile: `events:` names the columns of `summary:`, `desc:` the caches.
fn parse(profile: &str) -> anyhow::Result<Counted> {
    let line = |key: &str| profile.lines().find_map(|line| line.strip_prefix(key));
    let names = line("events:").context("no line 'events:'")?;
    let sums = line("summary:").or_else(|| line("totals:")).context("no line 'summary:'")?;
    let sums = sums.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let columns: Vec<(&str, u64)> = names.split_whitespace().zip(sums).collect();
    let sum = |wanted: &[&str]| -> u64 {
        columns.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, sum)| sum).sum()
    };
    let counts = Counts {
        instructions: sum(&["Ir"]),
        branch_misses: sum(&["Bcm", "Bim"]),
        first_level_misses: sum(&["D1mr", "D1mw"]),
        last_level_misses: sum(&["DLmr", "DLmw"]),
    };
    // Functions are found by their names.
    ensure!(counts.instructions > 0, "nothing was counted: was the program stripped of its symbols?");
    let caches = profile.lines().filter_map(|line| line.strip_prefix("desc: "));
    let caches = caches.filter(|words| words.starts_with("D1 cache:") || words.starts_with("LL cache:"));
    Ok(Counted { counts, caches: caches.map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_by_the_names_of_their_columns() {
        let profile = "version: 1\ndesc: I1 cache: 32768 B, 64 B, 8-way associative\n\
                       desc: D1 cache: 49152 B, 64 B, 12-way associative\n\
                       desc: LL cache: 268435456 B, 64 B, 16-way associative\n\
                       events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\
                       summary: 100 50 25 1 7 3 1 2 1 20 4 10 5\n";
        let counted = parse(profile).unwrap();
        let expected =
            Counts { instructions: 100, branch_misses: 9, first_level_misses: 10, last_level_misses: 3 };
        assert_eq!(counted.counts, expected);
        assert_eq!(counted.caches.len(), 2);
        let plain = parse("events: Ir\nsummary: 7\n").unwrap();
        assert_eq!(plain.counts, Counts { instructions: 7, ..Counts::default() });
    }

    #[test]
    fn what_is_no_profile_is_an_error() {
        for profile in ["", "events: Ir\n", "events: Ir\nsummary: x\n", "events: Ir\nsummary: 0\n"] {
            assert!(parse(profile).is_err(), "{profile:?}");
        }
    }

    #[test]
    fn only_the_bench_calls_the_counted_work() {
        assert!(run_counted(&[]).unwrap_err().to_string().contains("lab bench"));
    }
}
