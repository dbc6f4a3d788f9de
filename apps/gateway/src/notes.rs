//! Messages about the venue's connections, merged: connections that fail for the same reason share one line.
//! A connection that fails again for the same reason is counted, not printed.

use tickpath_config::counted;
use tickpath_types::Nanos;

/// Time that a line waits for similar ones: when a venue is down, its connections fail one after another.
const WAIT: Nanos = Nanos::from_millis(300);
/// Prefix of a line about one connection; its name follows.
const ONE: &str = "connection ";

/// Messages that wait to be printed. Not for a duty cycle.
#[derive(Debug, Default)]
pub(crate) struct NoteLines {
    waiting: Vec<String>,
    since: Option<Nanos>,
    /// The last failure of each connection since the gateway was ready.
    failures: Vec<Failure>,
}

/// A connection's failure.
#[derive(Debug)]
struct Failure {
    name: String,
    why: String,
    /// Number of repetitions since it was printed.
    again: u64,
}

impl NoteLines {
    pub(crate) fn push(&mut self, now: Nanos, note: String) {
        self.since.get_or_insert(now);
        self.waiting.push(note);
    }

    /// Returns the lines once they have waited long enough.
    pub(crate) fn poll(&mut self, now: Nanos) -> Vec<String> {
        if self.since.is_none_or(|since| now.since(since) < WAIT) {
            return Vec::new();
        }
        self.finish()
    }

    /// Returns all lines, in the order in which each first appeared.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        self.since = None;
        let mut lines: Vec<(Vec<String>, String)> = Vec::new();
        for note in self.waiting.drain(..) {
            let Some((name, why)) = note.strip_prefix(ONE).and_then(|rest| rest.split_once(": ")) else {
                lines.push((Vec::new(), note));
                continue;
            };
            let Some(why) = news_of(&mut self.failures, name, why) else { continue };
            match lines.iter_mut().find(|(names, said)| !names.is_empty() && *said == why) {
                Some((names, _)) if names.iter().any(|other| other == name) => {}
                Some((names, _)) => names.push(name.to_owned()),
                None => lines.push((vec![name.to_owned()], why)),
            }
        }
        let line = |(names, said): (Vec<String>, String)| match names.as_slice() {
            [] => said,
            [name] => format!("{ONE}{name}: {said}"),
            names => format!("connections {}: {said}", names.join(", ")),
        };
        lines.into_iter().map(line).collect()
    }

    /// Resets the failures when the gateway is ready, so that each connection's next failure is printed.
    /// Returns a line about those that were not printed, if any.
    pub(crate) fn recovered(&mut self) -> Option<String> {
        let again: u64 = self.failures.drain(..).map(|failure| failure.again).sum();
        (again > 0).then(|| format!("connected after {}", counted(again, "more failed attempt")))
    }
}

/// Text to print for a failure; `None` for one that repeats.
fn news_of(failures: &mut Vec<Failure>, name: &str, why: &str) -> Option<String> {
    match failures.iter_mut().find(|failure| failure.name == name) {
        Some(failure) if failure.why == why => {
            failure.again += 1;
            None
        }
        Some(failure) => {
            let before = match std::mem::take(&mut failure.again) {
                0 => String::new(),
                again => format!(" (after {} as before)", counted(again, "more failure")),
            };
            failure.why = why.to_owned();
            Some(format!("{why}{before}"))
        }
        None => {
            failures.push(Failure { name: name.to_owned(), why: why.to_owned(), again: 0 });
            Some(why.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_alike_is_one_line() {
        let mut notes = NoteLines::default();
        let start = Nanos::from_secs(1);
        assert!(notes.poll(start).is_empty());
        for note in [
            "connection market-1: Connection refused",
            "channel x: refused",
            "connection A1: Connection refused",
            "connection B1: TLS: too old",
            "connection A1: Connection refused",
        ] {
            notes.push(start, note.to_owned());
            assert!(notes.poll(start).is_empty());
        }
        let lines = [
            "connections market-1, A1: Connection refused",
            "channel x: refused",
            "connection B1: TLS: too old",
        ];
        assert_eq!(notes.poll(start + WAIT), lines);
        assert!(notes.poll(start + WAIT + WAIT).is_empty() && notes.finish().is_empty());
        notes.push(start, "last".to_owned());
        assert_eq!(notes.finish(), ["last"]);
    }

    #[test]
    fn a_failure_is_printed_again_when_something_has_changed() {
        let mut notes = NoteLines::default();
        let mut after = |note: &str| {
            notes.push(Nanos::ZERO, note.to_owned());
            notes.finish()
        };
        assert_eq!(after("connection A1: Connection refused"), ["connection A1: Connection refused"]);
        for _ in 0..5 {
            assert!(after("connection A1: Connection refused").is_empty(), "it is the same");
        }
        assert_eq!(after("connection B1: Connection refused"), ["connection B1: Connection refused"]);
        assert_eq!(
            after("connection A1: no such host"),
            ["connection A1: no such host (after 5 more failures as before)"]
        );
        assert!(after("connection A1: no such host").is_empty());
        assert_eq!(notes.recovered().unwrap(), "connected after 1 more failed attempt");
        assert_eq!(notes.recovered(), None);
        notes.push(Nanos::ZERO, "connection A1: no such host".to_owned());
        assert_eq!(notes.finish(), ["connection A1: no such host"], "it was there in between");
    }
}
