//! The command line.

use crate::books::Limits;
use tickpath_types::InstrumentId;

pub const USAGE: &str = "usage: cargo bench -p tickpath-book --bench structures -- [--quick] [--day 500|8000] \
                         [--structure NAME]... [--rounds N] [--json FILE] [--markdown FILE]";

/// Rounds without `--rounds`.
const ROUNDS: u32 = 5;

/// What to do.
pub enum Command {
    /// Compare all on a tiny day.
    Test,
    /// Measure.
    Measure(Options),
    /// Take a day that lies in a file once, under callgrind.
    Count { structure: String, file: String, limits: Limits },
}

/// How to measure.
pub struct Options {
    pub is_quick: bool,
    pub rounds: u32,
    /// The part of its name that tells a day, if one was chosen.
    day: Option<String>,
    /// Empty for all.
    pub structures: Vec<String>,
    pub json: Option<String>,
    pub markdown: Option<String>,
}

impl Options {
    /// Whether a standard day is to be measured.
    pub fn is_chosen(&self, name: &str) -> bool {
        self.day.as_ref().is_none_or(|day| name.ends_with(&format!("-{day}")))
    }
}

/// Reads the arguments behind the program's name.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let arguments: Vec<String> = arguments.collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if arguments.first().is_some_and(|first| first == "--count") {
        return parse_count(&arguments[1..]);
    }
    // Whatever else is there is meant for the tests that run beside it.
    if has("--test") || !has("--bench") {
        return Ok(Command::Test);
    }
    parse_measure(arguments.into_iter()).map(Command::Measure)
}

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
    let [structure, file, instruments, orders, pages] = arguments else {
        return Err("--count is for the bench itself".to_owned());
    };
    let number = |text: &String| text.parse::<u32>().map_err(|_| format!("'{text}' is no number"));
    let max_instrument = InstrumentId(number(instruments)? as u16);
    let limits = Limits { max_instrument, max_orders: number(orders)?, max_pages: number(pages)? };
    Ok(Command::Count { structure: structure.clone(), file: file.clone(), limits })
}

/// The arguments that [`parse`] reads as [`Command::Count`].
pub fn count_arguments(structure: &str, file: &str, limits: Limits) -> Vec<String> {
    let Limits { max_instrument, max_orders, max_pages } = limits;
    ["--count", structure, file]
        .map(str::to_owned)
        .into_iter()
        .chain([u32::from(max_instrument.0), max_orders, max_pages].map(|number| number.to_string()))
        .collect()
}
