//! The command line of the bench.

use crate::books::Limits;
use tickpath_types::InstrumentId;

pub const USAGE: &str = "usage: cargo bench -p tickpath-flowgen --bench structures -- [--quick] [--day 500|8000] \
                         [--structure NAME]... [--rounds N] [--json FILE] [--markdown FILE]; --help says more";

/// Default of `--rounds`.
const ROUNDS: u32 = 5;

/// Help text, to which `main` appends the names of the structures.
pub const HELP: &str = "\
Data structures for order books: whole days of ITCH 5.0, made in memory, decoded into full order-by-order books of
each structure, which must agree on every level, quantity, order count and queue, and on the best prices after every
message. Prints for each structure nanoseconds a message (median, least and most of interleaved rounds), instructions,
mispredicted branches and cache misses a message (simulated by valgrind's callgrind on a smaller day, where it is
installed), and the most memory that it held.

Takes about half an hour on two cores, most of it for the day of 8,000 securities, and 3 GiB; with --quick about five
minutes and 1 GiB.

usage: cargo bench -p tickpath-flowgen --bench structures -- [OPTIONS]

  --quick           a tenth of each day
  --day 500|8000    one of the two days only: 20 million messages of 500 securities, or 50 million of 8,000
  --structure NAME  this structure only; may be repeated
  --rounds N        rounds of each day, 5 otherwise
  --json FILE       write the result as JSON
  --markdown FILE   write the result as Markdown
  --test            compare all structures with the reference model on tiny days and measure nothing (seconds)
  -h, --help        print this

structures: ";

/// A parsed command line.
pub enum Command {
    /// Print the help text.
    Help,
    /// Compare all structures with the reference model on tiny days.
    Test,
    /// Measure the chosen structures.
    Measure(Options),
    /// Process a day from a file once, under callgrind.
    Count { structure: String, file: String, limits: Limits },
}

/// Options of a measurement.
pub struct Options {
    pub is_quick: bool,
    pub rounds: u32,
    /// Suffix of the name of the standard day to measure; `None` for all days.
    day: Option<String>,
    /// Names of the chosen structures; empty for all.
    pub structures: Vec<String>,
    pub json: Option<String>,
    pub markdown: Option<String>,
}

impl Options {
    /// True if the standard day `name` is to be measured.
    pub fn is_chosen(&self, name: &str) -> bool {
        self.day.as_ref().is_none_or(|day| name.ends_with(&format!("-{day}")))
    }
}

/// Parses the arguments after the program's name.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let arguments: Vec<String> = arguments.collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if arguments.first().is_some_and(|first| first == "--count") {
        return parse_count(&arguments[1..]);
    }
    if has("--help") || has("-h") {
        return Ok(Command::Help);
    }
    // Without `--bench` or an option of [`OWN`], run as a test; any other options are for the test runner.
    let is_own = |argument: &String| OWN.contains(&argument.as_str());
    if has("--test") || !(has("--bench") || arguments.iter().any(is_own)) {
        return Ok(Command::Test);
    }
    parse_measure(arguments.into_iter()).map(Command::Measure)
}

/// Options that request a measurement.
const OWN: [&str; 6] = ["--quick", "--day", "--structure", "--rounds", "--json", "--markdown"];

fn parse_measure(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        is_quick: false,
        rounds: ROUNDS,
        day: None,
        structures: Vec::new(),
        json: None,
        markdown: None,
    };
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "--bench" => {}
            "--quick" => options.is_quick = true,
            "--day" => options.day = Some(day(value()?)?),
            "--structure" => options.structures.push(value()?),
            "--rounds" => options.rounds = value()?.parse().map_err(|_| "--rounds takes a number")?,
            "--json" => options.json = Some(value()?),
            "--markdown" => options.markdown = Some(value()?),
            other => return Err(format!("there is no option '{other}'")),
        }
    }
    if options.rounds == 0 {
        return Err("--rounds takes at least 1".to_owned());
    }
    Ok(options)
}

fn day(day: String) -> Result<String, String> {
    if ["500", "8000"].contains(&day.as_str()) { Ok(day) } else { Err("--day takes 500 or 8000".to_owned()) }
}

fn parse_count(arguments: &[String]) -> Result<Command, String> {
    let [structure, file, instruments, orders] = arguments else {
        return Err("--count is for the bench itself".to_owned());
    };
    let number = |text: &String| text.parse::<u32>().map_err(|_| format!("'{text}' is no number"));
    let max_instrument = InstrumentId(number(instruments)? as u16);
    let limits = Limits { max_instrument, max_orders: number(orders)? };
    Ok(Command::Count { structure: structure.clone(), file: file.clone(), limits })
}

/// Arguments that [`parse`] converts to [`Command::Count`].
pub fn count_arguments(structure: &str, file: &str, limits: Limits) -> Vec<String> {
    let Limits { max_instrument, max_orders } = limits;
    ["--count", structure, file]
        .map(str::to_owned)
        .into_iter()
        .chain([u32::from(max_instrument.0), max_orders].map(|number| number.to_string()))
        .collect()
}

/// Panics if a command line is parsed incorrectly. Part of the test run, as a bench has no unit tests.
pub fn check() {
    let parsed = |line: &str| parse(line.split_whitespace().map(str::to_owned));
    for line in ["--help --bench", "--help", "-h", "--quick -h --bench"] {
        assert!(matches!(parsed(line), Ok(Command::Help)), "{line}");
    }
    for line in ["--bench", "--quick", "--day 500 --rounds 3 --bench"] {
        assert!(matches!(parsed(line), Ok(Command::Measure(_))), "{line}");
    }
    for line in ["", "--nocapture --test-threads 1", "--test --bench"] {
        assert!(matches!(parsed(line), Ok(Command::Test)), "{line}");
    }
    for line in ["--fast --bench", "--quick --fast", "--rounds --bench", "--day 7", "--rounds 0"] {
        assert!(parsed(line).is_err(), "{line}");
    }
}
