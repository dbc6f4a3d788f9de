//! Counts instructions, mispredicted branches and cache misses. The bench runs itself under callgrind, which
//! counts only inside the functions named `measured_day`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tickpath_flowgen::ItchDayConfig;

use crate::books::Limits;
use crate::catalogue::{self, Entry};
use crate::day::Day;
use crate::options::count_arguments;

/// Simulated caches: size in bytes, ways, and line length in bytes. The first level is that of the measured
/// CPU. The last level is a core's private L2 cache of 2 MiB, since other load on the host shares the L3.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64"];

/// Number of messages that are counted in a full and in a quick run. Callgrind is about 100 times slower than
/// the CPU.
const COUNTED_MESSAGES: u64 = 1_000_000;
const QUICK_COUNTED_MESSAGES: u64 = 200_000;

/// CPU events per message, counted by callgrind.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub instructions: f64,
    pub mispredictions: f64,
    pub first_level_misses: f64,
    pub last_level_misses: f64,
}

/// Counts each structure's CPU events on a smaller day. Returns the counts and that day's settings; no counts
/// and `None` without valgrind.
pub fn count_all(
    entries: &[&Entry],
    name: &'static str,
    config: ItchDayConfig,
    is_quick: bool,
) -> (Vec<Option<Counts>>, Option<ItchDayConfig>) {
    if !is_installed() {
        eprintln!("structures: no instructions and misses without valgrind: apt-get install valgrind");
        return (vec![None; entries.len()], None);
    }
    let messages = if is_quick { QUICK_COUNTED_MESSAGES } else { COUNTED_MESSAGES };
    let config = config.scaled((config.messages / messages) as u32);
    let day = Day::make(name, config);
    let folder = Scratch::new();
    let file = folder.0.join("day.itch");
    if let Err(error) = std::fs::write(&file, &day.bytes) {
        eprintln!("structures: no instructions and misses: cannot write {}: {error}", file.display());
        return (vec![None; entries.len()], None);
    }
    let counted = |entry: &&Entry| {
        eprintln!("structures: {name}, {} messages under callgrind: {}", day.messages, entry.name);
        let totals = count(entry, &folder.0, &file, day.limits);
        totals.map_err(|error| eprintln!("structures: {}: {error}", entry.name)).ok()
    };
    let totals = entries.iter().map(counted);
    let by_message = |totals: Totals| totals.by_message(day.messages);
    (totals.map(|totals| totals.map(by_message)).collect(), Some(config))
}

/// Runs a structure over the day in `file`; called in the child process under callgrind.
pub fn run_counted(structure: &str, file: &str, limits: Limits) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    (catalogue::by_name(structure)?.open)(limits).run(&bytes);
    Ok(())
}

fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn count(entry: &Entry, folder: &Path, file: &Path, limits: Limits) -> Result<Totals, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let out = folder.join(entry.name);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes", "--collect-atstart=no"])
        .args(CACHES)
        .arg("--toggle-collect=*measured_day*")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(count_arguments(entry.name, &file.to_string_lossy(), limits))
        .output()
        .map_err(|error| format!("cannot start valgrind: {error}"))?;
    if !output.status.success() {
        return Err(format!("valgrind failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = std::fs::read_to_string(&out).map_err(|error| format!("callgrind wrote nothing: {error}"))?;
    Totals::parse(&text).ok_or_else(|| "callgrind's file has no totals".to_owned())
}

/// Totals of all counted events, by callgrind's event names.
struct Totals(Vec<(String, u64)>);

impl Totals {
    fn parse(text: &str) -> Option<Totals> {
        let words = |line: &str| {
            let rest = text.lines().find_map(|candidate| candidate.strip_prefix(line))?;
            Some(rest.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let sums = words("totals:")?.into_iter().map(|sum| sum.parse().ok()).collect::<Option<Vec<u64>>>()?;
        Some(Totals(words("events:")?.into_iter().zip(sums).collect()))
    }

    fn sum(&self, events: &[&str]) -> u64 {
        self.0.iter().filter(|(event, _)| events.contains(&event.as_str())).map(|(_, sum)| sum).sum()
    }

    fn by_message(&self, messages: u64) -> Counts {
        let each = |events: &[&str]| self.sum(events) as f64 / messages as f64;
        Counts {
            instructions: each(&["Ir"]),
            mispredictions: each(&["Bcm", "Bim"]),
            first_level_misses: each(&["D1mr", "D1mw"]),
            last_level_misses: each(&["DLmr", "DLmw"]),
        }
    }
}

/// A temporary folder of this process, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let folder = std::env::temp_dir().join(format!("tickpath-structures-{}", std::process::id()));
        // If the folder cannot be created, writing to it reports an error.
        let _ = std::fs::create_dir_all(&folder);
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The folder is temporary, and a failed removal cannot be handled.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
