//! The process whose instructions callgrind counts.

use std::io::Write;

use anyhow::bail;

use crate::rows::measurements;

/// Does the work whose instructions [`bench`](crate::bench) counts. Call it in the process that `bench`
/// starts under callgrind: `arguments` are those that follow
/// [`BenchOptions::counting_command`](crate::BenchOptions::counting_command).
///
/// The first argument names the work; the function prints the result of the work.
///
/// # Errors
/// The arguments differ from those that `bench` passes, or the work's input cannot be read.
pub fn run_counted(arguments: &[String]) -> anyhow::Result<()> {
    let mut works = measurements().filter_map(|measurement| measurement.counted);
    let work = arguments.first().and_then(|name| works.find(|work| work.names.contains(&name.as_str())));
    let Some(work) = work else {
        bail!("this command is for `lab bench`, which gives it books, messages, symbols and live orders");
    };
    writeln!(std::io::stdout(), "{}", (work.run)(arguments)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bench_calls_the_counted_work() {
        for arguments in [&[][..], &["other".to_owned()]] {
            assert!(run_counted(arguments).unwrap_err().to_string().contains("lab bench"));
        }
    }
}
