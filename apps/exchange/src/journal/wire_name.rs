//! What clients and feed handlers know a journal's session by.

use tickpath_journal::SessionName;
use tickpath_nasdaq::moldudp64::Session;

/// Longest name that SoupBinTCP and MoldUDP64 have room for.
const LEN_MAX: usize = 10;
/// Stands before the generation.
const MARK: u8 = b'~';

/// The name of a session on the wire in one of its generations: its own in the first, 0, and then with `~1`, `~2` ... in
/// base 36 at its end, for which a long name gives up its front. `None` when its own is too long.
///
/// The numbers of messages go on, or are used again, as the log has it. Whoever heard them under another name knows by
/// this one that they may stand for something else now.
pub(crate) fn wire_name(session: SessionName, generation: u32) -> Option<Session> {
    let name = session.to_string();
    if generation == 0 || name.len() > LEN_MAX {
        return Session::new(&name);
    }
    let mut suffix = Vec::with_capacity(LEN_MAX);
    let mut rest = generation;
    while rest > 0 {
        suffix.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(rest % 36) as usize]);
        rest /= 36;
    }
    suffix.push(MARK);
    suffix.reverse();
    let kept = name.len().min(LEN_MAX - suffix.len());
    let bytes = [&name.as_bytes()[name.len() - kept..], &suffix].concat();
    Session::new(std::str::from_utf8(&bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_generation_has_a_name_of_its_own() {
        for (name, generation, expected) in [
            ("MONDAY", 0, "MONDAY"),
            ("MONDAY", 1, "MONDAY~1"),
            ("MONDAY", 36, "MONDAY~10"),
            ("TP0MHX3ABC", 1, "0MHX3ABC~1"),
            ("TENLETTERS", 35 * 36, "LETTERS~Z0"),
            ("A", u32::MAX, "A~1Z141Z3"),
            ("TENLETTERS", u32::MAX, "RS~1Z141Z3"),
        ] {
            let name = SessionName::new(name).unwrap();
            assert_eq!(wire_name(name, generation), Session::new(expected), "{name} {generation}");
        }
        assert_eq!(wire_name(SessionName::new("ELEVENCHARS").unwrap(), 0), None);
        assert_eq!(wire_name(SessionName::new("ELEVENCHARS").unwrap(), 1), None);
        let name = SessionName::new("TENLETTERS").unwrap();
        let names: HashSet<_> = (0..2_000).map(|generation| wire_name(name, generation).unwrap()).collect();
        assert_eq!(names.len(), 2_000);
    }
}
