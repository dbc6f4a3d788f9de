//! State shared by the measurements of one run.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use tickpath_config::print_stderr;

use crate::context::{Context, Effort};
use crate::day::StandardDay;
use crate::day_file::{self, DayFile};
use crate::day_statistics::{self, DayStatistics};
use crate::options::BenchOptions;

/// State shared by the measurements of one run: the context, the options, and the standard days, each loaded
/// once.
pub(crate) struct Lab<'a> {
    pub(crate) context: Context,
    pub(crate) options: &'a BenchOptions,
    days: RefCell<Vec<Rc<Day>>>,
}

/// A standard day in memory.
pub(crate) struct Day {
    pub(crate) standard: StandardDay,
    /// Returns the variant of this day whose size suits an effort.
    pub(crate) sizes: fn(Effort) -> StandardDay,
    pub(crate) file: DayFile,
    pub(crate) statistics: DayStatistics,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(context: Context, options: &'a BenchOptions) -> Lab<'a> {
        Lab { context, options, days: RefCell::default() }
    }

    /// Returns a standard day; the first call loads it, generates it if needed, and surveys it.
    pub(crate) fn day(&self, sizes: fn(Effort) -> StandardDay) -> anyhow::Result<Rc<Day>> {
        let standard = sizes(self.context.effort);
        if let Some(day) = self.days.borrow().iter().find(|day| day.standard.name == standard.name) {
            return Ok(Rc::clone(day));
        }
        let stop = &self.options.stop;
        let file = match self.context.effort {
            Effort::Smoke => DayFile {
                bytes: day_file::generate_uncached(&standard, stop)?,
                cached: Err("it is made in an instant".to_owned()),
            },
            _ => day_file::load(&standard, stop, self.options.show_progress)?,
        };
        self.print_progress(format_args!("surveying {}", standard.name));
        let statistics = day_statistics::survey(&standard, &file.bytes)?;
        let day = Rc::new(Day { standard, sizes, file, statistics });
        self.days.borrow_mut().push(Rc::clone(&day));
        Ok(day)
    }

    /// Returns the days used so far.
    pub(crate) fn days(&self) -> Vec<Rc<Day>> {
        self.days.borrow().clone()
    }

    /// Returns the command line of counted work, to be run under callgrind.
    ///
    /// # Errors
    /// The options contain no such command line.
    pub(crate) fn counting_command(&self) -> anyhow::Result<&[OsString]> {
        let command = self.options.counting_command.as_deref();
        command.context("instructions are counted by the program tickpath, and this is another")
    }

    /// Returns the path of the program `tickpath-COMMAND` in the folder of this program.
    ///
    /// # Errors
    /// [`Missing`], with the reason and the remedy.
    pub(crate) fn sibling_program(&self, command: &str) -> anyhow::Result<OsString> {
        let own = self.options.counting_command.as_ref().and_then(|command| command.first());
        let own =
            own.ok_or_else(|| Missing("its program is not known: use `tickpath lab bench`".to_owned()))?;
        let path = Path::new(own).with_file_name(format!("tickpath-{command}"));
        if !path.is_file() {
            anyhow::bail!(Missing(format!(
                "there is no {}: build it by cargo build --release -p tickpath --features full",
                path.display()
            )));
        }
        Ok(path.into())
    }

    /// Prints the current activity on standard error, if progress is enabled.
    pub(crate) fn print_progress(&self, what: fmt::Arguments<'_>) {
        if self.options.show_progress {
            print_stderr(format_args!("lab bench: {what}"));
        }
    }
}

/// Error of a measurement that this host cannot run, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Missing(pub(crate) String);
