//! The files of the standard days: generated once and cached.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tempfile::NamedTempFile;
use tickpath_agent::StopSignal;
use tickpath_config::{folder_of, print_stderr, print_stderr_part};
use tickpath_flowgen::ItchDay;
use xxhash_rust::xxh3::xxh3_64;

use crate::day::StandardDay;

/// Number of frames generated between two progress reports and checks of the stop signal.
const FRAMES: usize = 1 << 16;
/// Estimated bytes of a message with its length prefix; the buffer grows if needed.
const FRAME_LEN: usize = 32;
/// Age at which a partial file counts as abandoned: the process that generates a day writes to it every
/// second.
const UNFINISHED_AGE: Duration = Duration::from_secs(600);
const UNFINISHED: &str = ".unfinished";

/// A day's bytes, and the location of its file.
pub(crate) struct DayFile {
    pub(crate) bytes: Vec<u8>,
    /// Path of the file, or the reason why there is none.
    pub(crate) cached: Result<PathBuf, String>,
}

/// Reads a day from the cache; generates and caches a missing or damaged day.
///
/// A day that cannot be cached is still generated. Any number of processes may load days concurrently: each
/// writes a separate file and moves it into place when it is complete.
///
/// # Errors
/// `stop` was raised, or the generated day does not have the expected hash.
pub(crate) fn load(day: &StandardDay, stop: &StopSignal, shows_progress: bool) -> anyhow::Result<DayFile> {
    match cache_folder() {
        Ok(folder) => load_from(&folder, day, stop, shows_progress),
        Err(error) => Ok(DayFile { bytes: generate_uncached(day, stop)?, cached: Err(error.to_string()) }),
    }
}

