//! What the measurements of one run share.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;
use tickpath_config::tell;

use crate::bench::BenchOptions;
use crate::context::{Context, Effort};
use crate::counted::{self, Counted, CountedBooks};
use crate::counted_crowd;
use crate::counted_history;
use crate::day::StandardDay;
use crate::day_facts::{self, DayFacts};
use crate::day_file;
use crate::measure::crowd::Last;

/// What the measurements of one run share: how they are to be made, and the standard days, each loaded once.
pub(crate) struct Lab<'a> {
    pub(crate) context: Context,
    pub(crate) options: &'a BenchOptions,
    days: RefCell<Vec<Rc<Day>>>,
}

/// A standard day in memory.
pub(crate) struct Day {
    pub(crate) standard: StandardDay,
    /// The same day at other sizes.
    pub(crate) sizes: fn(Effort) -> StandardDay,
    pub(crate) bytes: Vec<u8>,
    pub(crate) facts: DayFacts,
    /// Its file, or why there is none.
    pub(crate) kept: Result<PathBuf, String>,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(context: Context, options: &'a BenchOptions) -> Lab<'a> {
        Lab { context, options, days: RefCell::default() }
    }

    /// A standard day; the first who asks waits until it is loaded, made if need be, and gone through.
    pub(crate) fn day(&self, sizes: fn(Effort) -> StandardDay) -> anyhow::Result<Rc<Day>> {
        let standard = sizes(self.context.effort);
        if let Some(day) = self.days.borrow().iter().find(|day| day.standard.name == standard.name) {
            return Ok(Rc::clone(day));
        }
        let stop = &self.options.stop;
        let (bytes, kept) = match self.context.effort {
            Effort::Smoke => {
                (day_file::make_only(&standard, stop)?, Err("it is made in an instant".to_owned()))
            }
            _ => {
                let file = day_file::load(&standard, stop, self.options.show_progress)?;
                (file.bytes, file.kept)
            }
        };
        self.tell(&format!("going through {}", standard.name));
        let facts = day_facts::survey(&standard, &bytes)?;
        let day = Rc::new(Day { standard, sizes, bytes, facts, kept });
        self.days.borrow_mut().push(Rc::clone(&day));
        Ok(day)
    }

    /// The days that were asked for.
    pub(crate) fn days(&self) -> Vec<Rc<Day>> {
        self.days.borrow().clone()
    }

    /// Counts a pass of a day through books under callgrind.
    ///
    /// # Errors
    /// Why it cannot be counted, with the remedy.
    pub(crate) fn count(
        &self,
        day: &StandardDay,
        books: CountedBooks,
        with_caches: bool,
    ) -> anyhow::Result<Counted> {
        let command = self.counting_command()?;
        let bytes = day_file::make_only(day, &self.options.stop)?;
        self.tell(&format!("counting {} through the {} books under callgrind", day.name, books.name()));
        counted::count(command, books, with_caches, &day.config, &day.outcome, &bytes)
    }

    /// Counts the venue's instructions for a hundred clients under callgrind.
    ///
    /// # Errors
    /// Why they cannot be counted, with the remedy.
    pub(crate) fn count_crowd(&self, last: Last) -> anyhow::Result<u64> {
        let command = self.counting_command()?;
        self.tell(&format!(
            "counting a venue whose hundredth client {} under callgrind",
            counted_crowd::verb(last)
        ));
        counted::count_crowd(command, last)
    }

    /// Counts the instructions of a shell's link under callgrind, with its history and without.
    ///
    /// # Errors
    /// Why they cannot be counted, with the remedy.
    pub(crate) fn count_history(&self, keeps: bool) -> anyhow::Result<u64> {
        let command = self.counting_command()?;
        let history = counted_history::name(keeps);
        self.tell(&format!(
            "counting a shell that takes market data in, its history {history}, under callgrind"
        ));
        counted::count_history(command, keeps)
    }

    /// Counts the instructions of a gateway's broadcast under callgrind.
    ///
    /// # Errors
    /// Why they cannot be counted, with the remedy.
    pub(crate) fn count_fanout(&self, clients: usize) -> anyhow::Result<u64> {
        let command = self.counting_command()?;
        self.tell(&format!("counting what is told to {clients} clients of a gateway under callgrind"));
        counted::count_fanout(command, clients)
    }

    /// The program of another command, which lies beside that of the laboratory.
    ///
    /// # Errors
    /// Why there is none, with the remedy.
    pub(crate) fn program_beside(&self, command: &str) -> Result<OsString, String> {
        let own = self.options.counting_command.as_ref().and_then(|command| command.first());
        let Some(own) = own else {
            return Err("its program is not known: use `tickpath lab bench`".to_owned());
        };
        let path = Path::new(own).with_file_name(format!("tickpath-{command}"));
        match path.is_file() {
            true => Ok(path.into()),
            false => Err(format!(
                "there is no {}: build it by cargo build --release -p tickpath --features full",
                path.display()
            )),
        }
    }

    fn counting_command(&self) -> anyhow::Result<&[OsString]> {
        let command = self.options.counting_command.as_deref();
        command.context("instructions are counted by the program tickpath, and this is another")
    }

    fn tell(&self, words: &str) {
        if self.options.show_progress {
            tell(format_args!("lab bench: {words}"));
        }
    }
}
