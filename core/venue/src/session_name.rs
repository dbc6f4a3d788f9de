//! Names of the venue's session: as configured, by the time of a start, and on the wire.

use tickpath_nasdaq::moldudp64::Session;

/// Longest name that SoupBinTCP and MoldUDP64 have room for.
const LEN_MAX: usize = 10;
const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Stands before the generation.
const MARK: u8 = b'~';

/// The name of a session on the wire in one of its generations: its own in the first, 0, and then with `~1`, `~2` ... in
/// base 36 at its end, for which a long name gives up its front. `None` when its own is too long.
///
/// The numbers of messages continue, or are used again, as the log has it. A client that received them under another name
/// sees by this one that they may denote other messages now.
#[must_use]
pub fn wire_name(name: &str, generation: u32) -> Option<Session> {
    if generation == 0 || name.len() > LEN_MAX {
        return Session::new(name);
    }
    let mut suffix = Vec::with_capacity(LEN_MAX);
    let mut rest = generation;
    while rest > 0 {
        suffix.push(DIGITS[(rest % 36) as usize]);
        rest /= 36;
    }
    suffix.push(MARK);
    suffix.reverse();
    let kept = name.len().min(LEN_MAX - suffix.len());
    let bytes = [&name.as_bytes()[name.len() - kept..], &suffix].concat();
    Session::new(std::str::from_utf8(&bytes).ok()?)
}

/// A name of the configuration: 1 to 10 letters, digits, `-` or `_`. It is also a folder's name once the session is put
/// aside, and on the wire a generation follows `~`.
#[must_use]
pub fn session_named(name: &str) -> Option<Session> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    Session::new(name).filter(|_| !name.is_empty() && name.bytes().all(is_word))
}

/// `TP` and the time of a start, in milliseconds since 1970, in 8 digits of base 36: they last 89 years.
#[must_use]
pub fn session_name_at(mut millis: u128) -> String {
    let mut name = *b"TP00000000";
    for place in name[2..].iter_mut().rev() {
        *place = DIGITS[(millis % 36) as usize];
        millis /= 36;
    }
    name.map(char::from).iter().collect()
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
            assert_eq!(wire_name(name, generation), Session::new(expected), "{name} {generation}");
        }
        assert_eq!(wire_name("ELEVENCHARS", 0), None);
        assert_eq!(wire_name("ELEVENCHARS", 1), None);
        let names: HashSet<_> = (0..2_000).map(|it| wire_name("TENLETTERS", it).unwrap()).collect();
        assert_eq!(names.len(), 2_000);
    }

    #[test]
    fn a_name_of_a_session_is_the_time_of_the_start() {
        assert_eq!(session_name_at(0), "TP00000000");
        assert_eq!(session_name_at(36 * 36 + 35), "TP0000010Z");
        assert_ne!(session_name_at(1_795_000_000_000), session_name_at(1_795_000_000_001), "1 ms later");
    }
}
