//! Lines about the venue's connections, gathered: those that fail alike are one line.

use tickpath_types::Nanos;

/// How long a line waits for others like it: the connections of a venue that is gone fail one after another.
const WAIT: Nanos = Nanos::from_millis(300);
/// How a line about one connection begins, and goes on behind its name.
const ONE: &str = "connection ";

/// Notes that wait to be printed. Not for a duty cycle.
#[derive(Debug, Default)]
pub(crate) struct NoteLines {
    waiting: Vec<String>,
    since: Option<Nanos>,
}

impl NoteLines {
    pub(crate) fn push(&mut self, now: Nanos, note: String) {
        self.since.get_or_insert(now);
        self.waiting.push(note);
    }

    /// The lines that have waited long enough.
    pub(crate) fn poll(&mut self, now: Nanos) -> Vec<String> {
        if self.since.is_none_or(|since| now.since(since) < WAIT) {
            return Vec::new();
        }
        self.finish()
    }

    /// All lines, in the order in which each was said first.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        self.since = None;
        let mut lines: Vec<(Vec<String>, String)> = Vec::new();
        for note in self.waiting.drain(..) {
            let Some((name, why)) = note.strip_prefix(ONE).and_then(|rest| rest.split_once(": ")) else {
                lines.push((Vec::new(), note));
                continue;
            };
            match lines.iter_mut().find(|(names, said)| !names.is_empty() && said == why) {
                Some((names, _)) if names.iter().any(|other| other == name) => {}
                Some((names, _)) => names.push(name.to_owned()),
                None => lines.push((vec![name.to_owned()], why.to_owned())),
            }
        }
        let line = |(names, said): (Vec<String>, String)| match names.as_slice() {
            [] => said,
            [name] => format!("{ONE}{name}: {said}"),
            names => format!("connections {}: {said}", names.join(", ")),
        };
        lines.into_iter().map(line).collect()
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
}