fn load_from(
    folder: &Path,
    day: &StandardDay,
    stop: &StopSignal,
    shows_progress: bool,
) -> anyhow::Result<DayFile> {
    let path = folder.join(format!("{}.itch", day.name));
    match fs::read(&path) {
        Ok(bytes) => match check(day, &bytes) {
            Ok(()) => return Ok(DayFile { bytes, cached: Ok(path) }),
            Err(error) => {
                print_progress(shows_progress, &format!("{}: {error}; making it again", path.display()))
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            print_progress(shows_progress, &format!("{}: {error}; making it again", path.display()))
        }
    }
    let (bytes, cached) = generate_and_cache(day, &path, stop, shows_progress)?;
    let message = match &cached {
        Ok(()) => format!("{} kept as {}, {} bytes", day.name, path.display(), bytes.len()),
        Err(error) => format!("{} is not kept, and made again next time: {error:#}", day.name),
    };
    print_progress(shows_progress, &message);
    Ok(DayFile { bytes, cached: cached.map(|()| path).map_err(|error| format!("{error:#}")) })
}

/// Generates a day without using the cache.
pub(crate) fn generate_uncached(day: &StandardDay, stop: &StopSignal) -> anyhow::Result<Vec<u8>> {
    generate(day, stop, |_, _| ())
}

type CacheResult = anyhow::Result<()>;

fn generate_and_cache(
    day: &StandardDay,
    path: &Path,
    stop: &StopSignal,
    shows_progress: bool,
) -> anyhow::Result<(Vec<u8>, CacheResult)> {
    let mut file = create_unfinished(day, path);
    let shows_percent = shows_progress && io::stderr().is_terminal();
    print_progress(shows_progress, &format!("making {} once, for {}", day.name, path.display()));
    let mut shown = 0;
    let made = generate(day, stop, |new, percent| {
        if let Ok(open) = &mut file
            && let Err(error) = open.write_all(new)
        {
            // This drops the file, which removes it and frees its disk space.
            file = Err(error.into());
        }
        if shows_percent && percent > shown {
            shown = percent;
            print_stderr_part(format_args!("\rlab bench: making {}: {percent}%", day.name));
        }
    });
    if shown > 0 {
        print_stderr("");
    }
    let bytes = made?;
    let cached = file.and_then(|file| Ok(file.persist(path).map_err(|error| error.error)?));
    Ok((bytes, cached.map(|_| ()).with_context(|| format!("cannot write {}", path.display()))))
}

/// Creates a private temporary file beside the path of a day; it is removed on drop.
fn create_unfinished(day: &StandardDay, path: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let prefix = format!("{}.itch.", day.name);
    remove_abandoned(folder, &prefix);
    Ok(tempfile::Builder::new().prefix(&prefix).suffix(UNFINISHED).tempfile_in(folder)?)
}

/// Removes partial files that killed processes left behind.
fn remove_abandoned(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let age =
            entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if name.starts_with(prefix)
            && name.ends_with(UNFINISHED)
            && age.is_some_and(|age| age > UNFINISHED_AGE)
        {
            // The file is useless, and a failure to remove it is harmless.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Generates the bytes of a day's file; passes new bytes and the percentage done to `each`.
fn generate(
    day: &StandardDay,
    stop: &StopSignal,
    mut each: impl FnMut(&[u8], u64),
) -> anyhow::Result<Vec<u8>> {
    let mut messages = ItchDay::new(day.config)?;
    let mut bytes = Vec::with_capacity(day.config.messages as usize * FRAME_LEN);
    let mut made = 0;
    loop {
        let start = bytes.len();
        let count = messages.append_frames(FRAMES, &mut bytes) as u64;
        if count == 0 {
            break;
        }
        if stop.is_stopped() {
            bail!("interrupted while {} was made", day.name);
        }
        made += count;
        each(&bytes[start..], 100 * made / day.config.messages.max(1));
    }
    check(day, &bytes).with_context(|| format!("{} made just now", day.name))?;
    Ok(bytes)
}

fn check(day: &StandardDay, bytes: &[u8]) -> anyhow::Result<()> {
    let hash = xxh3_64(bytes);
    ensure!(hash == day.hash, "its hash is {hash:#018x} and should be {:#018x}", day.hash);
    Ok(())
}

fn print_progress(shows_progress: bool, message: &str) {
    if shows_progress {
        print_stderr(format_args!("lab bench: {message}"));
    }
}

/// Folder for files that can be regenerated: `$XDG_CACHE_HOME/tickpath`, or `~/.cache/tickpath`.
fn cache_folder() -> anyhow::Result<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
    let caches = caches.context("neither XDG_CACHE_HOME nor HOME names a folder for the standard days")?;
    Ok(caches.join("tickpath"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread;
    use std::time::SystemTime;

    use super::*;
    use crate::context::Effort;

    const DAY: StandardDay = StandardDay::itch_500(Effort::Smoke);

    fn load_here(folder: &Path) -> DayFile {
        load_from(folder, &DAY, &StopSignal::new(), false).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn only_a_damaged_day_is_regenerated() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("tickpath");
        let made = load_here(&cache);
        let path = made.cached.unwrap();
        assert_eq!(names(&cache), ["itch-500-smoke.itch"]);
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert!(load_here(&cache).bytes == made.bytes);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written, "it was read, not made");
        for damage in [&made.bytes[..made.bytes.len() / 2], &[]] {
            fs::write(&path, damage).unwrap();
            assert!(load_here(&cache).bytes == made.bytes);
            assert!(fs::read(&path).unwrap() == made.bytes);
        }
        assert_eq!(names(&cache).len(), 1);
    }

    #[test]
    fn a_day_that_cannot_be_cached_has_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let day = load_here(&file);
        assert!(check(&DAY, &day.bytes).is_ok() && day.cached.unwrap_err().contains("cannot write"));
        let in_the_way = folder.path().join("cache/itch-500-smoke.itch/full");
        fs::create_dir_all(&in_the_way).unwrap();
        assert!(load_here(&folder.path().join("cache")).cached.is_err());
        assert_eq!(names(&folder.path().join("cache")).len(), 1, "nothing unfinished is left");
    }

    #[test]
    fn two_runs_generate_a_day_at_once() {
        let folder = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| load_here(folder.path()).cached);
            assert!(load_here(folder.path()).cached.is_ok());
            assert!(other.join().unwrap().is_ok());
        });
        assert_eq!(names(folder.path()).len(), 1);
        assert!(check(&DAY, &fs::read(folder.path().join("itch-500-smoke.itch")).unwrap()).is_ok());
    }

    #[test]
    fn a_stopped_run_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let stop = StopSignal::new();
        stop.stop();
        let error = load_from(folder.path(), &DAY, &stop, false).err().unwrap();
        assert!(error.to_string().contains("interrupted"), "{error}");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn only_abandoned_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = ("itch-500-smoke.itch.a.unfinished", "itch-500-smoke.itch.b.unfinished");
        File::create(folder.path().join(new)).unwrap();
        let old = File::create(folder.path().join(old)).unwrap();
        old.set_modified(SystemTime::now() - 2 * UNFINISHED_AGE).unwrap();
        assert!(load_here(folder.path()).cached.is_ok());
        let mut left = names(folder.path());
        left.sort_unstable();
        assert_eq!(left, ["itch-500-smoke.itch", new]);
    }
}
